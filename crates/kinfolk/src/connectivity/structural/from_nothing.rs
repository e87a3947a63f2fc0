//! Trains a network like the built-in one from random weights, for `kinfolk-lab`, which generates the training sets.

use super::features::{FEATURES, Structure};
use super::fit::{Examples, FitParams};
use super::network::Network;
use super::{Background, EdgeModel, Sizes};
use crate::{Embeddings, KnnGraph, Progress, Result};
use rayon::prelude::*;

/// Edges of many sets, and whether each joins one identity.
#[derive(Default)]
pub struct EdgeExamples(Examples);

impl EdgeExamples {
    /// Adds edges of a set: for each of these rows, those at these positions in its list of neighbours. The sizes of identities
    /// are those of the labels: in synthetic sets, groups of similar identities mislead the estimate more than in
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
        let structure = Structure::of(graph, &background);
        let edges: Vec<(Vec<f32>, bool)> = edges
            .par_iter()
            .map_init(
                || structure.scratch(),
                |scratch, (row, places)| {
                    let features = structure.of_row(*row, scratch);
                    let edge = |&place: &usize| {
                        let same = labels[*row] == labels[graph.neighbours(*row).0[place] as usize];
                        (features[place * FEATURES..][..FEATURES].to_vec(), same)
                    };
                    places.iter().map(edge).collect::<Vec<_>>()
                },
            )
            .flatten_iter()
            .collect();
        let sizes = true_sizes(labels);
        edges.into_iter().for_each(|(features, same)| self.0.push(&features, sizes, same));
    }
}

/// The sizes of the identities of rows with these labels.
fn true_sizes(labels: &[u32]) -> Sizes {
    let mut sizes = vec![0; labels.iter().max().map_or(0, |&last| last as usize + 1)];
    labels.iter().for_each(|&label| sizes[label as usize] += 1);
    Sizes::of(labels.iter().map(|&label| sizes[label as usize]).collect())
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
