//! What can be chosen about training.

use super::compute::Compute;
use super::division::Division;
use kinfolk::{Embeddings, Error, Result};

/// How the weights are fitted. The defaults are the published ones, but with mini-batches in place of 80,000 passes
/// over everything at once, and with turned features.
#[derive(Debug, Clone, PartialEq)]
pub struct FitParams {
    /// Passes over the training examples. Default 20.
    pub epochs: usize,
    /// Examples in one step. Default 64, which makes many steps of a small set.
    pub batch: usize,
    /// Examples in one epoch, drawn anew for each; all if there are fewer. Default: no limit.
    pub examples: usize,
    /// Learning rate of the first epoch. Default 0.1.
    pub learning_rate: f32,
    /// After each of these shares of the epochs the rate becomes a tenth. Default 0.5, 0.8, 0.9.
    pub decay_at: Vec<f32>,
    /// Share of a step's direction that the next one keeps. Default 0.9.
    pub momentum: f32,
    /// Pull of the weights towards zero. Default 1e-5.
    pub weight_decay: f32,
    /// Share of the inputs set to zero while training. Default 0.
    pub dropout: f32,
    /// Whether the features of each batch are turned at random, all alike: cosines stay, places in the space change,
    /// so that the training identities cannot be learned by heart. Default true.
    pub rotate: bool,
    /// Share of the identities kept out of training, to choose the best epoch by. Default 0.1; 0 keeps the last
    /// epoch.
    pub validation: f32,
    /// Where it runs. Default: the processor.
    pub compute: Compute,
    /// Seed of the initial weights, the order of the examples and whatever else is drawn. Default 0.
    pub seed: u64,
}

impl Default for FitParams {
    fn default() -> Self {
        Self {
            epochs: 20,
            batch: 64,
            examples: usize::MAX,
            learning_rate: 0.1,
            decay_at: vec![0.5, 0.8, 0.9],
            momentum: 0.9,
            weight_decay: 1e-5,
            dropout: 0.0,
            rotate: true,
            validation: 0.1,
            compute: Compute::default(),
            seed: 0,
        }
    }
}

impl FitParams {
    /// Refuses what cannot be.
    pub fn validate(&self) -> Result<()> {
        let share = "at least 0, below 1";
        at_least_one("epochs", self.epochs)?;
        at_least_one("batch", self.batch)?;
        at_least_one("examples", self.examples)?;
        within("learning_rate", self.learning_rate, "above 0", |v| v > 0.0 && v.is_finite())?;
        within("momentum", self.momentum, share, |v| (0.0..1.0).contains(&v))?;
        within("weight_decay", self.weight_decay, "at least 0", |v| v >= 0.0 && v.is_finite())?;
        within("dropout", self.dropout, share, |v| (0.0..1.0).contains(&v))?;
        within("validation", self.validation, share, |v| (0.0..1.0).contains(&v))?;
        for &at in &self.decay_at {
            within("decay_at", at, "0 to 1", |v| (0.0..=1.0).contains(&v))?;
        }
        self.compute.validate()
    }

    /// The learning rate of an epoch, from 0.
    pub(super) fn learning_rate_of(&self, epoch: usize) -> f32 {
        let passed = |&&at: &&f32| epoch as f32 >= at * self.epochs as f32;
        self.learning_rate * 0.1_f32.powi(self.decay_at.iter().filter(passed).count() as i32)
    }
}

pub(super) fn at_least_one(name: &'static str, value: usize) -> Result<()> {
    match value {
        0 => Err(Error::Parameter { field: name, expected: "at least 1", found: "0".to_owned() }),
        _ => Ok(()),
    }
}

pub(super) fn within(
    name: &'static str,
    value: f32,
    expected: &'static str,
    ok: fn(f32) -> bool,
) -> Result<()> {
    match ok(value) {
        true => Ok(()),
        false => Err(Error::Parameter { field: name, expected, found: value.to_string() }),
    }
}

/// Refuses what does not have one entry for each embedding.
pub(super) fn one_per_row(place: &str, what: &str, found: usize, embeddings: &Embeddings) -> Result<()> {
    if found == embeddings.len() {
        return Ok(());
    }
    let what = format!("{what} (one per embedding)");
    Err(Error::Length { place: place.to_owned(), what, expected: embeddings.len(), found })
}

/// Refuses a division in which no identity is held out to choose by.
pub(super) fn held_out(division: Division, params: &FitParams) -> Result<Division> {
    if !division.validation.is_empty() {
        return Ok(division);
    }
    Err(Error::Parameter {
        field: "validation",
        expected: "a share of the identities that is at least one of them",
        found: params.validation.to_string(),
    })
}
