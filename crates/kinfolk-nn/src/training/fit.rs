//! The loop that fits a network to examples, whatever they are.
//!
//! Mini-batches in an order drawn for each epoch, and after each epoch the loss on the examples of identities that
//! training never sees; the epoch where that was smallest is kept. Everything an epoch needs to know of those before
//! it is in [`FitState`], so training can stop between two and go on as if it had not.
//!
//! Cost of an epoch: 6 (number of weights) operations for each row of the examples.

use super::batch::Examples;
use super::division::Division;
use super::loss::Loss;
use super::params::FitParams;
use super::random::{Purpose, random};
use super::sgd::Sgd;
use crate::GraphNetwork;
use kinfolk::{Error, Progress, Result};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A network and how it came to be.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedNetwork {
    /// The weights after the best epoch.
    pub network: GraphNetwork,
    /// Every epoch that was run.
    pub history: Vec<Epoch>,
    /// Which of them the weights are from, counted from 0.
    pub best: usize,
}

/// One pass over the training examples.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Epoch {
    /// Its learning rate.
    pub learning_rate: f32,
    /// Mean loss of the training examples, each at the moment it was used.
    pub training_loss: f64,
    /// Mean loss of the held-out examples after the epoch; `None` when there are none.
    pub validation_loss: Option<f64>,
    /// Mean of pairwise and BCubed F of the held-out rows after the epoch, where it was measured.
    pub validation_f: Option<f64>,
    /// How long the pass over the training examples took.
    pub seconds: f64,
}

impl PartialEq for Epoch {
    /// The clock is no part of what an epoch did.
    fn eq(&self, other: &Self) -> bool {
        let parts = |e: &Epoch| (e.learning_rate, e.training_loss, e.validation_loss, e.validation_f);
        parts(self) == parts(other)
    }
}

/// Where a fit stands between two epochs.
#[derive(Debug, Clone, PartialEq)]
pub struct FitState {
    /// The weights after the last epoch.
    pub now: GraphNetwork,
    /// The direction of the last step, which the next one keeps a share of.
    pub velocities: GraphNetwork,
    /// The best weights so far, every epoch so far, and which of them was the best.
    pub best: FittedNetwork,
}

impl FitState {
    /// Before the first epoch.
    pub(super) fn new(initial: GraphNetwork) -> Self {
        let mut velocities = initial.clone();
        velocities.values_mut().into_iter().for_each(|values| values.fill(0.0));
        let best = FittedNetwork { network: initial.clone(), history: Vec::new(), best: 0 };
        Self { now: initial, velocities, best }
    }
}

/// A fit as its caller follows it.
pub(super) struct FitRun<'a> {
    /// Where an earlier one stopped.
    pub(super) resumed: Option<FitState>,
    /// What the caller does after each epoch: judge it, note it down, save the state.
    pub(super) after_epoch: &'a mut dyn FnMut(&mut FitState) -> Result<()>,
    pub(super) progress: &'a dyn Progress,
}

/// Fits `initial` to the examples, or goes on where the run says.
pub(super) fn fit(
    initial: GraphNetwork,
    examples: &mut impl Examples,
    division: &Division,
    loss: Loss,
    params: &FitParams,
    run: FitRun,
) -> Result<FittedNetwork> {
    let FitRun { resumed, after_epoch, progress } = run;
    if resumed.as_ref().is_some_and(|state| !state.now.fits(&initial)) {
        let expected = "a network of the shape that is trained";
        return Err(Error::format("training to resume", expected, "one of another shape"));
    }
    let mut state = resumed.unwrap_or_else(|| FitState::new(initial));
    let mut sgd = Sgd {
        momentum: params.momentum,
        weight_decay: params.weight_decay,
        weights: state.now.clone(),
        velocities: state.velocities.clone(),
    };
    let finished = state.best.history.len();
    let used = division.training.len().min(params.examples);
    progress.begin("train", ((params.epochs - finished.min(params.epochs)) * used) as u64);
    for epoch in finished..params.epochs {
        let start = Instant::now();
        let learning_rate = params.learning_rate_of(epoch);
        examples.begin_epoch(&sgd.weights, progress)?;
        let mut order = division.training.clone();
        random(params.seed, Purpose::Order, epoch as u64).shuffle(&mut order);
        order.truncate(used);
        let mut noise = random(params.seed, Purpose::Noise, epoch as u64);
        let mut mean = Mean::default();
        for chosen in order.chunks(params.batch) {
            progress.check()?;
            let batch = examples.batch(chosen, &mut noise, true);
            let (gradients, sum) = params.compute.gradients(&sgd.weights, &batch, loss)?;
            mean.add(sum, batch.targets.len());
            sgd.step(gradients, learning_rate);
            progress.advance(chosen.len() as u64);
        }
        let (training_loss, seconds) = (mean.value(), start.elapsed().as_secs_f64());
        if !training_loss.is_finite() {
            let found = params.learning_rate.to_string();
            let expected = "a rate at which training does not diverge (try a tenth)";
            return Err(Error::Parameter { field: "learning_rate", expected, found });
        }
        let validate = || -> Result<f64> {
            let mut mean = Mean::default();
            let mut sampling = random(params.seed, Purpose::Judging, 0);
            let judged = &division.validation[..division.validation.len().min(params.examples)];
            for chosen in judged.chunks(params.batch) {
                progress.check()?;
                let batch = examples.batch(chosen, &mut sampling, false);
                let outputs = params.compute.outputs(&sgd.weights, &batch)?;
                mean.add(loss.gradient(&outputs, &batch.targets).1, batch.targets.len());
            }
            Ok(mean.value())
        };
        let validation_loss = if division.validation.is_empty() { None } else { Some(validate()?) };
        let best = state.best.history.get(state.best.best).and_then(|epoch| epoch.validation_loss);
        state.best.history.push(Epoch {
            learning_rate,
            training_loss,
            validation_loss,
            validation_f: None,
            seconds,
        });
        state.now = sgd.weights.clone();
        state.velocities = sgd.velocities.clone();
        // Without validation every epoch is better than the one before.
        if best.is_none_or(|best| validation_loss.is_some_and(|loss| loss < best)) {
            state.best.network = state.now.clone();
            state.best.best = epoch;
        }
        after_epoch(&mut state)?;
        progress.note(&note(&state.best.history, params.epochs));
    }
    Ok(state.best)
}

/// The last epoch in one line.
fn note(history: &[Epoch], epochs: usize) -> String {
    let Some(last) = history.last() else { return String::new() };
    let mut text = format!("epoch {}/{epochs}, loss {:.4}", history.len(), last.training_loss);
    if let Some(loss) = last.validation_loss {
        text += &format!(", held out {loss:.4}");
    }
    if let Some(f) = last.validation_f {
        text += &format!(", F {:.1}", 100.0 * f);
    }
    text
}

/// A mean in double precision, summed in order.
#[derive(Default)]
struct Mean {
    sum: f64,
    count: usize,
}

impl Mean {
    fn add(&mut self, sum: f64, count: usize) {
        self.sum += sum;
        self.count += count;
    }

    fn value(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }
}
