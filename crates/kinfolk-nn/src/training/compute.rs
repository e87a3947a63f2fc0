//! Where training runs: the processor, or a graphics card where kinfolk was built for one.

use super::batch::Batch;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use super::graphics;
use super::loss::Loss;
use super::pass;
use crate::GraphNetwork;

/// Where training runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compute {
    /// The processor: the same weights on any number of threads.
    #[default]
    Cpu,
    /// A graphics card through WebGPU (Vulkan, Metal or DirectX).
    #[cfg(feature = "wgpu")]
    Wgpu,
    /// The first CUDA device.
    #[cfg(feature = "cuda")]
    Cuda,
}

impl Compute {
    /// The outputs of the network for a batch.
    pub(super) fn outputs(self, network: &GraphNetwork, batch: &Batch) -> Vec<f32> {
        match self {
            Compute::Cpu => pass::outputs(network, batch),
            #[cfg(any(feature = "wgpu", feature = "cuda"))]
            _ => graphics::outputs(network, batch, &self.device()),
        }
    }

    /// The gradient of the mean loss of a batch by every weight, and the sum of the losses.
    pub(super) fn gradients(self, network: &GraphNetwork, batch: &Batch, loss: Loss) -> (GraphNetwork, f64) {
        match self {
            Compute::Cpu => pass::gradients(network, batch, loss),
            #[cfg(any(feature = "wgpu", feature = "cuda"))]
            _ => graphics::gradients(network, batch, loss, &self.device()),
        }
    }

    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    fn device(self) -> burn::tensor::Device {
        match self {
            Compute::Cpu => unreachable!("the processor needs no device"),
            #[cfg(feature = "wgpu")]
            Compute::Wgpu => burn::tensor::Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
            #[cfg(feature = "cuda")]
            Compute::Cuda => burn::tensor::Device::cuda(0),
        }
    }
}

impl kinfolk::ParamValue for Compute {
    const KIND: kinfolk::ParamKind = kinfolk::ParamKind::Choice(&[
        "cpu",
        #[cfg(feature = "wgpu")]
        "wgpu",
        #[cfg(feature = "cuda")]
        "cuda",
    ]);
    const EXPECTED: &'static str = "cpu, or a device that kinfolk was built for (wgpu, cuda)";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "cpu" => Some(Compute::Cpu),
            #[cfg(feature = "wgpu")]
            "wgpu" => Some(Compute::Wgpu),
            #[cfg(feature = "cuda")]
            "cuda" => Some(Compute::Cuda),
            _ => None,
        }
    }

    fn format(&self) -> String {
        match self {
            Compute::Cpu => "cpu",
            #[cfg(feature = "wgpu")]
            Compute::Wgpu => "wgpu",
            #[cfg(feature = "cuda")]
            Compute::Cuda => "cuda",
        }
        .to_owned()
    }
}
