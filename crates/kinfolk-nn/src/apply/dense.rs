//! A network's layers, prepared for being applied to many blocks of rows.

use crate::product::{Matrix, Right, multiply};
use crate::{GraphNetwork, Linear};

/// x W + b.
pub(super) struct Dense<'a> {
    weight: Right<'a>,
    bias: &'a [f32],
    inputs: usize,
}

impl<'a> Dense<'a> {
    pub(super) fn new(layer: &'a Linear) -> Self {
        let weight = Right::new(Matrix::new(&layer.weight, layer.outputs));
        Self { weight, bias: &layer.bias, inputs: layer.inputs }
    }

    /// Columns of the result.
    pub(super) fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// `out` = `x` W + b.
    pub(super) fn apply(&self, x: &[f32], out: &mut Vec<f32>) {
        out.resize(x.len() / self.inputs * self.bias.len(), 0.0);
        multiply(Matrix::new(x, self.inputs), &self.weight, out);
        for row in out.chunks_exact_mut(self.bias.len()) {
            row.iter_mut().zip(self.bias).for_each(|(out, bias)| *out += bias);
        }
    }
}

/// The head both networks end with: Linear, PReLU, Linear.
pub(super) struct Head<'a> {
    hidden: Dense<'a>,
    slopes: &'a [f32],
    output: Dense<'a>,
}

impl<'a> Head<'a> {
    pub(super) fn new(network: &'a GraphNetwork) -> Self {
        let (hidden, output) = (Dense::new(&network.hidden), Dense::new(&network.output));
        Self { hidden, slopes: &network.slopes, output }
    }

    /// The outputs for each row of `x`, row after row; `hidden` is scratch.
    pub(super) fn apply(&self, x: &[f32], hidden: &mut Vec<f32>, out: &mut Vec<f32>) {
        self.hidden.apply(x, hidden);
        for row in hidden.chunks_exact_mut(self.slopes.len()) {
            for (value, slope) in row.iter_mut().zip(self.slopes) {
                // Computed for all values: without a branch the compiler can vectorise.
                let scaled = *value * slope;
                *value = if *value < 0.0 { scaled } else { *value };
            }
        }
        self.output.apply(hidden, out);
    }
}

/// max(x, 0). NaN, from a damaged network, is passed on and detected at the end.
pub(super) fn relu(values: &mut [f32]) {
    values.iter_mut().for_each(|v| *v = if *v < 0.0 { 0.0 } else { *v });
}
