//! The well-known ways of clustering embeddings, beside which kinfolk's own are measured.
//!
//! # One manner
//!
//! Every method is a function of [`Embeddings`](kinfolk::Embeddings) or a [`KnnGraph`](kinfolk::KnnGraph), a plain struct of
//! parameters with defaults, and a [`Progress`](kinfolk::Progress); it returns [`Clusters`], or an error that names the
//! parameter that cannot be. The same input, parameters and seed give the same labels on any number of threads.
//!
//! ```
//! use kinfolk::synth::{Synth, SynthParams};
//! use kinfolk::{KnnParams, knn_graph, metrics};
//! use kinfolk_baselines::{Cut, HacParams, InfomapParams, hac, infomap};
//! # fn main() -> kinfolk::Result<()> {
//! let params = SynthParams { identities: 30, dim: 64, ..SynthParams::default() };
//! let (embeddings, truth) = Synth::new(params)?.whole().to_embeddings()?;
//!
//! // On the rows themselves, without progress reports.
//! let found = hac(&embeddings, &HacParams { cut: Cut::Distance(1.1), ..Default::default() }, &())?;
//! assert!(metrics::evaluate(&truth, &found.labels)?.bcubed.f > 0.5);
//!
//! // On their neighbours.
//! let (graph, _) = knn_graph(&embeddings, &KnnParams { k: 30, ..Default::default() }, &())?;
//! let found = infomap(&graph, &InfomapParams { th: 0.5, ..Default::default() }, &())?;
//! assert!(metrics::evaluate(&truth, &found.labels)?.bcubed.f > 0.5);
//!
//! // What cannot be is refused.
//! let params = HacParams { cut: Cut::Clusters(1_000_000), ..Default::default() };
//! assert!(hac(&embeddings, &params, &()).unwrap_err().to_string().starts_with("clusters"));
//! # Ok(())
//! # }
//! ```
//!
//! # The methods
//!
//! N rows of D columns, K neighbours, C clusters.
//!
//! | function | needs | finds the number of clusters | knows noise | time | memory |
//! |---|---|---|---|---|---|
//! | [`kmeans`] | rows | no | no | N C D for each iteration | N + C D |
//! | [`minibatch_kmeans`] | rows | no | no | N C D once, and batches | N + C D |
//! | [`hac`] | rows | by a distance | no | N^2 D | 2 N^2 bytes, up to [`HAC_UP_TO`] rows |
//! | [`hac_knn`] | graph | by a distance | no | N K log N | N K |
//! | [`dbscan`] | rows | yes | yes | N^2 D | N |
//! | [`dbscan_knn`] | graph | yes | yes | N K | N |
//! | [`meanshift`] | rows | yes | if asked | some dozen times N^2 D | N D |
//! | [`spectral`] | graph | no, up to [`SPECTRAL_UP_TO`] | no | N C (K + C), C^3 | N C |
//! | [`aro`] | graph | yes | no | N K^2 | N K |
//! | [`cdp`] | graph | yes | no | N K log N | N K |
//! | [`chinese_whispers`] | graph | yes | no | N K for each round | N K |
//! | [`hdbscan`] | rows | yes | yes | N^2 D, up to [`HDBSCAN_UP_TO`] rows | N |
//! | [`hdbscan_knn`] | graph | yes | yes | N K log N | N K |
//! | [`infomap`] | graph | yes | no | N K, some dozen times | N K |
//!
//! `bench/peers.py` sets each beside the program that is known for it.
//!
//! # What is not tested
//!
//! Processors other than x86-64; spectral clustering into thousands.

mod aro;
mod cdp;
mod check;
mod chinese_whispers;
mod clusters;
mod dbscan;
mod dense;
mod eigen;
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
pub use spectral::{Assign, SPECTRAL_UP_TO, SpectralParams, spectral};
