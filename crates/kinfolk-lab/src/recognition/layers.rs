//! The layers of the recogniser, forwards and backwards: convolution, batch normalisation, rectifier.
//!
//! Images are rows of channels: the value of channel c at (y, x) of image i is at ((i side + y) side + x) channels + c. A
//! convolution copies the window of every output place into a row of a matrix, so that it is one product with the weights
//! (window x outputs), and its gradients are two more. A layer that sees the whole image, with a window as large as it, is
//! a dense layer. The products are those of the graph networks, on AMX where there is one.
//!
//! Batch normalisation: y = scale (x - mean) / sqrt(variance + epsilon) + shift for every channel, with mean and variance
//! of the batch in training, and their running averages otherwise (Ioffe and Szegedy, 2015).
//!
//! A batch is the work of one thread; several run side by side.

use kinfolk_nn::laboratory::{Matrix, product};

/// Added to variances.
const EPSILON: f32 = 1e-5;
/// The share of a batch in the running averages.
const MOMENTUM: f32 = 0.1;
/// Rows that are summed before their sum is added to that of others.
const ROWS: usize = 1024;

/// Square images of several channels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    pub side: usize,
    pub channels: usize,
}

impl Shape {
    /// Values of an image.
    pub fn len(self) -> usize {
        self.side * self.side * self.channels
    }
}

/// Where a convolution looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    pub input: Shape,
    /// Its width and height.
    pub size: usize,
    pub stride: usize,
    pub padding: usize,
}

impl Window {
    /// Places along one side of the output.
    pub fn places(&self) -> usize {
        (self.input.side + 2 * self.padding - self.size) / self.stride + 1
    }

    /// Values in a window.
    pub fn len(&self) -> usize {
        self.size * self.size * self.input.channels
    }

    /// Calls `row` for every row of a window that lies within the image: the places of its values in the matrix of windows
    /// of an image, of its values in the image, and their number.
    fn rows(&self, mut row: impl FnMut(usize, usize, usize)) {
        let (places, side, channels) = (self.places(), self.input.side, self.input.channels);
        for (place, window) in (0..places * places).zip((0..).step_by(self.len())) {
            let (top, left) = (place / places * self.stride, place % places * self.stride);
            // Columns of the window within the image, which begins at `padding`.
            let first = self.padding.saturating_sub(left);
            let end = self.size.min(side + self.padding - left);
            for y in 0..self.size {
                let at = top + y;
                if (self.padding..side + self.padding).contains(&at) {
                    let image = ((at - self.padding) * side + left + first - self.padding) * channels;
                    row(window + (y * self.size + first) * channels, image, (end - first) * channels);
                }
            }
        }
    }

    /// A row for each output place of each image: the values in its window, zero beyond the edge.
    pub fn unfold(&self, images: &[f32]) -> Vec<f32> {
        let (image, unfolded) = (self.input.len(), self.places().pow(2) * self.len());
        let mut out = vec![0.0; images.len() / image * unfolded];
        for (out, image) in out.chunks_exact_mut(unfolded).zip(images.chunks_exact(image)) {
            self.rows(|to, from, count| out[to..to + count].copy_from_slice(&image[from..from + count]));
        }
        out
    }

    /// The gradient by the images from that by [`unfold`](Self::unfold): every value collects from the windows that it is in.
    pub fn fold(&self, unfolded: &[f32]) -> Vec<f32> {
        let (image, width) = (self.input.len(), self.places().pow(2) * self.len());
        let mut out = vec![0.0; unfolded.len() / width * image];
        for (image, unfolded) in out.chunks_exact_mut(image).zip(unfolded.chunks_exact(width)) {
            self.rows(|from, to, count| {
                let sums = image[to..to + count].iter_mut().zip(&unfolded[from..from + count]);
                sums.for_each(|(sum, value)| *sum += value);
            });
        }
        out
    }
}

/// A convolution without bias, batch normalisation and, except in the last layer, a rectifier.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    pub window: Window,
    pub rectified: bool,
    /// Window x outputs.
    pub weight: Vec<f32>,
    pub scale: Vec<f32>,
    pub shift: Vec<f32>,
    /// Running averages.
    pub mean: Vec<f32>,
    pub variance: Vec<f32>,
}

/// What the backward pass of a layer needs of the forward pass.
pub struct Trace {
    unfolded: Vec<f32>,
    /// (x - mean) / sqrt(variance + epsilon)
    normalised: Vec<f32>,
    mean: Vec<f32>,
    variance: Vec<f32>,
    pub output: Vec<f32>,
}

/// The gradient of the loss by the parameters of a layer.
pub struct Gradient {
    pub weight: Vec<f32>,
    pub scale: Vec<f32>,
    pub shift: Vec<f32>,
}

impl Layer {
    pub fn outputs(&self) -> usize {
        self.scale.len()
    }

    pub fn output_shape(&self) -> Shape {
        Shape { side: self.window.places(), channels: self.outputs() }
    }

    fn convolve(&self, unfolded: &[f32]) -> Vec<f32> {
        let weight = Matrix::new(&self.weight, self.outputs());
        product(Matrix::new(unfolded, self.window.len()), weight, |_, _| {})
    }

    /// The output for images, with the running averages.
    pub fn apply(&self, images: &[f32]) -> Vec<f32> {
        let mut output = self.convolve(&self.window.unfold(images));
        let factor: Vec<f32> =
            self.scale.iter().zip(&self.variance).map(|(s, v)| s / (v + EPSILON).sqrt()).collect();
        let constant: Vec<f32> =
            self.shift.iter().zip(&self.mean).zip(&factor).map(|((s, m), f)| s - m * f).collect();
        self.scale_and_rectify(&mut output, &factor, &constant);
        output
    }

    /// values = factor values + constant, and the rectifier.
    fn scale_and_rectify(&self, values: &mut [f32], factor: &[f32], constant: &[f32]) {
        let least = if self.rectified { 0.0 } else { f32::NEG_INFINITY };
        for row in values.chunks_exact_mut(factor.len()) {
            for ((value, factor), constant) in row.iter_mut().zip(factor).zip(constant) {
                *value = (*value * factor + constant).max(least);
            }
        }
    }

    /// The output for a batch in training.
    pub fn forward(&self, images: &[f32]) -> Trace {
        let unfolded = self.window.unfold(images);
        let mut normalised = self.convolve(&unfolded);
        let columns = self.outputs();
        let rows = (normalised.len() / columns) as f32;
        let [sums] = sums(&normalised, &normalised, columns, |x, _| [x]);
        let mean: Vec<f32> = sums.iter().map(|sum| sum / rows).collect();
        for row in normalised.chunks_exact_mut(columns) {
            row.iter_mut().zip(&mean).for_each(|(value, mean)| *value -= mean);
        }
        let [squares] = self::sums(&normalised, &normalised, columns, |x, _| [x * x]);
        let variance: Vec<f32> = squares.iter().map(|sum| sum / rows).collect();
        let inverse = inverse(&variance);
        for row in normalised.chunks_exact_mut(columns) {
            row.iter_mut().zip(&inverse).for_each(|(value, inverse)| *value *= inverse);
        }
        let mut output = normalised.clone();
        self.scale_and_rectify(&mut output, &self.scale, &self.shift);
        Trace { unfolded, normalised, mean, variance, output }
    }

    /// Adds a batch to the running averages.
    pub fn average(&mut self, trace: &Trace) {
        let rows = (trace.normalised.len() / self.outputs()) as f32;
        // The variance of what the batch is a sample of.
        let unbiased = rows / (rows - 1.0).max(1.0);
        let average = |running: &mut [f32], of_batch: &[f32], factor: f32| {
            for (running, value) in running.iter_mut().zip(of_batch) {
                *running += MOMENTUM * (value * factor - *running);
            }
        };
        average(&mut self.mean, &trace.mean, 1.0);
        average(&mut self.variance, &trace.variance, unbiased);
    }

    /// The gradients by the parameters and, if `inputs` are not constants, by the images, from that by the output.
    pub fn backward(&self, trace: Trace, mut by_output: Vec<f32>, inputs: bool) -> (Gradient, Vec<f32>) {
        let columns = self.outputs();
        if self.rectified {
            for (gradient, &output) in by_output.iter_mut().zip(&trace.output) {
                *gradient = if output > 0.0 { *gradient } else { 0.0 };
            }
        }
        let rows = (by_output.len() / columns) as f32;
        let [shift, scale] =
            sums(&by_output, &trace.normalised, columns, |gradient, x| [gradient, gradient * x]);
        // d x = scale / sqrt(variance) (d y - mean of d y - normalised x times the mean of their product)
        let factor: Vec<f32> = self.scale.iter().zip(inverse(&trace.variance)).map(|(s, i)| s * i).collect();
        let means: Vec<[f32; 2]> = shift.iter().zip(&scale).map(|(a, b)| [a / rows, b / rows]).collect();
        let lines = by_output.chunks_exact_mut(columns).zip(trace.normalised.chunks_exact(columns));
        for (gradients, normalised) in lines {
            for (((gradient, x), factor), mean) in
                gradients.iter_mut().zip(normalised).zip(&factor).zip(&means)
            {
                *gradient = factor * (*gradient - mean[0] - x * mean[1]);
            }
        }
        let by_convolution = Matrix::new(&by_output, columns);
        let unfolded = Matrix::new(&trace.unfolded, self.window.len());
        let weight = product(unfolded.transpose(), by_convolution, |_, _| {});
        let by_images = match inputs {
            true => {
                let weight = Matrix::new(&self.weight, columns).transpose();
                self.window.fold(&product(by_convolution, weight, |_, _| {}))
            }
            false => Vec::new(),
        };
        (Gradient { weight, scale, shift }, by_images)
    }
}

/// 1 / sqrt(variance + epsilon)
fn inverse(variance: &[f32]) -> Vec<f32> {
    variance.iter().map(|v| 1.0 / (v + EPSILON).sqrt()).collect()
}

/// Sums over all rows, for each column, of what `of` makes of the values of two matrices.
fn sums<const N: usize>(
    a: &[f32],
    b: &[f32],
    columns: usize,
    of: impl Fn(f32, f32) -> [f32; N],
) -> [Vec<f32>; N] {
    let mut sums = [(); N].map(|()| vec![0.0; columns]);
    // Of parts first, because a sum of many numbers in single precision loses the last of them.
    for (a, b) in a.chunks(ROWS * columns).zip(b.chunks(ROWS * columns)) {
        let mut part = vec![[0.0; N]; columns];
        for (a, b) in a.chunks_exact(columns).zip(b.chunks_exact(columns)) {
            for ((part, a), b) in part.iter_mut().zip(a).zip(b) {
                part.iter_mut().zip(of(*a, *b)).for_each(|(sum, value)| *sum += value);
            }
        }
        for (n, sums) in sums.iter_mut().enumerate() {
            sums.iter_mut().zip(&part).for_each(|(sum, part)| *sum += part[n]);
        }
    }
    sums
}
