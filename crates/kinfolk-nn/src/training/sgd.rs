//! Stochastic gradient descent with momentum and weight decay, as in the published training:
//! v <- m v + (g + d w), w <- w - lr v.
//!
//! Weights and velocities are plain numbers that one loop goes through: as operations on tensors, each of which makes
//! a new one, a step of a small batch spends as long here as in the products.

use super::network::{Network, into_values, replace};
use crate::GraphNetwork;
use burn::tensor::Gradients;
use rayon::prelude::*;

/// Values that one task updates.
const CHUNK: usize = 1 << 14;

/// The optimiser and its memory.
pub(super) struct Sgd {
    pub(super) momentum: f32,
    pub(super) weight_decay: f32,
    /// w of every parameter; the network in training has the same.
    pub(super) weights: GraphNetwork,
    /// v of every parameter; zero before the first step.
    pub(super) velocities: GraphNetwork,
}

impl Sgd {
    /// One step down the gradients of the parameters.
    pub(super) fn step(&mut self, network: &mut Network, mut gradients: Gradients, learning_rate: f32) {
        let (momentum, decay) = (self.momentum, self.weight_decay);
        let state = self.weights.values_mut().into_iter().zip(self.velocities.values_mut());
        for (parameter, (weights, velocities)) in network.parameters().into_iter().zip(state) {
            let Some(gradient) = parameter.grad_remove(&mut gradients) else { continue };
            let gradient = into_values(gradient);
            let chunks = weights.par_chunks_mut(CHUNK).zip(velocities.par_chunks_mut(CHUNK));
            chunks.zip(gradient.par_chunks(CHUNK)).for_each(|((weights, velocities), gradient)| {
                for ((w, v), g) in weights.iter_mut().zip(velocities).zip(gradient) {
                    *v = momentum * *v + (g + decay * *w);
                    *w -= learning_rate * *v;
                }
            });
            replace(parameter, weights);
        }
    }
}
