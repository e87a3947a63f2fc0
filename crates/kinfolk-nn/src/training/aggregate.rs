//! A~ X as an operation that burn can differentiate: its gradient is A~^T times the gradient of its output.
//!
//! The matrix is a constant. burn has no sparse product; gathering rows by edge would make edges x features,
//! 80 times the features at K = 80.

use super::sparse::Operator;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Tensor, TensorData};

/// A~ X.
pub(super) fn aggregate(operator: &Operator, dense: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::sparse_product(dense.into_dispatch(), operator.clone(), false))
}

/// What a backend must do for [`aggregate`].
#[backend_extension(Flex, Autodiff)]
pub(super) trait SparseProduct: Backend {
    /// The matrix, or its transpose, times `dense`.
    fn sparse_product(dense: FloatTensor<Self>, operator: Operator, transposed: bool) -> FloatTensor<Self>;
}

impl SparseProduct for Flex {
    fn sparse_product(dense: FloatTensor<Self>, operator: Operator, transposed: bool) -> FloatTensor<Self> {
        let dense = dense.to_contiguous();
        let dim = dense.shape()[1];
        let matrix = if transposed { operator.transposed() } else { operator.matrix() };
        let rows = dense.as_slice::<f32>().expect("made contiguous above");
        let out = matrix.times(rows, dim);
        FloatTensor::<Self>::from_data(TensorData::new(out, [matrix.rows(), dim]))
    }
}

/// The step of the backward pass.
#[derive(Debug)]
struct Transposed;

impl<B: SparseProduct> Backward<B, 1> for Transposed {
    type State = (Operator, bool);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (operator, transposed) = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |grad| B::sparse_product(grad, operator, !transposed));
    }
}

impl<B: SparseProduct, C: CheckpointStrategy> SparseProduct for Autodiff<B, C> {
    fn sparse_product(dense: FloatTensor<Self>, operator: Operator, transposed: bool) -> FloatTensor<Self> {
        let (dense, node) = dense.into_parts();
        let product = B::sparse_product(dense, operator.clone(), transposed);
        match Transposed.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((operator, transposed), product),
            OpsKind::UnTracked(prep) => prep.finish(product),
        }
    }
}
