//! The sparse-dense product, compared with the memory bandwidth.
//!
//! For each entry of the adjacency a row of the dense matrix is read. Without any cache hits, nnz * D * 4 bytes are read from
//! memory; if each row is read once, N * D * 4 bytes, and as many are written. The measurement is between these limits:
//! rows of one identity are neighbours of each other, so most are in a cache.

use super::Set;
use crate::measure::{best_of, measure};
use clap::Args;
use kinfolk::stages::Adjacency;
use kinfolk::{KnnParams, knn_graph};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::table;
use rayon::prelude::*;

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    set: Set,
    /// Write the graph (.npz) so that another program can do the same product
    #[arg(long, value_name = "GRAPH")]
    save_graph: Option<std::path::PathBuf>,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let rows = arguments.set.load()?;
    let (n, dim) = (rows.len(), rows.dim());
    let params = KnnParams { k: arguments.set.k, ..KnnParams::default() };
    let (graph, _) = knn_graph(&rows, &params, &Bars::default())?;
    if let Some(path) = &arguments.save_graph {
        kinfolk::io::write_graph(path, &graph, kinfolk::io::GraphLayout::Kinfolk)?;
    }
    let (adjacency, build) = measure(|| Adjacency::from_knn(&graph, 0.0));
    let adjacency = adjacency?;
    let mut out = vec![0.0; n * dim];
    let ((), product) = best_of(5, || adjacency.aggregate(rows.as_slice(), dim, &mut out));
    let bandwidth = read_bandwidth();

    let gb = |bytes: f64| bytes / 1e9;
    let edges = adjacency.nnz() as f64 * 8.0;
    let once = gb(edges + 2.0 * (n * dim * 4) as f64);
    let every_time = gb(edges + (adjacency.nnz() + n) as f64 * (dim * 4) as f64);
    println!(
        "{n} rows x {dim}, K = {}, {} entries, {} threads; memory reads {bandwidth:.1} GB/s",
        graph.k(),
        adjacency.nnz(),
        rayon::current_num_threads()
    );
    let line = |name: &str, seconds: f64, cpu: String| vec![name.to_owned(), format!("{seconds:.3}"), cpu];
    table::print(
        &["", "seconds", "CPU-s"],
        &[
            line("adjacency from the graph", build.seconds, format!("{:.3}", build.cpu_seconds)),
            line("aggregate, best of 5", product.seconds, format!("{:.3}", product.cpu_seconds)),
            line(
                &format!("limit: {every_time:.2} GB, each entry's row from memory"),
                every_time / bandwidth,
                "-".into(),
            ),
            line(&format!("limit: {once:.2} GB, each row from memory once"), once / bandwidth, "-".into()),
        ],
    );
    Ok(())
}

/// GB/s at which all threads together read memory, best of 5 passes over 1 GB.
fn read_bandwidth() -> f64 {
    let data = vec![1u64; 1 << 27];
    let (sum, cost) = best_of(5, || data.par_chunks(1 << 20).map(|c| c.iter().sum::<u64>()).sum::<u64>());
    assert_eq!(sum, data.len() as u64);
    (data.len() * 8) as f64 / cost.seconds / 1e9
}
