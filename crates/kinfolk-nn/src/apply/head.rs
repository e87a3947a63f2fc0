//! The head both networks end with: Linear, PReLU, Linear.

use super::gemm::affine;
use crate::GraphNetwork;

/// The outputs of the head for each row of `x`, row after row; `hidden` is scratch.
pub(super) fn head(network: &GraphNetwork, x: &[f32], hidden: &mut Vec<f32>, out: &mut Vec<f32>) {
    affine(&network.hidden, x, hidden);
    for row in hidden.chunks_exact_mut(network.hidden.outputs) {
        for (value, slope) in row.iter_mut().zip(&network.slopes) {
            *value = if *value < 0.0 { *value * slope } else { *value };
        }
    }
    affine(&network.output, hidden, out);
}
