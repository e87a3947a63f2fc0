//! Partition: from links, or a weighted graph, to labels.
//!
//! The tree-based partition of Section 3.1: edges whose similarity is not above tau are cut, and what still
//! hangs together is a cluster. Everything else was done by the stages before, so another tau costs O(N M)
//! and no re-run: milliseconds at 100,000 vertices.
//!
//! `limited_components` knows the largest size of a cluster instead of tau.
//!
//! `map_equation` needs no links and no tau: it partitions a weighted graph as it is, by where a random walk stays.

mod disjoint_sets;
mod limited;
mod map_equation;
mod natural_tau;
mod number;
mod spanning;
mod steady;
mod tree;

pub use disjoint_sets::DisjointSets;
pub use limited::{SizeLimit, limited_components};
pub use map_equation::{Flow, MapParams, Modules, WeightedGraph, codelength, map_equation};
pub use natural_tau::natural_tau;
pub use number::number_by_size;
pub use spanning::{Edge, EdgeEvidence};
pub(crate) use steady::join_steady;

#[cfg(test)]
mod tests;
