//! The network over the features of an edge: 37 - 32 - 32 - 1 with ReLU, and a sigmoid at the end.
//!
//! Features are standardised by the mean and deviation they had in training and cut at 6 deviations, so that an odd set cannot
//! push the network where it has never been. The weights are in `weights.bin`: f32, little-endian, in the order of
//! [`Model`]; `bench/pretrain_kin.py` makes them.
//!
//! Cost: 2,240 multiplications for each edge, 16 edges at a time.

use super::features::FEATURES;

const HIDDEN: usize = 32;
const LANES: usize = 16;
/// Standardised features beyond this are cut.
const FAR: f32 = 6.0;

static WEIGHTS: &[u8] = include_bytes!("weights.bin");
const _: () = assert!(
    WEIGHTS.len() == 4 * (2 * FEATURES + HIDDEN * (FEATURES + 1) + HIDDEN * (HIDDEN + 1) + HIDDEN + 1),
    "weights.bin has another shape than the network"
);

pub(super) struct Model {
    means: Vec<f32>,
    /// One over the deviation.
    scales: Vec<f32>,
    /// Row-major, one row for each output, and the biases.
    first: (Vec<f32>, Vec<f32>),
    second: (Vec<f32>, Vec<f32>),
    last: (Vec<f32>, Vec<f32>),
}

/// One number of each of 16 edges.
type Lanes = [f32; LANES];

/// The values between the layers.
pub(super) struct Scratch {
    input: [Lanes; FEATURES],
    hidden: [[Lanes; HIDDEN]; 2],
}

impl Model {
    pub(super) fn built_in() -> Self {
        let mut numbers = WEIGHTS.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
        let mut take = |count: usize| numbers.by_ref().take(count).collect::<Vec<f32>>();
        Self {
            means: take(FEATURES),
            scales: take(FEATURES).iter().map(|deviation| 1.0 / deviation).collect(),
            first: (take(HIDDEN * FEATURES), take(HIDDEN)),
            second: (take(HIDDEN * HIDDEN), take(HIDDEN)),
            last: (take(HIDDEN), take(1)),
        }
    }

    pub(super) fn scratch(&self) -> Scratch {
        Scratch { input: [[0.0; LANES]; FEATURES], hidden: [[[0.0; LANES]; HIDDEN]; 2] }
    }

    /// The probability of each edge.
    pub(super) fn probabilities(&self, edges: &[[f32; FEATURES]], scratch: &mut Scratch, out: &mut [f32]) {
        for (edges, out) in edges.chunks(LANES).zip(out.chunks_mut(LANES)) {
            for (lane, features) in edges.iter().enumerate() {
                let standard = self.means.iter().zip(&self.scales).zip(features);
                for (input, ((mean, scale), value)) in scratch.input.iter_mut().zip(standard) {
                    input[lane] = ((value - mean) * scale).clamp(-FAR, FAR);
                }
            }
            let logits = self.logits(scratch);
            out.iter_mut().zip(logits).for_each(|(p, logit)| *p = 1.0 / (1.0 + (-logit).exp()));
        }
    }

    fn logits(&self, scratch: &mut Scratch) -> Lanes {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: just detected.
                return unsafe { self.with_avx512(scratch) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: just detected.
                return unsafe { self.with_avx2(scratch) };
            }
        }
        self.in_lanes(scratch)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn with_avx512(&self, scratch: &mut Scratch) -> Lanes {
        self.in_lanes(scratch)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn with_avx2(&self, scratch: &mut Scratch) -> Lanes {
        self.in_lanes(scratch)
    }

    /// Without fused multiply-add, so that all instruction sets agree to the bit.
    #[inline(always)]
    fn in_lanes(&self, scratch: &mut Scratch) -> Lanes {
        let Scratch { input, hidden: [one, two] } = scratch;
        layer(&self.first, input, one);
        layer(&self.second, one, two);
        combine(&self.last.0, self.last.1[0], two)
    }
}

#[inline(always)]
fn layer((weights, biases): &(Vec<f32>, Vec<f32>), input: &[Lanes], out: &mut [Lanes]) {
    for ((weights, &bias), out) in weights.chunks_exact(input.len()).zip(biases).zip(out) {
        *out = combine(weights, bias, input).map(|v| v.max(0.0));
    }
}

#[inline(always)]
fn combine(weights: &[f32], bias: f32, input: &[Lanes]) -> Lanes {
    let mut sums = [bias; LANES];
    for (&weight, values) in weights.iter().zip(input) {
        for lane in 0..LANES {
            sums[lane] += weight * values[lane];
        }
    }
    sums
}
