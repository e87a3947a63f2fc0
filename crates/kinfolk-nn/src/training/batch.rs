//! Mini-batches: what one training step sees.

use super::random::Random;
use super::sparse::Operator;
use std::ops::Range;

/// Rows for one pass through the network.
pub(super) struct Batch {
    /// [X, A~ X], row-major.
    pub(super) joined: Vec<f32>,
    /// A~ of these rows; without it there can be only one convolution.
    pub(super) operator: Option<Operator>,
    /// The rows of the network's head.
    pub(super) readout: Readout,
    /// One for each row of the head.
    pub(super) targets: Vec<f32>,
}

/// How the rows of the last convolution become those of the head.
pub(super) enum Readout {
    /// They are the same.
    All,
    /// These rows only, in this order.
    Rows(Vec<u32>),
    /// One row for each graph of the batch: the largest of each column over the rows of the graph.
    Largest(Vec<Range<usize>>),
}

/// Where batches come from.
pub(super) trait Examples {
    /// The examples of these numbers. `random` is for what is drawn anew in each epoch, augmentation and sampled
    /// neighbours; `augmented` says whether there is augmentation.
    fn batch(&self, examples: &[u32], random: &mut Random, augmented: bool) -> Batch;
}
