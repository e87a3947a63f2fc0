//! Which examples are learned from, and which the learning is judged by.

use super::params::FitParams;
use super::random::{Purpose, random};

/// The examples to learn from, and those to judge by.
pub(super) struct Division {
    pub(super) training: Vec<u32>,
    pub(super) validation: Vec<u32>,
}

/// Holds out whole identities: rows of one identity are so alike that a network which has seen some of them knows
/// the others. At least one identity is left to train on.
pub(super) fn divide(labels: &[i64], params: &FitParams) -> Division {
    let mut identities = labels.to_vec();
    identities.sort_unstable();
    identities.dedup();
    random(params.seed, Purpose::Validation, 0).shuffle(&mut identities);
    let held = (identities.len() as f64 * params.validation as f64).round() as usize;
    identities.truncate(held.min(identities.len().saturating_sub(1)));
    identities.sort_unstable();
    let (validation, training) =
        (0..labels.len() as u32).partition(|&row| identities.binary_search(&labels[row as usize]).is_ok());
    Division { training, validation }
}
