//! Modules of a kNN graph by the map equation, its edges weighted by their similarity:
//!
//!     cargo run --release -p kinfolk --example map_equation -- GRAPH.npz LABELS.npy [THRESHOLD] [--directed] [--seed S]
//!
//! GRAPH.npz is what `kinfolk knn` writes; edges not above THRESHOLD (0 if not given) are left out. LABELS.npy is
//! written, and one line of JSON printed: codelength in bits, number of modules and edges, seconds without
//! reading and writing.

use kinfolk::io;
use kinfolk::stages::{Flow, MapParams, WeightedGraph, map_equation};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut plain, mut params) = (Vec::new(), MapParams::default());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--directed" => params.flow = Flow::Directed,
            "--seed" => params.seed = arguments.next().ok_or("--seed: expected a number")?.parse()?,
            _ => plain.push(argument),
        }
    }
    let [graph, labels, rest @ ..] = plain.as_slice() else {
        return Err("expected GRAPH.npz LABELS.npy [THRESHOLD] [--directed] [--seed S]".into());
    };
    let threshold: f32 = rest.first().map_or(Ok(0.0), |threshold| threshold.parse())?;

    let graph = io::read_graph(Path::new(graph), None)?;
    let start = Instant::now();
    let weight = |&similarity: &f32| if similarity > threshold { similarity } else { 0.0 };
    let weights: Vec<f32> = (0..graph.len()).flat_map(|i| graph.neighbours(i).1).map(weight).collect();
    let graph = WeightedGraph::from_knn(&graph, &weights)?;
    let modules = map_equation(&graph, &params, &())?;
    let seconds = start.elapsed().as_secs_f64();

    io::write_npy_i64(Path::new(labels), &modules.labels)?;
    let count = modules.labels.iter().max().map_or(0, |last| last + 1);
    let (bits, edges) = (modules.codelength, graph.edges());
    println!(
        "{{\"codelength\": {bits}, \"modules\": {count}, \"edges\": {edges}, \"seconds\": {seconds:.3}}}"
    );
    Ok(())
}
