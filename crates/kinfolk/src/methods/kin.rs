//! `kin`: clustering without labels and thresholds by a kNN graph, edge probabilities and the map equation.
//!
//! 1. A network estimates the probability p of every edge from its features and the background of the set.
//! 2. A first partition by p gives pairs of different identities. Their similarities, the null model, correct p (see
//!    `connectivity/structural`).
//! 3. The map equation partitions the graph of the remaining edges, weighted by p.
//! 4. If most rows are in clusters of more than 5/4 K rows, all steps are repeated with twice K: few neighbours are not enough
//!    to separate a large identity from similar ones.
//!
//! Cost beyond the graph: see the stages.

use crate::connectivity::structural::{
    Background, Clarity, EdgeProbabilities, NullModel, edge_probabilities,
};
use crate::partition::join_steady;
use crate::problem::search;
use crate::{
    Clustering, Context, EdgeEvidence, EdgeModel, Embeddings, Error, KnnGraph, Levels, MapParams, Method,
    MethodInfo, ParamKind, ParamValue, Parameters, Problem, Progress, Reason, Report, Result, WeightedGraph,
    Whitening, map_equation,
};
use rayon::prelude::*;
use std::borrow::Cow;

/// Which error to avoid. It sets the minimum edge probability; less probable edges are dropped before the partition.
///
/// A balanced trained model uses the minimum that it learned. Without a model the minimum is 0.5. It is lower, down to 0.2, if
/// identities are hard to separate, so that rows have many probable edges and hardly any certain one
/// (`connectivity/structural/clarity.rs`). It is also lower if K has been doubled: a row then has more than a hundred
/// neighbours of its identity, and many weak edges together are sufficient. The other preferences are relative to the balanced
/// minimum.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Prefer {
    /// Avoid mixing identities: 1.3 times the balanced minimum p, but at most 1 - 0.6 (1 - p).
    Precision,
    /// A compromise between the two.
    #[default]
    Balanced,
    /// Avoid splitting identities: 0.6 times the balanced minimum.
    Recall,
    /// A fixed minimum probability from 0 to 1.
    Probability(f32),
}

impl ParamValue for Prefer {
    const KIND: ParamKind = ParamKind::Text;
    const EXPECTED: &'static str = "precision, balanced, recall or a probability from 0 to 1";

    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "precision" => Prefer::Precision,
            "balanced" => Prefer::Balanced,
            "recall" => Prefer::Recall,
            number => Prefer::Probability(number.parse().ok()?),
        })
    }

    fn format(&self) -> String {
        match self {
            Prefer::Precision => "precision".to_owned(),
            Prefer::Balanced => "balanced".to_owned(),
            Prefer::Recall => "recall".to_owned(),
            Prefer::Probability(probability) => probability.to_string(),
        }
    }
}

impl Prefer {
    /// The minimum probability of an edge, where `balanced` is the balanced minimum.
    fn minimum(self, balanced: f32) -> f32 {
        match self {
            // Stricter than balanced, and always below 1.
            Prefer::Precision => (1.3 * balanced).min(1.0 - 0.6 * (1.0 - balanced)),
            Prefer::Balanced => balanced,
            Prefer::Recall => 0.6 * balanced,
            Prefer::Probability(probability) => probability,
        }
    }
}

/// The minimum probability of an edge in a set of this clarity, where K is the default or has been doubled.
fn balanced(clarity: Clarity, doubled: bool) -> f32 {
    // From company 0.2 on, in full from 0.25 on.
    let hard = ((clarity.company - 0.2) / 0.05).clamp(0.0, 1.0);
    let unclear = (0.92 - clarity.best_f).max(0.0) * hard;
    (0.5 - 2.0 * unclear).max(0.2) * if doubled { 0.3 } else { 1.0 }
}

/// The model of [`train_kin`](crate::train_kin).
#[derive(Debug, Clone, PartialEq)]
pub struct KinModel {
    /// A whitening of the embeddings, if there is one. All stages work on the whitened rows, so no graph can be given.
    pub whitening: Option<Whitening>,
    /// Estimates the probability of an edge.
    pub edge: EdgeModel,
    /// The minimum edge probability; less probable edges are dropped.
    pub probability: f32,
    /// Neighbours of each vertex in the graph it was trained on.
    pub k: usize,
}

/// Clusters embeddings without labels or thresholds; with a model, it uses the learned parameters.
///
/// ```
/// use kinfolk::synth::{Synth, SynthParams};
/// use kinfolk::{Clusterer, Kin, Prefer};
/// # fn main() -> kinfolk::Result<()> {
/// let params = SynthParams { identities: 40, dim: 64, ..SynthParams::default() };
/// let (embeddings, _) = Synth::new(params)?.whole().to_embeddings()?;
/// let found = Clusterer::new().fit(&embeddings)?;
/// let careful = Clusterer::with(Kin::default().prefer(Prefer::Precision)).fit(&embeddings)?;
/// assert!(careful.len() >= found.len());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Kin {
    params: KinParams,
    model: Option<KinModel>,
}

crate::parameters! {
    /// Parameters of [`Kin`].
    #[derive(Debug, Clone, PartialEq)]
    pub struct KinParams {
        /// Which error to avoid: precision (avoids mixing identities), recall (avoids splitting them), balanced, or a
        /// minimum edge probability from 0 to 1.
        pub prefer: Prefer = Prefer::Balanced, "precision, balanced, recall or a probability from 0 to 1",
            |prefer| !matches!(prefer, Prefer::Probability(p) if !(0.0..=1.0).contains(p));
    }
}

/// The K of the graph without a model.
const DEFAULT_K: usize = 80;

/// The minimum probability of an edge in the first partition, from which the null model is estimated.
const FIRST: f32 = 0.3;

/// The step between the minimum probabilities of the partitions that are compared; training tries probabilities with the same
/// step.
const STEP: f32 = 0.1;

/// The null model cannot be estimated from fewer rows.
const FEW_ROWS: usize = 200;

impl Kin {
    /// Clusters by a trained model.
    pub fn trained(model: KinModel) -> Self {
        Kin { model: Some(model), ..Kin::default() }
    }

    /// The same with another preference.
    pub fn prefer(mut self, prefer: Prefer) -> Self {
        self.params.prefer = prefer;
        self
    }

    /// The trained model, if there is one.
    pub fn model(&self) -> Option<&KinModel> {
        self.model.as_ref()
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "kin",
    "kin",
    "Estimates the probability of every edge from its neighbourhood, then partitions by the map equation",
)
.when(
    "by default: it needs no labels, no threshold and no number of clusters; training adapts it to a domain",
)
.cost("about a dozen times N K")
.learns()
.levels()
.color("#d62728");

impl Method for Kin {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn parameters(&self) -> &dyn Parameters {
        &self.params
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        &mut self.params
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.params.check()?;
        let embeddings = problem.embeddings()?;
        let whitening = self.model.as_ref().and_then(|model| model.whitening.as_ref());
        let embeddings = match whitening {
            Some(_) if problem.given_graph().is_some() => {
                let expected =
                    "no graph with this model, which searches for neighbours of whitened embeddings";
                return Err(Error::Parameter { field: "graph", expected, found: "one".to_owned() });
            }
            Some(whitening) => {
                if embeddings.dim() != whitening.dim() {
                    return Err(wrong_columns(whitening.dim(), embeddings.dim()));
                }
                Cow::Owned(context.timed("whitening", || whitening.apply(embeddings))?)
            }
            None => Cow::Borrowed(embeddings),
        };
        let built_in = EdgeModel::default();
        let edge_model = self.model.as_ref().map_or(&built_in, |model| &model.edge);
        let default_k = self.model.as_ref().map_or(DEFAULT_K, |model| model.k);
        // A K that was given, or that a model was trained with, is not changed.
        let can_grow = problem.k().is_none() && problem.given_graph().is_none() && self.model.is_none();
        let mut knn = problem.knn_params(default_k, context);
        let mut doubled = false;
        loop {
            let found = match problem.given_graph() {
                Some(_) => problem.neighbours(default_k, context)?,
                None => search(&embeddings, &knn, "knn", context)?,
            };
            let graph = &*found.graph;
            let edges = estimate(&embeddings, graph, edge_model, context)?;
            let balanced = match &self.model {
                Some(model) => model.probability,
                None => balanced(edges.clarity(graph.k()), doubled),
            };
            let minimum = self.params.prefer.minimum(balanced);
            let labels = context.timed("partition", || self.partition(graph, &edges, minimum, context))?;
            if can_grow && !doubled && too_few(knn.k, &labels) {
                (knn.k, doubled) = (knn.k * 2, true);
                continue;
            }
            let evidence =
                context.timed("evidence", || EdgeEvidence::of(graph, &edges.probabilities, &labels, minimum));
            let levels = context.levels().then(|| {
                let levels = || Levels::of(graph, &edges.probabilities, &labels, context.progress());
                context.timed("levels", levels)
            });
            let mut report = Report::new(self, Some(found.report), context);
            report.set("least_probability", minimum);
            report.set("whitened", whitening.is_some());
            return Ok(
                Clustering::new(labels, Reason::Edges(evidence), report).with_levels(levels.transpose()?)
            );
        }
    }
}

impl Kin {
    fn partition(
        &self,
        graph: &KnnGraph,
        edges: &EdgeProbabilities,
        minimum: f32,
        context: &Context,
    ) -> Result<Vec<i64>> {
        let modules = |minimum| modules(graph, edges, minimum, context);
        let labels = modules(minimum)?;
        if self.model.is_none() {
            return Ok(labels);
        }
        // The threshold of the model was chosen on other rows; clusters that it splits by chance are merged again.
        Ok(join_steady(&labels, [&modules(minimum - STEP)?, &modules(minimum + STEP)?]))
    }
}

/// The error for rows with another number of columns than the training rows.
fn wrong_columns(expected: usize, found: usize) -> Error {
    let (place, what) = ("embeddings".to_owned(), "columns, as the model was trained on".to_owned());
    Error::Length { place, what, expected, found }
}

/// Whether K is small compared with the clusters of most rows, and can be doubled.
pub(super) fn too_few(k: usize, labels: &[i64]) -> bool {
    2 * k < labels.len() && typical_size(labels) * 4 > 5 * k
}

/// The size of cluster that half of the rows exceed.
fn typical_size(labels: &[i64]) -> usize {
    let mut sizes = vec![0usize; labels.iter().max().map_or(0, |&last| last as usize + 1)];
    labels.iter().for_each(|&label| sizes[label as usize] += 1);
    // Clusters are numbered by descending size.
    let mut rows = 0;
    let half = sizes.iter().find(|&&size| {
        rows += size;
        2 * rows >= labels.len()
    });
    half.copied().unwrap_or(0)
}

/// The probability of every edge.
pub(super) fn estimate(
    embeddings: &Embeddings,
    graph: &KnnGraph,
    model: &EdgeModel,
    context: &Context,
) -> Result<EdgeProbabilities> {
    let (seed, progress) = (context.seed(), context.progress());
    let background = context.timed("background", || Background::of(embeddings, seed));
    let mut edges =
        context.timed("connectivity", || edge_probabilities(graph, &background, model, progress))?;
    context.timed("null model", || -> Result<()> {
        if embeddings.len() < FEW_ROWS {
            return Ok(());
        }
        // The first partition need not be refined.
        let quick = MapParams { seed, rounds: 0, ..MapParams::default() };
        let first = partition(graph, &edges, FIRST, &quick, progress)?;
        let null = NullModel::of(embeddings, graph, &background, &edges, &first, seed);
        edges.correct(graph, &null);
        Ok(())
    })?;
    Ok(edges)
}

/// Modules of the edges more probable than `minimum`.
pub(super) fn modules(
    graph: &KnnGraph,
    edges: &EdgeProbabilities,
    minimum: f32,
    context: &Context,
) -> Result<Vec<i64>> {
    let params = MapParams { seed: context.seed(), ..MapParams::default() };
    partition(graph, edges, minimum, &params, context.progress())
}

fn partition(
    graph: &KnnGraph,
    edges: &EdgeProbabilities,
    minimum: f32,
    params: &MapParams,
    progress: &dyn Progress,
) -> Result<Vec<i64>> {
    let weight = |&p: &f32| if p > minimum { p } else { 0.0 };
    let weights: Vec<f32> = edges.probabilities.par_iter().map(weight).collect();
    Ok(map_equation(&WeightedGraph::from_knn(graph, &weights)?, params, progress)?.labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clusterer;
    use crate::metrics::evaluate;
    use crate::synth::{Synth, SynthParams};
    use crate::testing::on_one_and_three_threads;

    fn labels(rows: Vec<f32>, dim: usize) -> Vec<i64> {
        let embeddings = Embeddings::from_rows(rows, dim, "test").unwrap();
        Clusterer::new().fit(&embeddings).unwrap().labels
    }

    fn synthetic() -> (Embeddings, Vec<i64>) {
        let params = SynthParams { identities: 60, dim: 64, seed: 9, ..SynthParams::default() };
        Synth::new(params).unwrap().whole().to_embeddings().unwrap()
    }

    fn model(probability: f32) -> KinModel {
        KinModel { whitening: None, edge: EdgeModel::default(), probability, k: 80 }
    }

    #[test]
    fn the_smallest_sets_have_labels() {
        assert_eq!(labels(vec![1.0, 0.0], 2), [0]);
        assert_eq!(labels(vec![1.0, 0.0, -1.0, 0.0], 2).len(), 2);
    }

    #[test]
    fn copies_of_one_row_are_one_cluster() {
        assert_eq!(labels([0.6, 0.8].repeat(200), 2), [0; 200]);
    }

    #[test]
    fn half_of_the_rows_are_in_clusters_of_the_typical_size_or_more() {
        assert_eq!(typical_size(&[]), 0);
        assert_eq!(typical_size(&[0, 0, 0, 1, 1, 2]), 3);
        assert_eq!(typical_size(&[0, 0, 1, 1, 2, 3, 4]), 2);
    }

    #[test]
    fn large_identities_are_looked_at_with_more_neighbours() {
        let params = SynthParams {
            identities: 6,
            dim: 64,
            mean_size: 200.0,
            max_size: 300,
            max_modes: 1,
            noise: 0.6,
            ..SynthParams::default()
        };
        let (embeddings, _) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let found = |k: Option<usize>, prefer| {
            let problem = Problem::new(&embeddings).with_k(k).unwrap();
            let found = Clusterer::with(Kin::default().prefer(prefer)).run(&problem).unwrap();
            (found.report.k().unwrap(), found.edges().unwrap().min_probability)
        };
        let (grown, asked_for) = (found(None, Prefer::Balanced), found(Some(80), Prefer::Balanced));
        assert_eq!([grown.0, asked_for.0], [160, 80]);
        // The minimum is lower there, but a given probability is not changed.
        assert!(grown.1 < asked_for.1);
        assert_eq!(found(None, Prefer::Probability(0.4)), (160, 0.4));
    }

    #[test]
    fn less_is_enough_where_identities_are_hard_to_tell_apart() {
        let minimum = |best_f, company| balanced(Clarity { best_f, company }, false);
        assert_eq!([minimum(0.97, 0.5), minimum(0.92, 0.5), minimum(0.5, 0.1)], [0.5; 3]);
        assert_eq!([minimum(0.795, 0.5), minimum(0.3, 0.5)], [0.25, 0.2]);
    }

    #[test]
    fn preferences_move_the_minimum_of_a_model_and_of_none() {
        for balanced in [0.06, 0.2, 0.5, 0.8, 0.95] {
            let ordered = [Prefer::Recall, Prefer::Balanced, Prefer::Precision].map(|p| p.minimum(balanced));
            assert!(ordered[0] < ordered[1] && ordered[1] < ordered[2] && ordered[2] < 1.0, "{ordered:?}");
        }
        let (embeddings, _) = synthetic();
        let minimum = |prefer| {
            let found = Clusterer::with(Kin::trained(model(0.8)).prefer(prefer)).fit(&embeddings).unwrap();
            found.edges().unwrap().min_probability
        };
        assert_eq!(minimum(Prefer::Balanced), 0.8);
        assert!(minimum(Prefer::Precision) > 0.8 && minimum(Prefer::Recall) < 0.8);
        assert_eq!(minimum(Prefer::Probability(0.3)), 0.3);
    }

    #[test]
    fn a_model_only_joins_what_one_threshold_tears_apart() {
        let (embeddings, _) = synthetic();
        let prefer = Prefer::Probability(0.5);
        let [once, steady] = [Kin::default(), Kin::trained(model(0.5))]
            .map(|kin| Clusterer::with(kin.prefer(prefer)).k(80).fit(&embeddings).unwrap().labels);
        let pairs: std::collections::HashSet<_> = once.iter().zip(&steady).collect();
        assert_eq!(pairs.len() as i64, once.iter().max().unwrap() + 1);
    }

    #[test]
    fn random_rows_stay_alone() {
        let mut stream = crate::random::Stream::new(5, crate::random::Purpose::Image, 0, 0);
        let rows = (0..1000 * 64).map(|_| stream.rough_normal()).collect();
        let labels = labels(rows, 64);
        let clusters = labels.iter().max().unwrap() + 1;
        assert!(clusters > 900, "{clusters}");
    }

    #[test]
    fn identities_are_found_the_same_on_any_number_of_threads() {
        let (embeddings, truth) = synthetic();
        let [one, three] = on_one_and_three_threads(|| Clusterer::new().fit(&embeddings).unwrap());
        assert_eq!((&one.labels, &one.reason), (&three.labels, &three.reason));
        let scores = evaluate(&truth, &one.labels).unwrap();
        assert!(scores.bcubed.f > 0.8, "{scores:?}");
        for (row, reason) in one.rows().enumerate() {
            if let Some((parent, _)) = reason.parent {
                assert_eq!(one.labels[row], one.labels[parent as usize]);
            }
        }
    }

    #[test]
    fn a_probability_out_of_range_is_an_error() {
        let embeddings = Embeddings::from_rows(vec![1.0, 0.0], 2, "test").unwrap();
        let kin = Kin::default().prefer(Prefer::Probability(1.5));
        let message = Clusterer::with(kin).fit(&embeddings).unwrap_err().to_string();
        assert!(message.contains("1.5"), "{message}");
    }
}
