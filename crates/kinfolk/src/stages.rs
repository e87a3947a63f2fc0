//! The stages of the methods, one by one: confidence of each vertex, links between vertices, partition of the graph.
//!
//! [`Clusterer`](crate::Clusterer) runs them. Call them directly to build a method of your own; each is a function of its
//! inputs and a plain struct of parameters.

pub use crate::confidence::{DEFAULT_RADIUS, average_ranks, s_avg, s_center, s_nbr, u_num, u_weight};
pub use crate::connectivity::{EdgeModel, Links, candidates, nearest_candidates};
pub use crate::graph::Adjacency;
pub use crate::levels::{Branch, Level, Levels, MergeTree, branches};
pub use crate::partition::{
    Cohesion, DisjointSets, Edge, EdgeEvidence, Flow, MapParams, Modules, Region, SizeLimit, WeightedGraph,
    codelength, limited_components, map_equation, natural_tau, null_cosines, number_by_size,
    regional_modules,
};
pub use crate::whitening::Whitening;
