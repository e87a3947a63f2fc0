//! `kin`: clustering without labels and thresholds by a kNN graph, edge probabilities and the map equation.
//!
//! 1. What all rows share is subtracted (`centre`), and the K nearest neighbours of every row are found.
//! 2. A network estimates the probability of every edge that it joins rows of one identity (`connectivity/structural`).
//!    Between rows with few relatives it is corrected by what two halves of the coordinates confirm of each other
//!    (`cross_check`).
//! 3. The map equation partitions the graph of all edges, weighted by their probabilities, with loops for which two rows
//!    without other edges join if they are more likely of one identity than not (`partition/map_equation`). Larger groups are
//!    judged by all edges between them.
//!
//! Cost beyond the graph: see the stages.

use super::cross_check::CrossCheck;
use super::halves::Halves;
use super::size_choice::choose_sizes;
use crate::centre::centred;
use crate::connectivity::structural::{Background, Sizes, edge_probabilities};
use crate::partition::{HeavyEdges, modules_of_heavy};
use crate::problem::search;
use crate::super_vertices::with_super_vertices;
use crate::work::{Arrays, Facts, Key, Stage, kept};
use crate::{
    Clustering, Context, EdgeEvidence, EdgeModel, Embeddings, Error, KnnGraph, Levels, MapParams, Method,
    MethodInfo, ParamKind, ParamValue, Parameters, Problem, Reason, Report, Result, Whitening,
};
use std::borrow::Cow;

/// Which error to avoid: how probable the edge between two rows without other edges must be for them to join.
///
/// Balanced is 0.5, more likely than not, or what a trained model has learned. The other preferences are relative to it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Prefer {
    /// Avoid mixing identities: 1.3 times the balanced probability p, but at most 1 - 0.6 (1 - p).
    Precision,
    /// A compromise between the two.
    #[default]
    Balanced,
    /// Avoid splitting identities: 0.6 times the balanced probability.
    Recall,
    /// This probability, from 0 to 1.
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
    /// The probability that a pair must exceed, where `balanced` is the balanced one.
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

/// The model of [`train_kin`](crate::train_kin).
#[derive(Debug, Clone, PartialEq)]
pub struct KinModel {
    /// A whitening of the embeddings, if there is one. All stages work on the whitened rows, so no graph can be given.
    pub whitening: Option<Whitening>,
    /// Estimates the probability of an edge.
    pub edge: EdgeModel,
    /// The probability that the edge between two rows without other edges must exceed for them to join.
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
        /// Which error to avoid: precision (avoids mixing identities), recall (avoids splitting them), balanced, or
        /// how probable an edge must be to join two rows, from 0 to 1.
        pub prefer: Prefer = Prefer::Balanced, "precision, balanced, recall or a probability from 0 to 1",
            |prefer| !matches!(prefer, Prefer::Probability(p) if !(0.0..=1.0).contains(p));
        /// Rows of a typical identity, if this is known; auto estimates it. Where whole groups of identities look alike, the
        /// estimate is too large and such groups are merged.
        pub identity_size: Option<f32> = None, "a number of rows of at least 1, or auto",
            |size| size.is_none_or(|size| size >= 1.0 && size.is_finite());
        /// Rows of a cosine above this are contracted to one super vertex before the search and share its cluster; 1 contracts
        /// none.
        pub super_vertices: f32 = 1.0, "a similarity above 0, at most 1", |bound| *bound > 0.0 && *bound <= 1.0;
    }
}

/// The K of the graph without a model.
pub(crate) const DEFAULT_K: usize = 80;

/// Without a model, two rows without other edges join if they are more likely of one identity than not.
pub(crate) const EVEN: f32 = 0.5;

/// Edges of at most this probability have no weight. On half of the identities of ten real sets the mean of both F was 84.9, 85.0
/// and 85.2 with 0.05, 0.15 and 0.3; the fewer edges, the faster.
pub(crate) const WEAK: f32 = 0.3;

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

    /// The graph, the probabilities, and those of the edges that the partition uses, in both directions.
    fn memory(&self, rows: usize, _dim: usize, k: usize) -> u64 {
        (rows * (26 * k + 64)) as u64
    }

    fn rewritten_rows(&self, rows: usize, dim: usize) -> u64 {
        (4 * rows * dim) as u64
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.params.check()?;
        let bound = self.params.super_vertices;
        with_super_vertices(problem, bound, context, |problem| self.run_whole(problem, context))
    }
}

impl Kin {
    /// What the edge between two rows without other edges must exceed for them to join.
    pub(crate) fn least_probability(&self) -> f32 {
        self.params.prefer.minimum(self.model.as_ref().map_or(EVEN, |model| model.probability))
    }

    /// Rows of a typical identity, if this is known.
    pub(crate) fn identity_size(&self) -> Option<f32> {
        self.params.identity_size
    }

    /// Clusters all rows of a problem.
    fn run_whole(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        let rows = problem.embeddings()?;
        let whitening = self.model.as_ref().and_then(|model| model.whitening.as_ref());
        let embeddings = match whitening {
            Some(_) if problem.given_graph().is_some() => {
                let expected =
                    "no graph with this model, which searches for neighbours of whitened embeddings";
                return Err(Error::Parameter { field: "graph", expected, found: "one".to_owned() });
            }
            Some(whitening) => {
                if rows.dim() != whitening.dim() {
                    return Err(wrong_columns(whitening.dim(), rows.dim()));
                }
                Cow::Owned(context.timed("whitening", || whitening.apply(rows))?)
            }
            None => Cow::Borrowed(rows),
        };
        let embeddings = match problem.given_graph() {
            // It has the similarities of the rows as they are.
            Some(_) => embeddings,
            None => {
                let all = embeddings;
                Cow::Owned(context.timed("centring", || centred(&all, context))?)
            }
        };
        let built_in = EdgeModel::default();
        let edge_model = self.model.as_ref().map_or(&built_in, |model| &model.edge);
        let default_k = self.model.as_ref().map_or(DEFAULT_K, |model| model.k);
        let found = match problem.given_graph() {
            Some(_) => problem.neighbours(default_k, context)?,
            None => search(&embeddings, &problem.knn_params(default_k, context), "knn", context)?,
        };
        let graph = &*found.graph;
        let key = || {
            let size = self.params.identity_size.map_or("auto".to_owned(), |size| size.to_string());
            let key = Key::new().with("seed", context.seed()).with("identity_size", size);
            key.with_numbers("model", &edge_model.to_numbers()).with_rows(&embeddings).with_graph(graph)
        };
        let Estimate { probabilities, sizes } = kept(context.work(), "connectivity", key, || {
            estimate(&embeddings, graph, edge_model, self.params.identity_size, context)
        })?;
        let pair = self.least_probability();
        let key = || {
            let key = Key::new().with("seed", context.seed()).with("least_probability", pair);
            key.with_graph(graph).with_numbers("probabilities", &probabilities)
        };
        let labels = kept(context.work(), "partition", key, || {
            context.timed("partition", || partition(graph, &probabilities, pair, context))
        })?;
        let evidence =
            context.timed("evidence", || edge_evidence(graph, &probabilities, &labels, pair, rows));
        let levels = context.levels().then(|| {
            context.timed("levels", || Levels::of(graph, &probabilities, &labels, context.progress()))
        });
        let mut report = Report::new(self, Some(found.report), context);
        report.set("least_probability", pair);
        report.set("identity_sizes", sizes);
        report.set("whitened", whitening.is_some());
        Ok(Clustering::new(labels, Reason::Edges(evidence), report).with_levels(levels.transpose()?))
    }
}

/// The error for rows with another number of columns than the training rows.
fn wrong_columns(expected: usize, found: usize) -> Error {
    let (place, what) = ("embeddings".to_owned(), "columns, as the model was trained on".to_owned());
    Error::Length { place, what, expected, found }
}

/// The probability of every edge, and the sizes of identities that it depends on.
pub struct Estimate {
    /// Of every edge, in the order of the graph.
    pub probabilities: Vec<f32>,
    /// The sizes of identities.
    pub sizes: Sizes,
}

/// The probability of every edge, and the sizes of identities that it depends on: estimated, unless a typical one is known.
pub fn estimate(
    embeddings: &Embeddings,
    graph: &KnnGraph,
    model: &EdgeModel,
    known_size: Option<f32>,
    context: &Context,
) -> Result<Estimate> {
    let background = context.timed("background", || Background::of(embeddings, context.seed()));
    let halves = context.timed("halves", || Halves::of(embeddings, graph.k(), context))?;
    let sizes = match known_size {
        Some(size) => Sizes([size.log2(); 3]),
        None => context.timed("sizes", || choose_sizes(&halves, context))?,
    };
    let check = context.timed("cross-check", || CrossCheck::of(&halves, sizes, model, context))?;
    let probabilities = context.timed("connectivity", || -> Result<Vec<f32>> {
        let mut probabilities = edge_probabilities(graph, &background, sizes, model, context.progress())?;
        check.apply(graph, &mut probabilities);
        Ok(probabilities)
    })?;
    Ok(Estimate { probabilities, sizes })
}

impl Stage for Estimate {
    fn parts(&self) -> (Facts, Vec<&[u8]>) {
        (Facts::Null, vec![bytemuck::cast_slice(&self.probabilities), bytemuck::cast_slice(&self.sizes.0)])
    }

    fn from_parts(_: Facts, arrays: &mut Arrays) -> Option<Self> {
        let (probabilities, sizes) = (arrays.next::<f32>()?, arrays.next::<f32>()?);
        let share = |p: &f32| (0.0..=1.0).contains(p);
        Some(Self { sizes: Sizes(sizes.try_into().ok()?), probabilities })
            .filter(|found| found.probabilities.iter().all(share))
    }
}

/// Labels.
impl Stage for Vec<i64> {
    fn parts(&self) -> (Facts, Vec<&[u8]>) {
        (Facts::Null, vec![bytemuck::cast_slice(self)])
    }

    fn from_parts(_: Facts, arrays: &mut Arrays) -> Option<Self> {
        arrays.next()
    }
}

/// Modules of the edges, weighted by their probabilities; two rows without other edges join if theirs exceeds `pair`.
pub fn partition(graph: &KnnGraph, probabilities: &[f32], pair: f32, context: &Context) -> Result<Vec<i64>> {
    let least = WEAK.min(pair);
    let params = MapParams { seed: context.seed(), pair_weight: Some(pair), ..MapParams::default() };
    let edges = HeavyEdges::of(graph, probabilities, least)?;
    Ok(modules_of_heavy(&edges, &params, context.progress())?.labels)
}

/// The reasons for the labels of rows; similarities are those of `rows`.
pub(crate) fn edge_evidence(
    graph: &KnnGraph,
    probabilities: &[f32],
    labels: &[i64],
    pair: f32,
    rows: &Embeddings,
) -> EdgeEvidence {
    EdgeEvidence::of(graph, probabilities, labels, WEAK.min(pair), pair).with_similarities(rows)
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

    /// 40 groups of four identities that look alike, six rows each: the estimated sizes are those of the groups.
    #[test]
    fn a_known_size_of_identities_divides_groups_of_look_alikes() {
        const DIM: usize = 64;
        let mut stream = crate::random::Stream::new(5, crate::random::Purpose::Image, 0, 0);
        let mut near = |to: &[f32], noise: f32| -> Vec<f32> {
            to.iter().map(|x| x + noise * stream.rough_normal()).collect()
        };
        let (mut rows, mut truth) = (Vec::new(), Vec::new());
        for group in 0..40 {
            let group_centre = near(&[0.0; DIM], 1.0);
            for identity in 0..4 {
                let centre = near(&group_centre, 0.5);
                for _ in 0..6 {
                    rows.extend(near(&centre, 0.35));
                    truth.push(4 * group + identity);
                }
            }
        }
        let embeddings = Embeddings::from_rows(rows, DIM, "test").unwrap();
        let cluster = |size: &str| {
            let mut kin = Kin::default();
            kin.parameters_mut().set("identity_size", size).unwrap();
            let found = Clusterer::with(kin).fit(&embeddings).unwrap();
            (evaluate(&truth, &found.labels).unwrap().pairwise, found)
        };
        let (known, found) = cluster("6");
        let (larger, _) = cluster("24");
        assert!(known.precision > larger.precision, "{known:?} {larger:?}");
        assert!(found.report.parameters.contains(&("identity_sizes", "6, 6, 6".to_owned())));
        let wrong = Kin::default().parameters_mut().set("identity_size", "0").unwrap_err().to_string();
        assert_eq!(wrong, "identity_size: expected a number of rows of at least 1, or auto, found 0");
    }

    #[test]
    fn the_smallest_sets_have_labels() {
        assert_eq!(labels(vec![1.0, 0.0], 2), [0]);
        assert_eq!(labels(vec![1.0; 8], 8), [0]);
        for rows in 2..6 {
            assert_eq!(labels((0..8 * rows).map(|at| (at * at % 11) as f32).collect(), 8).len(), rows);
        }
        assert_eq!(labels(vec![1.0, 0.0, -1.0, 0.0], 2).len(), 2);
    }

    #[test]
    fn copies_of_one_row_are_one_cluster() {
        assert_eq!(labels([0.6, 0.8].repeat(200), 2), [0; 200]);
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
