//! Where training runs: the processor, or a graphics card where kinfolk was built for one.

use burn::tensor::Device;

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
    pub(super) fn device(self) -> Device {
        match self {
            Compute::Cpu => Device::flex(),
            #[cfg(feature = "wgpu")]
            Compute::Wgpu => Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
            #[cfg(feature = "cuda")]
            Compute::Cuda => Device::cuda(0),
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
