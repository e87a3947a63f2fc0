//! The network as tensors that burn can differentiate.
//!
//! F_l+1 = relu([F_l, A~ F_l] W_l + b_l) (Equations 2 and 3 of the paper), then a head: Linear, PReLU, Linear.
//!
//! Cost: for each row of a batch 2 (number of weights) operations forwards, twice that backwards.

use super::aggregate::aggregate;
use super::compute::Compute;
use super::dense::{dense, prelu};
use super::random::{Purpose, Random};
use super::sparse::Operator;
use crate::{GraphNetwork, Linear};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor, TensorData};
use std::ops::Range;

/// x W + b. All parameters have two axes, so that one optimiser step fits them all.
pub(super) struct Layer {
    /// Inputs x outputs.
    weight: Tensor<2>,
    /// 1 x outputs.
    bias: Tensor<2>,
}

/// [`GraphNetwork`] in training.
pub(super) struct Network {
    convolutions: Vec<Layer>,
    hidden: Layer,
    /// 1 x outputs of `hidden`.
    slopes: Tensor<2>,
    output: Layer,
    compute: Compute,
}

/// The number of columns between the layers.
pub(super) struct Shape<'a> {
    /// Of the features.
    pub(super) dim: usize,
    /// Of each convolution's output.
    pub(super) convolutions: &'a [usize],
    /// Of the head's first layer's output.
    pub(super) hidden: usize,
    /// Of the network's output.
    pub(super) outputs: usize,
}

impl Layer {
    fn load(linear: &Linear, device: &Device) -> Self {
        let weight = parameter(linear.weight.clone(), [linear.inputs, linear.outputs], device);
        let bias = parameter(linear.bias.clone(), [1, linear.outputs], device);
        Self { weight, bias }
    }

    fn forward(&self, x: Tensor<2>, compute: Compute) -> Tensor<2> {
        dense(x, self.weight.clone(), self.bias.clone(), compute)
    }
}

impl Network {
    /// Takes weights into training.
    pub(super) fn load(weights: &GraphNetwork, compute: Compute) -> Self {
        let device = &compute.device();
        let load = |linear| Layer::load(linear, device);
        Self {
            convolutions: weights.convolutions.iter().map(load).collect(),
            hidden: load(&weights.hidden),
            slopes: parameter(weights.slopes.clone(), [1, weights.slopes.len()], device),
            output: load(&weights.output),
            compute,
        }
    }

    /// The same without a memory of what was computed with it.
    pub(super) fn untracked(&self) -> Self {
        let layer =
            |layer: &Layer| Layer { weight: layer.weight.clone().inner(), bias: layer.bias.clone().inner() };
        Self {
            convolutions: self.convolutions.iter().map(layer).collect(),
            hidden: layer(&self.hidden),
            slopes: self.slopes.clone().inner(),
            output: layer(&self.output),
            compute: self.compute,
        }
    }

    /// Every parameter, always in the same order.
    pub(super) fn parameters(&mut self) -> Vec<&mut Tensor<2>> {
        let layers = self.convolutions.iter_mut().chain([&mut self.hidden, &mut self.output]);
        let mut all: Vec<_> = layers.flat_map(|layer| [&mut layer.weight, &mut layer.bias]).collect();
        all.push(&mut self.slopes);
        all
    }

    /// One row of outputs for each row of `joined`, which is [X, A~ X]: a constant, so that whoever knows it
    /// need not compute it again. Convolutions after the first aggregate with `operator`. With `pooled`, the head has one row
    /// for each of these graphs, the largest of each column over its rows.
    ///
    /// # Panics
    /// When there is more than one convolution and no operator.
    pub(super) fn forward(
        &self,
        joined: Tensor<2>,
        operator: Option<&Operator>,
        pooled: Option<&[Range<usize>]>,
    ) -> Tensor<2> {
        let mut joined = joined;
        let last = self.convolutions.len() - 1;
        for (l, convolution) in self.convolutions.iter().enumerate() {
            let embedding = relu(convolution.forward(joined, self.compute));
            joined = match operator {
                _ if l == last => embedding,
                Some(operator) => {
                    Tensor::cat(vec![embedding.clone(), aggregate(operator, embedding, self.compute)], 1)
                }
                None => panic!("{} convolutions need the adjacency", last + 1),
            };
        }
        if let Some(graphs) = pooled {
            joined = largest(joined, graphs);
        }
        let hidden = self.hidden.forward(joined, self.compute);
        self.output.forward(prelu(hidden, self.slopes.clone(), self.compute), self.compute)
    }
}

/// The largest of each column over the rows of each graph; of equal ones the first, which alone has the gradient.
fn largest(x: Tensor<2>, graphs: &[Range<usize>]) -> Tensor<2> {
    let (columns, device) = (x.dims()[1], x.device());
    let rows = values(&x);
    let mut from = Vec::with_capacity(graphs.len() * columns);
    for graph in graphs {
        for column in 0..columns {
            let better = |best: usize, row: usize| {
                if rows[row * columns + column] > rows[best * columns + column] { row } else { best }
            };
            from.push(graph.clone().fold(graph.start, better) as i32);
        }
    }
    let from = TensorData::new(from, [graphs.len(), columns]);
    x.gather(0, Tensor::<2, Int>::from_data(from, &device))
}

/// Weights before training, as in the published code: convolutions uniform in +-sqrt(6 / (inputs + outputs)) with
/// bias 0 (Glorot and Bengio, 2010), the head uniform in +-1 / sqrt(inputs), slopes 0.25.
pub(super) fn initial(shape: &Shape, seed: u64) -> GraphNetwork {
    let mut random = Random::new(seed, Purpose::Weights, 0);
    let mut uniform = |count: usize, bound: f32| {
        (0..count).map(|_| (2.0 * random.uniform() - 1.0) * bound).collect::<Vec<_>>()
    };
    let mut inputs = shape.dim;
    let mut convolutions = Vec::with_capacity(shape.convolutions.len());
    for &outputs in shape.convolutions {
        let bound = (6.0 / (2 * inputs + outputs) as f32).sqrt();
        let weight = uniform(2 * inputs * outputs, bound);
        convolutions.push(Linear { weight, bias: vec![0.0; outputs], inputs: 2 * inputs, outputs });
        inputs = outputs;
    }
    let mut linear = |inputs: usize, outputs: usize| {
        let bound = 1.0 / (inputs as f32).sqrt();
        let weight = uniform(inputs * outputs, bound);
        Linear { weight, bias: uniform(outputs, bound), inputs, outputs }
    };
    let hidden = linear(inputs, shape.hidden);
    let output = linear(shape.hidden, shape.outputs);
    GraphNetwork { convolutions, hidden, slopes: vec![0.25; shape.hidden], output }
}

/// A tensor whose gradient is wanted.
fn parameter(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), device).autodiff().require_grad()
}

/// Gives a parameter other values.
pub(super) fn replace(tensor: &mut Tensor<2>, values: &[f32]) {
    *tensor = parameter(values.to_vec(), tensor.dims(), &tensor.device());
}

/// The values of a tensor that nobody else needs, row-major.
pub(super) fn into_values(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_into_vec().expect("all tensors here are f32")
}

/// The values of a tensor, row-major.
pub(super) fn values(tensor: &Tensor<2>) -> Vec<f32> {
    tensor.to_data().try_to_vec().expect("all tensors here are f32")
}
