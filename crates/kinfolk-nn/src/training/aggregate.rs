//! A~ X as an operation that burn can differentiate: its gradient is A~^T times the gradient of its output.
//!
//! The matrix is a constant. burn has no sparse product. On the processor it is ours, which makes nothing larger than
//! its result; on other devices rows are gathered by edge and scattered, which takes edges x features of their memory.

use super::compute::Compute;
use super::sparse::Operator;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
#[cfg(any(test, feature = "wgpu", feature = "cuda"))]
use burn::tensor::{Device, IndexingUpdateOp, Int};
use burn::tensor::{Tensor, TensorData};

/// A~ X.
pub(super) fn aggregate(operator: &Operator, dense: Tensor<2>, compute: Compute) -> Tensor<2> {
    match compute {
        Compute::Cpu => {
            Tensor::from_dispatch(Dispatch::sparse_product(dense.into_dispatch(), operator.clone(), false))
        }
        #[cfg(any(feature = "wgpu", feature = "cuda"))]
        _ => gather_scatter(operator, dense, &compute.device()),
    }
}

/// The same from what every backend of burn can do and differentiate.
#[cfg(any(test, feature = "wgpu", feature = "cuda"))]
pub(super) fn gather_scatter(operator: &Operator, dense: Tensor<2>, device: &Device) -> Tensor<2> {
    let (matrix, dim) = (operator.matrix(), dense.dims()[1]);
    let entries = matrix.columns.len();
    let index = |values: Vec<i32>| Tensor::<1, Int>::from_data(TensorData::new(values, [entries]), device);
    let columns = index(matrix.columns.iter().map(|&column| column as i32).collect());
    let rows = (0..matrix.rows()).flat_map(|i| {
        let count = matrix.offsets[i + 1] - matrix.offsets[i];
        std::iter::repeat_n(i as i32, count)
    });
    let rows = index(rows.collect());
    let values = TensorData::new(matrix.values.clone(), [entries, 1]);
    let weighted = dense.select(0, columns) * Tensor::<2>::from_data(values, device).autodiff();
    let none = Tensor::<2>::from_data(TensorData::zeros::<f32, _>([matrix.rows(), dim]), device).autodiff();
    none.select_assign(0, rows, weighted, IndexingUpdateOp::Add)
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
