//! Seeded random numbers, the same on every machine: SplitMix64 (Steele, Lea and Flood, 2014).

/// A stream of random numbers.
pub(crate) struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, by multiplication; the bias is below `end` / 2^64.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.bits() as u128 * end as u128) >> 64) as usize
    }

    /// `count` different numbers below `n`, in random order; all of them if there are fewer.
    pub fn sample(&mut self, n: usize, count: usize) -> Vec<u32> {
        let count = count.min(n);
        let mut all: Vec<u32> = (0..n as u32).collect();
        for i in 0..count {
            let j = i + self.below(n - i);
            all.swap(i, j);
        }
        all.truncate(count);
        all
    }
}
