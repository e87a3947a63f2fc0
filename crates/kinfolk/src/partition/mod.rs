//! Partition: from links, or a weighted graph, to labels.
//!
//! The tree-based partition of Section 3.1: links whose similarity is not above tau are cut, and the connected
//! components are the clusters. The links do not depend on tau, so another tau costs only O(N M).
//!
//! `limited_components` uses a maximum cluster size instead of tau.
//!
//! `map_equation` needs no links and no tau: it partitions a weighted graph into modules in which a random walk stays long.

mod cohesion;
mod disjoint_sets;
mod limited;
mod map_equation;
mod natural_tau;
mod number;
mod spanning;
mod tree;

pub use cohesion::Cohesion;
pub use disjoint_sets::DisjointSets;
pub use limited::{SizeLimit, limited_components};
pub use map_equation::{
    Flow, MapParams, Modules, Region, WeightedGraph, codelength, map_equation, regional_modules,
};
pub(crate) use map_equation::{HeavyEdges, modules_of_heavy};
pub use natural_tau::{natural_tau, null_cosines};
pub use number::number_by_size;
pub(crate) use spanning::members;
pub use spanning::{Edge, EdgeEvidence};

#[cfg(test)]
mod tests;
