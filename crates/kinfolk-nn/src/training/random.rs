//! The random streams of training, named by (seed, purpose, index).

use kinfolk::random::{SplitMix64, Stream, mix};

/// What a stream is for; two purposes never share one.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// Weights before training.
    Weights,
    /// Identities held out for validation.
    Validation,
    /// The order of the examples in an epoch.
    Order,
    /// What is dropped from the input or otherwise augmented, and which neighbours or vertices are sampled.
    Noise,
    /// Which neighbours or vertices are sampled when held-out examples are judged.
    Judging,
}

pub(super) type Random = Stream<SplitMix64>;

/// The stream of `purpose` number `index` of `seed`.
pub(super) fn random(seed: u64, purpose: Purpose, index: u64) -> Random {
    Stream::from_state(mix(mix(seed) ^ purpose as u64) ^ index)
}
