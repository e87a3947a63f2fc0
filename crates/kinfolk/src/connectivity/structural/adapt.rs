//! Fine-tunes the edge model on the edges of labelled rows.
//!
//! A penalty on the squared distance keeps the weights near the built-in ones. Without it, the model learns the sizes of the
//! identities of this set, and splits identities that are much larger than those it has seen.
//!
//! Cost: O(N K^2) for the features of the sampled rows, and the cost of `fit`.

use super::features::{FEATURES, Numbers, Scratch, Structure, Whole};
use super::fit::{Examples, FitParams};
use super::{Background, EdgeModel, INPUTS, Sizes};
use crate::random::{Purpose, Stream};
use crate::{KnnGraph, Progress, Result};
use rayon::prelude::*;

/// The maximum number of training edges. More need time and memory and do not improve the model.
const EDGES: usize = 1_500_000;
/// The weight of the penalty.
const HOLD: f32 = 0.06;
/// Rows of a task, which are in no order: together they list many.
const ROWS: usize = 32;

/// Edges whose ends have labels.
pub(crate) struct LabelledEdges(Examples);

impl LabelledEdges {
    /// The edges from the rows that are `taken`, or from a sample of them.
    pub(crate) fn of(
        graph: &KnnGraph,
        background: &Background,
        sizes: Sizes,
        labels: &[i64],
        taken: impl Fn(usize) -> bool,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let whole = Whole::of(graph, background);
        let rows: Vec<u32> = (0..labels.len() as u32).filter(|&i| taken(i as usize)).collect();
        let most = EDGES / graph.k().max(1);
        let mut stream = Stream::new(seed, Purpose::Network, 3, 0);
        let chosen: Vec<u32> = stream.sample(rows.len(), most).iter().map(|&at| rows[at as usize]).collect();
        let tables = || (Numbers::for_rows(graph.len()), Scratch::new(graph.k()));
        let of_rows = |(numbers, scratch): &mut (Numbers, Scratch), rows: &[u32]| {
            if progress.cancelled() {
                return Vec::new();
            }
            let structure = Structure::of(&whole, rows, numbers);
            let of_row = |(number, &i): (usize, &u32)| {
                let same = graph.neighbours(i as usize).0.iter();
                let same: Vec<bool> = same.map(|&j| labels[i as usize] == labels[j as usize]).collect();
                (structure.of_row(number, scratch).to_vec(), same)
            };
            rows.iter().enumerate().map(of_row).collect()
        };
        let parts: Vec<Vec<(Vec<f32>, Vec<bool>)>> =
            chosen.par_chunks(ROWS).map_init(tables, of_rows).collect();
        progress.check()?;
        let mut examples = Examples::default();
        examples.features.reserve_exact(chosen.len() * graph.k() * INPUTS);
        for (features, same) in parts.into_iter().flatten() {
            let edges = features.chunks_exact(FEATURES).zip(same);
            edges.for_each(|(features, same)| examples.push(features, sizes, same));
        }
        Ok(Self(examples))
    }

    /// Mean cross-entropy of a model, in nats.
    pub(crate) fn loss(&self, model: &EdgeModel) -> f64 {
        self.0.loss(&model.network)
    }

    /// The built-in model, fine-tuned on these edges.
    pub(crate) fn adapt(&self, epochs: usize, seed: u64, progress: &dyn Progress) -> Result<EdgeModel> {
        let mut model = EdgeModel::default();
        progress.begin("training", epochs as u64);
        if self.0.len() > 0 {
            let params = FitParams { epochs, rate: 2e-3, decay: 0.0, hold: HOLD, seed };
            model.network.fit(&self.0, &params, progress, |_, _| progress.advance(1))?;
        }
        Ok(model)
    }
}
