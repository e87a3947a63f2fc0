//! Stochastic gradient descent with momentum and weight decay, as in the published training:
//! v <- m v + (g + d w), w <- w - lr v.

use crate::GraphNetwork;
use rayon::prelude::*;

/// Values that one task updates.
const CHUNK: usize = 1 << 14;

/// The weights in training, and the optimiser's memory of its steps.
pub(super) struct Sgd {
    pub(super) momentum: f32,
    pub(super) weight_decay: f32,
    /// w of every parameter.
    pub(super) weights: GraphNetwork,
    /// v of every parameter; zero before the first step.
    pub(super) velocities: GraphNetwork,
}

impl Sgd {
    /// One step down the gradients of the parameters.
    pub(super) fn step(&mut self, mut gradients: GraphNetwork, learning_rate: f32) {
        let (momentum, decay) = (self.momentum, self.weight_decay);
        let chunks: Vec<_> = (self.weights.values_mut().into_iter())
            .zip(self.velocities.values_mut())
            .zip(gradients.values_mut())
            .flat_map(|((weights, velocities), gradient)| {
                weights.chunks_mut(CHUNK).zip(velocities.chunks_mut(CHUNK)).zip(gradient.chunks(CHUNK))
            })
            .collect();
        chunks.into_par_iter().for_each(|((weights, velocities), gradient)| {
            for ((w, v), g) in weights.iter_mut().zip(velocities).zip(gradient) {
                *v = momentum * *v + (g + decay * *w);
                *w -= learning_rate * *v;
            }
        });
    }
}
