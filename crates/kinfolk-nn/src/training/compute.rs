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
