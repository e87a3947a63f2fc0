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
use super::sparse::Operator;
use crate::product::{Matrix, product};
use crate::{GraphNetwork, Linear};
use rayon::prelude::*;
use std::ops::Range;

/// Rows that one task takes where there is little to do for each.
const ROWS: usize = 64;

/// The outputs of the network, one row for each row of its head.
///
/// # Panics
/// When there is more than one convolution and no operator.
pub(super) fn outputs(network: &GraphNetwork, batch: &Batch) -> Vec<f32> {
    forward(network, batch).outputs
}

/// The gradient of the mean loss by every weight, and the sum of the losses.
///
/// # Panics
/// When there is more than one convolution and no operator.
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
        let mut out = linear(convolution, inputs);
        out.par_chunks_mut(ROWS * convolution.outputs)
            .for_each(|rows| rows.iter_mut().for_each(|v| *v = v.max(0.0)));
        out
    };
    let mut joined: Vec<Vec<f32>> = Vec::new();
    let mut embedding = convolve(&network.convolutions[0], &batch.joined);
    for (l, convolution) in network.convolutions.iter().enumerate().skip(1) {
        joined.push(operator(batch).matrix().joined(&embedding, convolution.inputs / 2));
        embedding = convolve(convolution, &joined[l - 1]);
    }
    let read = read(&embedding, network.hidden.inputs, &batch.readout);
    let head = read.as_ref().map_or(&embedding, |(values, _)| values);
    let before = linear(&network.hidden, head);
    let after = prelu(&before, &network.slopes);
    let outputs = linear(&network.output, &after);
    Trace { joined, embedding, read, hidden: [before, after], outputs }
}

fn backward(network: &GraphNetwork, batch: &Batch, trace: &Trace, by_outputs: Vec<f32>) -> GraphNetwork {
    let [before, after] = &trace.hidden;
    let output = by_weights(&network.output, after, &by_outputs);
    let by_after = by_inputs(&network.output, &by_outputs, 0..network.output.inputs);
    let (by_before, slopes) = by_prelu(before, &network.slopes, &by_after);
    let hidden = by_weights(&network.hidden, trace.head(), &by_before);
    let by_head = by_inputs(&network.hidden, &by_before, 0..network.hidden.inputs);
    let mut by_embedding = match &trace.read {
        None => by_head,
        Some((_, rows)) => scatter(&by_head, rows, trace.embedding.len(), network.hidden.inputs),
    };
    let mut convolutions = Vec::with_capacity(network.convolutions.len());
    for (l, convolution) in network.convolutions.iter().enumerate().rev() {
        // The relu lets through what was positive. The outputs are the left half of the next layer's inputs.
        match trace.joined.get(l) {
            None => by_relu(&mut by_embedding, &trace.embedding, convolution.outputs, convolution.outputs),
            Some(next) => by_relu(&mut by_embedding, next, convolution.outputs, 2 * convolution.outputs),
        }
        convolutions.push(by_weights(convolution, trace.inputs(batch, l), &by_embedding));
        // The features are constants.
        if l > 0 {
            let half = convolution.inputs / 2;
            let mut by_own = by_inputs(convolution, &by_embedding, 0..half);
            let by_mean = by_inputs(convolution, &by_embedding, half..2 * half);
            let by_mean = operator(batch).transposed().times(&by_mean, half);
            by_own
                .par_chunks_mut(ROWS * half)
                .zip(by_mean.par_chunks(ROWS * half))
                .for_each(|(a, b)| add(a, b));
            by_embedding = by_own;
        }
    }
    convolutions.reverse();
    GraphNetwork { convolutions, hidden, slopes, output }
}

fn operator(batch: &Batch) -> &Operator {
    batch.operator.as_ref().expect("more than one convolution needs the adjacency")
}

/// x W + b.
fn linear(layer: &Linear, x: &[f32]) -> Vec<f32> {
    let mut out = product(Matrix::new(x, layer.inputs), Matrix::new(&layer.weight, layer.outputs));
    out.par_chunks_mut(layer.outputs).with_min_len(ROWS).for_each(|row| add(row, &layer.bias));
    out
}

/// The gradients of [`linear`] by W and b.
fn by_weights(layer: &Linear, x: &[f32], gradient: &[f32]) -> Linear {
    let &Linear { inputs, outputs, .. } = layer;
    let weight = product(Matrix::new(x, inputs).transpose(), Matrix::new(gradient, outputs));
    let mut bias = vec![0.0; outputs];
    gradient.chunks_exact(outputs).for_each(|row| add(&mut bias, row));
    Linear { weight, bias, inputs, outputs }
}

/// The gradient of [`linear`] by some columns of x.
fn by_inputs(layer: &Linear, gradient: &[f32], columns: Range<usize>) -> Vec<f32> {
    let weight = &layer.weight[columns.start * layer.outputs..columns.end * layer.outputs];
    product(Matrix::new(gradient, layer.outputs), Matrix::new(weight, layer.outputs).transpose())
}

/// Adds `other` to `sums`, element by element.
fn add(sums: &mut [f32], other: &[f32]) {
    sums.iter_mut().zip(other).for_each(|(sum, x)| *sum += x);
}

/// x where it is not negative, slope x elsewhere; a slope for each column.
fn prelu(x: &[f32], slopes: &[f32]) -> Vec<f32> {
    let mut out = x.to_vec();
    out.par_chunks_mut(slopes.len()).with_min_len(ROWS).for_each(|row| {
        for (x, slope) in row.iter_mut().zip(slopes) {
            // Computed for both signs: without a branch the compiler takes many at once.
            let scaled = slope * *x;
            *x = if *x < 0.0 { scaled } else { *x };
        }
    });
    out
}

/// The gradients of [`prelu`] by x and by the slopes.
fn by_prelu(x: &[f32], slopes: &[f32], gradient: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let columns = slopes.len();
    let mut by_x = gradient.to_vec();
    by_x.par_chunks_mut(columns).zip(x.par_chunks(columns)).with_min_len(ROWS).for_each(|(out, x)| {
        for ((out, &x), slope) in out.iter_mut().zip(x).zip(slopes) {
            let scaled = slope * *out;
            *out = if x < 0.0 { scaled } else { *out };
        }
    });
    let mut by_slopes = vec![0.0; columns];
    for (x, gradient) in x.chunks_exact(columns).zip(gradient.chunks_exact(columns)) {
        for (sum, (&x, &gradient)) in by_slopes.iter_mut().zip(x.iter().zip(gradient)) {
            *sum += x.min(0.0) * gradient;
        }
    }
    (by_x, by_slopes)
}

/// Sets the gradient to zero where a relu's output is; the outputs are the first `columns` of every `stride` values.
fn by_relu(gradient: &mut [f32], outputs: &[f32], columns: usize, stride: usize) {
    gradient.par_chunks_mut(columns).zip(outputs.par_chunks(stride)).with_min_len(ROWS).for_each(
        |(gradient, outputs)| {
            for (gradient, &output) in gradient.iter_mut().zip(outputs) {
                *gradient = if output > 0.0 { *gradient } else { 0.0 };
            }
        },
    );
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
