//! The graph networks of kinfolk.

mod weights;

pub use weights::{GraphNetwork, Linear};
