//! Structural connectivity: how probable it is that an edge of the kNN graph joins one identity, without labels.
//!
//! A cosine of 0.45 is a sure match in one embedding and noise in another, so nothing here looks at a bare cosine.
//!
//! | file | what |
//! |---|---|
//! | `background` | what random pairs look like, for the set and for each vertex; z, a similarity in those units |
//! | `features` | what surrounds an edge: ranks, shared neighbours, density, all free of dimension and scale |
//! | `network`, `fit` | a small network over the features, and its training |
//! | `adapt` | going on with the training, on labelled rows |
//! | `worlds`, `pretrain` | the synthetic sets on which the built-in network is trained (MODEL_CARD.md) |
//! | `strangers` | what the model cannot know: how near strangers come in this very set |
//!
//! The model is fitted to synthetic strangers, and real ones come nearer. So its probability p is multiplied by 1 - d(z),
//! where d(z) is the share of strangers among all pairs at that z, measured on the set itself, a local false discovery rate
//! (Efron, 2004) whose null distribution is what vertices of sure clusters see outside of them.
//!
//! Cost: O(N K^2) for shared neighbours, O(N K) for the network, O(N D) about a thousand times for what random and sampled
//! rows see; memory is three floats for each edge, and features of one row at a time.

mod adapt;
mod background;
mod features;
mod fit;
mod network;
mod pretrain;
mod strangers;
mod worlds;

pub(crate) use adapt::{Adapted, adapt};
pub(crate) use background::Background;
pub use pretrain::{PretrainParams, Pretrained, pretrain};
pub(crate) use strangers::{Drawn, Strangers};

use crate::{KnnGraph, Progress};
use features::{FEATURES, Structure};
use network::Network;
use rayon::prelude::*;

/// f32, little-endian, in the order of [`Network::to_numbers`]; `kinfolk bench pretrain` makes them.
static WEIGHTS: &[u8] = include_bytes!("weights.bin");
const _: () = assert!(
    WEIGHTS.len() == 4 * Network::numbers(FEATURES),
    "weights.bin has another shape than the network"
);

/// What estimates the probability that an edge joins one identity: the network that is built in, or one that has
/// gone on learning from labels ([`train_kin`](crate::train_kin)).
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
    /// All there is to know of the model, for a file.
    pub fn to_numbers(&self) -> Vec<f32> {
        self.network.to_numbers()
    }

    /// The model of [`EdgeModel::to_numbers`], if these are as many and all finite.
    pub fn from_numbers(numbers: &[f32]) -> Option<Self> {
        let fits =
            numbers.len() == Network::numbers(FEATURES) && numbers.iter().all(|number| number.is_finite());
        fits.then(|| Self { network: Network::from_numbers(FEATURES, numbers) })
    }
}

/// The network that is built in.
fn built_in() -> Network {
    let numbers: Vec<f32> =
        WEIGHTS.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    Network::from_numbers(FEATURES, &numbers)
}

/// Rows of at least this cosine are copies of each other, whatever their surroundings.
const COPY: f32 = 1.0 - 1e-6;

/// Edges of the graph in units of the background, and the probability of each that it joins one identity.
pub(crate) struct Ties {
    /// N x K, in the order of the graph.
    pub(crate) standard: Vec<f32>,
    /// N x K, in the order of the graph.
    pub(crate) probabilities: Vec<f32>,
}

/// The probability of every edge, by what the model has learned elsewhere.
pub(crate) fn ties(
    graph: &KnnGraph,
    background: &Background,
    model: &EdgeModel,
    progress: &dyn Progress,
) -> Ties {
    let (n, k) = (graph.len(), graph.k());
    let structure = Structure::of(graph, background);
    let model = &model.network;
    let mut probabilities = vec![0.0; n * k];
    progress.begin("connectivity", n as u64);
    const ROWS: usize = 256;
    probabilities.par_chunks_mut((ROWS * k).max(1)).enumerate().for_each_init(
        || (structure.scratch(), model.scratch()),
        |(scratch, layers), (block, rows)| {
            progress.tick();
            for (row, out) in rows.chunks_exact_mut(k).enumerate() {
                let features = structure.of_row(block * ROWS + row, scratch);
                model.probabilities(features, layers, out);
            }
            progress.advance((rows.len() / k) as u64);
        },
    );
    for (probability, similarity) in probabilities
        .chunks_exact_mut(k.max(1))
        .enumerate()
        .flat_map(|(i, row)| row.iter_mut().zip(graph.neighbours(i).1))
    {
        if *similarity >= COPY {
            *probability = 1.0;
        }
    }
    Ties { standard: structure.into_standard(), probabilities }
}

impl Ties {
    /// Lowers probabilities by what is known of the strangers of this set.
    pub(crate) fn doubt(&mut self, graph: &KnnGraph, strangers: &Strangers) {
        let k = graph.k().max(1);
        self.probabilities.par_chunks_mut(k).zip(self.standard.par_chunks(k)).enumerate().for_each(
            |(i, (probabilities, standard))| {
                let (ids, similarities) = graph.neighbours(i);
                for (((p, &z), &j), &similarity) in
                    probabilities.iter_mut().zip(standard).zip(ids).zip(similarities)
                {
                    if similarity < COPY {
                        *p *= 1.0 - strangers.share(i, j as usize, z);
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests;
