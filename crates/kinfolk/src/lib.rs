//! kinfolk groups embeddings of the same identity: faces, products, voices, sentences, whatever a network
//! embeds so that relatives are near each other.
//!
//! # Data flow
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
//! A set to work on: 40 synthetic identities, as hard to tell apart as real faces.
//!
//! ```
//! use kinfolk::synth::{Synth, SynthParams};
//! # fn main() -> kinfolk::Result<()> {
//! let params = SynthParams { identities: 40, dim: 64, ..SynthParams::default() };
//! let (embeddings, truth) = Synth::new(params)?.whole().to_embeddings()?;
//!
//! // No labels, no threshold, no number of clusters.
//! let found = kinfolk::Clusterer::new().fit(&embeddings)?;
//! let scores = kinfolk::metrics::evaluate(&truth, &found.labels)?;
//! assert!(scores.bcubed.f > 0.7, "{scores:?}");
//!
//! // Why two rows are together or not, and which decisions are most worth a look.
//! println!("{}", kinfolk::Explainer::new(&found)?.explain(0, Some(1))?);
//! println!("{:?}", kinfolk::review(&found, 3));
//!
//! // Nested partitions around the default: finer ones, coarser ones, and how persistent each is.
//! let found = kinfolk::Clusterer::new().levels(true).fit(&embeddings)?;
//! println!("{:?}", found.levels.as_ref().map(|levels| levels.levels()));
//!
//! // Every stage can be called by itself. The nearest neighbours of every row, exactly; `&()` watches no progress.
//! use kinfolk::{KnnParams, Search, knn_graph};
//! let params = KnnParams { k: 30, search: Search::Exact, ..KnnParams::default() };
//! let (graph, _report) = knn_graph(&embeddings, &params, &())?;
//!
//! // How confident each vertex is of belonging to one identity: here, how dense it is around it.
//! let confidence = kinfolk::stages::u_weight(&graph, kinfolk::stages::DEFAULT_RADIUS)?;
//!
//! // Each vertex is linked to its nearest neighbour of higher confidence: trees, rooted at the most confident.
//! let links = kinfolk::stages::nearest_candidates(&graph, &confidence, 1)?;
//!
//! // Links between different identities are weak. Cut them, and each connected component is a cluster.
//! let tau = kinfolk::stages::natural_tau(&embeddings, &graph, 0);
//! let labels = links.cut(tau);
//!
//! // The same stages as a method.
//! let tree = kinfolk::Clusterer::with(kinfolk::Density::default()).fit_graph(&embeddings, &graph)?;
//! assert_eq!(tree.labels, labels);
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
mod assign;
mod centre;
mod clusterer;
mod clustering;
mod confidence;
mod connectivity;
mod context;
mod embeddings;
mod error;
mod explain;
mod forecast;
mod graph;
pub mod incremental;
pub mod io;
mod job;
mod knn;
mod labels;
#[doc(hidden)]
pub mod laboratory;
mod levels;
mod memory;
mod method;
mod methods;
pub mod metrics;
mod partition;
mod predict;
mod problem;
mod progress;
mod pseudo_labels;
#[doc(hidden)]
pub mod random;
pub mod results;
mod review;
pub mod stages;
mod super_vertices;
pub mod synth;
#[cfg(test)]
mod testing;
mod values;
mod whitening;
mod work;

pub use assign::{Assignment, assign};
pub use clusterer::Clusterer;
pub use clustering::{Clustering, Reason, Report, Tree};
pub use context::{Context, Timings};
pub use embeddings::{ArrivingRows, Embeddings};
pub use error::{Error, Result};
pub use explain::{Criterion, Explainer, RowReason};
pub use forecast::{announce_search, announce_training};
pub use job::{Job, JobParams, JobStage};
pub use knn::{KnnGraph, KnnParams, KnnReport, NeighbourLists, Search, knn_graph};
pub use method::{Input, Method, MethodInfo, ParamKind, ParamSpec, ParamValue, Parameters};
#[doc(hidden)]
pub use method::{param_spec, unknown_parameter};
pub use methods::{
    Confidence, Confidences, Density, Kin, KinModel, KinTraining, KinTrial, Prefer, TrainedKin, train_kin,
};
pub use predict::Predictor;
pub use problem::{GraphReport, MAX_K, Neighbours, Problem};
pub use progress::{Progress, Quiet};
pub use pseudo_labels::{PseudoLabelParams, PseudoLabels, pseudo_labels};
pub use review::{Doubt, review};
pub use work::Work;

// Inside the crate every name has one path.
use stages::*;
