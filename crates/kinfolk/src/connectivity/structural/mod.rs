//! Structural connectivity: the probability that an edge of the kNN graph joins one identity, without labels.
//!
//! A cosine of 0.45 is a certain match in one embedding and noise in another, so no feature is a raw cosine.
//!
//! | file | contents |
//! |---|---|
//! | `background` | the similarities of random pairs, for the set and for each vertex; z, a similarity in these units |
//! | `common` | the common neighbours of the two ends of an edge |
//! | `features` | features of an edge: ranks, shared neighbours, density, all independent of dimension and scale |
//! | `views` | how large identities are, from the agreement of two half-views of the rows |
//! | `network`, `fit` | a small network over the features, and its training |
//! | `adapt` | fine-tuning on labelled rows |
//! | `from_nothing` | training a network like the built-in one, on the synthetic sets of `kinfolk-lab` (MODEL_CARD.md) |
//!
//! Cost: O(N K^2) for shared neighbours, O(N K) for the network, O(N D) about a thousand times for the background and the
//! views; memory is four numbers for each edge, and the features of one row at a time.

mod adapt;
mod background;
mod common;
mod features;
mod fit;
mod from_nothing;
mod network;
mod views;

pub(crate) use adapt::LabelledEdges;
pub(crate) use background::Background;
pub use from_nothing::{EdgeExamples, EdgeTraining, fit_edge_model};
pub(crate) use views::HalfViews;
pub use views::Sizes;

use crate::{KnnGraph, Progress, Result};
use features::{FEATURES, Structure};
use network::Network;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The inputs of the model for an edge: its own features, and the quartiles of the sizes of identities.
const INPUTS: usize = FEATURES + 3;

/// f32, little-endian, in the order of [`Network::to_numbers`]; `kinfolk bench pretrain` produces them.
static WEIGHTS: &[u8] = include_bytes!("weights.bin");
const _: () =
    assert!(WEIGHTS.len() == 4 * Network::numbers(INPUTS), "weights.bin has another shape than the network");

/// Estimates the probability that an edge joins one identity: the built-in network, or one that was fine-tuned on labels
/// ([`train_kin`](crate::train_kin)).
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeModel {
    network: Network,
}

impl Default for EdgeModel {
    fn default() -> Self {
        Self { network: built_in() }
    }
}

impl EdgeModel {
    /// The model as numbers, for a file.
    pub fn to_numbers(&self) -> Vec<f32> {
        self.network.to_numbers()
    }

    /// The model of [`EdgeModel::to_numbers`], if the count is right and all are finite.
    pub fn from_numbers(numbers: &[f32]) -> Option<Self> {
        let fits =
            numbers.len() == Network::numbers(INPUTS) && numbers.iter().all(|number| number.is_finite());
        fits.then(|| Self { network: Network::from_numbers(INPUTS, numbers) })
    }
}

/// The network that is built in.
fn built_in() -> Network {
    let numbers: Vec<f32> =
        WEIGHTS.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    Network::from_numbers(INPUTS, &numbers)
}

/// Rows of at least this cosine are copies of each other, whatever the features of the edge.
const COPY: f32 = 1.0 - 1e-6;

/// The probability of every edge, N x K in the order of the graph, where `sizes` are the sizes of identities.
///
/// The features do not depend on the end from which an edge is seen, so that one that both ends list is looked at once.
pub(crate) fn edge_probabilities(
    graph: &KnnGraph,
    background: &Background,
    sizes: Sizes,
    model: &EdgeModel,
    progress: &dyn Progress,
) -> Result<Vec<f32>> {
    let (n, k) = (graph.len(), graph.k());
    let structure = Structure::of(graph, background);
    let model = model.network.given(&sizes.0);
    // Bits of probabilities. Each is written once, by the task that evaluates the edge.
    let mut bits = Vec::new();
    bits.resize_with(n * k, AtomicU32::default);
    progress.check()?;
    progress.begin("connectivity", n as u64);
    const ROWS: usize = 256;
    structure.order().par_chunks(ROWS).for_each_init(
        || (structure.scratch(), model.scratch(), vec![0.0; k]),
        |(scratch, layers, row), rows| {
            if progress.cancelled() {
                return;
            }
            for &i in rows {
                let i = i as usize;
                let ours = |_, j: usize| i < j || !structure.lists(j, i);
                let (features, listings) = structure.of_edges(i, scratch, ours);
                let row = &mut row[..listings.len()];
                model.probabilities(features, layers, row);
                for (listing, probability) in listings.iter().zip(row) {
                    let copies = graph.neighbours(i).1[listing.place] >= COPY;
                    let probability = if copies { 1.0f32 } else { *probability }.to_bits();
                    bits[i * k + listing.place].store(probability, Relaxed);
                    if let Some(back) = listing.back {
                        bits[listing.other * k + back].store(probability, Relaxed);
                    }
                }
            }
            progress.advance(rows.len() as u64);
        },
    );
    progress.check()?;
    Ok(bits.into_iter().map(|bits| f32::from_bits(bits.into_inner())).collect())
}

#[cfg(test)]
mod tests;
