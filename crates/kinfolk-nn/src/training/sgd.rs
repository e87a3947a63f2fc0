//! Stochastic gradient descent with momentum and weight decay, as in the published training:
//! v <- m v + (g + d w), w <- w - lr v.

use super::network::Network;
use burn::tensor::{Gradients, Tensor};

/// The optimiser and its memory.
pub(super) struct Sgd {
    momentum: f32,
    weight_decay: f32,
    /// v of each parameter, once there is one.
    velocities: Vec<Option<Tensor<2>>>,
}

impl Sgd {
    pub(super) fn new(momentum: f32, weight_decay: f32) -> Self {
        Self { momentum, weight_decay, velocities: Vec::new() }
    }

    /// One step down the gradients of the parameters.
    pub(super) fn step(&mut self, network: &mut Network, mut gradients: Gradients, learning_rate: f32) {
        let parameters = network.parameters();
        self.velocities.resize(parameters.len(), None);
        for (parameter, velocity) in parameters.into_iter().zip(&mut self.velocities) {
            let Some(gradient) = parameter.grad_remove(&mut gradients) else { continue };
            let weights = parameter.clone().inner();
            let gradient = gradient + weights.clone() * self.weight_decay;
            let faster = match velocity.take() {
                Some(velocity) => velocity * self.momentum + gradient,
                None => gradient,
            };
            *parameter = (weights - faster.clone() * learning_rate).autodiff().require_grad();
            *velocity = Some(faster);
        }
    }
}
