//! Trains a network like the built-in one from random weights, for `kinfolk-lab`, which generates the training sets.

use super::features::{FEATURES, Numbers, Scratch, Structure, Whole};
use super::fit::{Examples, FitParams};
use super::network::Network;
use super::{Background, EdgeModel, Sizes};
use crate::random::{Purpose, Stream};
use crate::{Embeddings, KnnGraph, Progress, Result};
use rayon::prelude::*;

/// Edges of many sets, and whether each joins one identity.
pub struct EdgeExamples(Examples, Stream);

impl EdgeExamples {
    /// No edges; noise is drawn by the stream number `stream` of the seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(Examples::default(), Stream::new(seed, Purpose::Network, 4, stream))
    }

    /// Adds edges of a set: for each of these rows, those at these positions in its list of neighbours. The sizes of identities
    /// are those of the labels, with [`NOISE`]: in synthetic sets, groups of similar identities mislead the estimate more than in
    /// real ones.
    pub fn add<const COUNT: usize>(
        &mut self,
        embeddings: &Embeddings,
        graph: &KnnGraph,
        labels: &[u32],
        edges: &[(usize, [usize; COUNT])],
        seed: u64,
    ) {
        let background = Background::of(embeddings, seed);
        let whole = Whole::of(graph, &background);
        let edges: Vec<(Vec<f32>, bool)> = edges
            .par_iter()
            .map_init(
                || (Numbers::for_rows(graph.len()), Scratch::new(graph.k())),
                |(numbers, scratch), (row, places)| {
                    let structure = Structure::of(&whole, &[*row as u32], numbers);
                    let features = structure.of_row(0, scratch);
                    let edge = |&place: &usize| {
                        let same = labels[*row] == labels[graph.neighbours(*row).0[place] as usize];
                        (features[place * FEATURES..][..FEATURES].to_vec(), same)
                    };
                    places.iter().map(edge).collect::<Vec<_>>()
                },
            )
            .flatten_iter()
            .collect();
        let sizes = Sizes::of_labels(labels);
        for (features, same) in edges {
            self.0.push(&features, noisy(sizes, &mut self.1), same);
        }
    }
}

/// Deviations of the noise on the sizes of a set, in octaves: what is common to the three quartiles, and what is not. Without it
/// the network recognises sets by their sizes.
const NOISE: [f32; 2] = [0.4, 0.3];

fn noisy(Sizes(mut sizes): Sizes, stream: &mut Stream) -> Sizes {
    let common = NOISE[0] * stream.rough_normal();
    sizes.iter_mut().for_each(|size| *size = (*size + common + NOISE[1] * stream.rough_normal()).max(0.0));
    sizes.sort_by(f32::total_cmp);
    Sizes(sizes)
}

/// Parameters of [`fit_edge_model`].
#[derive(Debug, Clone)]
pub struct EdgeTraining {
    /// Epochs.
    pub epochs: usize,
    /// The largest learning rate of the cycle.
    pub rate: f32,
    /// Weight decay.
    pub decay: f32,
    /// Seed of the initial weights and of the order of the edges.
    pub seed: u64,
}

/// A model trained on these edges, and its mean cross-entropy after each epoch, on them and on held-out ones.
pub fn fit_edge_model(
    training: &EdgeExamples,
    held_out: &EdgeExamples,
    params: &EdgeTraining,
    progress: &dyn Progress,
) -> Result<(EdgeModel, Vec<(f64, f64)>)> {
    let EdgeTraining { epochs, rate, decay, seed } = *params;
    let mut network = Network::fresh(&training.0, seed);
    let mut losses = Vec::new();
    progress.begin("training", epochs as u64);
    let fit = FitParams { epochs, rate, decay, hold: 0.0, seed };
    network.fit(&training.0, &fit, progress, |network, loss| {
        losses.push((loss, held_out.0.loss(network)));
        progress.advance(1);
    })?;
    Ok((EdgeModel { network }, losses))
}
