//! `kin` with labels: the edge model adapted to a domain, and the least probability of an edge, both chosen by identities
//! that were held out.
//!
//! Cost: that of [`kin`](super::kin) twice, and of `connectivity/structural/adapt`; a partition for each probability that is tried.

use super::check_length;
use super::kin::{KinParams, estimate, modules};
use crate::connectivity::structural::{Adapted, Background, adapt};
use crate::metrics::Judge;
use crate::random::{Purpose, Stream};
use crate::{EdgeModel, Embeddings, Error, KnnGraph, KnnParams, Progress, Result, knn_graph};

/// Parameters of [`train_kin`].
#[derive(Debug, Clone)]
pub struct KinTraining {
    /// The graph, unless one is given. Its seed is that of everything random here.
    pub knn: KnnParams,
    /// Passes over the edges, at most.
    pub epochs: usize,
    /// Share of the identities that is held out.
    pub validation: f32,
}

impl Default for KinTraining {
    fn default() -> Self {
        Self { knn: KnnParams::default(), epochs: 8, validation: 0.3 }
    }
}

/// What [`train_kin`] made.
#[derive(Debug, Clone)]
pub struct TrainedKin {
    /// The model that learned from all identities.
    pub model: EdgeModel,
    /// The least probability of an edge that held-out identities like best.
    pub probability: f32,
    /// Whether they prefer probabilities lowered by the strangers of the set.
    pub doubt: bool,
    /// Neighbours of each vertex in the graph it was trained on.
    pub k: usize,
    /// Cross-entropy of edges of training and of held-out identities, before training and after each epoch.
    pub losses: Vec<(f64, f64)>,
    /// The epoch that was kept, 0 if the model that is built in was best.
    pub best: usize,
    /// What was tried.
    pub choices: Vec<KinChoice>,
}

/// What held-out rows say of one way to apply a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KinChoice {
    /// See [`KinParams::doubt`].
    pub doubt: bool,
    /// The least probability of an edge.
    pub probability: f32,
    /// The mean of both F.
    pub f: f64,
}

/// Least probabilities that are tried.
const PROBABILITIES: [f32; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// Trains the edge model of [`kin`](crate::kin) on labelled rows, to cluster rows of other identities.
pub fn train_kin(
    embeddings: &Embeddings,
    labels: &[i64],
    graph: Option<&KnnGraph>,
    params: &KinTraining,
    progress: &dyn Progress,
) -> Result<TrainedKin> {
    let seed = params.knn.seed;
    let held_out = hold_out(labels, params.validation, seed);
    if !held_out.contains(&true) {
        return Err(Error::Parameter {
            name: "--validation",
            expected: "a share below 1 that holds out some identities and leaves some",
            found: params.validation.to_string(),
        });
    }
    let found;
    let graph = match graph {
        Some(graph) => {
            check_length(embeddings, graph)?;
            graph
        }
        None => {
            found = knn_graph(embeddings, &params.knn, progress)?.0;
            &found
        }
    };
    let background = Background::of(embeddings, seed);
    let Adapted { judged, model, losses, best } =
        adapt(graph, &background, labels, &held_out, params.epochs, seed, progress);
    let rows: Vec<u32> = (0..labels.len() as u32).filter(|&i| held_out[i as usize]).collect();
    let judge = Judge::new(labels, rows);
    let mut choices = Vec::new();
    for doubt in [true, false] {
        let how = KinParams { knn: params.knn.clone(), model: judged.clone(), doubt, ..KinParams::default() };
        let ties = estimate(embeddings, graph, &how, &mut Vec::new(), progress)?;
        for probability in PROBABILITIES {
            let f = judge.score(&modules(graph, &ties, probability, seed, progress)?);
            choices.push(KinChoice { doubt, probability, f });
        }
    }
    let first = choices[0];
    let KinChoice { doubt, probability, .. } =
        choices.iter().fold(first, |best, &choice| if choice.f > best.f { choice } else { best });
    Ok(TrainedKin { model, probability, doubt, k: graph.k(), losses, best, choices })
}

/// Which rows belong to identities that are held out: whole identities, because rows of one that was learned would judge too
/// kindly.
fn hold_out(labels: &[i64], share: f32, seed: u64) -> Vec<bool> {
    let mut identities = labels.to_vec();
    identities.sort_unstable();
    identities.dedup();
    let count = (identities.len() as f64 * f64::from(share)).round() as usize;
    let held = Stream::new(seed, Purpose::Split, 1, 0)
        .sample(identities.len(), count.min(identities.len().saturating_sub(1)));
    let mut held: Vec<i64> = held.iter().map(|&at| identities[at as usize]).collect();
    held.sort_unstable();
    labels.iter().map(|label| held.binary_search(label).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::{Synth, SynthParams};

    #[test]
    fn training_is_judged_by_identities_it_has_not_seen() {
        let params = SynthParams { identities: 40, dim: 64, seed: 2, ..SynthParams::default() };
        let (embeddings, labels) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let params = KinTraining {
            knn: KnnParams { k: 20, ..KnnParams::default() },
            epochs: 3,
            ..KinTraining::default()
        };
        let trained = train_kin(&embeddings, &labels, None, &params, &()).unwrap();
        assert_eq!((trained.losses.len(), trained.k), (4, 20));
        let least = trained.losses.iter().map(|loss| loss.1).fold(f64::MAX, f64::min);
        assert_eq!(trained.losses[trained.best].1, least);
        let best = trained.choices.iter().map(|choice| choice.f).fold(0.0, f64::max);
        let chosen = KinChoice { doubt: trained.doubt, probability: trained.probability, f: best };
        assert!(trained.choices.contains(&chosen) && best > 0.5, "{:?}", trained.choices);
    }

    #[test]
    fn identities_are_held_out_whole_and_never_all() {
        let labels: Vec<i64> = (0..60).map(|row| row % 7).collect();
        let held = hold_out(&labels, 0.5, 3);
        for (row, &out) in held.iter().enumerate() {
            assert_eq!(out, held[row % 7]);
        }
        assert!(held.contains(&true) && held.contains(&false));
        assert!(hold_out(&[4, 4], 0.9, 0).iter().all(|&out| !out));
        let one = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        assert!(train_kin(&one, &[4, 4], None, &KinTraining::default(), &()).is_err());
    }
}
