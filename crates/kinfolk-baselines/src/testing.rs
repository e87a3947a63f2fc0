//! Helpers for the tests of several methods.

use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{
    Clustering, Context, Embeddings, KnnGraph, KnnParams, Method, Problem, Result, Search, knn_graph,
};
use proptest::prelude::*;
use std::str::FromStr;

/// Few, small, integer coordinates: duplicates, ties and opposite vectors are common.
pub(crate) fn embeddings() -> impl Strategy<Value = Embeddings> {
    (1usize..5, 1usize..40).prop_flat_map(|(dim, n)| {
        prop::collection::vec(-2i8..3, dim * n).prop_map(move |values| {
            let mut data: Vec<f32> = values.into_iter().map(f32::from).collect();
            for row in data.chunks_mut(dim) {
                // A zero row is no embedding.
                row[0] += if row.iter().all(|&v| v == 0.0) { 1.0 } else { 0.0 };
            }
            Embeddings::from_rows(data, dim, "test").unwrap()
        })
    })
}

/// The exact graph of the `k` nearest.
pub(crate) fn knn(embeddings: &Embeddings, k: usize) -> KnnGraph {
    if embeddings.len() == 1 {
        return KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap();
    }
    let params = KnnParams { k, search: Search::Exact, ..KnnParams::default() };
    knn_graph(embeddings, &params, &()).unwrap().0
}

/// Any kNN graph of a few vertices.
pub(crate) fn graphs() -> impl Strategy<Value = KnnGraph> {
    (embeddings(), 1usize..12).prop_map(|(embeddings, k)| knn(&embeddings, k))
}

/// A synthetic set of a few thousand rows, enough for the work to be split into tasks, and its identities.
pub(crate) fn synthetic(identities: usize) -> (Embeddings, Vec<i64>) {
    let params = SynthParams { identities, dim: 32, seed: 4, ..SynthParams::default() };
    Synth::new(params).unwrap().whole().to_embeddings().unwrap()
}

/// Runs a method with a seed.
pub(crate) fn seeded(method: &dyn Method, problem: &Problem, seed: u64) -> Result<Clustering> {
    method.run(problem, &Context::default().with_seed(seed))
}

/// Runs a method on rows.
pub(crate) fn on_rows(method: &dyn Method, rows: &Embeddings) -> Result<Clustering> {
    seeded(method, &Problem::new(rows), 0)
}

/// Runs a method on a graph without its rows.
pub(crate) fn on_graph(method: &dyn Method, graph: &KnnGraph) -> Result<Clustering> {
    seeded(method, &Problem::of_graph(graph), 0)
}

/// The error message of a run that fails.
pub(crate) fn refusal(result: Result<Clustering>) -> String {
    result.map(|found| found.labels).unwrap_err().to_string()
}

/// Runs `work` on one thread and on three and returns both results.
pub(crate) fn on_one_and_three_threads<T: Send>(work: impl Fn() -> T + Sync) -> [T; 2] {
    [1, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(&work))
}

/// The numbers of a line of a file.
pub(crate) fn numbers<T: FromStr>(line: &str) -> Vec<T> {
    line.split(' ').map(|word| word.parse().ok().expect(word)).collect()
}

/// True if two labelings are the same partition, however clusters are numbered.
pub(crate) fn same_groups(a: &[i64], b: &[i64]) -> bool {
    kinfolk::stages::number_by_size(a) == kinfolk::stages::number_by_size(b)
}
