//! The loop that fits a network to examples, whatever they are.
//!
//! Mean squared error, mini-batches in an order drawn for each epoch, and after each epoch the error on the examples
//! of identities that training never sees; the epoch where that was smallest is kept.
//!
//! Cost of an epoch: 6 (number of weights) operations for each row of the examples.

use super::division::Division;
use super::network::{Network, values};
use super::params::FitParams;
use super::random::{Purpose, Random};
use super::sgd::Sgd;
use super::sparse::Operator;
use crate::GraphNetwork;
use burn::tensor::{Device, Int, Tensor, TensorData};
use kinfolk::{Error, Progress, Result};

/// A network and how it came to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The weights after the best epoch.
    pub network: GraphNetwork,
    /// Every epoch that was run.
    pub history: Vec<Epoch>,
    /// Which of them the weights are from, counted from 0.
    pub best: usize,
}

/// One pass over the training examples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epoch {
    /// Its learning rate.
    pub learning_rate: f32,
    /// Mean squared error of the training examples, each at the moment it was used.
    pub training_loss: f64,
    /// Mean squared error of the held-out examples after the epoch; `None` when there are none.
    pub validation_loss: Option<f64>,
}

/// Rows for one pass through the network.
pub(super) struct Batch {
    /// [X, A~ X], row-major.
    pub(super) joined: Vec<f32>,
    /// A~ of these rows; without it there can be only one convolution.
    pub(super) operator: Option<Operator>,
    /// The rows whose output counts; all when `None`.
    pub(super) counted: Option<Vec<u32>>,
    /// What those outputs should be.
    pub(super) targets: Vec<f32>,
}

/// Where batches come from.
pub(super) trait Examples {
    /// The examples of these numbers, disturbed by `noise` where that is wanted.
    fn batch(&self, examples: &[u32], noise: Option<&mut Random>) -> Batch;
    /// Columns of a batch.
    fn columns(&self) -> usize;
}

/// Fits `initial` to the examples.
pub(super) fn fit(
    initial: &GraphNetwork,
    examples: &impl Examples,
    division: &Division,
    params: &FitParams,
    progress: &dyn Progress,
) -> Result<Trained> {
    let device = Device::flex();
    let mut network = Network::load(initial, &device);
    let mut sgd = Sgd::new(params.momentum, params.weight_decay);
    let mut history: Vec<Epoch> = Vec::with_capacity(params.epochs);
    let mut best = (f64::INFINITY, 0, None);
    progress.begin("train", (params.epochs * division.training.len()) as u64);
    for epoch in 0..params.epochs {
        let learning_rate = params.learning_rate_of(epoch);
        let mut order = division.training.clone();
        Random::new(params.seed, Purpose::Order, epoch as u64).shuffle(&mut order);
        let mut noise = Random::new(params.seed, Purpose::Noise, epoch as u64);
        let mut mean = Mean::default();
        for chosen in order.chunks(params.batch) {
            let batch = examples.batch(chosen, Some(&mut noise));
            let (errors, count) = pass(&network, batch, examples.columns(), &device, &mut mean);
            // The gradient of a sum does not depend on the order of summation, its value would.
            let gradients = (errors.powi_scalar(2).sum() / count as f32).backward();
            sgd.step(&mut network, gradients, learning_rate);
            progress.advance(chosen.len() as u64);
        }
        let training_loss = mean.value();
        if !training_loss.is_finite() {
            let found = params.learning_rate.to_string();
            let expected = "a rate at which training does not diverge (try a tenth)";
            return Err(Error::Parameter { name: "--learning-rate", expected, found });
        }
        let validation_loss = match division.validation.is_empty() {
            true => None,
            false => {
                let mut mean = Mean::default();
                for chosen in division.validation.chunks(params.batch) {
                    pass(&network, examples.batch(chosen, None), examples.columns(), &device, &mut mean);
                }
                Some(mean.value())
            }
        };
        history.push(Epoch { learning_rate, training_loss, validation_loss });
        // Without validation every epoch is better than the one before.
        if validation_loss.is_none_or(|loss| loss < best.0) {
            best = (validation_loss.unwrap_or(f64::INFINITY), epoch, Some(network.store()));
        }
    }
    let (_, best, kept) = best;
    Ok(Trained { network: kept.unwrap_or_else(|| network.store()), history, best })
}

/// Runs a batch; gives the differences to the targets, and their number.
fn pass(
    network: &Network,
    batch: Batch,
    columns: usize,
    device: &Device,
    mean: &mut Mean,
) -> (Tensor<2>, usize) {
    let rows = batch.joined.len() / columns;
    let joined = Tensor::from_data(TensorData::new(batch.joined, [rows, columns]), device).autodiff();
    let mut outputs = network.forward(joined, batch.operator.as_ref());
    if let Some(counted) = batch.counted {
        let counted: Vec<i32> = counted.iter().map(|&row| row as i32).collect();
        let count = counted.len();
        let counted = Tensor::<1, Int>::from_data(TensorData::new(counted, [count]), device);
        outputs = outputs.select(0, counted);
    }
    let count = batch.targets.len();
    let targets = Tensor::from_data(TensorData::new(batch.targets, [count, 1]), device).autodiff();
    let errors = outputs - targets;
    mean.add_squares(&values(&errors));
    (errors, count)
}

/// A mean of squares in double precision, summed in order.
#[derive(Default)]
struct Mean {
    sum: f64,
    count: usize,
}

impl Mean {
    fn add_squares(&mut self, values: &[f32]) {
        self.sum += values.iter().map(|&v| v as f64 * v as f64).sum::<f64>();
        self.count += values.len();
    }

    fn value(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }
}
