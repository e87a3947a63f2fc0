//! The stages of the methods, one by one: the networks applied to graphs, and what is made of their outputs.

pub use crate::apply::{
    Candidates, Connectivity, EdgeQuery, GraphOf, LgcnParams, LinkProbabilities, LtcParams, PivotShape,
    ProposalParams, ProposalSetting, Proposals, VertexEstimate, connected_candidates, de_overlapped,
    edge_connectivity, lgcn, link_probabilities, ltc, propagate, proposal_scores, proposals,
    rebuilt_features, vertex_confidence, vertex_confidence_on_graphs,
};
