//! Labelled rows and their graph.

use crate::labelled::{Labelled, identities};
use crate::measure::measure;
use kinfolk::{Embeddings, KnnGraph, KnnParams, knn_graph};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;

/// Labelled rows and their graph.
pub struct Part {
    pub features: Embeddings,
    pub labels: Vec<i64>,
    pub graph: KnnGraph,
    /// How long the search for neighbours took.
    pub searching: f64,
}

impl Part {
    pub fn new(rows: Labelled, k: usize, seed: u64) -> Result<Self, Failure> {
        let Labelled { features, labels } = rows;
        let params = KnnParams { k, seed, ..KnnParams::default() };
        let (found, cost) = measure(|| knn_graph(&features, &params, &Bars::default()));
        Ok(Part { features, labels, graph: found?.0, searching: cost.seconds })
    }

    pub fn identities(&self) -> usize {
        identities(&self.labels)
    }

    /// Its size in words.
    pub fn describe(&self) -> String {
        format!("{} rows of {} identities", self.labels.len(), self.identities())
    }
}
