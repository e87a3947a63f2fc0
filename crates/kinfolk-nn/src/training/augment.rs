//! Augmentation, which keeps a network from memorising the training identities: rotations and dropout.

use super::params::FitParams;
use super::random::Random;
use super::rotation::Rotation;

/// Augments rows of [X, A~ X], both halves of `dim` columns alike.
pub(super) fn augment(joined: &mut [f32], dim: usize, params: &FitParams, random: &mut Random) {
    if params.rotate {
        Rotation::random(dim, random).turn(joined, dim);
    }
    if params.dropout > 0.0 {
        let scale = 1.0 / (1.0 - params.dropout);
        joined.iter_mut().for_each(|v| *v *= if random.uniform_f32() < params.dropout { 0.0 } else { scale });
    }
}
