//! Whether the edge probabilities of kin mean what they say ([`Calibration`]): on the sets of the comparison, and on new
//! synthetic worlds, by how large their identities are.

use crate::calibration::Calibration;
use crate::pretrain::worlds::{Kind, World};
use kinfolk::laboratory::{centred, estimate};
use kinfolk::stages::EdgeModel;
use kinfolk::{Context, Embeddings, KnnParams, Progress, Result, knn_graph};
use kinfolk_cli::table;

/// Rows of the largest world, as in pre-training.
const WORLD_ROWS: usize = 10_000;

/// A line for each set and each kind of world, and the bins of all reliability diagrams.
pub struct EdgeReport {
    lines: Vec<Vec<String>>,
    reliability: String,
}

impl EdgeReport {
    pub fn new() -> Self {
        Self { lines: Vec::new(), reliability: "set,probability,share,edges\n".to_owned() }
    }

    /// Adds a set, clustered as by the command.
    pub fn add_set(&mut self, name: &str, rows: &Embeddings, labels: &[i64]) -> Result<()> {
        self.add(name, &calibration(rows, labels)?);
        Ok(())
    }

    /// Adds worlds that the network was not trained on, by kind.
    pub fn add_worlds(&mut self, count: usize, seed: u64, progress: &dyn Progress) -> Result<()> {
        let mut kinds = Kind::ALL.map(|kind| (kind, 0, Calibration::default()));
        progress.begin("worlds", count as u64);
        for number in 0..count {
            progress.check()?;
            let World { embeddings, labels, kind } = World::draw(seed, number as u64, WORLD_ROWS);
            if let Some((_, worlds, sum)) = kinds.iter_mut().find(|(of, _, _)| *of == kind) {
                sum.merge(&calibration(&embeddings, &labels)?);
                *worlds += 1;
            }
            progress.advance(1);
        }
        for (kind, worlds, sum) in kinds.iter().filter(|(_, worlds, _)| *worlds > 0) {
            self.add(&format!("{worlds} worlds: {}", kind.name()), sum);
        }
        Ok(())
    }

    fn add(&mut self, name: &str, calibration: &Calibration) {
        let [expected, true_ones] = calibration.relatives();
        self.lines.push(vec![
            name.to_owned(),
            format!("{expected:.1}"),
            format!("{true_ones:.1}"),
            format!("{:.1}", 100.0 * calibration.error()),
            format!("{:.3}", calibration.loss()),
        ]);
        for [p, share, edges] in calibration.reliability() {
            self.reliability += &format!("\"{name}\",{p:.4},{share:.4},{edges}\n");
        }
    }

    pub fn print(&self) {
        println!(
            "Edge probabilities of kin: neighbours of the same identity per row, calibration error in percent, loss in nats"
        );
        table::print(&["set", "expected", "true", "error", "loss"], &self.lines);
    }

    /// The bins as CSV.
    pub fn reliability(&self) -> &str {
        &self.reliability
    }
}

/// The calibration of the edge probabilities that kin uses.
fn calibration<T: PartialEq>(rows: &Embeddings, labels: &[T]) -> Result<Calibration> {
    let context = Context::default();
    let rows = centred(rows, &context)?;
    let (graph, _) = knn_graph(&rows, &KnnParams::default(), &())?;
    let probabilities = estimate(&rows, &graph, &EdgeModel::default(), None, &context)?.probabilities;
    Ok(Calibration::of(&graph, &probabilities, labels))
}
