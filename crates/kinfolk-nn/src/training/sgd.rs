//! Stochastic gradient descent with momentum and weight decay, as in the published training:
//! v <- m v + (g + d w), w <- w - lr v.

use super::network::Network;
use burn::tensor::Gradients;

/// The optimiser and its memory.
pub(super) struct Sgd {
    pub(super) momentum: f32,
    pub(super) weight_decay: f32,
    /// v of every parameter; zero before the first step.
    pub(super) velocities: Network,
}

impl Sgd {
    /// One step down the gradients of the parameters.
    pub(super) fn step(&mut self, network: &mut Network, mut gradients: Gradients, learning_rate: f32) {
        for (parameter, velocity) in network.parameters().into_iter().zip(self.velocities.parameters()) {
            let Some(gradient) = parameter.grad_remove(&mut gradients) else { continue };
            let weights = parameter.clone().inner();
            let faster =
                velocity.clone().inner() * self.momentum + (gradient + weights.clone() * self.weight_decay);
            *parameter = (weights - faster.clone() * learning_rate).autodiff().require_grad();
            *velocity = faster.autodiff();
        }
    }
}
