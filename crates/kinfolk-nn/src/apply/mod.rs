//! The stages of the methods: the estimates of networks, and the clusters that follow from them.

mod dense;
mod edge;
mod lgcn;
mod links;
pub(crate) mod ltc;
pub(crate) mod pivots;
mod proposals;
pub(crate) mod subgraphs;
#[cfg(test)]
mod tests;
mod vertex;

pub use edge::{Candidates, Connectivity, EdgeQuery, edge_connectivity};
pub use lgcn::{LgcnParams, LinkProbabilities, lgcn, link_probabilities, propagate};
pub use links::connected_candidates;
pub use ltc::{LtcParams, de_overlapped, ltc, proposal_scores};
pub use pivots::PivotShape;
pub use proposals::{ProposalParams, ProposalSetting, Proposals, proposals};
#[cfg(feature = "training")]
pub(crate) use vertex::first_convolution;
pub use vertex::{
    GraphOf, VertexEstimate, vertex_confidence, vertex_confidence_and_rows, vertex_confidence_on_graphs,
};

use kinfolk::stages::{average_ranks, u_weight};
use kinfolk::{Embeddings, KnnGraph, Result};

/// The confidence of GCN-V with a share of density, averaged by rank; unchanged if the share is 0.
pub(crate) fn mixed_confidence(
    confidence: &[f32],
    graph: &KnnGraph,
    density: f32,
    radius: f32,
) -> Result<Vec<f32>> {
    if density == 0.0 {
        return Ok(confidence.to_vec());
    }
    average_ranks(&[(confidence, 1.0 - density), (&u_weight(graph, radius)?, density)])
}

/// F_L as the rows of a new graph.
pub fn rebuilt_features(mut f_l: Vec<f32>, width: usize) -> Result<Embeddings> {
    f_l.chunks_exact_mut(width).enumerate().for_each(|(i, row)| with_direction(i, row));
    Embeddings::from_rows(f_l, width, F_L)
}

/// The name of F_L in errors.
pub(crate) const F_L: &str = "embeddings by GCN-V (F_L)";

/// Replaces row `i` of F_L, if it is all zeros, by one that is dissimilar to all others: values of F_L are not negative, so its
/// similarity to them is at most 0.
pub(crate) fn with_direction(i: usize, row: &mut [f32]) {
    if row.iter().all(|&value| value == 0.0) {
        row[i % row.len()] = -1.0;
    }
}
