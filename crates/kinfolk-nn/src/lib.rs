//! The graph networks of kinfolk.

mod training;
mod weights;

pub use training::{Epoch, FitParams, GcnEParams, GcnVParams, Target, Trained, train_gcn_e, train_gcn_v};
pub use weights::{GraphNetwork, Linear};
