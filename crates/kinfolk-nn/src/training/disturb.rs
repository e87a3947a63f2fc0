//! What keeps a network from learning the training identities by heart: turning the feature space, dropping inputs.

use super::params::FitParams;
use super::random::Random;
use super::rotation::Rotation;
use rayon::prelude::*;

/// Disturbs rows of [X, A~ X], both halves of `dim` columns alike.
pub(super) fn disturb(joined: &mut [f32], dim: usize, params: &FitParams, random: &mut Random) {
    if params.rotate {
        let rotation = Rotation::random(dim, random);
        joined.par_chunks_exact_mut(dim).with_min_len(32).for_each(|row| rotation.turn(row));
    }
    if params.dropout > 0.0 {
        let kept = 1.0 / (1.0 - params.dropout);
        joined.iter_mut().for_each(|v| *v *= if random.uniform() < params.dropout { 0.0 } else { kept });
    }
}
