//! Helpers for the tests of several stages.

use crate::{Embeddings, KnnGraph};
use proptest::prelude::*;

/// The exact kNN graph by comparing all pairs.
pub fn knn(embeddings: &Embeddings, k: usize) -> KnnGraph {
    let n = embeddings.len();
    let (mut ids, mut similarities) = (Vec::new(), Vec::new());
    for i in 0..n {
        let dot = |j: usize| embeddings.row(i).iter().zip(embeddings.row(j)).map(|(a, b)| a * b).sum::<f32>();
        let mut others: Vec<(f32, usize)> = (0..n).filter(|&j| j != i).map(|j| (dot(j), j)).collect();
        others.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ids.extend(others[..k].iter().map(|o| o.1 as u32));
        similarities.extend(others[..k].iter().map(|o| o.0));
    }
    KnnGraph::from_parts(n, k, ids, similarities, "test").unwrap()
}

/// Few, small, integer coordinates: duplicates, ties and opposite vectors are common.
pub fn embeddings() -> impl Strategy<Value = Embeddings> {
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

/// Embeddings and one of their kNN graphs, with any K from 0 to N - 1.
pub fn embeddings_and_graph() -> impl Strategy<Value = (Embeddings, KnnGraph)> {
    (embeddings(), 0.0..1.0).prop_map(|(embeddings, share): (_, f64)| {
        let k = (share * embeddings.len() as f64) as usize;
        let graph = knn(&embeddings, k);
        (embeddings, graph)
    })
}

/// Any kNN graph of a few vertices.
pub fn graphs() -> impl Strategy<Value = KnnGraph> {
    embeddings_and_graph().prop_map(|(_, graph)| graph)
}

/// A graph of thousands of edges, enough for the work to be split.
pub fn large_graph(n: usize, k: usize) -> KnnGraph {
    // Ids with a stride: every list mixes near vertices, far vertices and hubs, without a random generator.
    let mut strides: Vec<usize> = Vec::new();
    for j in 0..k {
        let free = (j * j * 7..).map(|stride| stride % (n - 1)).find(|stride| !strides.contains(stride));
        strides.extend(free);
    }
    let ids = (0..n * k).map(|e| ((e / k + 1 + strides[e % k]) % n) as u32).collect();
    let similarities =
        (0..n * k).map(|e| 1.0 - (e % k) as f32 / k as f32 - (e % 13) as f32 / 100.0).collect();
    KnnGraph::from_parts(n, k, ids, similarities, "test").unwrap()
}

/// Runs `work` on one thread and on three and returns both results.
pub fn on_one_and_three_threads<T: Send>(work: impl Fn() -> T + Sync) -> [T; 2] {
    [1, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(&work))
}
