//! kinfolk groups embeddings of the same identity: faces, products, voices, sentences, whatever a network
//! embeds so that relatives are near each other.
//!
//! # The way data flows
//!
//! ```text
//! file -> Embeddings -> KnnGraph -> Adjacency -> confidence -> connectivity -> partition -> labels
//!         unit rows     K nearest   symmetric    per vertex    per edge        cut at tau
//! ```
//!
//! Each stage is a function of its inputs and a plain struct of parameters; none knows the stages after it.
//! The framework, and the names, are those of "Learning to Cluster Faces via Confidence and Connectivity
//! Estimation" (Yang et al., CVPR 2020).
//!
//! # A tour
//!
//! A set to work on: 40 made-up identities, as hard to tell apart as real faces.
//!
//! ```
//! use kinfolk::synth::{Synth, SynthParams};
//! # fn main() -> kinfolk::Result<()> {
//! let params = SynthParams { identities: 40, dim: 64, ..SynthParams::default() };
//! let (embeddings, truth) = Synth::new(params)?.whole().to_embeddings()?;
//!
//! // The nearest neighbours of every row, exactly; `&()` is for those who want no progress reports.
//! use kinfolk::{KnnParams, Search, knn_graph};
//! let params = KnnParams { k: 30, search: Search::Exact, ..KnnParams::default() };
//! let (graph, _report) = knn_graph(&embeddings, &params, &())?;
//! assert_eq!(graph.k(), 30);
//!
//! // How confident each vertex is of belonging to one identity: here, how dense it is around it.
//! let confidence = kinfolk::u_weight(&graph, kinfolk::DEFAULT_RADIUS)?;
//!
//! // Each vertex is linked to its nearest neighbour of higher confidence: trees, rooted at the most confident.
//! let links = kinfolk::nearest_candidates(&graph, &confidence, 1)?;
//!
//! // Links between strangers are weak. Cut them, and what still hangs together is a cluster.
//! let tau = kinfolk::natural_tau(&embeddings, &graph, 0);
//! let labels = links.cut(tau);
//!
//! // Cutting elsewhere does not repeat the work above.
//! let coarser = links.cut(tau - 0.1);
//! let clusters = |labels: &[i64]| labels.iter().max().map_or(0, |l| l + 1);
//! assert!(clusters(&coarser) <= clusters(&labels));
//!
//! // With labels one can say how well it went.
//! let scores = kinfolk::metrics::evaluate(&truth, &labels)?;
//! assert!(scores.bcubed.f > 0.5, "{scores:?}");
//!
//! // The same in one call.
//! let params = kinfolk::ClusterParams { tau: Some(tau), ..Default::default() };
//! let found = kinfolk::cluster(&embeddings, Some(&graph), &params, &())?;
//! assert_eq!(found.labels, labels);
//! # Ok(())
//! # }
//! ```
//!
//! [`io`] reads embeddings, labels and graphs from files; [`Adjacency`] is what graph networks multiply with.
//!
//! # What holds everywhere
//!
//! - Similarity is the cosine; rows are normalised when they are read. A row without direction is an error.
//! - A graph does not list a vertex among its own neighbours. Equal similarities are ordered by smaller id.
//! - The same input, parameters and seed give the same bits on any number of threads.
//! - Labels are 0, 1, 2 ... by descending size of the cluster; every row has one.
//!
//! # What is not tested
//!
//! Processors other than x86-64, big-endian machines, and sets beyond 5.2 million rows.

#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
pub mod amx;
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
mod review;
pub mod synth;
#[cfg(test)]
mod testing;
mod whitening;

pub use confidence::{DEFAULT_RADIUS, average_ranks, s_avg, s_center, s_nbr, u_num, u_weight};
pub use connectivity::{
    EdgeModel, Links, PretrainParams, Pretrained, candidates, nearest_candidates, pretrain,
};
pub use embeddings::Embeddings;
pub use error::{Error, Result};
pub use graph::{Adjacency, weighted_sum};
pub use knn::{Kernel, KnnGraph, KnnParams, KnnReport, Search, knn_graph};
pub use partition::{
    Evidence, Flow, Forest, MapParams, Modules, SizeLimit, Tie, WeightedGraph, codelength,
    limited_components, map_equation, natural_tau, number_by_size,
};
pub use pipeline::{
    ClusterParams, Clustering, Confidence, KinChoice, KinParams, KinTraining, Prefer, TrainedKin, cluster,
    kin, train_kin,
};
pub use progress::{Progress, Quiet};
pub use review::{Doubt, review};
pub use whitening::Whitening;
