//! The weights that training starts from.

use super::random::{Purpose, random};
use crate::{GraphNetwork, Linear};

/// The number of columns between the layers.
pub(super) struct Shape<'a> {
    /// Of the features.
    pub(super) dim: usize,
    /// Of each convolution's output.
    pub(super) convolutions: &'a [usize],
    /// Of the head's first layer's output.
    pub(super) hidden: usize,
    /// Of the network's output.
    pub(super) outputs: usize,
}

/// Weights before training, as in the published code: convolutions uniform in +-sqrt(6 / (inputs + outputs)) with
/// bias 0 (Glorot and Bengio, 2010), the head uniform in +-1 / sqrt(inputs), slopes 0.25.
pub(super) fn initial(shape: &Shape, seed: u64) -> GraphNetwork {
    let mut random = random(seed, Purpose::Weights, 0);
    let mut uniform = |count: usize, bound: f32| {
        (0..count).map(|_| (2.0 * random.uniform_f32() - 1.0) * bound).collect::<Vec<_>>()
    };
    let mut inputs = shape.dim;
    let mut convolutions = Vec::with_capacity(shape.convolutions.len());
    for &outputs in shape.convolutions {
        let bound = (6.0 / (2 * inputs + outputs) as f32).sqrt();
        let weight = uniform(2 * inputs * outputs, bound);
        convolutions.push(Linear { weight, bias: vec![0.0; outputs], inputs: 2 * inputs, outputs });
        inputs = outputs;
    }
    let mut linear = |inputs: usize, outputs: usize| {
        let bound = 1.0 / (inputs as f32).sqrt();
        let weight = uniform(inputs * outputs, bound);
        Linear { weight, bias: uniform(outputs, bound), inputs, outputs }
    };
    let hidden = linear(inputs, shape.hidden);
    let output = linear(shape.hidden, shape.outputs);
    GraphNetwork { convolutions, hidden, slopes: vec![0.25; shape.hidden], output }
}
