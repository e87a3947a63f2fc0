//! Training of the graph networks on labelled embeddings.
//!
//! On the processor the same input, parameters and seed give the same weights on any number of threads: whatever is random comes from
//! named streams, and every sum has one order.

mod augment;
mod batch;
mod choose;
mod compute;
mod division;
mod fit;
mod gcn_e;
mod gcn_v;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod graphics;
mod initial;
mod lgcn;
mod loss;
mod ltc;
mod params;
mod pass;
mod random;
mod rotation;
mod sampling;
mod sgd;
mod sparse;
#[cfg(test)]
mod tests;
mod train;
mod unfinished;

pub use choose::best_tau;
pub use compute::Compute;
pub use fit::{Epoch, FitState, FittedNetwork};
pub use gcn_e::{GcnEParams, train_gcn_e};
pub use gcn_v::{GcnVParams, Target, train_gcn_v, train_gcn_v_on_graphs};
pub use lgcn::{LgcnTraining, LinkChoice, TrainedLgcn, train_lgcn};
pub use loss::Loss;
pub use ltc::{LtcTraining, ProposalChoice, TrainedLtc, proposal_settings, train_ltc};
pub use params::FitParams;
pub use sampling::{Sampling, SamplingKind};
pub use train::{Choice, Choices, TrainParams, TrainedGcn, train};
pub use unfinished::Unfinished;
