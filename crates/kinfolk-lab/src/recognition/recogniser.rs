//! The recogniser: three convolutions that halve the image, a dense layer, and rows of unit length.
//!
//! For an image of side 28: 32 channels of 14 x 14 (window 5), 64 of 7 x 7, 128 of 4 x 4 (window 3), 128 outputs. About
//! 2.2 million multiplications for an image, three times as many in training.

use super::layers::{Gradient, Layer, Shape, Trace, Window};
use kinfolk::random::{Purpose, Stream};
use rayon::prelude::*;

/// Window, stride and outputs of the convolutions.
const CONVOLUTIONS: [(usize, usize, usize); 3] = [(5, 2, 32), (3, 2, 64), (3, 2, 128)];
/// Columns of the embeddings.
pub const DIM: usize = 128;
/// Images that are embedded at a time.
const EMBEDDED: usize = 64;

/// A recogniser of square grey images.
#[derive(Debug, Clone, PartialEq)]
pub struct Recogniser {
    pub layers: Vec<Layer>,
}

impl Recogniser {
    /// Weights before training: normal, with the variance 2 / inputs (He et al., 2015).
    pub fn new(side: usize, random: &mut Stream) -> Self {
        let mut input = Shape { side, channels: 1 };
        let mut layers = Vec::new();
        for (size, stride, outputs) in CONVOLUTIONS {
            let window = Window { input, size, stride, padding: size / 2 };
            layers.push(layer(window, outputs, true, random));
            input = layers[layers.len() - 1].output_shape();
        }
        let whole = Window { input, size: input.side, stride: 1, padding: 0 };
        layers.push(layer(whole, DIM, false, random));
        Self { layers }
    }

    /// Embeddings of a batch in training, not yet of unit length, and what the backward pass needs.
    pub fn forward(&self, images: &[f32]) -> Vec<Trace> {
        let mut traces: Vec<Trace> = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let trace = layer.forward(traces.last().map_or(images, |before| &before.output));
            traces.push(trace);
        }
        traces
    }

    /// Adds a batch to the running averages of the layers.
    pub fn average(&mut self, traces: &[Trace]) {
        self.layers.iter_mut().zip(traces).for_each(|(layer, trace)| layer.average(trace));
    }

    /// The gradients of all layers from that by the embeddings.
    pub fn backward(&self, traces: Vec<Trace>, by_embeddings: Vec<f32>) -> Vec<Gradient> {
        let mut gradients = Vec::with_capacity(self.layers.len());
        let mut by_output = by_embeddings;
        for (at, (layer, trace)) in self.layers.iter().zip(traces).enumerate().rev() {
            let (gradient, by_images) = layer.backward(trace, by_output, at > 0);
            gradients.push(gradient);
            by_output = by_images;
        }
        gradients.reverse();
        gradients
    }

    /// Rows of unit length, one for each image.
    pub fn embed(&self, images: &[u8]) -> Vec<f32> {
        let image = self.layers[0].window.input.len();
        let mut rows = vec![0.0; images.len() / image * DIM];
        rows.par_chunks_mut(EMBEDDED * DIM).zip(images.par_chunks(EMBEDDED * image)).for_each(
            |(rows, images)| {
                let mut values: Vec<f32> = images.iter().map(|&value| f32::from(value) / 255.0).collect();
                for layer in &self.layers {
                    values = layer.apply(&values);
                }
                rows.copy_from_slice(&values);
            },
        );
        normalise(&mut rows, DIM);
        rows
    }

    /// The parameters, those of one layer after those of another, in the order of [`Gradient`].
    pub fn parameters_mut(&mut self) -> Vec<&mut [f32]> {
        let mut parameters = Vec::new();
        for Layer { weight, scale, shift, .. } in &mut self.layers {
            parameters.extend([weight, scale, shift].map(Vec::as_mut_slice));
        }
        parameters
    }
}

fn layer(window: Window, outputs: usize, rectified: bool, random: &mut Stream) -> Layer {
    let deviation = (2.0 / window.len() as f64).sqrt();
    let weight = (0..window.len() * outputs).map(|_| (deviation * random.normal()) as f32).collect();
    Layer {
        window,
        rectified,
        weight,
        scale: vec![1.0; outputs],
        shift: vec![0.0; outputs],
        mean: vec![0.0; outputs],
        variance: vec![1.0; outputs],
    }
}

/// The stream of random numbers of one purpose in the making of a recogniser.
pub fn stream(seed: u64, what: What, index: u64) -> Stream {
    Stream::new(seed, Purpose::Recogniser, what as u64, index)
}

/// What random numbers are for.
#[derive(Clone, Copy)]
pub enum What {
    Parts,
    Weights,
    Order,
    Distortion,
}

/// Divides rows by their lengths, and returns these.
pub fn normalise(rows: &mut [f32], columns: usize) -> Vec<f32> {
    let divide = |row: &mut [f32]| {
        let length = row.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-12);
        row.iter_mut().for_each(|x| *x /= length);
        length
    };
    rows.par_chunks_mut(columns).map(divide).collect()
}

/// The gradient by rows before [`normalise`], from that by the rows after it: (g - x (x g)) / length.
pub fn normalise_backward(rows: &[f32], lengths: &[f32], gradient: &mut [f32], columns: usize) {
    let lines = gradient.par_chunks_mut(columns).zip(rows.par_chunks(columns)).zip(lengths);
    lines.for_each(|((gradient, row), length)| {
        let along: f32 = gradient.iter().zip(row).map(|(g, x)| g * x).sum();
        gradient.iter_mut().zip(row).for_each(|(g, x)| *g = (*g - along * x) / length);
    });
}
