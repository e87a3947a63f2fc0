//! `kin` with labels: the embeddings whitened, the edge model adapted to the domain, and the least probability of an edge. What
//! of it helps is for identities to say that were held out; then everything is learned again from all of them.
//!
//! Cost, for each way to hold identities out: that of [`kin`](super::kin) for each whitening that is tried (until two are no better),
//! and of `connectivity/structural/adapt`, with a partition for each probability; and `adapt` once more.

use super::check_length;
use super::kin::{KinParams, estimate, modules, too_few};
use crate::connectivity::structural::{Background, LabelledEdges};
use crate::metrics::Judge;
use crate::partition::join_steady;
use crate::random::{Purpose, Stream};
use crate::{
    EdgeModel, Embeddings, Error, KnnGraph, KnnParams, Progress, Result, Whitening, knn_graph, number_by_size,
};
use std::borrow::Cow;

/// Parameters of [`train_kin`].
#[derive(Debug, Clone)]
pub struct KinTraining {
    /// The graph, unless one is given. Its seed is that of everything random here.
    pub knn: KnnParams,
    /// Whether to double K when half of the rows are of identities larger than 5/4 K. Not where a graph is given.
    pub grow: bool,
    /// Passes over the edges.
    pub epochs: usize,
    /// Share of the identities that is held out.
    pub validation: f32,
}

impl Default for KinTraining {
    fn default() -> Self {
        Self { knn: KnnParams::default(), grow: true, epochs: 3, validation: 0.3 }
    }
}

/// What [`train_kin`] made, of all identities.
#[derive(Debug, Clone)]
pub struct TrainedKin {
    /// The map of the embeddings, if held-out identities like one.
    pub whitening: Option<Whitening>,
    /// The edge model, adapted if held-out identities like that better.
    pub model: EdgeModel,
    /// The way to apply it that held-out identities like best.
    pub chosen: KinChoice,
    /// All ways that were tried.
    pub choices: Vec<KinChoice>,
    /// Cross-entropy of the edges of held-out identities, in nats: of the built-in model and of the adapted one.
    pub losses: [f64; 2],
    /// Neighbours of each vertex in the graph it was trained on.
    pub k: usize,
}

/// What held-out rows say of one way to cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KinChoice {
    /// How far the whitening is shrunk, see [`Whitening::fit`]; 1 for embeddings as they are.
    pub shrink: f64,
    /// Whether the edge model has learned from the labels.
    pub adapted: bool,
    /// The least probability of an edge.
    pub probability: f32,
    /// The mean of both F.
    pub f: f64,
}

/// Least probabilities that are tried, but for the first and the last: a partition is judged as it will be made, together with
/// that of the next below and above ([`KinParams::steady`]).
const PROBABILITIES: [f32; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// Whitenings that are tried, from hardly any.
const SHRINKS: [f64; 5] = [0.9, 0.7, 0.5, 0.3, 0.1];

/// A small set is judged more than once, each time by other identities: below this many rows in all.
const JUDGED: usize = 100_000;
const FOLDS: usize = 3;

/// Trains [`kin`](crate::kin) on labelled rows, to cluster rows of other identities. On a graph that is given, embeddings are
/// taken as they are.
pub fn train_kin(
    embeddings: &Embeddings,
    labels: &[i64],
    graph: Option<&KnnGraph>,
    params: &KinTraining,
    progress: &dyn Progress,
) -> Result<TrainedKin> {
    let folds = hold_out(labels, params.validation, params.knn.seed);
    let folds = &folds[..folds.len().min((JUDGED / labels.len().max(1)).clamp(1, FOLDS))];
    if folds.is_empty() {
        return Err(Error::Parameter {
            field: "validation",
            expected: "a share below 1 that holds out some identities and leaves some",
            found: params.validation.to_string(),
        });
    }
    let mut params = params.clone();
    if params.grow && graph.is_none() && too_few(params.knn.k, &number_by_size(labels)) {
        params.knn.k *= 2;
    }
    let (found, whitens) = match graph {
        Some(graph) => {
            check_length(embeddings, graph)?;
            (Cow::Borrowed(graph), false)
        }
        None => (Cow::Owned(knn_graph(embeddings, &params.knn, progress)?.0), true),
    };
    let labelled = Labelled { embeddings, graph: &found, labels, params: &params, progress };
    let mut choices = labelled.try_built_in(folds, 1.0)?;
    let mut best = broadest(&choices);
    let mut worse = 0;
    for shrink in SHRINKS {
        // The first that is no better may be bad luck.
        if !whitens || worse == 2 {
            break;
        }
        let tried = labelled.try_built_in(folds, shrink)?;
        let found = broadest(&tried);
        choices.extend(tried);
        if found.0 > best.0 {
            (best, worse) = (found, 0);
        } else {
            worse += 1;
        }
    }
    let (tried, losses) = labelled.try_adapted(folds, best.1.shrink)?;
    let adapted = broadest(&tried);
    choices.extend(tried);
    if adapted.0 > best.0 {
        best = adapted;
    }
    let chosen = best.1;
    let view = labelled.view(chosen.shrink, &|_| true)?;
    let model = if chosen.adapted { labelled.adapt(&view, &|_| true) } else { EdgeModel::default() };
    Ok(TrainedKin { whitening: view.whitening, model, chosen, choices, losses, k: found.k() })
}

/// What there is to learn from, and how.
struct Labelled<'a> {
    embeddings: &'a Embeddings,
    /// Of the embeddings as they are.
    graph: &'a KnnGraph,
    labels: &'a [i64],
    params: &'a KinTraining,
    progress: &'a dyn Progress,
}

/// Embeddings as a model sees them, and their graph.
struct View<'a> {
    whitening: Option<Whitening>,
    embeddings: Cow<'a, Embeddings>,
    graph: Cow<'a, KnnGraph>,
}

/// Whether a row counts.
type Taken<'a> = &'a dyn Fn(usize) -> bool;

impl Labelled<'_> {
    /// Through a whitening learned from the rows that are `taken`; as they are where `shrink` is 1 or nothing can be learned.
    fn view(&self, shrink: f64, taken: Taken) -> Result<View<'_>> {
        let whitening = match shrink < 1.0 {
            true => Whitening::fit(self.embeddings, self.labels, taken, shrink),
            false => None,
        };
        Ok(match &whitening {
            None => View {
                whitening,
                embeddings: Cow::Borrowed(self.embeddings),
                graph: Cow::Borrowed(self.graph),
            },
            Some(map) => {
                let embeddings = map.apply(self.embeddings)?;
                let graph = knn_graph(&embeddings, &self.params.knn, self.progress)?.0;
                View { whitening, embeddings: Cow::Owned(embeddings), graph: Cow::Owned(graph) }
            }
        })
    }

    fn edges(&self, view: &View, taken: Taken) -> LabelledEdges {
        let seed = self.params.knn.seed;
        let background = Background::of(&view.embeddings, seed);
        LabelledEdges::of(&view.graph, &background, self.labels, taken, seed, self.progress)
    }

    fn adapt(&self, view: &View, taken: Taken) -> EdgeModel {
        self.edges(view, taken).adapt(self.params.epochs, self.params.knn.seed, self.progress)
    }

    /// The built-in model with every least probability.
    fn try_built_in(&self, folds: &[Vec<bool>], shrink: f64) -> Result<Vec<KinChoice>> {
        let mut choices = untried(shrink, false);
        for held_out in folds {
            let view = self.view(shrink, &|i| !held_out[i])?;
            self.judge(&view, &EdgeModel::default(), held_out, folds.len(), &mut choices)?;
        }
        Ok(choices)
    }

    /// A model adapted to the identities that are not held out, with every least probability; and the losses of the built-in and
    /// of the adapted model.
    fn try_adapted(&self, folds: &[Vec<bool>], shrink: f64) -> Result<(Vec<KinChoice>, [f64; 2])> {
        let mut choices = untried(shrink, true);
        let mut losses = [0.0; 2];
        for held_out in folds {
            let view = self.view(shrink, &|i| !held_out[i])?;
            let adapted = self.adapt(&view, &|i| !held_out[i]);
            let edges = self.edges(&view, &|i| held_out[i]);
            for (sum, model) in losses.iter_mut().zip([&EdgeModel::default(), &adapted]) {
                *sum += edges.loss(model) / folds.len() as f64;
            }
            drop(edges);
            self.judge(&view, &adapted, held_out, folds.len(), &mut choices)?;
        }
        Ok((choices, losses))
    }

    /// Adds to choices that differ by their probability what one of `folds` folds says of them.
    fn judge(
        &self,
        view: &View,
        model: &EdgeModel,
        held_out: &[bool],
        folds: usize,
        choices: &mut [KinChoice],
    ) -> Result<()> {
        let (knn, progress) = (&self.params.knn, self.progress);
        let rows = (0..held_out.len() as u32).filter(|&i| held_out[i as usize]).collect();
        let judge = Judge::new(self.labels, rows);
        let how = KinParams { knn: knn.clone(), model: model.clone(), ..KinParams::default() };
        let ties = estimate(&view.embeddings, &view.graph, &how, &mut Vec::new(), progress)?;
        let labels: Result<Vec<Vec<i64>>> = PROBABILITIES
            .iter()
            .map(|&least| modules(&view.graph, &ties, least, knn.seed, progress))
            .collect();
        for (choice, labels) in choices.iter_mut().zip(labels?.windows(3)) {
            let steady = join_steady(&labels[1], [&labels[0], &labels[2]]);
            choice.f += judge.score(&steady) / folds as f64;
        }
        Ok(())
    }
}

/// One way with every least probability.
fn untried(shrink: f64, adapted: bool) -> Vec<KinChoice> {
    let tried = &PROBABILITIES[1..PROBABILITIES.len() - 1];
    tried.iter().map(|&probability| KinChoice { shrink, adapted, probability, f: 0.0 }).collect()
}

/// Of least probabilities one after the other, the one that is best together with its neighbours, and the mean F of the three: a
/// peak that a step to either side loses is luck.
fn broadest(choices: &[KinChoice]) -> (f64, KinChoice) {
    let last = choices.len() - 1;
    let around =
        |at: usize| (choices[at.saturating_sub(1)].f + choices[at].f + choices[(at + 1).min(last)].f) / 3.0;
    let best = (1..=last).fold(0, |best, at| if around(at) > around(best) { at } else { best });
    (around(best), choices[best])
}

/// Which rows belong to identities that are held out, in ways that have none in common: whole identities, because rows of one
/// that was learned would judge too kindly. No way where nothing would be left to learn from or to judge by.
fn hold_out(labels: &[i64], share: f32, seed: u64) -> Vec<Vec<bool>> {
    let mut identities = labels.to_vec();
    identities.sort_unstable();
    identities.dedup();
    let count = (identities.len() as f64 * f64::from(share)).round() as usize;
    if count == 0 || count >= identities.len() {
        return Vec::new();
    }
    let order = Stream::new(seed, Purpose::Split, 1, 0).sample(identities.len(), identities.len());
    let fold = |held: &[u32]| {
        let mut held: Vec<i64> = held.iter().map(|&at| identities[at as usize]).collect();
        held.sort_unstable();
        labels.iter().map(|label| held.binary_search(label).is_ok()).collect()
    };
    order.chunks_exact(count).map(fold).collect()
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
            grow: false,
            ..KinTraining::default()
        };
        let trained = train_kin(&embeddings, &labels, None, &params, &()).unwrap();
        let TrainedKin { whitening, model, chosen, choices, losses, k } = trained;
        assert_eq!(
            (whitening.is_some(), model != EdgeModel::default()),
            (chosen.shrink < 1.0, chosen.adapted)
        );
        assert!(losses[1] < losses[0] && k == 20, "{losses:?}");
        // The built-in model as it is and through at least one whitening, the adapted one.
        assert!(choices.len() >= 3 * (PROBABILITIES.len() - 2) && choices.contains(&chosen));
        let best = choices.iter().map(|choice| choice.f).fold(0.0, f64::max);
        assert!(chosen.f > best - 0.05 && chosen.f > 0.5, "{chosen:?} {best}");
    }

    #[test]
    fn on_a_given_graph_embeddings_are_taken_as_they_are() {
        let params = SynthParams { identities: 20, dim: 32, seed: 4, ..SynthParams::default() };
        let (embeddings, labels) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let params =
            KinTraining { knn: KnnParams { k: 10, ..KnnParams::default() }, ..KinTraining::default() };
        let graph = knn_graph(&embeddings, &params.knn, &()).unwrap().0;
        let trained = train_kin(&embeddings, &labels, Some(&graph), &params, &()).unwrap();
        assert!(trained.whitening.is_none() && trained.choices.iter().all(|choice| choice.shrink == 1.0));
        // And a model that whitens takes no graph.
        let whitening = Whitening::fit(&embeddings, &labels, |_| true, 0.5);
        let params = KinParams { whitening, ..KinParams::default() };
        let message = crate::kin(&embeddings, Some(&graph), &params, &()).unwrap_err().to_string();
        assert!(message.contains("graph") && message.contains("whitened"), "{message}");
    }

    #[test]
    fn large_identities_are_learned_with_more_neighbours() {
        let params = SynthParams {
            identities: 6,
            dim: 16,
            mean_size: 60.0,
            min_size: 40,
            max_size: 80,
            ..SynthParams::default()
        };
        let (embeddings, labels) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let k = |grow| {
            let knn = KnnParams { k: 20, ..KnnParams::default() };
            train_kin(&embeddings, &labels, None, &KinTraining { knn, grow, ..KinTraining::default() }, &())
                .unwrap()
                .k
        };
        assert_eq!([k(true), k(false)], [40, 20]);
    }

    #[test]
    fn a_lonely_peak_is_not_chosen() {
        let choice =
            |(at, f): (usize, f64)| KinChoice { shrink: 1.0, adapted: false, probability: at as f32, f };
        let best = |f: &[f64]| {
            let choices: Vec<KinChoice> = f.iter().copied().enumerate().map(choice).collect();
            broadest(&choices).1.probability
        };
        assert_eq!(best(&[0.1, 0.9, 0.2, 0.8, 0.8, 0.8]), 4.0);
        assert_eq!(best(&[0.7, 0.7, 0.1]), 0.0);
        assert_eq!(best(&[0.5]), 0.0);
    }

    #[test]
    fn identities_are_held_out_whole_and_never_all() {
        let labels: Vec<i64> = (0..60).map(|row| row % 7).collect();
        let folds = hold_out(&labels, 0.3, 3);
        assert_eq!(folds.len(), 3);
        for held in &folds {
            assert!((0..60).all(|row| held[row] == held[row % 7]));
            assert_eq!(held[..7].iter().filter(|&&out| out).count(), 2);
        }
        assert!((0..7).all(|row| folds.iter().filter(|held| held[row]).count() < 2));
        assert!(hold_out(&[4, 4], 0.9, 0).is_empty() && hold_out(&labels, 0.01, 0).is_empty());
        let one = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        assert!(train_kin(&one, &[4, 4], None, &KinTraining::default(), &()).is_err());
    }
}
