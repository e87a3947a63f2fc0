//! Goes on with the training of an edge model, on the edges of labelled rows.
//!
//! Some identities are held out, whole: their edges say after which epoch the model was best, and nothing of them is
//! learned. The model then learns all identities for that many epochs: there are never too many of them.
//!
//! Cost: O(N K^2) for the features of the rows that are looked at, and that of `fit`.

use super::features::Structure;
use super::fit::{Examples, FitParams};
use super::summary::{INPUTS, Summary};
use super::{Background, EdgeModel};
use crate::random::{Purpose, Stream};
use crate::{KnnGraph, Progress};
use rayon::prelude::*;

/// Edges to learn from at most: more take time and memory and teach nothing new.
const EDGES: usize = 1_500_000;

/// What [`adapt`] made.
pub(crate) struct Adapted {
    /// What learned only from identities that were not held out: by it the held-out ones judge fairly.
    pub(crate) judged: EdgeModel,
    /// The same recipe, on all identities.
    pub(crate) model: EdgeModel,
    /// Cross-entropy before training and after each epoch, of training and of held-out rows.
    pub(crate) losses: Vec<(f64, f64)>,
    /// The epoch that held-out rows like best; 0 for none.
    pub(crate) best: usize,
}

/// Adapts the built-in model to labelled rows; `held_out` has the rows whose identities are not learned from.
pub(crate) fn adapt(
    graph: &KnnGraph,
    background: &Background,
    labels: &[i64],
    held_out: &[bool],
    epochs: usize,
    seed: u64,
    progress: &dyn Progress,
) -> Adapted {
    let start = EdgeModel::default();
    let structure = Structure::of(graph, background);
    let rows = |held: bool| -> Vec<u32> {
        (0..labels.len() as u32).filter(|&i| held_out[i as usize] == held).collect()
    };
    let examples = |rows: &[u32]| edges_of(&structure, graph, labels, rows, seed, progress);
    let (learned, judging) = (examples(&rows(false)), examples(&rows(true)));
    let fit = |examples: &Examples, epochs: usize, judge: &mut dyn FnMut(&super::Network, f64)| {
        let mut network = start.network.clone();
        if examples.len() > 0 {
            network.fit(examples, &FitParams { epochs, rate: 2e-3, decay: 1e-3, seed }, progress, judge);
        }
        EdgeModel { network }
    };
    let mut losses = vec![(learned.loss(&start.network), judging.loss(&start.network))];
    let mut judged = start.clone();
    let (mut best, mut least) = (0, losses[0].1);
    progress.begin("training", 2 * epochs as u64);
    fit(&learned, epochs, &mut |network, loss| {
        progress.advance(1);
        let held = judging.loss(network);
        losses.push((loss, held));
        if held < least {
            (best, least) = (losses.len() - 1, held);
            judged = EdgeModel { network: network.clone() };
        }
    });
    drop((learned, judging));
    let all: Vec<u32> = (0..labels.len() as u32).collect();
    let mut model = start.clone();
    let mut epoch = 0;
    // The whole cycle of the rate, ended where it was best, as for the model that was judged.
    if best > 0 {
        fit(&examples(&all), epochs, &mut |network, _| {
            progress.advance(1);
            epoch += 1;
            if epoch == best {
                model = EdgeModel { network: network.clone() };
            }
        });
    }
    Adapted { judged, model, losses, best }
}

/// The edges that some rows list, or of a sample of them.
fn edges_of(
    structure: &Structure,
    graph: &KnnGraph,
    labels: &[i64],
    rows: &[u32],
    seed: u64,
    progress: &dyn Progress,
) -> Examples {
    let most = EDGES / graph.k().max(1);
    let mut stream = Stream::new(seed, Purpose::Network, 3, 0);
    let chosen: Vec<usize> =
        stream.sample(rows.len(), most).iter().map(|&at| rows[at as usize] as usize).collect();
    let of_row = |scratch: &mut super::features::Scratch, &i: &usize| {
        progress.tick();
        let same =
            graph.neighbours(i).0.iter().map(|&j| labels[i] == labels[j as usize]).collect::<Vec<bool>>();
        (structure.of_row(i, scratch).to_vec(), same)
    };
    let parts: Vec<(Vec<f32>, Vec<bool>)> =
        chosen.par_iter().map_init(|| structure.scratch(), of_row).collect();
    let summary = Summary::of(structure);
    let mut examples = Examples::default();
    examples.features.reserve_exact(chosen.len() * graph.k() * INPUTS);
    for (features, same) in parts {
        examples.features.extend(summary.beside(&features));
        examples.same.extend(same);
    }
    examples
}
