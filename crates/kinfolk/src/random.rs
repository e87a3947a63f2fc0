//! Random numbers from named streams.
//!
//! Every draw comes from a stream that is named by the seed and what it is for, so a row of a synthetic set can be
//! computed without the rows before it, and what one part of the program draws never shifts what another part draws:
//! results are the same on any number of threads. Only integer arithmetic, `+ - * /` and `sqrt` are used, which IEEE 754
//! fixes to the last bit, so they are the same on any machine too; `exp` and the trigonometric functions of the system's
//! library would not promise that.
//!
//! This crate's streams are [`Xoshiro256`]; those of the baselines and of the training of networks are [`SplitMix64`],
//! which is cheaper to start. Labels that depend on a seed depend on which it is, so neither is replaced.

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
    /// Pairs of different identities.
    NullModel,
    /// The order in which vertices move between modules.
    Moves,
    /// First weights of a network, and the order of examples.
    Network,
    /// The sets on which a network is trained.
    World,
    /// Edges that sum up a graph.
    Summary,
    /// Places of points in a picture.
    Picture,
    /// Halves of the coordinates, and the rows that are compared in them.
    Views,
    /// A recogniser of images: its parts of a set, its weights, the order of its images and their distortions.
    Recogniser,
}

/// The state of a generator of 64-bit words.
pub trait Generator {
    /// The next word, all bits random.
    fn word(&mut self) -> u64;
}

/// xoshiro256++ (Blackman and Vigna, 2019).
pub struct Xoshiro256([u64; 4]);

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub struct SplitMix64(u64);

/// Random numbers from one generator.
pub struct Stream<G = Xoshiro256>(G);

/// The increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of SplitMix64: a bijection of 64-bit words that leaves no visible pattern.
pub fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Generator for Xoshiro256 {
    fn word(&mut self) -> u64 {
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
}

impl Generator for SplitMix64 {
    fn word(&mut self) -> u64 {
        let out = mix(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        out
    }
}

impl Stream {
    /// The stream of `purpose` number (`a`, `b`) of `seed`.
    pub fn new(seed: u64, purpose: Purpose, a: u64, b: u64) -> Self {
        let mut word = mix(mix(mix(mix(seed) ^ purpose as u64) ^ a) ^ b);
        Stream(Xoshiro256(std::array::from_fn(|_| {
            word = word.wrapping_add(GOLDEN);
            mix(word)
        })))
    }
}

impl Stream<SplitMix64> {
    /// The stream that begins in this state, which its caller makes from a seed and a purpose.
    pub fn from_state(state: u64) -> Self {
        Stream(SplitMix64(state))
    }
}

impl<G: Generator> Stream<G> {
    /// All bits random.
    pub fn word(&mut self) -> u64 {
        self.0.word()
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [0, 1).
    pub fn uniform_f32(&mut self) -> f32 {
        (self.word() >> 40) as f32 / (1u32 << 24) as f32
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

    /// Puts items in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
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

    /// From the reference implementation in C, seed 1234567.
    #[test]
    fn words_are_those_of_the_publications() {
        let mut stream = Stream::from_state(1234567);
        let expected = [
            6457827717110365317u64,
            3203168211198807973,
            9817491932198370423,
            4593380528125082431,
            16408922859458223821,
        ];
        assert_eq!(expected.map(|_| stream.word()), expected);
        // State 1, 2, 3, 4.
        let mut stream = Stream(Xoshiro256([1, 2, 3, 4]));
        let expected = [41943041u64, 58720359, 3588806011781223, 3591011842654386];
        assert_eq!(expected.map(|_| stream.word()), expected);
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
