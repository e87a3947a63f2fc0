//! Random numbers as a function of what they are for.
//!
//! Every draw comes from a stream named by (seed, purpose, index, index), so a row can be computed without
//! the rows before it: that is what makes the set the same on any number of threads. Only integer
//! arithmetic, `+ - * /` and `sqrt` are used, which IEEE 754 fixes to the last bit, so the set is the same on
//! any machine too; `exp` and the trigonometric functions of the system's library would not promise that.

/// What a stream is for; two purposes never share a stream.
#[derive(Clone, Copy)]
pub enum Purpose {
    /// The rotation of the space.
    Rotation,
    /// A direction shared by everybody, towards which low quality drifts.
    Drift,
    /// What a group of look-alikes has in common.
    Group,
    /// The size of an identity.
    Size,
    /// Centre and modes of an identity.
    Identity,
    /// One image.
    Image,
    /// Which identities are for training.
    Split,
    /// Rows that k-means looks at.
    Lists,
    /// Rows whose exact neighbours are found, to know the recall of a search.
    Recall,
    /// Pairs of strangers.
    Strangers,
    /// The order in which vertices move between modules.
    Moves,
    /// First weights of a network, and the order of examples.
    Network,
    /// The sets on which a network is trained.
    World,
    /// Edges that sum up a graph.
    Summary,
}

/// xoshiro256++ (Blackman and Vigna, 2019), its state filled by SplitMix64.
pub struct Stream([u64; 4]);

/// One step of SplitMix64: a bijection of 64-bit words that leaves no visible pattern.
fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream of `purpose` number (`a`, `b`) in the world of `seed`.
    pub fn new(seed: u64, purpose: Purpose, a: u64, b: u64) -> Self {
        let mut word = mix(mix(mix(mix(seed) ^ purpose as u64) ^ a) ^ b);
        Stream(std::array::from_fn(|_| {
            word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(word)
        }))
    }

    /// All bits random.
    pub fn word(&mut self) -> u64 {
        let s = &mut self.0;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..n`; the bias of n / 2^64 is of no consequence here.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.word() as u128 * n as u128) >> 64) as usize
    }

    /// `count` different numbers below `n`, in random order; all of them if there are fewer.
    pub fn sample(&mut self, n: usize, count: usize) -> Vec<u32> {
        let mut all: Vec<u32> = (0..n as u32).collect();
        let count = count.min(n);
        for i in 0..count {
            all.swap(i, i + self.below(n - i));
        }
        all.truncate(count);
        all
    }

    /// Nearly normal: the sum of the eight bytes of a word, centred and scaled. Its excess kurtosis is -0.15,
    /// which the rotation of the space (a sum over many coordinates) washes out; it costs a tenth of an exact
    /// method.
    pub fn rough_normal(&mut self) -> f32 {
        const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
        // 1 / sqrt(8 (256^2 - 1) / 12)
        const SCALE: f32 = 0.004_784_196;
        let word = self.word();
        let pairs = (word & EVEN) + ((word >> 8) & EVEN);
        let sum = pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48;
        (sum as i32 - 1020) as f32 * SCALE
    }

    /// Normal, for what is drawn once per image or identity and whose tail therefore matters: 64 bytes summed,
    /// excess kurtosis -0.02.
    pub fn normal(&mut self) -> f64 {
        (0..8).map(|_| self.rough_normal() as f64).sum::<f64>() / 8f64.sqrt()
    }
}

/// e^x to the last few bits, the same on every machine: 2^k times the Taylor series of what remains.
pub fn exp(x: f64) -> f64 {
    let k = (x * std::f64::consts::LOG2_E).round().clamp(-1000.0, 1000.0);
    let r = x.clamp(-700.0, 700.0) - k * std::f64::consts::LN_2;
    let series = (1..=13).rev().fold(1.0, |sum, i| 1.0 + sum * r / i as f64);
    series * f64::from_bits(((k as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_agrees_with_the_library() {
        for i in -200..=200 {
            let x = i as f64 * 0.171;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-13, "{x}");
        }
    }

    #[test]
    fn normals_have_the_moments_of_a_normal() {
        let mut stream = Stream::new(1, Purpose::Image, 2, 3);
        let n = 200_000;
        let moments = |draws: Vec<f64>| {
            let m = |p: i32| draws.iter().map(|v| v.powi(p)).sum::<f64>() / n as f64;
            (m(1), m(2), m(4))
        };
        let (mean, variance, fourth) = moments((0..n).map(|_| stream.normal()).collect());
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.01 && (fourth - 2.98).abs() < 0.08);
        let (mean, variance, fourth) = moments((0..n).map(|_| stream.rough_normal() as f64).collect());
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.01 && (fourth - 2.85).abs() < 0.08);
    }

    #[test]
    fn a_sample_has_no_repeats() {
        let mut stream = Stream::new(0, Purpose::Lists, 0, 0);
        for (n, count) in [(1, 1), (10, 3), (10, 10), (5, 9), (1000, 500)] {
            let mut sample = stream.sample(n, count);
            sample.sort_unstable();
            sample.dedup();
            assert_eq!(sample.len(), count.min(n));
            assert!(sample.iter().all(|&i| (i as usize) < n));
        }
    }

    #[test]
    fn streams_differ_in_every_part_of_their_name() {
        let first = |seed, purpose, a, b| Stream::new(seed, purpose, a, b).word();
        let mut words = vec![
            first(0, Purpose::Image, 0, 0),
            first(1, Purpose::Image, 0, 0),
            first(0, Purpose::Identity, 0, 0),
            first(0, Purpose::Image, 1, 0),
            first(0, Purpose::Image, 0, 1),
        ];
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 5);
    }
}
