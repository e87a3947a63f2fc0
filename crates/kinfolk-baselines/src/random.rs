//! Random numbers: SplitMix64 (Steele et al., 2014), the same on every machine.

/// A stream of random numbers, named by a seed and what it is for.
pub(crate) struct Stream(u64);

impl Stream {
    /// Stream number `purpose` in the world of `seed`.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut stream = Stream(seed);
        let world = stream.word();
        Stream(world ^ purpose.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..n`; the bias of n / 2^64 is of no consequence here.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((self.word() as u128 * n as u128) >> 64) as usize
    }

    /// `count` different numbers below `n`, in random order; all of them if there are fewer.
    pub(crate) fn sample(&mut self, n: usize, count: usize) -> Vec<u32> {
        let mut all: Vec<u32> = (0..n as u32).collect();
        let count = count.min(n);
        for i in 0..count {
            all.swap(i, i + self.below(n - i));
        }
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_no_repeats_and_streams_differ() {
        for (n, count) in [(1, 1), (10, 3), (10, 10), (5, 9), (1000, 500)] {
            let mut sample = Stream::new(3, 1).sample(n, count);
            sample.sort_unstable();
            sample.dedup();
            assert_eq!(sample.len(), count.min(n));
            assert!(sample.iter().all(|&i| (i as usize) < n));
        }
        let first = |seed, purpose| Stream::new(seed, purpose).word();
        assert!(first(0, 0) != first(0, 1) && first(0, 0) != first(1, 0) && first(0, 1) != first(1, 0));
    }
}
