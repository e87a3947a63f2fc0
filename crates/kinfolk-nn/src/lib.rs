//! The graph networks of kinfolk.

mod training;
mod weights;

pub use training::{Epoch, FitParams, GcnVParams, Target, Trained, train_gcn_v};
pub use weights::{GraphNetwork, Linear};
