//! A small network over the features of an edge: two hidden layers with ReLU, and a sigmoid output.
//!
//! Features are standardised by the mean and deviation of the training data and clipped at 6 deviations, so that an unusual set
//! does not lead to extrapolation.
//!
//! Cost: inputs x 32 + 32 x 32 multiplications for each edge, 16 edges at a time.

use std::f32::consts::E;

pub(super) const HIDDEN: usize = 32;
pub(super) const LANES: usize = 16;
/// Standardised features are clipped at this.
const FAR: f32 = 6.0;

/// One number of each of 16 edges.
pub(super) type Lanes = [f32; LANES];

/// Probability of an edge from its features.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Network {
    pub(super) means: Vec<f32>,
    pub(super) deviations: Vec<f32>,
    pub(super) layers: [Layer; 3],
}

/// Weights row-major, one row for each output, and biases.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layer {
    pub(super) weights: Vec<f32>,
    pub(super) biases: Vec<f32>,
}

/// The values between the layers: the input, and what each layer makes of it.
pub(super) struct Scratch {
    pub(super) input: Vec<Lanes>,
    pub(super) hidden: [[Lanes; HIDDEN]; 2],
}

impl Network {
    pub(super) fn inputs(&self) -> usize {
        self.means.len()
    }

    /// The number of parameters of a network with this many inputs.
    pub(crate) const fn numbers(inputs: usize) -> usize {
        2 * inputs + HIDDEN * (inputs + 1) + HIDDEN * (HIDDEN + 1) + HIDDEN + 1
    }

    /// From numbers in the order of [`Network::to_numbers`]; there must be [`Network::numbers`] of them.
    pub(crate) fn from_numbers(inputs: usize, numbers: &[f32]) -> Self {
        assert_eq!(numbers.len(), Self::numbers(inputs), "a network of another shape");
        let mut numbers = numbers.iter().copied();
        let mut take = |count: usize| numbers.by_ref().take(count).collect::<Vec<f32>>();
        let (means, deviations) = (take(inputs), take(inputs));
        let mut layer = |from: usize, to: usize| Layer { weights: take(from * to), biases: take(to) };
        let layers = [layer(inputs, HIDDEN), layer(HIDDEN, HIDDEN), layer(HIDDEN, 1)];
        Self { means, deviations, layers }
    }

    /// Means, deviations, then weights and biases of each layer.
    pub(crate) fn to_numbers(&self) -> Vec<f32> {
        let layers = self.layers.iter().flat_map(|layer| layer.weights.iter().chain(&layer.biases));
        self.means.iter().chain(&self.deviations).chain(layers).copied().collect()
    }

    /// The network of the other inputs if the last ones are constant.
    pub(super) fn given(&self, known: &[f32]) -> Self {
        let (inputs, others) = (self.inputs(), self.inputs() - known.len());
        let [first, second, last] = &self.layers;
        let scales = self.means.iter().zip(&self.deviations).skip(others);
        let standard: Vec<f32> =
            scales.zip(known).map(|((&mean, &deviation), &v)| standard(v, mean, deviation)).collect();
        let bias = |(weights, bias): (&[f32], &f32)| {
            bias + weights[others..].iter().zip(&standard).map(|(weight, value)| weight * value).sum::<f32>()
        };
        let rows = || first.weights.chunks_exact(inputs);
        let first = Layer {
            weights: rows().flat_map(|weights| &weights[..others]).copied().collect(),
            biases: rows().zip(&first.biases).map(bias).collect(),
        };
        Self {
            means: self.means[..others].to_vec(),
            deviations: self.deviations[..others].to_vec(),
            layers: [first, second.clone(), last.clone()],
        }
    }

    pub(super) fn scratch(&self) -> Scratch {
        Scratch { input: vec![[0.0; LANES]; self.inputs()], hidden: [[[0.0; LANES]; HIDDEN]; 2] }
    }

    /// Puts the features of one edge into a lane.
    #[inline]
    pub(super) fn set(&self, scratch: &mut Scratch, lane: usize, features: &[f32]) {
        let scales = self.means.iter().zip(&self.deviations);
        for (input, ((&mean, &deviation), &value)) in scratch.input.iter_mut().zip(scales.zip(features)) {
            input[lane] = standard(value, mean, deviation);
        }
    }

    /// The probability of each edge; `features` has the features of one after the other.
    pub(super) fn probabilities(&self, features: &[f32], scratch: &mut Scratch, out: &mut [f32]) {
        let inputs = self.inputs();
        for (edges, out) in features.chunks(LANES * inputs).zip(out.chunks_mut(LANES)) {
            for (lane, edge) in edges.chunks_exact(inputs).enumerate() {
                self.set(scratch, lane, edge);
            }
            let logits = self.logits(scratch);
            out.iter_mut().zip(logits).for_each(|(p, logit)| *p = sigmoid(logit));
        }
    }

    /// The logits of the edges in `scratch`, whose hidden values are left there.
    pub(super) fn logits(&self, scratch: &mut Scratch) -> Lanes {
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
        let [first, second, last] = &self.layers;
        first.apply(input, one);
        second.apply(one, two);
        combine(&last.weights, last.biases[0], two)
    }
}

#[inline]
fn standard(value: f32, mean: f32, deviation: f32) -> f32 {
    ((value - mean) / deviation).clamp(-FAR, FAR)
}

impl Layer {
    /// Four outputs side by side: an addition takes longer than it takes to begin the next.
    #[inline(always)]
    fn apply(&self, input: &[Lanes], out: &mut [Lanes; HIDDEN]) {
        let n = input.len();
        let (biases, outputs) = (self.biases.as_chunks::<4>().0, out.as_chunks_mut::<4>().0);
        for ((weights, biases), out) in self.weights.chunks_exact(4 * n).zip(biases).zip(outputs) {
            let ((one, two), (three, four)) = (weights[..2 * n].split_at(n), weights[2 * n..].split_at(n));
            let mut sums = biases.map(|bias| [bias; LANES]);
            for (at, values) in input.iter().enumerate() {
                add(&mut sums[0], one[at], values);
                add(&mut sums[1], two[at], values);
                add(&mut sums[2], three[at], values);
                add(&mut sums[3], four[at], values);
            }
            *out = sums.map(|sums| sums.map(|v| v.max(0.0)));
        }
    }
}

#[inline(always)]
fn add(sums: &mut Lanes, weight: f32, values: &Lanes) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += weight * value;
    }
}

#[inline(always)]
fn combine(weights: &[f32], bias: f32, input: &[Lanes]) -> Lanes {
    let mut sums = [bias; LANES];
    weights.iter().zip(input).for_each(|(&weight, values)| add(&mut sums, weight, values));
    sums
}

#[inline]
pub(super) fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + E.powf(-logit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One edge by the definition, sums in the same order.
    fn slow(network: &Network, features: &[f32]) -> f32 {
        let scales = network.means.iter().zip(&network.deviations);
        let mut values: Vec<f32> = features
            .iter()
            .zip(scales)
            .map(|(&v, (&mean, &deviation))| standard(v, mean, deviation))
            .collect();
        for layer in &network.layers {
            let rows = layer.weights.chunks_exact(values.len()).zip(&layer.biases);
            let sum =
                |(row, &bias): (&[f32], &f32)| row.iter().zip(&values).fold(bias, |s, (w, v)| s + w * v);
            let last = layer.biases.len() == 1;
            values = rows.map(sum).map(|v| if last { v } else { v.max(0.0) }).collect();
        }
        sigmoid(values[0])
    }

    proptest! {
        #[test]
        fn sixteen_edges_at_a_time_are_one_after_the_other(
            inputs in 1usize..40,
            edges in 0usize..40,
            numbers in proptest::collection::vec(-1.0f32..1.0, Network::numbers(40)),
            features in proptest::collection::vec(-9.0f32..9.0, 40 * 40),
        ) {
            let mut network = Network::from_numbers(inputs, &numbers[..Network::numbers(inputs)]);
            network.deviations.iter_mut().for_each(|deviation| *deviation += 1.5);
            let features = &features[..inputs * edges];
            let mut out = vec![0.0; edges];
            network.probabilities(features, &mut network.scratch(), &mut out);
            let slow: Vec<f32> = features.chunks_exact(inputs).map(|edge| slow(&network, edge)).collect();
            prop_assert_eq!(out, slow);
        }
    }
}
