//! Helpers for the tests of several modules: small random networks and sets.

use crate::{GraphNetwork, Linear};
use kinfolk::random::{SplitMix64, Stream};
#[cfg(feature = "training")]
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{Embeddings, KnnGraph, KnnParams, Search, knn_graph};

/// Numbers between -1 and 1.
pub struct Numbers(Stream<SplitMix64>);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(Stream::from_state(seed))
    }

    pub fn next(&mut self) -> f32 {
        2.0 * self.0.uniform_f32() - 1.0
    }

    pub fn many(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }

    fn linear(&mut self, inputs: usize, outputs: usize) -> Linear {
        Linear { weight: self.many(inputs * outputs), bias: self.many(outputs), inputs, outputs }
    }
}

/// A network for rows of `dim` columns with graph convolutions of these widths.
pub fn network(seed: u64, dim: usize, widths: &[usize], outputs: usize) -> GraphNetwork {
    let mut numbers = Numbers::new(seed);
    let mut convolutions = Vec::new();
    let mut before = dim;
    for &width in widths {
        convolutions.push(numbers.linear(2 * before, width));
        before = width;
    }
    let hidden = numbers.linear(before, 3);
    let slopes = numbers.many(3);
    GraphNetwork { convolutions, hidden, slopes, output: numbers.linear(3, outputs) }
}

/// Random rows, some of them twice, and their graph.
pub fn set(seed: u64, n: usize, dim: usize, k: usize) -> (Embeddings, KnnGraph) {
    let mut rows = Numbers::new(seed).many(n * dim);
    for i in (7..n).step_by(10) {
        rows.copy_within((i - 3) * dim..(i - 2) * dim, i * dim);
    }
    let rows = Embeddings::from_rows(rows, dim, "test").unwrap();
    let params = KnnParams { k, search: Search::Exact, ..KnnParams::default() };
    let graph = knn_graph(&rows, &params, &()).unwrap().0;
    (rows, graph)
}

/// Labelled rows, and those of other identities, with their graphs.
#[cfg(feature = "training")]
pub fn labelled_sets() -> [(Embeddings, Vec<i64>, KnnGraph); 2] {
    let params = SynthParams { identities: 60, dim: 32, mean_size: 20.0, ..SynthParams::default() };
    let synth = Synth::new(params).unwrap();
    [0..40, 40..60].map(|range| {
        let (rows, labels) = synth.part(range).unwrap().to_embeddings().unwrap();
        let graph = knn_graph(&rows, &KnnParams { k: 12, ..KnnParams::default() }, &()).unwrap().0;
        (rows, labels, graph)
    })
}
