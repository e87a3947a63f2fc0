//! The random streams of the baselines, named by a seed and a number.

use kinfolk::random::{SplitMix64, mix};

pub(crate) type Stream = kinfolk::random::Stream<SplitMix64>;

/// Stream `number` of `seed`.
pub(crate) fn stream(seed: u64, number: u64) -> Stream {
    Stream::from_state(mix(seed) ^ number.wrapping_mul(0xd134_2543_de82_ef95))
}
