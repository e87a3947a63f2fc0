//! Mini-batches: what one training step sees.

use super::random::Random;
use super::sparse::Operator;
use crate::GraphNetwork;
use kinfolk::{Progress, Result};
use std::ops::Range;

/// Rows for one pass through the network.
pub(super) struct Batch {
    /// [X, A~ X], row-major.
    pub(super) joined: Vec<f32>,
    /// What the convolutions after the first aggregate with.
    pub(super) operators: Operators,
    /// The rows of the network's head.
    pub(super) readout: Readout,
    /// One for each row of the head.
    pub(super) targets: Vec<f32>,
}

/// A~ of the rows of a batch.
pub(super) enum Operators {
    /// There is only one convolution, whose product with A~ is in the batch.
    None,
    /// The same for all convolutions.
    Same(Operator),
    /// One for each convolution after the first.
    Each(Vec<Operator>),
}

impl Operators {
    /// That of convolution `l`, counted from 0.
    ///
    /// # Panics
    /// When there is none.
    pub(super) fn of(&self, l: usize) -> &Operator {
        match self {
            Operators::None => panic!("more than one convolution needs the adjacency"),
            Operators::Same(operator) => operator,
            Operators::Each(operators) => &operators[l - 1],
        }
    }
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
    /// rows; `augmented` says whether there is augmentation.
    fn batch(&self, examples: &[u32], random: &mut Random, augmented: bool) -> Batch;

    /// Called at the start of each epoch, for examples that depend on the weights.
    fn begin_epoch(&mut self, _weights: &GraphNetwork, _progress: &dyn Progress) -> Result<()> {
        Ok(())
    }
}
