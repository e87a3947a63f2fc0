//! The weights of the networks as plain numbers, whatever trained them.

/// y = x W + b.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    /// W, row-major, `inputs` x `outputs`.
    pub weight: Vec<f32>,
    /// b.
    pub bias: Vec<f32>,
    /// Columns of x.
    pub inputs: usize,
    /// Columns of y.
    pub outputs: usize,
}

/// Graph convolutions, then a head: Linear, PReLU, Linear. GCN-V and GCN-E both have this shape.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphNetwork {
    /// relu([X, A~X] W + b), one after the other (Eq. 2 and 3 of the paper); each has twice as many inputs as X
    /// has columns.
    pub convolutions: Vec<Linear>,
    /// First layer of the head.
    pub hidden: Linear,
    /// Slopes of its PReLU below zero, one for each output of `hidden`.
    pub slopes: Vec<f32>,
    /// Second layer of the head: one output, or two that are logits.
    pub output: Linear,
}

impl GraphNetwork {
    /// Whether another network has the same shape.
    #[cfg(feature = "training")]
    pub(crate) fn fits(&self, other: &GraphNetwork) -> bool {
        let shape = |network: &GraphNetwork| {
            let layers = network.convolutions.iter().chain([&network.hidden, &network.output]);
            layers.map(|layer| (layer.inputs, layer.outputs)).collect::<Vec<_>>()
        };
        shape(self) == shape(other)
    }

    /// All weights, always in the same order: of each layer its weight and its bias, then the slopes.
    #[cfg(feature = "training")]
    pub(crate) fn values_mut(&mut self) -> Vec<&mut Vec<f32>> {
        let layers = self.convolutions.iter_mut().chain([&mut self.hidden, &mut self.output]);
        let mut all: Vec<_> = layers.flat_map(|layer| [&mut layer.weight, &mut layer.bias]).collect();
        all.push(&mut self.slopes);
        all
    }
}
