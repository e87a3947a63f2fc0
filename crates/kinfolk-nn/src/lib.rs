//! The graph networks of kinfolk: GCN-V, which estimates the confidence of every vertex, and GCN-E, which
//! estimates the connectivity between a vertex and its candidates (Sections 3.2 and 3.3 of the paper); and those of L-GCN and
//! LTC, which it is compared with.
//!
//! ```text
//! gcn_v.pth, gcn_e.pth --read_checkpoint--> GraphNetwork --GcnModel::write--> model.safetensors
//!
//! Embeddings -> KnnGraph -> Adjacency --vertex_confidence--> confidence, F_L -> KnnGraph of F_L
//!                                     --edge_connectivity--> connectivity of candidates -> Links -> labels
//!
//! Embeddings, KnnGraph --lgcn--> labels     L-GCN: the probability of every link, then components of limited size
//!                      --ltc---> labels     LTC: proposals of clusters, scored by GCN-D, trimmed by GCN-S
//! ```
//!
//! `Learn` (feature `training`, on by default) makes a model from labelled embeddings; [`Gcn`], [`Lgcn`] and [`Ltc`] are the
//! methods that apply one. The stages they are made of are in [`stages`], the training of each network in `training`.

mod apply;
mod checkpoint;
#[cfg(feature = "training")]
#[doc(hidden)]
pub mod laboratory;
#[cfg(feature = "training")]
mod learn;
mod methods;
mod model_file;
mod product;
pub mod stages;
mod tensors;
#[cfg(test)]
mod testing;
#[cfg(feature = "training")]
pub mod training;
mod weights;

pub use checkpoint::{parse_checkpoint, read_checkpoint};
#[cfg(feature = "training")]
pub use learn::{
    Checkpoints, GcnVTraining, GcnVeTraining, KinLearner, Learn, LgcnLearner, LtcLearner, Recipe, Save,
    Trained, Trial,
};
pub use methods::gcn::{Gcn, GcnConfig, GcnModel, GcnResult, GcnSettings, TauScale};
pub use methods::kin::{read_kin_model, write_kin_model};
pub use methods::lgcn::{Lgcn, LgcnSettings};
pub use methods::ltc::{Ltc, LtcSettings};
pub use model_file::{LearnedMethod, MODEL_FORMAT, ModelFile};
pub use weights::{GraphNetwork, Linear};

// Inside the crate every name has one path.
use stages::*;
#[cfg(feature = "training")]
use training::*;
