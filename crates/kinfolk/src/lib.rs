//! kinfolk groups embeddings of the same identity.

mod confidence;
mod connectivity;
mod embeddings;
mod error;
mod graph;
pub mod io;
mod knn;
pub mod metrics;
mod partition;
mod progress;
mod random;
pub mod synth;

pub use embeddings::Embeddings;
pub use error::{Error, Result};
pub use knn::{KnnGraph, KnnParams, KnnReport, Search, knn_graph};
pub use progress::Progress;
