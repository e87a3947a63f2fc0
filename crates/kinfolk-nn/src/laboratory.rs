//! Internals that `kinfolk-lab` needs to train a recogniser. Not part of the interface of this crate.

pub use crate::product::{Matrix, product};
