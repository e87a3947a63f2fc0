//! x W + b and PReLU as operations that burn can differentiate, on the processor.
//!
//! burn has both, from smaller parts: each is a pass over the batch that makes a new tensor, forwards and backwards, and
//! they take longer than the products. Here a layer is one pass forwards, and its products are ours (`crate::product`).
//! Other devices use burn's.

use super::compute::Compute;
use crate::product::{Matrix, product};
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;

/// `x` `weight` + `bias`; the bias is one row.
pub(super) fn dense(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<2>, compute: Compute) -> Tensor<2> {
    match compute {
        Compute::Cpu => {
            let (weight, bias) = (weight.into_dispatch(), bias.into_dispatch());
            Tensor::from_dispatch(Dispatch::dense(x.into_dispatch(), weight, bias))
        }
        #[cfg(any(feature = "wgpu", feature = "cuda"))]
        _ => x.matmul(weight) + bias,
    }
}

/// x where it is not negative, `slopes` x elsewhere; a slope for each column, one row of them.
pub(super) fn prelu(x: Tensor<2>, slopes: Tensor<2>, compute: Compute) -> Tensor<2> {
    match compute {
        Compute::Cpu => Tensor::from_dispatch(Dispatch::slopes(x.into_dispatch(), slopes.into_dispatch())),
        #[cfg(any(feature = "wgpu", feature = "cuda"))]
        _ => {
            let width = slopes.dims()[1];
            burn::tensor::activation::prelu(x, slopes.reshape([width]))
        }
    }
}

/// What a backend must do for [`dense`] and [`prelu`].
#[backend_extension(Flex, Autodiff)]
pub(super) trait Layers: Backend {
    fn dense(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self>;
    fn slopes(x: FloatTensor<Self>, slopes: FloatTensor<Self>) -> FloatTensor<Self>;
}

/// What it must do besides for their gradients.
pub(super) trait Gradient: Layers {
    /// `left` times `right`, either of them transposed first.
    fn product(left: FloatTensor<Self>, right: FloatTensor<Self>, transposed: [bool; 2])
    -> FloatTensor<Self>;
    /// The sum of all rows, as one.
    fn sum_of_rows(x: FloatTensor<Self>) -> FloatTensor<Self>;
    /// The gradients of [`Layers::slopes`], by x and by the slopes.
    fn of_slopes(
        x: FloatTensor<Self>,
        slopes: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> [FloatTensor<Self>; 2];
}

/// The values of a tensor, row-major, and the number of columns.
fn read<T>(tensor: &FloatTensor<Flex>, use_it: impl FnOnce(&[f32], usize) -> T) -> T {
    let tensor = tensor.to_contiguous();
    use_it(tensor.as_slice::<f32>().expect("made contiguous above"), tensor.shape()[1])
}

fn tensor(values: Vec<f32>, columns: usize) -> FloatTensor<Flex> {
    let rows = values.len() / columns;
    FloatTensor::<Flex>::from_data(TensorData::new(values, [rows, columns]))
}

/// Adds `other` to `sums`, element by element.
fn add(sums: &mut [f32], other: &[f32]) {
    sums.iter_mut().zip(other).for_each(|(sum, x)| *sum += x);
}

impl Layers for Flex {
    fn dense(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        let columns = weight.shape()[1];
        let mut out = read(&x, |x, inner| {
            read(&weight, |weight, _| product(Matrix::new(x, inner), Matrix::new(weight, columns)))
        });
        read(&bias, |bias, _| out.par_chunks_mut(columns).with_min_len(64).for_each(|row| add(row, bias)));
        tensor(out, columns)
    }

    fn slopes(x: FloatTensor<Self>, slopes: FloatTensor<Self>) -> FloatTensor<Self> {
        read(&x, |x, columns| {
            read(&slopes, |slopes, _| {
                let mut out = vec![0.0; x.len()];
                out.par_chunks_mut(columns).zip(x.par_chunks(columns)).with_min_len(64).for_each(
                    |(out, x)| {
                        for ((out, &x), slope) in out.iter_mut().zip(x).zip(slopes) {
                            // Computed where it is not wanted too: without a branch the compiler takes many at once.
                            let scaled = slope * x;
                            *out = if x < 0.0 { scaled } else { x };
                        }
                    },
                );
                tensor(out, columns)
            })
        })
    }
}

impl Gradient for Flex {
    fn product(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        transposed: [bool; 2],
    ) -> FloatTensor<Self> {
        read(&left, |left, left_columns| {
            read(&right, |right, right_columns| {
                let side = |values, columns, transposed| {
                    let matrix = Matrix::new(values, columns);
                    if transposed { matrix.transpose() } else { matrix }
                };
                let columns = if transposed[1] { right.len() / right_columns } else { right_columns };
                let left = side(left, left_columns, transposed[0]);
                tensor(product(left, side(right, right_columns, transposed[1])), columns)
            })
        })
    }

    fn sum_of_rows(x: FloatTensor<Self>) -> FloatTensor<Self> {
        read(&x, |x, columns| {
            let mut sums = vec![0.0; columns];
            x.chunks_exact(columns).for_each(|row| add(&mut sums, row));
            tensor(sums, columns)
        })
    }

    fn of_slopes(
        x: FloatTensor<Self>,
        slopes: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> [FloatTensor<Self>; 2] {
        read(&x, |x, columns| {
            read(&slopes, |slopes, _| {
                read(&gradient, |gradient, _| {
                    let mut by_x = vec![0.0; x.len()];
                    let rows = x.par_chunks(columns).zip(gradient.par_chunks(columns));
                    by_x.par_chunks_mut(columns).zip(rows).with_min_len(64).for_each(
                        |(out, (x, gradient))| {
                            let pairs = x.iter().zip(gradient).zip(slopes);
                            for (out, ((&x, &gradient), slope)) in out.iter_mut().zip(pairs) {
                                let scaled = slope * gradient;
                                *out = if x < 0.0 { scaled } else { gradient };
                            }
                        },
                    );
                    let mut by_slopes = vec![0.0; columns];
                    for (x, gradient) in x.chunks_exact(columns).zip(gradient.chunks_exact(columns)) {
                        for (sum, (&x, &gradient)) in by_slopes.iter_mut().zip(x.iter().zip(gradient)) {
                            *sum += x.min(0.0) * gradient;
                        }
                    }
                    [tensor(by_x, columns), tensor(by_slopes, columns)]
                })
            })
        })
    }
}

/// The backward step of [`dense`].
#[derive(Debug)]
struct OfDense;

impl<B: Gradient> Backward<B, 3> for OfDense {
    /// x and the weight.
    type State = [FloatTensor<B>; 2];

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let [x, weight] = ops.state;
        let [by_x, by_weight, by_bias] = ops.parents;
        if let Some(node) = by_x {
            grads.register::<B>(node.id, B::product(gradient.clone(), weight, [false, true]));
        }
        if let Some(node) = by_weight {
            grads.register::<B>(node.id, B::product(x, gradient.clone(), [true, false]));
        }
        if let Some(node) = by_bias {
            grads.register::<B>(node.id, B::sum_of_rows(gradient));
        }
    }
}

/// The backward step of [`prelu`].
#[derive(Debug)]
struct OfSlopes;

impl<B: Gradient> Backward<B, 2> for OfSlopes {
    /// x and the slopes.
    type State = [FloatTensor<B>; 2];

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let [x, slopes] = ops.state;
        let gradients = B::of_slopes(x, slopes, gradient);
        for (node, gradient) in ops.parents.into_iter().zip(gradients) {
            if let Some(node) = node {
                grads.register::<B>(node.id, gradient);
            }
        }
    }
}

impl<B: Gradient, C: CheckpointStrategy> Layers for Autodiff<B, C> {
    fn dense(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((x, x_node), (weight, weight_node), (bias, bias_node)) =
            (x.into_parts(), weight.into_parts(), bias.into_parts());
        let out = B::dense(x.clone(), weight.clone(), bias);
        match OfDense.prepare::<C>([x_node, weight_node, bias_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish([x, weight], out),
            OpsKind::UnTracked(prep) => prep.finish(out),
        }
    }

    fn slopes(x: FloatTensor<Self>, slopes: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((x, x_node), (slopes, slopes_node)) = (x.into_parts(), slopes.into_parts());
        let out = B::slopes(x.clone(), slopes.clone());
        match OfSlopes.prepare::<C>([x_node, slopes_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish([x, slopes], out),
            OpsKind::UnTracked(prep) => prep.finish(out),
        }
    }
}
