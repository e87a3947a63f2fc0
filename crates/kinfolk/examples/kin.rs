//! Clusters by `kin` and says how well and how fast:
//!
//!     cargo run --release -p kinfolk --example kin -- FEATURES LABELS [-k K] [--prefer P] [--graph GRAPH.npz] [--seed S]
//!
//! One line of JSON: pairwise and BCubed F with precision and recall, clusters, seconds of each stage. P is a probability.

use kinfolk::{KinParams, KnnParams, Prefer, io, kin, metrics};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut plain, mut params, mut graph) = (Vec::new(), KinParams::default(), None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument}: expected a value"));
        match argument.as_str() {
            "-k" => params.knn = KnnParams { k: value()?.parse()?, ..params.knn },
            "--seed" => params.knn.seed = value()?.parse()?,
            "--prefer" => params.prefer = Prefer::Probability(value()?.parse()?),
            "--graph" => graph = Some(io::read_graph(Path::new(&value()?), None)?),
            _ => plain.push(argument),
        }
    }
    let [features, labels] = plain.as_slice() else {
        return Err("expected FEATURES LABELS [-k K] [--prefer P] [--graph GRAPH.npz] [--seed S]".into());
    };
    let embeddings = io::read_embeddings(Path::new(features), &io::ReadOptions::default())?;
    let truth = io::read_labels(Path::new(labels))?;
    let found = kin(&embeddings, graph.as_ref(), &params, &())?;
    let scores = metrics::evaluate(&truth, &found.labels)?;
    let clusters = found.labels.iter().max().map_or(0, |last| last + 1);
    let seconds: Vec<String> =
        found.timings.iter().map(|(stage, time)| format!("\"{stage}\": {:.3}", time.as_secs_f64())).collect();
    let (pairs, bcubed) = (&scores.pairwise, &scores.bcubed);
    println!(
        "{{\"features\": \"{features}\", \"k\": {}, \"pairwise\": [{:.4}, {:.4}, {:.4}], \"bcubed\": [{:.4}, {:.4}, {:.4}], \
         \"clusters\": {clusters}, \"seconds\": {{{}}}}}",
        found.k,
        pairs.f,
        pairs.precision,
        pairs.recall,
        bcubed.f,
        bcubed.precision,
        bcubed.recall,
        seconds.join(", ")
    );
    Ok(())
}
