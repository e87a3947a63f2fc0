//! A batch through the network on a graphics card, with burn's tensors and gradients.
//!
//! The weights are sent with every batch, and the gradients come back: the optimiser runs on the processor on all
//! devices. burn has no sparse product, so A~ F gathers rows by edge and scatters them, which takes edges x features of
//! the card's memory.

use super::batch::{Batch, Readout};
use super::compute::Compute;
use super::loss::Loss;
use super::sparse::Operator;
use crate::{GraphNetwork, Linear};
use burn::tensor::activation::{log_softmax, prelu, relu};
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};
use kinfolk::{Error, Result};

/// The device of burn that training runs on.
///
/// # Panics
/// For the processor, which needs none.
pub(super) fn device(compute: Compute) -> Result<Device> {
    match compute {
        Compute::Cpu => unreachable!("the processor needs no device of burn"),
        #[cfg(feature = "wgpu")]
        Compute::Wgpu => wgpu_device(),
        #[cfg(feature = "cuda")]
        Compute::Cuda => Ok(Device::cuda(0)),
    }
}

/// The best adapter that wgpu finds, opened once: burn panics at the first tensor if there is none, and refuses to open it
/// a second time.
#[cfg(feature = "wgpu")]
fn wgpu_device() -> Result<Device> {
    use burn::tensor::DeviceKind::DefaultDevice;
    use burn::tensor::wgpu::WgpuInitError;
    static OPENED: std::sync::OnceLock<std::result::Result<Device, String>> = std::sync::OnceLock::new();
    let open = || match Device::wgpu_options().init() {
        Ok(device) => Ok(device),
        // Other code of this program has opened it.
        Err(WgpuInitError::Registration { .. }) => Ok(Device::wgpu(DefaultDevice)),
        Err(WgpuInitError::AdapterUnavailable { .. }) => Err("none".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let expected = "a graphics card with a driver for Vulkan, Metal or DirectX";
    OPENED.get_or_init(open).clone().map_err(|found| refused(expected, found))
}

fn refused(expected: &'static str, found: impl Into<String>) -> Error {
    Error::Parameter { field: "device", expected, found: found.into() }
}

/// The outputs of the network, one row for each row of its head.
pub(super) fn outputs(network: &GraphNetwork, batch: &Batch, device: &Device) -> Result<Vec<f32>> {
    values(Uploaded::new(network, device, false).forward(batch, device))
}

/// The gradient of the mean loss by every weight, and the sum of the losses.
pub(super) fn gradients(
    network: &GraphNetwork,
    batch: &Batch,
    loss: Loss,
    device: &Device,
) -> Result<(GraphNetwork, f64)> {
    let uploaded = Uploaded::new(network, device, true);
    let outputs = uploaded.forward(batch, device);
    // In double precision and in order, as on the processor.
    let (_, sum) = loss.gradient(&values(outputs.clone())?, &batch.targets);
    let count = batch.targets.len();
    let constant = |values: Vec<f32>| constant(values, count, device).autodiff();
    let losses = match loss {
        Loss::Squares => (outputs - constant(batch.targets.clone())).powi_scalar(2),
        Loss::CrossEntropy => {
            let shares = batch.targets.iter().flat_map(|&t| [t - 1.0, -t]).collect();
            log_softmax(outputs, 1) * constant(shares)
        }
    };
    let mut found = (losses.sum() / count.max(1) as f32).backward();
    let mut gradients = network.clone();
    for (parameter, values_of) in uploaded.parameters().into_iter().zip(gradients.values_mut()) {
        match parameter.grad_remove(&mut found) {
            Some(gradient) => *values_of = values(gradient)?,
            None => values_of.fill(0.0),
        }
    }
    Ok((gradients, sum))
}

/// x W + b.
struct Layer {
    /// Inputs x outputs.
    weight: Tensor<2>,
    /// 1 x outputs.
    bias: Tensor<2>,
}

/// A network on the device.
struct Uploaded {
    convolutions: Vec<Layer>,
    hidden: Layer,
    /// 1 x outputs of `hidden`.
    slopes: Tensor<2>,
    output: Layer,
}

impl Uploaded {
    fn new(network: &GraphNetwork, device: &Device, tracked: bool) -> Self {
        let upload = |values: &[f32], rows: usize| {
            let tensor = constant(values.to_vec(), rows, device);
            if tracked { tensor.autodiff().require_grad() } else { tensor }
        };
        let layer = |linear: &Linear| Layer {
            weight: upload(&linear.weight, linear.inputs),
            bias: upload(&linear.bias, 1),
        };
        Self {
            convolutions: network.convolutions.iter().map(layer).collect(),
            hidden: layer(&network.hidden),
            slopes: upload(&network.slopes, 1),
            output: layer(&network.output),
        }
    }

    /// In the order of `GraphNetwork::values_mut`.
    fn parameters(&self) -> Vec<&Tensor<2>> {
        let layers = self.convolutions.iter().chain([&self.hidden, &self.output]);
        layers.flat_map(|layer| [&layer.weight, &layer.bias]).chain([&self.slopes]).collect()
    }

    fn forward(&self, batch: &Batch, device: &Device) -> Tensor<2> {
        let linear = |layer: &Layer, x: Tensor<2>| x.matmul(layer.weight.clone()) + layer.bias.clone();
        // Every network has a convolution: parameters without one are refused.
        let columns = self.convolutions[0].weight.dims()[0];
        let rows = batch.joined.len() / columns;
        let mut joined = constant(batch.joined.clone(), rows, device).autodiff();
        let last = self.convolutions.len() - 1;
        for (l, convolution) in self.convolutions.iter().enumerate() {
            let embedding = relu(linear(convolution, joined));
            joined = if l == last {
                embedding
            } else {
                let mean = aggregate(batch.operators.of(l + 1), embedding.clone(), device);
                Tensor::cat(vec![embedding, mean], 1)
            };
        }
        let head = match &batch.readout {
            Readout::All => joined,
            Readout::Rows(rows) => {
                joined.select(0, index(rows.iter().map(|&row| row as i32).collect(), device))
            }
            Readout::Largest(graphs) => {
                let each = graphs.iter().map(|graph| joined.clone().slice([graph.clone()]).max_dim(0));
                Tensor::cat(each.collect(), 0)
            }
        };
        let hidden = linear(&self.hidden, head);
        let width = self.slopes.dims()[1];
        linear(&self.output, prelu(hidden, self.slopes.clone().reshape([width])))
    }
}

/// A~ X.
fn aggregate(operator: &Operator, dense: Tensor<2>, device: &Device) -> Tensor<2> {
    let (matrix, dim) = (operator.matrix(), dense.dims()[1]);
    let columns = index(matrix.columns.iter().map(|&column| column as i32).collect(), device);
    let rows = (0..matrix.rows()).flat_map(|i| {
        let count = matrix.offsets[i + 1] - matrix.offsets[i];
        std::iter::repeat_n(i as i32, count)
    });
    let rows = index(rows.collect(), device);
    let weights = constant(matrix.values.clone(), matrix.values.len(), device).autodiff();
    let none = constant(vec![0.0; matrix.rows() * dim], matrix.rows(), device).autodiff();
    none.select_assign(0, rows, dense.select(0, columns) * weights, IndexingUpdateOp::Add)
}

fn constant(values: Vec<f32>, rows: usize, device: &Device) -> Tensor<2> {
    let columns = values.len() / rows.max(1);
    Tensor::from_data(TensorData::new(values, [rows, columns]), device)
}

fn index(values: Vec<i32>, device: &Device) -> Tensor<1, Int> {
    let count = values.len();
    Tensor::from_data(TensorData::new(values, [count]), device)
}

/// The values of a tensor, row-major. Work on the device is only queued before, so this is where its failures show.
fn values(tensor: Tensor<2>) -> Result<Vec<f32>> {
    let expected = "a device that can run a batch of training (a smaller batch needs less memory)";
    tensor.try_into_vec_as().map_err(|error| refused(expected, error.to_string()))
}
