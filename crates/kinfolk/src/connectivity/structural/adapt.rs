//! Fine-tunes the edge model on the edges of labelled rows.
//!
//! A penalty on the squared distance keeps the weights near the built-in ones. Without it, the model learns the sizes of the
//! identities of this set, and splits identities that are much larger than those it has seen.
//!
//! Cost: O(N K^2) for the features of the sampled rows, and the cost of `fit`.

use super::features::{FEATURES, Structure};
use super::fit::{Examples, FitParams};
use super::{Background, EdgeModel, INPUTS, Sizes};
use crate::random::{Purpose, Stream};
use crate::{KnnGraph, Progress, Result};
use rayon::prelude::*;

/// The maximum number of training edges. More need time and memory and do not improve the model.
const EDGES: usize = 1_500_000;
/// The weight of the penalty.
const HOLD: f32 = 0.06;

/// Edges whose ends have labels.
pub(crate) struct LabelledEdges(Examples);

impl LabelledEdges {
    /// The edges from the rows that are `taken`, or from a sample of them.
    pub(crate) fn of(
        graph: &KnnGraph,
        background: &Background,
        sizes: Sizes,
        labels: &[i64],
        taken: impl Fn(usize) -> bool,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let structure = Structure::of(graph, background);
        let rows: Vec<usize> = (0..labels.len()).filter(|&i| taken(i)).collect();
        let most = EDGES / graph.k().max(1);
        let mut stream = Stream::new(seed, Purpose::Network, 3, 0);
        let chosen: Vec<usize> =
            stream.sample(rows.len(), most).iter().map(|&at| rows[at as usize]).collect();
        let of_row = |scratch: &mut super::features::Scratch, &i: &usize| {
            if progress.cancelled() {
                return (Vec::new(), Vec::new());
            }
            let same = graph.neighbours(i).0.iter().map(|&j| labels[i] == labels[j as usize]);
            let same: Vec<bool> = same.collect();
            (structure.of_row(i, scratch).to_vec(), same)
        };
        let parts: Vec<(Vec<f32>, Vec<bool>)> =
            chosen.par_iter().map_init(|| structure.scratch(), of_row).collect();
        progress.check()?;
        let mut examples = Examples::default();
        examples.features.reserve_exact(chosen.len() * graph.k() * INPUTS);
        for (features, same) in parts {
            let edges = features.chunks_exact(FEATURES).zip(same);
            edges.for_each(|(features, same)| examples.push(features, sizes, same));
        }
        Ok(Self(examples))
    }

    /// Mean cross-entropy of a model, in nats.
    pub(crate) fn loss(&self, model: &EdgeModel) -> f64 {
        self.0.loss(&model.network)
    }

    /// The built-in model, fine-tuned on these edges.
    pub(crate) fn adapt(&self, epochs: usize, seed: u64, progress: &dyn Progress) -> Result<EdgeModel> {
        let mut model = EdgeModel::default();
        progress.begin("training", epochs as u64);
        if self.0.len() > 0 {
            let params = FitParams { epochs, rate: 2e-3, decay: 0.0, hold: HOLD, seed };
            model.network.fit(&self.0, &params, progress, |_, _| progress.advance(1))?;
        }
        Ok(model)
    }
}
