//! A batch through the network, forwards and backwards, on the processor.
//!
//! F_l+1 = relu([F_l, A~ F_l] W_l + b_l) (Equations 2 and 3 of the paper), then the head: Linear, PReLU, Linear. The
//! network has one shape, so its gradients are written out: of y = x W + b they are dW = x^T dy, db = the sum of the rows
//! of dy, dx = dy W^T; of A~ F it is A~^T dy.
//!
//! Every sum is taken by one thread in one order, so the bits do not depend on the number of threads.
//!
//! Cost: for each row 2 (number of weights) operations forwards, twice that backwards. Memory: the inputs of every layer.

use super::batch::{Batch, Readout};
use super::loss::Loss;
use crate::product::{Matrix, product};
use crate::{GraphNetwork, Linear};
use rayon::prelude::*;
use std::ops::Range;

/// Rows that one task takes where there is little to do for each.
const ROWS: usize = 64;

/// The outputs of the network, one row for each row of its head.
///
/// # Panics
/// When there is more than one convolution and no operator for it.
pub(super) fn outputs(network: &GraphNetwork, batch: &Batch) -> Vec<f32> {
    forward(network, batch).outputs
}

/// The gradient of the mean loss by every weight, and the sum of the losses.
///
/// # Panics
/// When there is more than one convolution and no operator for it.
pub(super) fn gradients(network: &GraphNetwork, batch: &Batch, loss: Loss) -> (GraphNetwork, f64) {
    let trace = forward(network, batch);
    let (by_outputs, sum) = loss.gradient(&trace.outputs, &batch.targets);
    (backward(network, batch, &trace, by_outputs), sum)
}

/// What the backward pass needs of the forward pass.
struct Trace {
    /// [F, A~ F], the inputs of each convolution after the first, whose inputs are the batch's.
    joined: Vec<Vec<f32>>,
    /// The outputs of the last convolution.
    embedding: Vec<f32>,
    /// The head's inputs, if they are not `embedding`, and the row of `embedding` that each value is from.
    read: Option<(Vec<f32>, Vec<u32>)>,
    /// Before the PReLU, and after it.
    hidden: [Vec<f32>; 2],
    outputs: Vec<f32>,
}

impl Trace {
    /// The inputs of the head.
    fn head(&self) -> &[f32] {
        self.read.as_ref().map_or(&self.embedding, |(values, _)| values)
    }

    /// The inputs of a convolution.
    fn inputs<'a>(&'a self, batch: &'a Batch, l: usize) -> &'a [f32] {
        if l == 0 { &batch.joined } else { &self.joined[l - 1] }
    }
}

fn forward(network: &GraphNetwork, batch: &Batch) -> Trace {
    let convolve = |convolution: &Linear, inputs: &[f32]| {
        linear(convolution, inputs, |values| values.iter_mut().for_each(|v| *v = v.max(0.0)))
    };
    let mut joined: Vec<Vec<f32>> = Vec::new();
    let mut embedding = convolve(&network.convolutions[0], &batch.joined);
    for (l, convolution) in network.convolutions.iter().enumerate().skip(1) {
        joined.push(batch.operators.of(l).matrix().joined(&embedding, convolution.inputs / 2));
        embedding = convolve(convolution, &joined[l - 1]);
    }
    let read = read(&embedding, network.hidden.inputs, &batch.readout);
    let head = read.as_ref().map_or(&embedding, |(values, _)| values);
    let before = linear(&network.hidden, head, |_| {});
    let (after, outputs) = prelu_and_output(network, &before);
    Trace { joined, embedding, read, hidden: [before, after], outputs }
}

fn backward(network: &GraphNetwork, batch: &Batch, trace: &Trace, by_outputs: Vec<f32>) -> GraphNetwork {
    let (by_before, slopes, output) = by_prelu_and_output(network, &trace.hidden, &by_outputs);
    let hidden = by_weights(&network.hidden, trace.head(), &by_before);
    // The relu lets through what was positive.
    let relu = |outputs: &[f32], gradient: &mut [f32]| {
        for (gradient, &output) in gradient.iter_mut().zip(outputs) {
            *gradient = if output > 0.0 { *gradient } else { 0.0 };
        }
    };
    let width = network.hidden.inputs;
    let mut by_embedding = match &trace.read {
        None => by_inputs(&network.hidden, &by_before, 0..width, |first, rows| {
            relu(&trace.embedding[first * width..], rows);
        }),
        Some((_, from)) => {
            let by_head = by_inputs(&network.hidden, &by_before, 0..width, |_, _| {});
            let mut by_embedding = scatter(&by_head, from, trace.embedding.len(), width);
            relu(&trace.embedding, &mut by_embedding);
            by_embedding
        }
    };
    let mut convolutions = Vec::with_capacity(network.convolutions.len());
    for (l, convolution) in network.convolutions.iter().enumerate().rev() {
        let inputs = trace.inputs(batch, l);
        convolutions.push(by_weights(convolution, inputs, &by_embedding));
        // The features are constants.
        if l > 0 {
            let half = convolution.inputs / 2;
            let by_mean = by_inputs(convolution, &by_embedding, half..2 * half, |_, _| {});
            let by_mean = batch.operators.of(l).transposed().times(&by_mean, half);
            by_embedding = by_inputs(convolution, &by_embedding, 0..half, |first, rows| {
                add(rows, &by_mean[first * half..][..rows.len()]);
                // The outputs of the layer before are the left half of this one's inputs.
                let outputs = inputs[first * 2 * half..].chunks_exact(2 * half);
                rows.chunks_exact_mut(half).zip(outputs).for_each(|(row, output)| relu(output, row));
            });
        }
    }
    convolutions.reverse();
    GraphNetwork { convolutions, hidden, slopes, output }
}

/// x W + b, and then what is done with some rows of it.
fn linear(layer: &Linear, x: &[f32], finish: impl Fn(&mut [f32]) + Sync) -> Vec<f32> {
    let weight = Matrix::new(&layer.weight, layer.outputs);
    product(Matrix::new(x, layer.inputs), weight, |_, rows| {
        rows.chunks_exact_mut(layer.outputs).for_each(|row| add(row, &layer.bias));
        finish(rows);
    })
}

/// The gradients of [`linear`] by W and b.
fn by_weights(layer: &Linear, x: &[f32], gradient: &[f32]) -> Linear {
    let &Linear { inputs, outputs, .. } = layer;
    let weight = product(Matrix::new(x, inputs).transpose(), Matrix::new(gradient, outputs), |_, _| {});
    let mut bias = vec![0.0; outputs];
    gradient.chunks_exact(outputs).for_each(|row| add(&mut bias, row));
    Linear { weight, bias, inputs, outputs }
}

/// The gradient of [`linear`] by some columns of x, and then what is done with its rows from a number on.
fn by_inputs(
    layer: &Linear,
    gradient: &[f32],
    columns: Range<usize>,
    finish: impl Fn(usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    let weight = &layer.weight[columns.start * layer.outputs..columns.end * layer.outputs];
    let weight = Matrix::new(weight, layer.outputs).transpose();
    product(Matrix::new(gradient, layer.outputs), weight, finish)
}

/// Adds `other` to `sums`, element by element.
fn add(sums: &mut [f32], other: &[f32]) {
    sums.iter_mut().zip(other).for_each(|(sum, x)| *sum += x);
}

/// What follows `hidden`: its PReLU (x where it is not negative, slope x elsewhere; a slope for each column), and the
/// last layer, whose one or two outputs are too few for a product of matrices.
fn prelu_and_output(network: &GraphNetwork, before: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let GraphNetwork { slopes, output, .. } = network;
    let (columns, outputs) = (output.inputs, output.outputs);
    let weights = columns_of(output);
    let mut after = vec![0.0; before.len()];
    let mut out = vec![0.0; before.len() / columns * outputs];
    let rows = after.par_chunks_mut(ROWS * columns).zip(out.par_chunks_mut(ROWS * outputs));
    rows.zip(before.par_chunks(ROWS * columns)).for_each(|((after, out), before)| {
        let rows = after.chunks_exact_mut(columns).zip(before.chunks_exact(columns));
        for ((after, before), out) in rows.zip(out.chunks_exact_mut(outputs)) {
            for ((after, &x), slope) in after.iter_mut().zip(before).zip(slopes) {
                // Computed for both signs: without a branch the compiler takes many at once.
                let scaled = slope * x;
                *after = if x < 0.0 { scaled } else { x };
            }
            for ((out, weight), bias) in out.iter_mut().zip(&weights).zip(&output.bias) {
                *out = dot(after, weight) + bias;
            }
        }
    });
    (after, out)
}

/// The gradients of [`prelu_and_output`] by its inputs, by the slopes and by the last layer.
fn by_prelu_and_output(
    network: &GraphNetwork,
    [before, after]: &[Vec<f32>; 2],
    by_outputs: &[f32],
) -> (Vec<f32>, Vec<f32>, Linear) {
    let GraphNetwork { slopes, output, .. } = network;
    let &Linear { inputs: columns, outputs, .. } = output;
    let weights = columns_of(output);
    let mut by_before = vec![0.0; before.len()];
    let rows = by_before.par_chunks_mut(ROWS * columns).zip(before.par_chunks(ROWS * columns));
    rows.zip(by_outputs.par_chunks(ROWS * outputs)).for_each(|((rows, before), by_outputs)| {
        let rows = rows.chunks_exact_mut(columns).zip(before.chunks_exact(columns));
        for ((row, before), by_outputs) in rows.zip(by_outputs.chunks_exact(outputs)) {
            for (weight, by_output) in weights.iter().zip(by_outputs) {
                row.iter_mut().zip(weight).for_each(|(out, weight)| *out += by_output * weight);
            }
            for ((out, &x), slope) in row.iter_mut().zip(before).zip(slopes) {
                let scaled = slope * *out;
                *out = if x < 0.0 { scaled } else { *out };
            }
        }
    });
    let mut by_slopes = vec![0.0; columns];
    let mut by_weights = vec![vec![0.0; columns]; outputs];
    let mut bias = vec![0.0; outputs];
    let rows = before.chunks_exact(columns).zip(after.chunks_exact(columns));
    for ((before, after), by_outputs) in rows.zip(by_outputs.chunks_exact(outputs)) {
        add(&mut bias, by_outputs);
        for ((sums, weight), by_output) in by_weights.iter_mut().zip(&weights).zip(by_outputs) {
            sums.iter_mut().zip(after).for_each(|(sum, x)| *sum += by_output * x);
            for ((sum, &x), weight) in by_slopes.iter_mut().zip(before).zip(weight) {
                *sum += x.min(0.0) * (by_output * weight);
            }
        }
    }
    let weight = (0..columns).flat_map(|i| by_weights.iter().map(move |column| column[i])).collect();
    (by_before, by_slopes, Linear { weight, bias, inputs: columns, outputs })
}

/// The weights of each output of a layer.
fn columns_of(layer: &Linear) -> Vec<Vec<f32>> {
    (0..layer.outputs).map(|o| layer.weight[o..].iter().step_by(layer.outputs).copied().collect()).collect()
}

/// In eight sums, which the compiler takes at once.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, b) = (a.chunks(8), b.chunks(8));
    let mut sums = [0.0; 8];
    for (a, b) in a.zip(b) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum()
}

/// The inputs of the head and the row that each value is from; `None` if they are `rows` themselves.
fn read(rows: &[f32], columns: usize, readout: &Readout) -> Option<(Vec<f32>, Vec<u32>)> {
    match readout {
        Readout::All => None,
        Readout::Rows(chosen) => {
            let values = chosen.iter().flat_map(|&row| &rows[row as usize * columns..][..columns]).copied();
            let from = chosen.iter().flat_map(|&row| std::iter::repeat_n(row, columns));
            Some((values.collect(), from.collect()))
        }
        Readout::Largest(graphs) => {
            let largest = graphs.par_iter().map(|graph| largest(rows, columns, graph.clone()));
            let (values, from): (Vec<_>, Vec<_>) = largest.unzip();
            Some((values.concat(), from.concat()))
        }
    }
}

/// The largest of each column over some rows, and its row; of equal ones the first, which alone has the gradient.
fn largest(rows: &[f32], columns: usize, graph: Range<usize>) -> (Vec<f32>, Vec<u32>) {
    let mut best = rows[graph.start * columns..][..columns].to_vec();
    let mut from = vec![graph.start as u32; columns];
    for row in graph.skip(1) {
        let values = &rows[row * columns..][..columns];
        for ((best, from), &value) in best.iter_mut().zip(&mut from).zip(values) {
            if value > *best {
                (*best, *from) = (value, row as u32);
            }
        }
    }
    (best, from)
}

/// The gradient of [`read`].
fn scatter(gradient: &[f32], from: &[u32], len: usize, columns: usize) -> Vec<f32> {
    let mut out = vec![0.0; len];
    for (at, (gradient, &row)) in gradient.iter().zip(from).enumerate() {
        out[row as usize * columns + at % columns] += gradient;
    }
    out
}
