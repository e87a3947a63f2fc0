//! Well-known clustering methods, as baselines for kinfolk's own.
//!
//! Every method is a struct that holds its parameters and implements [`kinfolk::Method`], so a [`kinfolk::Clusterer`] runs it.
//! The same input, parameters and seed give the same labels on any number of threads.
//!
//! ```
//! use kinfolk::synth::{Synth, SynthParams};
//! use kinfolk::{Clusterer, metrics};
//! use kinfolk_baselines::{Hac, Infomap};
//! # fn main() -> kinfolk::Result<()> {
//! let params = SynthParams { identities: 30, dim: 64, ..SynthParams::default() };
//! let (embeddings, truth) = Synth::new(params)?.whole().to_embeddings()?;
//!
//! // On the rows themselves.
//! let found = Clusterer::with(Hac { distance: 1.1, ..Hac::default() }).fit(&embeddings)?;
//! assert!(metrics::evaluate(&truth, &found.labels)?.bcubed.f > 0.5);
//!
//! // On their 30 nearest neighbours.
//! let found = Clusterer::with(Infomap { th: 0.5, ..Infomap::default() }).k(30).fit(&embeddings)?;
//! assert!(metrics::evaluate(&truth, &found.labels)?.bcubed.f > 0.5);
//!
//! // Impossible parameters are refused by name.
//! let too_many = Hac { clusters: Some(1_000_000), ..Hac::default() };
//! assert!(Clusterer::with(too_many).fit(&embeddings).unwrap_err().to_string().starts_with("clusters"));
//! # Ok(())
//! # }
//! ```
//!
//! Programs that know methods and parameters only by name find them in [`METHODS`].
//!
//! # The methods
//!
//! N rows of D columns, K neighbours, C clusters.
//!
//! | method | input | finds the number of clusters | has noise | time | memory |
//! |---|---|---|---|---|---|
//! | [`Kmeans`] | rows | no | no | N C D for each iteration | N + C D |
//! | [`MinibatchKmeans`] | rows | no | no | N C D once, and batches | N + C D |
//! | [`Hac`] | rows, up to [`HAC_UP_TO`] | by a distance | no | N^2 D | 2 N^2 bytes |
//! | | graph | by a distance | no | N K log N | N K |
//! | [`Dbscan`] | rows | yes | yes | N^2 D | N |
//! | [`DbscanKnn`] | graph | yes | yes | N K | N |
//! | [`Meanshift`] | rows | yes | yes, assigned by default | N^2 D, dozens of times | N D |
//! | [`Spectral`] | graph | no, up to [`SPECTRAL_UP_TO`] | no | N C (K + C), C^3 | N C, C^2 |
//! | [`Aro`] | graph | yes | no | N K^2 | N K |
//! | [`Cdp`] | graph | yes | no | N K log N | N K |
//! | [`ChineseWhispers`] | graph | yes | no | N K for each round | N K |
//! | [`Hdbscan`] | rows, up to [`HDBSCAN_UP_TO`] | yes | yes | N^2 D | N |
//! | | graph | yes | yes | N K log N | N K |
//! | [`Optics`] | graph | yes | yes | N K log N | N K |
//! | [`Infomap`] | graph | yes | no | N K, dozens of times | N K |
//! | [`FaceMap`] | graph | yes | no | N K, dozens of times | N K |
//! | [`FcEs`] | graph | yes | no | N K^2 | N K |
//!
//! `bench/peers.py` compares each with a well-known implementation, except the last two: `bench/map_fixtures.py` computes what
//! they should find.
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
mod eigen_dense;
mod facemap;
mod fc_es;
mod hac;
mod hdbscan;
mod infomap;
mod kmeans;
mod lloyd;
mod meanshift;
mod minibatch_kmeans;
mod optics;
mod random;
mod sparse;
mod spectral;
#[cfg(test)]
mod testing;
mod xi;

pub use aro::Aro;
pub use cdp::Cdp;
pub use chinese_whispers::ChineseWhispers;
pub use clusters::Noise;
pub use dbscan::{Dbscan, DbscanKnn};
pub use facemap::FaceMap;
pub use fc_es::FcEs;
pub use hac::{HAC_UP_TO, Hac, Linkage};
pub use hdbscan::{HDBSCAN_UP_TO, Hdbscan, Selection};
pub use infomap::Infomap;
pub use kmeans::Kmeans;
pub use meanshift::{Meanshift, Seeds};
pub use minibatch_kmeans::MinibatchKmeans;
pub use optics::{Extraction, Optics};
pub use spectral::{Assign, SPECTRAL_UP_TO, Spectral};

use kinfolk::Method;

/// Every method with its default parameters, in the order of the paper's tables, then those that it does not have.
///
/// ```
/// use kinfolk_baselines::METHODS;
/// let mut dbscan = METHODS.iter().map(|method| method()).find(|method| method.info().name == "dbscan").unwrap();
/// dbscan.parameters_mut().set("eps", "0.4")?;
/// assert_eq!(dbscan.parameters().values()[0], ("eps", "0.4".to_owned()));
/// assert!(dbscan.parameters_mut().set("eps", "wide").is_err());
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub const METHODS: [fn() -> Box<dyn Method>; 15] = [
    || Box::new(Kmeans::default()),
    || Box::new(MinibatchKmeans::default()),
    || Box::new(Hac::default()),
    || Box::new(Dbscan::default()),
    || Box::new(DbscanKnn::default()),
    || Box::new(Meanshift::default()),
    || Box::new(Spectral::default()),
    || Box::new(Aro::default()),
    || Box::new(Cdp::default()),
    || Box::new(ChineseWhispers::default()),
    || Box::new(Hdbscan::default()),
    || Box::new(Optics::default()),
    || Box::new(Infomap::default()),
    || Box::new(FaceMap::default()),
    || Box::new(FcEs::default()),
];
