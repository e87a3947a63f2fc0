//! `kinfolk knn`: searches for nearest neighbours and writes the graph.

use super::{Features, Neighbours, check_writable};
use crate::bars::Bars;
use crate::failure::Failure;
use crate::machine;
use clap::Args;
use kinfolk::io::{GraphLayout, write_graph};
use kinfolk::{Context, KnnReport, Progress, announce_search, knn_graph};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

/// Find the nearest neighbours of every row
#[derive(Args)]
#[command(
    after_help = "Example:  kinfolk knn faces.npy -k 80 -o graph.npz\n          kinfolk cluster faces.npy --graph graph.npz"
)]
pub struct Arguments {
    #[command(flatten)]
    features: Features,
    #[command(flatten)]
    neighbours: Neighbours,
    /// File to write: .npz with `ids` and `similarities`
    #[arg(short, value_name = "GRAPH")]
    output: PathBuf,
    /// Write the layout of the published code instead: `data`, N x 2 x (K + 1), with the row itself and 1 - similarity
    #[arg(long)]
    published: bool,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let bars = Bars::default();
    bars.begin("read", 1);
    let embeddings = arguments.features.read_beside(&arguments.output, arguments.neighbours.memory)?;
    check_writable(&arguments.output)?;
    let params = arguments.neighbours.params(embeddings.len());
    announce_search(&embeddings, &params, &Context::new(&bars).with_memory(arguments.neighbours.memory))?;
    let (start, cpu) = (Instant::now(), machine::cpu_time());
    let (graph, report) = knn_graph(&embeddings, &params, &bars)?;
    let (seconds, cpu_seconds) = (start.elapsed().as_secs_f64(), (machine::cpu_time() - cpu).as_secs_f64());
    bars.begin("write", 1);
    let layout = if arguments.published { GraphLayout::Published } else { GraphLayout::Kinfolk };
    write_graph(&arguments.output, &graph, layout)?;
    drop(bars);
    if arguments.json {
        let mut all = as_json(graph.len(), graph.k(), &report);
        all["seconds"] = json!(seconds);
        all["cpu_seconds"] = json!(cpu_seconds);
        all["peak_memory_bytes"] = json!(machine::cost().peak_memory_bytes);
        println!("{all:#}");
    } else {
        println!(
            "{} rows, {} neighbours each, {}: {seconds:.2} s ({cpu_seconds:.2} CPU-s) -> {}",
            graph.len(),
            graph.k(),
            describe(&report),
            arguments.output.display()
        );
    }
    Ok(())
}

/// How the graph was found, as text.
pub fn describe(report: &KnnReport) -> String {
    match report.recall {
        Some(recall) => format!("recall {recall:.4} measured on a sample"),
        None => "exact".to_owned(),
    }
}

/// How the graph was found, as JSON.
pub fn as_json(rows: usize, k: usize, report: &KnnReport) -> serde_json::Value {
    json!({
        "rows": rows,
        "k": k,
        "exact": report.exact,
        "recall": report.recall,
        "kernel": report.kernel,
        "lists": report.lists,
        "reach": report.reach,
    })
}
