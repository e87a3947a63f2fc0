//! The methods of this crate. Each composes stages; no stage knows the stages after it.

mod cross_check;
mod density;
mod halves;
mod kin;
mod kin_training;
mod size_choice;

pub use density::{Confidence, Confidences, Density};
pub use kin::{Kin, KinModel, Prefer, estimate, partition};
pub use kin_training::{KinTraining, KinTrial, TrainedKin, train_kin};
