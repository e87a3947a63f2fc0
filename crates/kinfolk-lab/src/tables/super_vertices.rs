//! What super vertices save and cost: the methods that have them with and without, on a set of which a tenth of the rows is
//! repeated. Every second of these is an exact copy, the others have a little noise.
//!
//! Every run searches for its own neighbours, because that is what contraction saves most of.

use super::comparison::Comparison;
use super::part::Part;
use crate::measure::measure;
use crate::scores::percent;
use kinfolk::metrics::evaluate;
use kinfolk::random::{Purpose, Stream};
use kinfolk::{Context, Embeddings, Problem};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::{table, write_text};

/// The bounds that are tried; 1 contracts nothing.
const BOUNDS: [&str; 3] = ["1", "0.95", "0.9"];

/// One of so many rows is repeated.
const REPEATED: usize = 10;

/// The squared length of the noise of a row: a repeated row has a cosine of about 0.98 with its original.
const NOISE: f32 = 0.04;

const HEADINGS: [&str; 9] =
    ["method", "bound", "vertices", "pairwise F", "BCubed F", "cpu s", "contraction s", "knn s", "all s"];

/// Prints the table, and writes it beside the others.
pub fn compare(comparison: &Comparison, part: &Part) -> Result<(), Failure> {
    let (rows, labels) = with_repeated_rows(part, comparison.options.seed)?;
    let mut lines = Vec::new();
    for candidate in &comparison.candidates {
        let Ok(setting) = &candidate.setting else { continue };
        let mut method = comparison.method(&candidate.listed, setting, rows.len())?;
        if method.parameters().get("super_vertices").is_none() {
            continue;
        }
        for bound in BOUNDS {
            method.parameters_mut().set("super_vertices", bound)?;
            let bars = Bars::default();
            let context = Context::new(&bars).with_seed(comparison.options.seed);
            let problem = Problem::new(&rows).with_k(Some(part.graph.k()))?;
            let (found, cost) = measure(|| method.run(&problem, &context));
            let found = found?;
            let scores = evaluate(&labels, &found.labels)?;
            let seconds = |stage: &str| {
                let time = found.report.timings.iter().find(|timing| timing.0 == stage);
                time.map_or("-".to_owned(), |timing| format!("{:.2}", timing.1.as_secs_f64()))
            };
            let vertices = found.report.parameters.iter().find(|parameter| parameter.0 == "vertices");
            let vertices = vertices.map(|parameter| parameter.1.clone());
            lines.push(vec![
                candidate.name().to_owned(),
                bound.to_owned(),
                vertices.unwrap_or_else(|| rows.len().to_string()),
                percent(scores.pairwise.f),
                percent(scores.bcubed.f),
                format!("{:.2}", cost.cpu_seconds),
                seconds("contraction"),
                seconds("knn"),
                format!("{:.2}", cost.seconds),
            ]);
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let set = format!(
        "Super vertices: {} rows, of which every {REPEATED}th is repeated, half of these with noise: {} rows",
        part.labels.len(),
        labels.len()
    );
    println!("\n{set}\n");
    table::print(&HEADINGS, &lines);
    let headings = HEADINGS.map(str::to_owned);
    let path = comparison.directory.join("super-vertices.md");
    write_text(&path, &format!("{set}\n\n{}", table::markdown(&headings, &lines)))
}

fn with_repeated_rows(part: &Part, seed: u64) -> Result<(Embeddings, Vec<i64>), Failure> {
    let dim = part.features.dim();
    let spread = (NOISE / dim as f32).sqrt();
    let (mut data, mut labels) = (part.features.as_slice().to_vec(), part.labels.clone());
    for (at, row) in (0..part.labels.len()).step_by(REPEATED).enumerate() {
        let mut stream = Stream::new(seed, Purpose::Image, u64::MAX, row as u64);
        let spread = if at % 2 == 0 { 0.0 } else { spread };
        data.extend(part.features.row(row).iter().map(|v| v + spread * stream.rough_normal()));
        labels.push(part.labels[row]);
    }
    Ok((Embeddings::from_rows(data, dim, "repeated rows")?, labels))
}
