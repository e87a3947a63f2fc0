//! The well-known ways of clustering embeddings, beside which kinfolk's own are measured.

mod check;
mod clusters;
mod dense;
mod kmeans;
mod lloyd;
mod minibatch_kmeans;
mod random;
#[cfg(test)]
mod testing;

pub use clusters::{Clusters, Noise};
pub use kmeans::{KmeansParams, kmeans};
pub use minibatch_kmeans::{MinibatchKmeansParams, minibatch_kmeans};
