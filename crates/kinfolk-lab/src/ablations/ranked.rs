//! Rows with their graph and confidence, from which links are chosen.

use crate::labelled::Labelled;
use kinfolk::stages::{Adjacency, Links, nearest_candidates};
use kinfolk::{Embeddings, KnnGraph, KnnParams, knn_graph};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_nn::GraphNetwork;
use kinfolk_nn::stages::{Candidates, Connectivity, EdgeQuery, connected_candidates, edge_connectivity};
use std::rc::Rc;

/// Labelled rows and their graph.
pub struct Part {
    pub features: Embeddings,
    pub labels: Vec<i64>,
    pub graph: KnnGraph,
    pub adjacency: Adjacency,
}

impl Part {
    pub fn new(rows: Labelled, k: usize) -> Result<Rc<Self>, Failure> {
        let Labelled { features, labels } = rows;
        let (graph, _) = knn_graph(&features, &KnnParams { k, ..KnnParams::default() }, &Bars::default())?;
        let adjacency = Adjacency::from_knn(&graph, 0.0)?;
        Ok(Rc::new(Part { features, labels, graph, adjacency }))
    }
}

/// Rows with a confidence, in the graph that candidates are taken from.
pub struct Ranked {
    pub part: Rc<Part>,
    pub confidence: Vec<f32>,
}

impl Ranked {
    /// Each vertex with its nearest candidate: rho = 0, M = 1.
    pub fn nearest(&self) -> Result<Links, Failure> {
        Ok(nearest_candidates(&self.part.graph, &self.confidence, 1)?)
    }

    /// Each vertex with the `m` candidates of highest connectivity by GCN-E, or the nearest if there is no estimate.
    pub fn connected(&self, m: usize, connectivity: &Connectivity) -> Result<Links, Failure> {
        Ok(connected_candidates(&self.part.graph, &self.confidence, m, Some(connectivity))?)
    }

    /// The estimates of GCN-E for the most confident vertices.
    pub fn connectivity(
        &self,
        gcn_e: &GraphNetwork,
        rho: f32,
        candidates: Candidates,
    ) -> Result<Connectivity, Failure> {
        let Part { features, graph, adjacency, .. } = &*self.part;
        let (query, bars) = (EdgeQuery { rho, candidates }, Bars::default());
        Ok(edge_connectivity(gcn_e, features, graph, adjacency, &self.confidence, &query, &bars)?)
    }
}

/// A trained GCN-V applied to all that follows it.
pub struct Vertices {
    /// Whether the graph is rebuilt from F_L: whichever does better on held-out identities.
    pub rebuild: bool,
    pub fitted: Ranked,
    pub train: Ranked,
    pub test: Ranked,
    /// The best tau without GCN-E.
    pub tau: f32,
    /// How long fitting took, and applying to the test part.
    pub seconds: [f64; 2],
}

impl Vertices {
    /// Where candidates come from, in words.
    pub fn describe_graph(&self) -> &'static str {
        match self.rebuild {
            true => "candidates from the graph of F_L, which is better on held-out identities",
            false => "candidates from the input graph, which is better on held-out identities",
        }
    }
}
