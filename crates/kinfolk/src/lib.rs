//! kinfolk groups embeddings of the same identity.

mod confidence;
mod connectivity;
mod embeddings;
mod error;
mod graph;
pub mod io;
mod knn;
mod labels;
pub mod metrics;
mod partition;
mod pipeline;
mod progress;
mod random;
pub mod synth;
#[cfg(test)]
mod testing;

pub use confidence::{DEFAULT_RADIUS, s_avg, s_center, s_nbr, u_num, u_weight};
pub use connectivity::{Links, candidates, nearest_candidates};
pub use embeddings::Embeddings;
pub use error::{Error, Result};
pub use graph::Adjacency;
pub use knn::{KnnGraph, KnnParams, KnnReport, Search, knn_graph};
pub use partition::{natural_tau, number_by_size};
pub use pipeline::{ClusterParams, Clustering, Confidence, cluster};
pub use progress::Progress;
