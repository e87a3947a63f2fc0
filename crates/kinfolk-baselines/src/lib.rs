//! The well-known ways of clustering embeddings, beside which kinfolk's own are measured.

mod aro;
mod cdp;
mod check;
mod chinese_whispers;
mod clusters;
mod dbscan;
mod dense;
mod eigen;
mod forest;
mod hac;
mod hdbscan;
mod infomap;
mod kmeans;
mod lloyd;
mod meanshift;
mod method;
mod minibatch_kmeans;
mod random;
mod sparse;
mod spectral;
#[cfg(test)]
mod testing;

pub use aro::{AroParams, aro};
pub use cdp::{CdpParams, cdp};
pub use chinese_whispers::{ChineseWhispersParams, chinese_whispers};
pub use clusters::{Clusters, Noise};
pub use dbscan::{DbscanKnnParams, DbscanParams, dbscan, dbscan_knn};
pub use hac::{Cut, HAC_UP_TO, HacParams, Linkage, hac, hac_knn};
pub use hdbscan::{HDBSCAN_UP_TO, HdbscanParams, Selection, hdbscan, hdbscan_knn};
pub use infomap::{InfomapParams, infomap};
pub use kmeans::{KmeansParams, kmeans};
pub use meanshift::{MeanshiftParams, Seeds, meanshift};
pub use method::Method;
pub use minibatch_kmeans::{MinibatchKmeansParams, minibatch_kmeans};
pub use spectral::{Assign, SpectralParams, spectral};
