//! Time and recall of the searches.

use super::Set;
use crate::measure::measure;
use clap::Args;
use kinfolk::laboratory::Kernel;
use kinfolk::{KnnGraph, KnnParams, Search, knn_graph};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::{machine, table};

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    set: Set,
    /// Recalls to search with, besides the exact search
    #[arg(long, value_name = "R", value_delimiter = ',', default_values_t = [0.98f32])]
    recall: Vec<f32>,
    /// Search with every kernel of this machine, not only the fastest
    #[arg(long)]
    kernels: bool,
    /// Skip the exact search; only the recall on a sample is then known
    #[arg(long)]
    no_exact: bool,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let rows = arguments.set.load()?;
    let (n, dim) = (rows.len(), rows.dim());
    let mut searches = vec![];
    if !arguments.no_exact {
        searches.push(("exact".to_owned(), Search::Exact));
    }
    searches.extend(arguments.recall.iter().map(|&r| (format!("recall {r}"), Search::Recall(r))));
    println!("{n} rows x {dim}, K = {}, {} threads", arguments.set.k, rayon::current_num_threads());
    let kernels = if arguments.kernels { Kernel::available() } else { vec![Kernel::default()] };
    let mut lines = Vec::new();
    let mut exact = None;
    for ((name, search), kernel) in searches.iter().flat_map(|s| kernels.iter().map(move |&k| (s, k))) {
        let params = KnnParams { k: arguments.set.k, search: *search, kernel, ..KnnParams::default() };
        let (found, cost) = measure(|| knn_graph(&rows, &params, &Bars::default()));
        let (graph, report) = found?;
        let sampled = report.recall.map_or("-".to_owned(), |r| format!("{r:.4}"));
        let true_recall = match &exact {
            Some(truth) => format!("{:.4}", overlap(truth, &graph)),
            None => if report.exact { "1" } else { "-" }.to_owned(),
        };
        // The products of a brute-force search: every pair once.
        let pairs = n as f64 * (n as f64 - 1.0) / 2.0;
        let rate = pairs * dim as f64 / cost.cpu_seconds / 1e9;
        lines.push(vec![
            name.clone(),
            kernel.name().to_owned(),
            format!("{:.2}", cost.seconds),
            format!("{:.2}", cost.cpu_seconds),
            sampled,
            true_recall,
            format!("{rate:.0}"),
        ]);
        if report.exact {
            exact = Some(graph);
        }
    }
    let headings = [
        "search",
        "kernel",
        "seconds",
        "CPU-s",
        "recall, sample",
        "recall, all",
        "G products of brute force / CPU-s",
    ];
    table::print(&headings, &lines);
    println!("peak memory {:.0} MB", machine::peak_memory() as f64 / 1e6);
    Ok(())
}

/// The share of the neighbours of `truth` that `graph` has, over all rows; equally similar ones count.
fn overlap(truth: &KnnGraph, graph: &KnnGraph) -> f64 {
    let found = (0..truth.len()).map(|i| {
        let last = truth.neighbours(i).1.last().copied().unwrap_or(1.0);
        graph.neighbours(i).1.iter().filter(|&&s| s >= last).count()
    });
    found.sum::<usize>() as f64 / (truth.len() * truth.k()).max(1) as f64
}
