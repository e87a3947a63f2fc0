//! Training of L-GCN (Wang et al., 2019): of each neighbour of a pivot, whether it has the pivot's identity.
//!
//! An example is a pivot with the graph around it (`apply/pivots.rs`); only the outputs of its neighbours count, those
//! of the second hop help them. The loss is cross-entropy over two outputs, as published.
//!
//! The published network begins with a batch normalisation without parameters. Differences of unit rows have no mean to speak
//! of, so it only makes them larger, by about sqrt(D); here the rows are multiplied by one number, measured on
//! the training set, and in the end the first layer's weights are. Nothing of it is left to apply.
//!
//! Least probability and largest size of a cluster are chosen on the identities that were not trained on.
//!
//! Cost of an epoch: 6 (number of weights) operations for each vertex of the graph of each pivot, some 150 to 480.

use super::augment::augment;
use super::batch::{Batch, Examples, Operators, Readout};
use super::division::{Division, divide};
use super::fit::{FitRun, FittedNetwork, fit};
use super::initial::{Shape, initial};
use super::loss::Loss;
use super::params::{FitParams, at_least_one, held_out, one_per_row};
use super::random::Random;
use super::sparse::{Operator, Sparse};
use crate::apply::pivots::{PivotScratch, push_pivot};
use crate::apply::subgraphs::SubGraphs;
use crate::{GraphNetwork, Lgcn, LgcnParams, PivotShape, link_probabilities, propagate};
use kinfolk::metrics::Judge;
use kinfolk::stages::SizeLimit;
use kinfolk::{Embeddings, Error, KnnGraph, Progress, Quiet, Result};

/// Least probabilities that a link may need. One wrong link joins two identities and one right one suffices, so most are high.
const LEAST: [f32; 12] = [0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999];

/// Largest sizes that a cluster may have, in sizes of the largest identity.
const SIZES: [usize; 2] = [1, 2];

/// Parameters of [`train_lgcn`].
#[derive(Debug, Clone, PartialEq)]
pub struct LgcnTraining {
    /// What a pivot sees.
    pub shape: PivotShape,
    /// Outputs of each convolution. Default 512, 512, 256, 256.
    pub convolutions: Vec<usize>,
    /// Outputs of the head's first layer. Default 256.
    pub hidden: usize,
    /// Whether the features of each batch are rotated at random. Default: the better on held-out identities.
    pub rotate: Option<bool>,
    /// How the weights are fitted, but for rotations; an example is one pivot. Default: 4 epochs of at most 5,000 pivots
    /// in batches of 16, from a rate of 0.01.
    pub fit: FitParams,
}

impl Default for LgcnTraining {
    fn default() -> Self {
        Self {
            shape: PivotShape::default(),
            convolutions: vec![512, 512, 256, 256],
            hidden: 256,
            rotate: None,
            fit: FitParams {
                epochs: 4,
                batch: 16,
                examples: 5_000,
                learning_rate: 0.01,
                ..FitParams::default()
            },
        }
    }
}

impl LgcnTraining {
    /// The default for a graph of this many neighbours. With few of them a pivot sees little, and an epoch has more pivots.
    pub fn for_neighbours(k: usize) -> Self {
        let default = Self::default();
        let k1 = default.shape.k1.min(k).max(1);
        let examples = default.fit.examples * default.shape.k1 / k1;
        let fit = FitParams { examples, ..default.fit };
        Self { shape: PivotShape { k1, ..default.shape }, fit, ..default }
    }

    /// Refuses what cannot be.
    pub fn validate(&self) -> Result<()> {
        self.shape.check()?;
        at_least_one("layers", self.convolutions.len())?;
        for &width in self.convolutions.iter().chain([&self.hidden]) {
            at_least_one("width", width)?;
        }
        self.fit.validate()
    }
}

/// One way to cut, and how it did on held-out identities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkChoice {
    /// Whether the network learned from rotated features.
    pub rotate: bool,
    /// Least probability of a link.
    pub th: f32,
    /// Largest size of a cluster.
    pub max_size: usize,
    /// Mean of pairwise and BCubed F of the held-out rows, from 0 to 1.
    pub f: f64,
}

/// What [`train_lgcn`] made.
#[derive(Debug, Clone)]
pub struct TrainedLgcn {
    /// The network, and the best way to apply it.
    pub model: Lgcn,
    /// How it was trained.
    pub trained: FittedNetwork,
    /// Every way that was tried.
    pub choices: Vec<LinkChoice>,
}

/// Trains L-GCN on labelled embeddings and their graph.
pub fn train_lgcn(
    embeddings: &Embeddings,
    labels: &[i64],
    graph: &KnnGraph,
    params: &LgcnTraining,
    progress: &dyn Progress,
) -> Result<TrainedLgcn> {
    params.validate()?;
    one_per_row("labels", "labels", labels.len(), embeddings)?;
    one_per_row("graph", "vertices", graph.len(), embeddings)?;
    let division = held_out(divide(labels, &params.fit), &params.fit)?;
    if graph.k() == 0 {
        let (expected, found) = ("rows with neighbours".to_owned(), "none".to_owned());
        return Err(Error::Format { place: "graph".to_owned(), expected, found });
    }
    let scale = scale(embeddings, graph, params.shape.k1);
    let judge = Judge::new(labels, division.validation.clone());
    let largest = largest_identity(labels);
    let rotations = params.rotate.map_or(vec![true, false], |rotate| vec![rotate]);
    let (mut choices, mut networks) = (Vec::new(), Vec::new());
    for &rotate in &rotations {
        let params = LgcnTraining { fit: FitParams { rotate, ..params.fit.clone() }, ..params.clone() };
        let mut pivots = Pivots { embeddings, labels, graph, params: &params, scale };
        let mut trained = pivots.fit(&division, progress)?;
        enlarge(&mut trained.network, scale, embeddings.dim());
        let links = link_probabilities(&trained.network, embeddings, graph, &params.shape, progress)?;
        networks.push(trained);
        progress.begin("choose", (LEAST.len() * SIZES.len()) as u64);
        for max_size in SIZES.map(|times| times * largest) {
            for th in LEAST {
                progress.check()?;
                let limit = SizeLimit { max_size, ..SizeLimit::default() };
                let f = judge.score(&propagate(graph, &links, th, &limit, &Quiet(progress))?);
                choices.push(LinkChoice { rotate, th, max_size, f });
                progress.advance(1);
            }
        }
    }
    let best = choices.iter().fold(choices[0], |best, choice| if choice.f > best.f { *choice } else { best });
    let chosen =
        rotations.iter().position(|&rotate| rotate == best.rotate).expect("one of those that were tried");
    let trained = networks.swap_remove(chosen);
    let limit = SizeLimit { max_size: best.max_size, ..SizeLimit::default() };
    let model = Lgcn::new(trained.network.clone(), &LgcnParams { shape: params.shape, th: best.th, limit });
    Ok(TrainedLgcn { model, trained, choices })
}

/// Rows of the largest identity, at least 2.
pub(super) fn largest_identity(labels: &[i64]) -> usize {
    let mut sorted = labels.to_vec();
    sorted.sort_unstable();
    sorted.chunk_by(|a, b| a == b).map(<[i64]>::len).fold(2, usize::max)
}

/// What differences must be multiplied by so that their columns have variance one: 1 / root mean square of those to first neighbours.
pub(super) fn scale(embeddings: &Embeddings, graph: &KnnGraph, k: usize) -> f32 {
    let (mut squares, mut count) = (0.0f64, 0usize);
    let step = (graph.len() / 1000).max(1);
    for p in (0..graph.len()).step_by(step) {
        for &j in graph.neighbours(p).0.iter().take(k) {
            let pair = embeddings.row(p).iter().zip(embeddings.row(j as usize));
            squares += pair.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
            count += embeddings.dim();
        }
    }
    match squares > 0.0 {
        true => (count as f64 / squares).sqrt() as f32,
        // Copies of one row: nothing to learn from, whatever their scale.
        false => 1.0,
    }
}

/// Makes a network for rows whose first `dim` columns were multiplied by `scale` one for rows that are not.
pub(super) fn enlarge(network: &mut GraphNetwork, scale: f32, dim: usize) {
    let columns = network.inputs();
    let first = &mut network.convolutions[0];
    for (row, weights) in first.weight.chunks_exact_mut(first.outputs).enumerate() {
        if row % columns < dim {
            weights.iter_mut().for_each(|weight| *weight *= scale);
        }
    }
}

/// The graphs around pivots as examples.
struct Pivots<'a> {
    embeddings: &'a Embeddings,
    labels: &'a [i64],
    graph: &'a KnnGraph,
    params: &'a LgcnTraining,
    scale: f32,
}

impl Pivots<'_> {
    fn fit(&mut self, division: &Division, progress: &dyn Progress) -> Result<FittedNetwork> {
        let LgcnTraining { convolutions, hidden, fit: params, .. } = self.params;
        let loss = Loss::CrossEntropy;
        let shape =
            Shape { dim: self.embeddings.dim(), convolutions, hidden: *hidden, outputs: loss.outputs() };
        let run = FitRun { resumed: None, after_epoch: &mut |_| Ok(()), progress };
        fit(initial(&shape, params.seed), self, division, loss, params, run)
    }
}

impl Examples for Pivots<'_> {
    fn batch(&self, examples: &[u32], random: &mut Random, augmented: bool) -> Batch {
        let dim = self.embeddings.dim();
        let mut scratch = PivotScratch::new(self.graph.len());
        let mut graphs = SubGraphs::default();
        let (mut counted, mut targets) = (Vec::new(), Vec::new());
        for &p in examples {
            let neighbours = push_pivot(self.graph, &self.params.shape, p, &mut scratch, &mut graphs);
            let same = |&j: &u32| f32::from(self.labels[j as usize] == self.labels[p as usize]);
            targets.extend(self.params.shape.first_hop(self.graph, p).iter().map(same));
            counted.extend(neighbours);
        }
        let mut rows: Vec<f32> = Vec::with_capacity(graphs.rows() * dim);
        for (&p, range) in examples.iter().zip(graphs.graphs()) {
            let pivot = self.embeddings.row(p as usize);
            for &j in &graphs.vertices[range] {
                let own = self.embeddings.row(j as usize);
                rows.extend(own.iter().zip(pivot).map(|(own, pivot)| self.scale * (own - pivot)));
            }
        }
        let matrix = Sparse::of(graphs);
        let mut joined = matrix.joined(&rows, dim);
        if augmented {
            augment(&mut joined, dim, &self.params.fit, random);
        }
        Batch {
            joined,
            operators: Operators::Same(Operator::new(matrix)),
            readout: Readout::Rows(counted),
            targets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pass;
    use super::super::random::{Purpose, random};
    use super::*;
    use crate::testing::labelled_sets;
    use kinfolk::metrics::evaluate;

    fn quick() -> LgcnTraining {
        LgcnTraining {
            shape: PivotShape { k1: 12, k2: 3, active: 3 },
            convolutions: vec![24, 24, 16, 16],
            hidden: 16,
            rotate: Some(true),
            fit: FitParams {
                epochs: 6,
                learning_rate: 0.05,
                validation: 0.25,
                ..LgcnTraining::default().fit
            },
        }
    }

    #[test]
    fn links_of_other_identities_are_found_on_any_number_of_threads() {
        let [(rows, labels, graph), (others, truth, others_graph)] = labelled_sets();
        let on = |threads: usize| {
            let train = || train_lgcn(&rows, &labels, &graph, &quick(), &()).unwrap();
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(train)
        };
        let found = on(1);
        let again = on(2);
        assert_eq!((&found.model, &found.choices), (&again.model, &again.choices));
        let first = found.trained.history[0].training_loss;
        assert!(found.trained.history[5].training_loss < first, "{:?}", found.trained.history);

        let (network, params) = (found.model.network(), found.model.params());
        let links = link_probabilities(network, &others, &others_graph, &params.shape, &()).unwrap();
        let mut right = [0usize; 2];
        for (at, &p) in links.values.iter().enumerate() {
            let (i, j) = (at / links.k1, others_graph.neighbours(at / links.k1).0[at % links.k1]);
            right[usize::from((p > 0.5) == (truth[i] == truth[j as usize]))] += 1;
        }
        assert!(right[1] > 4 * right[0], "wrong and right links: {right:?}");
        let labels = crate::lgcn(&others, &others_graph, network, &params, &()).unwrap();
        let scores = evaluate(&truth, &labels).unwrap();
        assert!(scores.bcubed.f > 0.5, "{scores:?}");
    }

    #[test]
    fn the_network_in_training_is_the_one_that_is_applied() {
        let [(embeddings, labels, graph), _] = labelled_sets();
        let params = quick();
        let pivots =
            Pivots { embeddings: &embeddings, labels: &labels, graph: &graph, params: &params, scale: 3.0 };
        let shape = Shape { dim: 32, convolutions: &params.convolutions, hidden: 16, outputs: 2 };
        let mut network = initial(&shape, 1);
        let examples = [3, 77, 5];
        let batch = pivots.batch(&examples, &mut random(0, Purpose::Noise, 0), false);
        let outputs = pass::outputs(&network, &batch);
        enlarge(&mut network, 3.0, 32);
        let links = link_probabilities(&network, &embeddings, &graph, &params.shape, &()).unwrap();
        assert_eq!(outputs.len(), 2 * 3 * 12);
        for (at, pair) in outputs.chunks(2).enumerate() {
            let p = examples[at / 12] as usize;
            let j = graph.neighbours(p).0[at % 12] as usize;
            assert_eq!(batch.targets[at] == 1.0, labels[p] == labels[j]);
            let expected = 1.0 / (1.0 + (pair[0] - pair[1]).exp());
            let found = links.values[p * 12 + at % 12];
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let [(rows, labels, graph), _] = labelled_sets();
        let message =
            |params: LgcnTraining| train_lgcn(&rows, &labels, &graph, &params, &()).unwrap_err().to_string();
        let fit = FitParams { validation: 0.0, ..quick().fit };
        assert_eq!(
            message(LgcnTraining { fit, ..quick() }),
            "validation: expected a share of the identities that is at least one of them, found 0"
        );
        assert_eq!(
            message(LgcnTraining { convolutions: vec![], ..quick() }),
            "layers: expected at least 1, found 0"
        );
        let shape = PivotShape { k1: 0, ..quick().shape };
        assert_eq!(message(LgcnTraining { shape, ..quick() }), "k1: expected at least 1, found 0");
        let error = train_lgcn(&rows, &labels[1..], &graph, &quick(), &()).unwrap_err().to_string();
        assert!(error.starts_with("labels: expected "), "{error}");
    }
}
