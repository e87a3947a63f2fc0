//! Internals that the other crates of kinfolk need: `kinfolk-lab` trains networks like the built-in one on synthetic sets
//! and measures every kernel. Not part of the interface of this crate.

pub use crate::centre::centred;
pub use crate::connectivity::structural::{EdgeExamples, EdgeTraining, fit_edge_model};
pub use crate::embeddings::ScatteredRows;
pub use crate::graph::weighted_sum;
pub use crate::io::read_integers;
pub use crate::knn::Kernel;
pub use crate::methods::{estimate, partition};
pub use crate::problem::search;
pub use crate::super_vertices::with_super_vertices;

use crate::Embeddings;

/// Rows that already have unit length; they are not changed.
pub fn unit_rows(data: Vec<f32>, dim: usize) -> Embeddings {
    Embeddings::from_unit_rows(data, dim)
}
