//! Training of `kin` on labels: a whitening of the embeddings, a fine-tuned edge model, and the probability that a pair must
//! exceed. Held-out identities decide which of these to use, if any; then they are trained again on all identities.
//!
//! Cost, for each fold of held-out identities: that of [`kin`](super::kin) for each whitening that is tried (until two in a row
//! are no better), and of `connectivity/structural/adapt`, with a partition for each probability; and `adapt` once more.

use super::cross_check::CrossCheck;
use super::halves::Halves;
use super::kin::{DEFAULT_K, EVEN, KinModel, partition};
use super::size_choice::choose_sizes;
use crate::centre::centred;
use crate::connectivity::structural::{Background, LabelledEdges, Sizes, edge_probabilities};
use crate::metrics::Judge;
use crate::problem::search;
use crate::random::{Purpose, Stream};
use crate::{
    Context, EdgeModel, Embeddings, Error, KnnGraph, KnnParams, Parameters, Problem, Result, Whitening,
};
use std::borrow::Cow;
use std::rc::Rc;

crate::parameters! {
    /// Parameters of [`train_kin`].
    #[derive(Debug, Clone, PartialEq)]
    pub struct KinTraining {
        /// Number of passes over the training edges.
        pub epochs: usize = 3, "at least 1", |epochs| *epochs >= 1;
        /// Share of the identities that are held out to choose parameters.
        pub validation: f32 = 0.3, "a share above 0 and below 1", |share| *share > 0.0 && *share < 1.0;
    }
}

/// The result of [`train_kin`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TrainedKin {
    /// The model, with the best setting on held-out identities, trained on all identities.
    pub model: KinModel,
    /// The best trial.
    pub chosen: KinTrial,
    /// All trials.
    pub trials: Vec<KinTrial>,
    /// Cross-entropy of the edges of held-out identities, in nats: of the built-in model and of the adapted one.
    pub losses: [f64; 2],
}

/// The score of one setting on held-out identities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KinTrial {
    /// The shrinkage of the whitening, see [`Whitening::fit`]; 1 for no whitening.
    pub shrink: f64,
    /// Whether the edge model is fine-tuned on the labels.
    pub adapted: bool,
    /// The probability that a pair must exceed.
    pub probability: f32,
    /// The mean of both F.
    pub f: f64,
}

/// Probabilities of a pair that are tried. Those farther from even were chosen by chance: held-out identities of one half of CLINC150
/// chose 0.2, which lost 3.0 / 0.9 points on the other half.
const PROBABILITIES: [f32; 3] = [0.4, 0.5, 0.6];
/// Shrinkages that are tried, from the weakest whitening.
const SHRINKS: [f64; 5] = [0.9, 0.7, 0.5, 0.3, 0.1];

/// By how much a setting must be better than no training on held-out identities.
const LEAST_GAIN: f64 = 0.005;

/// Sets with fewer rows are scored on several folds of held-out identities.
const JUDGED: usize = 100_000;
const FOLDS: usize = 3;

/// Trains [`Kin`](crate::Kin) on the labelled rows of a problem, to cluster rows of other identities. With a given graph no
/// whitening is used.
pub fn train_kin(problem: &Problem, params: &KinTraining, context: &Context) -> Result<TrainedKin> {
    params.check()?;
    let (embeddings, labels) = (problem.embeddings()?, problem.labels()?);
    let folds = hold_out(labels, params.validation, context.seed());
    let folds = &folds[..folds.len().min((JUDGED / labels.len().max(1)).clamp(1, FOLDS))];
    if folds.is_empty() {
        return Err(Error::Parameter {
            field: "validation",
            expected: "a share below 1 that holds out some identities and leaves some",
            found: params.validation.to_string(),
        });
    }
    let knn = problem.knn_params(DEFAULT_K, context);
    let whitens = problem.given_graph().is_none();
    let (plain, found) = match problem.given_graph() {
        Some(_) => (Cow::Borrowed(embeddings), problem.neighbours(knn.k, context)?),
        None => {
            let plain = centred(embeddings, context)?;
            let found = search(&plain, &knn, "knn", context)?;
            (Cow::Owned(plain), found)
        }
    };
    let k = found.graph.k();
    let plain = Rc::new(View::new(None, &plain, found.graph, context)?);
    let labelled = Labelled { embeddings, plain, labels, epochs: params.epochs, knn, context };
    let mut trials = labelled.try_built_in(folds, 1.0)?;
    let untrained = PROBABILITIES.iter().position(|&p| p == EVEN).unwrap_or(0);
    let untrained = (around(&trials, untrained), trials[untrained]);
    let mut best = broadest(&trials);
    let mut worse = 0;
    for shrink in SHRINKS {
        // A single one that is no better may be chance.
        if !whitens || worse == 2 {
            break;
        }
        let tried = labelled.try_built_in(folds, shrink)?;
        let found = broadest(&tried);
        trials.extend(tried);
        if found.0 > best.0 {
            (best, worse) = (found, 0);
        } else {
            worse += 1;
        }
    }
    let (tried, losses) = labelled.try_adapted(folds, best.1.shrink)?;
    let adapted = broadest(&tried);
    trials.extend(tried);
    if adapted.0 > best.0 {
        best = adapted;
    }
    // With few held-out identities, the best of many settings is often the best by chance.
    if best.0 < untrained.0 + LEAST_GAIN {
        best = untrained;
    }
    let chosen = best.1;
    let view = labelled.view(chosen.shrink, &|_| true)?;
    let edge = if chosen.adapted { labelled.adapt(&view, &|_| true)? } else { EdgeModel::default() };
    let model = KinModel { whitening: view.whitening.clone(), edge, probability: chosen.probability, k };
    Ok(TrainedKin { model, chosen, trials, losses })
}

/// The training data and parameters.
struct Labelled<'a> {
    embeddings: &'a Embeddings,
    plain: Rc<View<'a>>,
    labels: &'a [i64],
    epochs: usize,
    knn: KnnParams,
    context: &'a Context<'a>,
}

/// What `kin` knows of embeddings that are possibly whitened.
struct View<'a> {
    whitening: Option<Whitening>,
    graph: Cow<'a, KnnGraph>,
    background: Background,
    halves: Halves,
    sizes: Sizes,
}

impl<'a> View<'a> {
    fn new(
        whitening: Option<Whitening>,
        embeddings: &Embeddings,
        graph: Cow<'a, KnnGraph>,
        context: &Context,
    ) -> Result<Self> {
        let background = Background::of(embeddings, context.seed());
        let halves = Halves::of(embeddings, graph.k(), context)?;
        let sizes = choose_sizes(&halves, context)?;
        Ok(View { whitening, graph, background, halves, sizes })
    }
}

/// Whether a row counts.
type Taken<'a> = &'a dyn Fn(usize) -> bool;

impl<'a> Labelled<'a> {
    /// Whitened by the rows that are `taken`; unchanged if `shrink` is 1 or no whitening can be fitted.
    fn view(&self, shrink: f64, taken: Taken) -> Result<Rc<View<'a>>> {
        let whitening = match shrink < 1.0 {
            true => Whitening::fit(self.embeddings, self.labels, taken, shrink),
            false => None,
        };
        let Some(whitening) = whitening else { return Ok(Rc::clone(&self.plain)) };
        let embeddings = centred(&whitening.apply(self.embeddings)?, self.context)?;
        let graph = search(&embeddings, &self.knn, "knn", self.context)?.graph.into_owned();
        Ok(Rc::new(View::new(Some(whitening), &embeddings, Cow::Owned(graph), self.context)?))
    }

    fn edges(&self, view: &View, taken: Taken) -> Result<LabelledEdges> {
        let View { graph, background, sizes, .. } = view;
        let (seed, progress) = (self.context.seed(), self.context.progress());
        LabelledEdges::of(graph, background, *sizes, self.labels, taken, seed, progress)
    }

    fn adapt(&self, view: &View, taken: Taken) -> Result<EdgeModel> {
        self.edges(view, taken)?.adapt(self.epochs, self.context.seed(), self.context.progress())
    }

    /// The built-in model with every probability of a pair.
    fn try_built_in(&self, folds: &[Vec<bool>], shrink: f64) -> Result<Vec<KinTrial>> {
        let mut trials = untried(shrink, false);
        for held_out in folds {
            let view = self.view(shrink, &|i| !held_out[i])?;
            self.judge(&view, &EdgeModel::default(), held_out, folds.len(), &mut trials)?;
        }
        Ok(trials)
    }

    /// A model fine-tuned on the identities that are not held out, with every probability of a pair; and the losses of the
    /// built-in and of the fine-tuned model.
    fn try_adapted(&self, folds: &[Vec<bool>], shrink: f64) -> Result<(Vec<KinTrial>, [f64; 2])> {
        let mut trials = untried(shrink, true);
        let mut losses = [0.0; 2];
        for held_out in folds {
            let view = self.view(shrink, &|i| !held_out[i])?;
            let adapted = self.adapt(&view, &|i| !held_out[i])?;
            let edges = self.edges(&view, &|i| held_out[i])?;
            for (sum, model) in losses.iter_mut().zip([&EdgeModel::default(), &adapted]) {
                *sum += edges.loss(model) / folds.len() as f64;
            }
            drop(edges);
            self.judge(&view, &adapted, held_out, folds.len(), &mut trials)?;
        }
        Ok((trials, losses))
    }

    /// Adds the scores of one of `folds` folds to trials that differ by their probability.
    fn judge(
        &self,
        view: &View,
        model: &EdgeModel,
        held_out: &[bool],
        folds: usize,
        trials: &mut [KinTrial],
    ) -> Result<()> {
        let rows = (0..held_out.len() as u32).filter(|&i| held_out[i as usize]).collect();
        let judge = Judge::new(self.labels, rows);
        let View { graph, background, halves, sizes, .. } = view;
        let mut edges = edge_probabilities(graph, background, *sizes, model, self.context.progress())?;
        CrossCheck::of(halves, *sizes, model, self.context)?.apply(graph, &mut edges);
        for trial in trials {
            let labels = partition(&view.graph, &edges, trial.probability, self.context)?;
            trial.f += judge.score(&labels) / folds as f64;
        }
        Ok(())
    }
}

/// Trials of one setting with every probability of a pair.
fn untried(shrink: f64, adapted: bool) -> Vec<KinTrial> {
    let trial = |probability| KinTrial { shrink, adapted, probability, f: 0.0 };
    PROBABILITIES.map(trial).to_vec()
}

/// The trial whose mean F with its two neighbours is best, and that mean: a narrow peak is likely to be chance. Trials are in the
/// order of their probabilities.
fn broadest(trials: &[KinTrial]) -> (f64, KinTrial) {
    let better = |best, at| if around(trials, at) > around(trials, best) { at } else { best };
    let best = (1..trials.len()).fold(0, better);
    (around(trials, best), trials[best])
}

/// The mean F of a trial and its two neighbours.
fn around(trials: &[KinTrial], at: usize) -> f64 {
    let last = trials.len() - 1;
    (trials[at.saturating_sub(1)].f + trials[at].f + trials[(at + 1).min(last)].f) / 3.0
}

/// Disjoint folds of held-out rows. Whole identities are held out, because scores of identities that were trained on would be
/// too optimistic. No folds if nothing would be left to train on or to score.
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

    fn train(embeddings: &Embeddings, labels: &[i64], k: Option<usize>) -> Result<TrainedKin> {
        let problem = Problem::new(embeddings).with_labels(labels)?.with_k(k)?;
        train_kin(&problem, &KinTraining::default(), &Context::default())
    }

    #[test]
    fn training_is_judged_by_identities_it_has_not_seen() {
        let params = SynthParams { identities: 40, dim: 64, seed: 2, ..SynthParams::default() };
        let (embeddings, labels) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let TrainedKin { model, chosen, trials, losses } = train(&embeddings, &labels, Some(20)).unwrap();
        assert_eq!(
            (model.whitening.is_some(), model.edge != EdgeModel::default(), model.probability),
            (chosen.shrink < 1.0, chosen.adapted, chosen.probability)
        );
        assert!(losses[1] < losses[0] && model.k == 20, "{losses:?}");
        // The built-in model without and with at least one whitening, and the fine-tuned one.
        assert!(trials.len() >= 3 * PROBABILITIES.len() && trials.contains(&chosen));
        let best = trials.iter().map(|trial| trial.f).fold(0.0, f64::max);
        assert!(chosen.f > best - 0.05 && chosen.f > 0.5, "{chosen:?} {best}");
    }

    #[test]
    fn a_given_graph_excludes_whitening() {
        let params = SynthParams { identities: 20, dim: 32, seed: 4, ..SynthParams::default() };
        let (embeddings, labels) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let knn = KnnParams { k: 10, ..KnnParams::default() };
        let graph = crate::knn_graph(&embeddings, &knn, &()).unwrap().0;
        let problem = Problem::new(&embeddings).with_graph(&graph).unwrap().with_labels(&labels).unwrap();
        let trained = train_kin(&problem, &KinTraining::default(), &Context::default()).unwrap();
        assert!(trained.model.whitening.is_none() && trained.trials.iter().all(|trial| trial.shrink == 1.0));
        // And a model that whitens takes no graph.
        let whitening = Whitening::fit(&embeddings, &labels, |_| true, 0.5);
        let kin = crate::Kin::trained(KinModel { whitening, ..trained.model });
        let message = crate::Clusterer::with(kin).fit_graph(&embeddings, &graph).unwrap_err().to_string();
        assert!(message.contains("graph") && message.contains("whitened"), "{message}");
    }

    #[test]
    fn a_lonely_peak_is_not_chosen() {
        let trial =
            |(at, f): (usize, f64)| KinTrial { shrink: 1.0, adapted: false, probability: at as f32, f };
        let best = |f: &[f64]| {
            let trials: Vec<KinTrial> = f.iter().copied().enumerate().map(trial).collect();
            broadest(&trials).1.probability
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
        assert!(train(&one, &[4, 4], None).unwrap_err().to_string().starts_with("validation"));
        let message = train(&one, &[4], None).unwrap_err().to_string();
        assert_eq!(message, "labels: expected 2 labels (one per embedding), found 1");
    }
}
