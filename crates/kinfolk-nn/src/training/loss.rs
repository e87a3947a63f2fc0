//! What training makes small.

use super::network::values;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Tensor, TensorData};

/// The loss of a row, whose mean over a batch is made small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loss {
    /// (output - target)^2, with one output: Equations 5 and 8 of the paper.
    #[default]
    Squares,
    /// -log of the softmax's share of the right one of two outputs, as in the published code of GCN-E.
    CrossEntropy,
}

kinfolk::word_values!(Loss: "squares or cross-entropy",
    "squares" => Loss::Squares, "cross-entropy" => Loss::CrossEntropy);

impl Loss {
    /// How many outputs of the network it takes.
    pub(super) fn outputs(self) -> usize {
        match self {
            Loss::Squares => 1,
            Loss::CrossEntropy => 2,
        }
    }

    /// The mean loss of a batch, and the sum of the losses of its rows, in order and in double precision. The gradient of
    /// a sum does not depend on the order of summation, its value would.
    pub(super) fn of(
        self,
        outputs: Tensor<2>,
        targets: &[f32],
        tracked: bool,
        device: &Device,
    ) -> (Tensor<1>, f64) {
        let count = targets.len();
        let constant = |values: Vec<f32>| {
            let columns = values.len() / count.max(1);
            let tensor = Tensor::<2>::from_data(TensorData::new(values, [count, columns]), device);
            if tracked { tensor.autodiff() } else { tensor }
        };
        let losses = match self {
            Loss::Squares => (outputs - constant(targets.to_vec())).powi_scalar(2),
            Loss::CrossEntropy => {
                let shares = constant(targets.iter().flat_map(|&t| [t - 1.0, -t]).collect());
                log_softmax(outputs, 1) * shares
            }
        };
        let sum = values(&losses).iter().map(|&value| f64::from(value)).sum();
        (losses.sum() / count.max(1) as f32, sum)
    }
}
