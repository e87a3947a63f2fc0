//! Where training runs: the processor, or a graphics card where kinfolk was built for one.

use super::batch::Batch;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use super::graphics;
use super::loss::Loss;
use super::pass;
use crate::GraphNetwork;
use kinfolk::Result;

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
    /// Refuses a device that this machine does not have.
    pub(super) fn validate(self) -> Result<()> {
        match self {
            Compute::Cpu => Ok(()),
            #[cfg(any(feature = "wgpu", feature = "cuda"))]
            _ => graphics::device(self).map(|_| ()),
        }
    }

    /// The outputs of the network for a batch.
    pub(super) fn outputs(self, network: &GraphNetwork, batch: &Batch) -> Result<Vec<f32>> {
        match self {
            Compute::Cpu => Ok(pass::outputs(network, batch)),
            #[cfg(any(feature = "wgpu", feature = "cuda"))]
            _ => graphics::outputs(network, batch, &graphics::device(self)?),
        }
    }

    /// The gradient of the mean loss of a batch by every weight, and the sum of the losses.
    pub(super) fn gradients(
        self,
        network: &GraphNetwork,
        batch: &Batch,
        loss: Loss,
    ) -> Result<(GraphNetwork, f64)> {
        match self {
            Compute::Cpu => Ok(pass::gradients(network, batch, loss)),
            #[cfg(any(feature = "wgpu", feature = "cuda"))]
            _ => graphics::gradients(network, batch, loss, &graphics::device(self)?),
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
