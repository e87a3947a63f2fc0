//! The methods of this crate. Each composes stages; no stage knows the stages after it.

mod cross_check;
mod density;
mod halves;
mod kin;
mod kin_training;
mod size_choice;

pub(crate) use cross_check::CrossCheck;
pub use density::{Confidence, Confidences, Density};
pub(crate) use halves::{Halves, REGION, REGIONS};
pub(crate) use kin::{DEFAULT_K, EVEN, WEAK, edge_evidence};
pub use kin::{Kin, KinModel, Prefer, estimate, partition};
pub use kin_training::{KinTraining, KinTrial, TrainedKin, train_kin};
pub(crate) use size_choice::choose_sizes;
