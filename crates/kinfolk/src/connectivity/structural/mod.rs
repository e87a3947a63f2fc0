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
pub(crate) use background::{Background, NullModel, Scratch as NullScratch};
pub use from_nothing::{EdgeExamples, EdgeTraining, fit_edge_model};
pub use views::Sizes;
pub(crate) use views::{HalfViews, Nearest, ViewSample, joined, keep_nearest, nearest_to, rows_of_regions};

use crate::knn::NeighbourLists;
use crate::values::Values;
use crate::{KnnGraph, Progress, Result};
pub(crate) use features::Profile;
use features::{FEATURES, Listing, Numbers, Structure, Whole};
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

/// Rows of a task: so few that what they list stays in a near cache, and so many that it is not looked up again and again.
const ROWS: usize = 1024;

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
    let whole = Whole::of(graph, background);
    let order = whole.order(graph);
    let model = model.network.given(&sizes.0);
    // Bits of probabilities. Each is written once, by the task that evaluates the edge.
    let mut bits = Vec::new();
    bits.resize_with(n * k, AtomicU32::default);
    progress.check()?;
    progress.begin("connectivity", n as u64);
    order.par_chunks(ROWS).for_each_init(
        || Evaluation::new(&whole, &model),
        |evaluation, rows| {
            if progress.cancelled() {
                return;
            }
            evaluation.run(rows, |number, listing, probability| {
                let i = rows[number] as usize;
                let probability = probability.to_bits();
                bits[i * k + listing.place].store(probability, Relaxed);
                if let Some(back) = listing.back {
                    bits[listing.other * k + back].store(probability, Relaxed);
                }
            });
            progress.advance(rows.len() as u64);
        },
    );
    progress.check()?;
    Ok(bits.into_iter().map(|bits| f32::from_bits(bits.into_inner())).collect())
}

/// The edges of a graph, each evaluated from one of its ends.
pub(crate) struct OwnEdges<'a> {
    whole: Whole<'a>,
    model: Network,
}

impl<'a> OwnEdges<'a> {
    /// With the in-degree of each vertex and, if they are known, the profile of each.
    pub(crate) fn of(
        graph: &'a dyn NeighbourLists,
        background: &'a Background,
        arrivals: Values<u32>,
        profiles: Option<Values<Profile>>,
        sizes: Sizes,
        model: &EdgeModel,
    ) -> Self {
        let whole = Whole::with_profiles(graph, background, arrivals, profiles);
        Self { whole, model: model.network.given(&sizes.0) }
    }

    /// The probabilities of all edges from some rows; NaN for those that are evaluated from the other end.
    pub(crate) fn probabilities(&self, rows: &[u32]) -> Vec<f32> {
        let k = self.whole.graph.k();
        let mut probabilities = vec![f32::NAN; rows.len() * k];
        let mut evaluation = Evaluation::new(&self.whole, &self.model);
        for (task, rows) in rows.chunks(ROWS).enumerate() {
            let probabilities = &mut probabilities[task * ROWS * k..];
            evaluation.run(rows, |number, listing, probability| {
                probabilities[number * k + listing.place] = probability;
            });
        }
        probabilities
    }

    /// The probabilities of all edges from some rows, also of those that belong to the other end.
    pub(crate) fn all_probabilities(&self, rows: &[u32]) -> Vec<f32> {
        let k = self.whole.graph.k();
        let mut probabilities = vec![0.0; rows.len() * k];
        let mut evaluation = Evaluation::new(&self.whole, &self.model);
        for (rows, probabilities) in rows.chunks(ROWS).zip(probabilities.chunks_mut(ROWS * k.max(1))) {
            evaluation.run_where(
                rows,
                |_, _, _| true,
                |number, listing, probability| {
                    probabilities[number * k + listing.place] = probability;
                },
            );
        }
        probabilities
    }
}

/// What one thread needs to evaluate edges.
struct Evaluation<'a> {
    whole: &'a Whole<'a>,
    model: &'a Network,
    numbers: Numbers,
    scratch: features::Scratch,
    layers: network::Scratch,
    row: Vec<f32>,
}

impl<'a> Evaluation<'a> {
    fn new(whole: &'a Whole<'a>, model: &'a Network) -> Self {
        let (n, k) = (whole.graph.len(), whole.graph.k());
        let (numbers, scratch) = (Numbers::for_rows(n), features::Scratch::new(k));
        Self { whole, model, numbers, scratch, layers: model.scratch(), row: vec![0.0; k] }
    }

    /// Calls `each` with the place of the row, the listing and the probability of every edge from some rows that is not evaluated from its other
    /// end: one that both ends list belongs to the smaller.
    fn run(&mut self, rows: &[u32], each: impl FnMut(usize, &Listing, f32)) {
        let ours = |structure: &Structure, number: usize, j: usize| {
            structure.row(number) < structure.row(j) || !structure.lists(j, number)
        };
        self.run_where(rows, ours, each);
    }

    /// The same for the edges that are `wanted`, by the numbers of both ends.
    fn run_where(
        &mut self,
        rows: &[u32],
        wanted: impl Fn(&Structure, usize, usize) -> bool,
        mut each: impl FnMut(usize, &Listing, f32),
    ) {
        let Self { whole, model, numbers, scratch, layers, row } = self;
        let structure = Structure::of(whole, rows, numbers);
        for (number, &i) in rows.iter().enumerate() {
            let i = i as usize;
            let (features, listings) =
                structure.of_edges(number, scratch, |_, j| wanted(&structure, number, j));
            let row = &mut row[..listings.len()];
            model.probabilities(features, layers, row);
            for (listing, &probability) in listings.iter().zip(&*row) {
                let copies = whole.graph.neighbours(i).1[listing.place] >= COPY;
                each(number, listing, if copies { 1.0 } else { probability });
            }
        }
    }
}

#[cfg(test)]
mod tests;
