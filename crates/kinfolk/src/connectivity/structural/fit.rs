//! Trains a [`Network`]: cross-entropy, Adam (Kingma and Ba, 2015) with decoupled weight decay, one cycle of the rate.
//!
//! A batch is divided into tasks of a fixed size whose gradients are added in order, so that the weights are the same bits
//! on any number of threads.
//!
//! Cost: about three times that of applying the network, for each example and epoch.

use super::Sizes;
use super::network::{HIDDEN, LANES, Lanes, Layer, Network, Scratch, sigmoid};
use crate::random::{Purpose, Stream};
use crate::{Progress, Result};
use rayon::prelude::*;

/// Labelled edges: their features one after the other, and whether each joins one identity.
#[derive(Debug, Clone, Default)]
pub(crate) struct Examples {
    pub(crate) features: Vec<f32>,
    pub(crate) same: Vec<bool>,
}

/// Parameters of training.
#[derive(Debug, Clone)]
pub(crate) struct FitParams {
    pub(crate) epochs: usize,
    /// The largest rate of the cycle.
    pub(crate) rate: f32,
    pub(crate) decay: f32,
    /// The weight of the penalty: half the squared distance to the initial weights, times this, is added to the loss.
    pub(crate) hold: f32,
    pub(crate) seed: u64,
}

const BATCH: usize = 2048;
const TASK: usize = 256;
/// Share of the steps in which the rate rises.
const RISE: f32 = 0.3;

impl Examples {
    /// Adds an edge with these features, in a set whose identities have these sizes.
    pub(crate) fn push(&mut self, features: &[f32], sizes: Sizes, same: bool) {
        self.features.extend_from_slice(features);
        self.features.extend(sizes.0);
        self.same.push(same);
    }

    pub(crate) fn len(&self) -> usize {
        self.same.len()
    }

    fn row(&self, at: usize) -> &[f32] {
        let inputs = self.features.len() / self.same.len();
        &self.features[at * inputs..][..inputs]
    }

    /// Mean cross-entropy of a network, in nats.
    pub(crate) fn loss(&self, network: &Network) -> f64 {
        let all: Vec<u32> = (0..self.len() as u32).collect();
        let sums: Vec<f64> =
            all.par_chunks(TASK).map(|task| Gradient::of(network, self, task).loss).collect();
        sums.iter().sum::<f64>() / self.len().max(1) as f64
    }
}

impl Network {
    /// An untrained network, with the mean and deviation of its inputs.
    pub(crate) fn fresh(examples: &Examples, seed: u64) -> Self {
        let inputs = examples.features.len() / examples.len();
        let (mut means, mut squares) = (vec![0.0f64; inputs], vec![0.0f64; inputs]);
        for row in examples.features.chunks_exact(inputs) {
            for (at, &value) in row.iter().enumerate() {
                means[at] += f64::from(value);
                squares[at] += f64::from(value) * f64::from(value);
            }
        }
        let count = examples.len() as f64;
        means.iter_mut().chain(&mut squares).for_each(|sum| *sum /= count);
        let deviations = means
            .iter()
            .zip(&squares)
            .map(|(mean, square)| (square - mean * mean).max(0.0).sqrt() as f32 + 1e-6);
        let mut stream = Stream::new(seed, Purpose::Network, 0, 0);
        let mut layer = |from: usize, to: usize| {
            let scale = (2.0 / from as f32).sqrt();
            let weights = (0..from * to).map(|_| scale * stream.rough_normal()).collect();
            Layer { weights, biases: vec![0.0; to] }
        };
        Self {
            deviations: deviations.collect(),
            means: means.iter().map(|&mean| mean as f32).collect(),
            layers: [layer(inputs, HIDDEN), layer(HIDDEN, HIDDEN), layer(HIDDEN, 1)],
        }
    }

    /// Continues training on `examples`; `judge` is called with the network after each epoch.
    pub(crate) fn fit(
        &mut self,
        examples: &Examples,
        params: &FitParams,
        progress: &dyn Progress,
        mut judge: impl FnMut(&Network, f64),
    ) -> Result<()> {
        let batches = examples.len().div_ceil(BATCH);
        let steps = (params.epochs * batches) as f32;
        let start = self.clone();
        let mut adam = Adam::new(self);
        let mut step = 0;
        for epoch in 0..params.epochs {
            let order = Stream::new(params.seed, Purpose::Network, 1, epoch as u64)
                .sample(examples.len(), examples.len());
            let mut loss = 0.0;
            for batch in order.chunks(BATCH) {
                progress.check()?;
                let tasks: Vec<Gradient> =
                    batch.par_chunks(TASK).map(|task| Gradient::of(self, examples, task)).collect();
                let mut sum = Gradient::none(self);
                tasks.iter().for_each(|task| sum.add(task));
                let at = step as f32 / steps;
                let share = if at < RISE { at / RISE } else { (1.0 - at) / (1.0 - RISE) };
                // Never 0: a first step of rate 0 would only fill the moments.
                let rate = params.rate * share.max(0.01);
                sum.hold(self, &start, params.hold * batch.len() as f32);
                adam.step(self, &sum, batch.len(), rate, params.decay);
                loss += sum.loss;
                step += 1;
            }
            judge(self, loss / examples.len() as f64);
        }
        Ok(())
    }
}

/// The gradient of the sum of the losses of some examples.
struct Gradient {
    layers: [Layer; 3],
    loss: f64,
}

impl Gradient {
    fn none(network: &Network) -> Self {
        let zero = |layer: &Layer| Layer {
            weights: vec![0.0; layer.weights.len()],
            biases: vec![0.0; layer.biases.len()],
        };
        Self { layers: network.layers.each_ref().map(zero), loss: 0.0 }
    }

    fn add(&mut self, other: &Gradient) {
        for (sum, layer) in self.layers.iter_mut().zip(&other.layers) {
            sum.weights.iter_mut().zip(&layer.weights).for_each(|(sum, v)| *sum += v);
            sum.biases.iter_mut().zip(&layer.biases).for_each(|(sum, v)| *sum += v);
        }
        self.loss += other.loss;
    }

    /// Adds the gradient of the penalty.
    fn hold(&mut self, network: &Network, start: &Network, by: f32) {
        for ((sum, now), then) in self.layers.iter_mut().zip(&network.layers).zip(&start.layers) {
            let add = |((sum, now), then): ((&mut f32, &f32), &f32)| *sum += by * (now - then);
            sum.weights.iter_mut().zip(&now.weights).zip(&then.weights).for_each(add);
            sum.biases.iter_mut().zip(&now.biases).zip(&then.biases).for_each(add);
        }
    }

    fn of(network: &Network, examples: &Examples, which: &[u32]) -> Self {
        let mut gradient = Self::none(network);
        let mut scratch = network.scratch();
        for lanes in which.chunks(LANES) {
            for (lane, &at) in lanes.iter().enumerate() {
                network.set(&mut scratch, lane, examples.row(at as usize));
            }
            let logits = network.logits(&mut scratch);
            // Lanes beyond the last example keep an error of 0 and so change nothing.
            let mut errors = [0.0; LANES];
            for (lane, &at) in lanes.iter().enumerate() {
                let (logit, same) = (logits[lane], examples.same[at as usize]);
                errors[lane] = sigmoid(logit) - if same { 1.0 } else { 0.0 };
                let against = f64::from(if same { -logit } else { logit });
                // log(1 + e^x) without overflow.
                gradient.loss += against.max(0.0) + (-against.abs()).exp().ln_1p();
            }
            gradient.back(network, &scratch, errors);
        }
        gradient
    }

    /// Adds the gradient of 16 examples, from the errors of their logits.
    fn back(&mut self, network: &Network, scratch: &Scratch, errors: Lanes) {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: just detected.
                return unsafe { self.back_with_avx512(network, scratch, errors) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: just detected.
                return unsafe { self.back_with_avx2(network, scratch, errors) };
            }
        }
        self.back_in_lanes(network, scratch, errors)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn back_with_avx512(&mut self, network: &Network, scratch: &Scratch, errors: Lanes) {
        self.back_in_lanes(network, scratch, errors)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn back_with_avx2(&mut self, network: &Network, scratch: &Scratch, errors: Lanes) {
        self.back_in_lanes(network, scratch, errors)
    }

    #[inline(always)]
    fn back_in_lanes(&mut self, network: &Network, scratch: &Scratch, errors: Lanes) {
        let Scratch { input, hidden: [one, two] } = scratch;
        let [first, second, last] = &mut self.layers;
        last.learn(two, &[errors]);
        let errors = network.layers[2].send_back(&[errors], two);
        second.learn(one, &errors);
        let errors = network.layers[1].send_back(&errors, one);
        first.learn(input, &errors);
    }
}

impl Layer {
    /// Adds the products of errors and inputs.
    #[inline(always)]
    fn learn(&mut self, input: &[Lanes], errors: &[Lanes]) {
        for (output, error) in errors.iter().enumerate() {
            let weights = &mut self.weights[output * input.len()..][..input.len()];
            for (weight, values) in weights.iter_mut().zip(input) {
                let mut products = [0.0; LANES];
                for lane in 0..LANES {
                    products[lane] = error[lane] * values[lane];
                }
                *weight += sum(products);
            }
            self.biases[output] += sum(*error);
        }
    }

    /// The errors of the inputs, which are `values` after ReLU.
    #[inline(always)]
    fn send_back(&self, errors: &[Lanes], values: &[Lanes; HIDDEN]) -> [Lanes; HIDDEN] {
        let mut back = [[0.0; LANES]; HIDDEN];
        for (output, error) in errors.iter().enumerate() {
            let weights = &self.weights[output * HIDDEN..][..HIDDEN];
            for (back, &weight) in back.iter_mut().zip(weights) {
                for lane in 0..LANES {
                    back[lane] += weight * error[lane];
                }
            }
        }
        for (back, values) in back.iter_mut().zip(values) {
            for lane in 0..LANES {
                back[lane] = if values[lane] > 0.0 { back[lane] } else { 0.0 };
            }
        }
        back
    }
}

/// By halves, in an order that vectors like.
#[inline(always)]
fn sum(lanes: Lanes) -> f32 {
    let mut eight = [0.0; 8];
    for lane in 0..8 {
        eight[lane] = lanes[lane] + lanes[lane + 8];
    }
    let mut four = [0.0; 4];
    for lane in 0..4 {
        four[lane] = eight[lane] + eight[lane + 4];
    }
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Means of the gradient and of its squares, for each weight.
struct Adam {
    moments: [(Layer, Layer); 3],
    steps: i32,
}

impl Adam {
    fn new(network: &Network) -> Self {
        let (one, two) = (Gradient::none(network), Gradient::none(network));
        let [a, b, c] = one.layers;
        let [d, e, f] = two.layers;
        Self { moments: [(a, d), (b, e), (c, f)], steps: 0 }
    }

    fn step(&mut self, network: &mut Network, sum: &Gradient, count: usize, rate: f32, decay: f32) {
        const BETAS: [f32; 2] = [0.9, 0.999];
        self.steps += 1;
        let corrections = BETAS.map(|beta| 1.0 - beta.powi(self.steps));
        let update = |(((weight, first), second), gradient): (((&mut f32, &mut f32), &mut f32), &f32),
                      decay: f32| {
            let gradient = gradient / count as f32;
            *first = BETAS[0] * *first + (1.0 - BETAS[0]) * gradient;
            *second = BETAS[1] * *second + (1.0 - BETAS[1]) * gradient * gradient;
            *weight -= rate
                * (decay * *weight + *first / corrections[0] / ((*second / corrections[1]).sqrt() + 1e-8));
        };
        for ((layer, (first, second)), gradient) in
            network.layers.iter_mut().zip(&mut self.moments).zip(&sum.layers)
        {
            let weights = layer.weights.iter_mut().zip(&mut first.weights).zip(&mut second.weights);
            weights.zip(&gradient.weights).for_each(|weight| update(weight, decay));
            let biases = layer.biases.iter_mut().zip(&mut first.biases).zip(&mut second.biases);
            biases.zip(&gradient.biases).for_each(|bias| update(bias, 0.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_one_and_three_threads;

    /// Two inputs, of which the first decides with some noise.
    fn examples(count: usize) -> Examples {
        let mut stream = Stream::new(1, Purpose::Network, 2, 0);
        let mut examples = Examples::default();
        for _ in 0..count {
            let (a, b) = (stream.normal() as f32, stream.normal() as f32);
            examples.features.extend([3.0 + 2.0 * a, b]);
            examples.same.push(a * b + 0.1 * stream.normal() as f32 > 0.0);
        }
        examples
    }

    #[test]
    fn gradients_are_those_of_differences() {
        let examples = examples(40);
        let network = Network::fresh(&examples, 3);
        let all: Vec<u32> = (0..40).collect();
        let gradient = Gradient::of(&network, &examples, &all);
        let numbers = network.to_numbers();
        let gradients = Network { layers: gradient.layers, ..network.clone() }.to_numbers();
        let loss = |numbers: &[f32]| examples.loss(&Network::from_numbers(2, numbers)) * 40.0;
        // The first four are means and deviations, which are not learned.
        for at in (4..numbers.len()).step_by(7) {
            let moved = |by: f32| {
                let mut numbers = numbers.clone();
                numbers[at] += by;
                loss(&numbers)
            };
            let slope = (moved(2e-3) - moved(-2e-3)) / 4e-3;
            let found = f64::from(gradients[at]);
            assert!((slope - found).abs() < 0.02 + 0.02 * slope.abs(), "{at}: {slope} {found}");
        }
    }

    #[test]
    fn it_learns_what_no_line_separates_the_same_on_any_number_of_threads() {
        let examples = examples(4000);
        let params = FitParams { epochs: 60, rate: 1e-2, decay: 1e-3, hold: 0.0, seed: 5 };
        let [one, three] = on_one_and_three_threads(|| {
            let mut network = Network::fresh(&examples, 5);
            network.fit(&examples, &params, &(), |_, _| ()).unwrap();
            network
        });
        assert_eq!(one, three);
        assert!(examples.loss(&one) < 0.25, "{}", examples.loss(&one));
    }

    #[test]
    fn weights_that_are_held_stay_near() {
        let examples = examples(2000);
        let start = Network::fresh(&examples, 5);
        let distance = |hold: f32| {
            let mut network = start.clone();
            let params = FitParams { epochs: 100, rate: 1e-2, decay: 0.0, hold, seed: 5 };
            network.fit(&examples, &params, &(), |_, _| ()).unwrap();
            let numbers = network.to_numbers().into_iter().zip(start.to_numbers());
            (numbers.map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt(), examples.loss(&network))
        };
        let [free, held] = [0.0, 0.3].map(distance);
        assert!(
            held.0 < free.0 / 3.0 && free.1 < held.1 && held.1 < examples.loss(&start),
            "{free:?} {held:?}"
        );
    }

    #[test]
    fn what_is_known_can_be_left_out_of_the_inputs() {
        let network = Network::fresh(&examples(100), 2);
        let probability = |network: &Network, features: &[f32]| {
            let mut out = [0.0];
            network.probabilities(features, &mut network.scratch(), &mut out);
            out[0]
        };
        for (a, b) in [(0.5, 0.2), (3.0, -1.0), (7.0, 900.0)] {
            let (all, given) = (probability(&network, &[a, b]), probability(&network.given(&[b]), &[a]));
            assert!((all - given).abs() < 1e-5, "{all} {given}");
        }
    }

    #[test]
    fn numbers_are_a_network_and_the_reverse() {
        let network = Network::fresh(&examples(10), 1);
        let numbers = network.to_numbers();
        assert_eq!(numbers.len(), Network::numbers(2));
        assert_eq!(Network::from_numbers(2, &numbers), network);
    }
}
