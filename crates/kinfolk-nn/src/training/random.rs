//! Random numbers as a function of what they are for: SplitMix64 (Steele, Lea and Flood, 2014).
//!
//! Each stream is named by (seed, purpose, index), so what one part of training draws never shifts what
//! another part draws. Only integer arithmetic and products are used, so the draws are the same everywhere.

/// What a stream is for; two purposes never share one.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// Weights before training.
    Weights,
    /// Identities held out for validation.
    Validation,
    /// The order of the examples in an epoch.
    Order,
    /// What is dropped from the input or otherwise augmented, and which neighbours are sampled.
    Noise,
    /// Which neighbours are sampled when held-out examples are judged.
    Judging,
}

pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        let mut named = Random(seed);
        for part in [purpose as u64, index] {
            named = Random(named.word() ^ part);
        }
        named
    }

    pub(super) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub(super) fn uniform(&mut self) -> f32 {
        (self.word() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// Uniform in `0..n`; the bias of n / 2^64 is of no consequence here.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((self.word() as u128 * n as u128) >> 64) as usize
    }

    /// Fisher and Yates.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
