//! Labelled rows and their graph.

use crate::labelled::{Labelled, identities};
use crate::measure::measure;
use kinfolk::io::read_graph;
use kinfolk::{Embeddings, KnnGraph, KnnParams, knn_graph};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use std::path::Path;

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

    /// A set in the published layout: `features/NAME.bin`, `labels/NAME.meta` and, if it is there,
    /// `knns/NAME/faiss_k_K.npz`. Its K counts the row itself, so a graph that is missing is made with one neighbour less.
    pub fn read(directory: &Path, name: &str, k: usize, seed: u64) -> Result<Self, Failure> {
        let file = |folder: &str, extension: &str| directory.join(folder).join(format!("{name}.{extension}"));
        let rows = Labelled::read(&file("features", "bin"), &file("labels", "meta"))?;
        let graph = directory.join("knns").join(name).join(format!("faiss_k_{k}.npz"));
        if !graph.is_file() {
            return Part::new(rows, k - 1, seed);
        }
        let Labelled { features, labels } = rows;
        let (graph, cost) = measure(|| read_graph(&graph, Some(features.len())));
        Ok(Part { features, labels, graph: graph?, searching: cost.seconds })
    }

    pub fn identities(&self) -> usize {
        identities(&self.labels)
    }

    /// Its size in words.
    pub fn describe(&self) -> String {
        format!("{} rows of {} identities", self.labels.len(), self.identities())
    }
}
