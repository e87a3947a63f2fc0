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
