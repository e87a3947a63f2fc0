//! Training of the connectivity estimator, GCN-E (Section 3.3 of the paper).
//!
//! An example is a vertex i with its candidate set S_i, the neighbours of higher confidence. Its rows are f_j - f_i for
//! j in S_i, its adjacency is that of the whole graph between members of S_i with rows that sum to one again, and
//! the output for j should be 1 when the labels of i and j agree, else 0 (Equation 7). The loss is the mean squared
//! error, as in the paper, or cross-entropy over two outputs, as in its published code. Candidate sets of different sizes are stacked: one tall product for all their rows, one block of a sparse
//! matrix for each.
//!
//! Cost of an epoch: 6 (number of weights) operations for each member of each candidate set used.

use super::augment::augment;
use super::batch::{Batch, Examples, Operators, Readout};
use super::division::{Division, divide};
use super::fit::{FitRun, FittedNetwork, fit};
use super::initial::{Shape, initial};
use super::loss::Loss;
use super::params::{FitParams, at_least_one, one_per_row, within};
use super::random::Random;
use super::sparse::{Operator, Sparse};
use crate::apply::Candidates;
use kinfolk::stages::Adjacency;
use kinfolk::{Embeddings, Error, KnnGraph, Progress, Result};

/// Parameters of [`train_gcn_e`].
#[derive(Debug, Clone, PartialEq)]
pub struct GcnEParams {
    /// Edges below this similarity are left out of the adjacency. Default 0.
    pub th_sim: f32,
    /// Share of the vertices, by descending confidence, whose candidate sets are learned from: those that the network
    /// will be applied to, and some more. Default 0.5.
    pub rho: f32,
    /// Which neighbours are candidates. Default: those of higher confidence.
    pub candidates: Candidates,
    /// What is made small. Default: squares.
    pub loss: Loss,
    /// Outputs of each convolution. Default 512, 512, 256, 256.
    pub convolutions: Vec<usize>,
    /// Outputs of the head's first layer. Default 256.
    pub hidden: usize,
    /// How the weights are fitted; an example is one candidate set. Default: 4 epochs of at most 20,000 sets.
    pub fit: FitParams,
}

impl Default for GcnEParams {
    fn default() -> Self {
        Self {
            th_sim: 0.0,
            rho: 0.5,
            candidates: Candidates::default(),
            loss: Loss::default(),
            convolutions: vec![512, 512, 256, 256],
            hidden: 256,
            fit: FitParams { epochs: 4, examples: 20_000, ..FitParams::default() },
        }
    }
}

impl GcnEParams {
    /// Refuses what cannot be.
    pub fn validate(&self) -> Result<()> {
        within("rho", self.rho, "above 0, at most 1", |v| v > 0.0 && v <= 1.0)?;
        at_least_one("layers", self.convolutions.len())?;
        for &width in self.convolutions.iter().chain([&self.hidden]) {
            at_least_one("width", width)?;
        }
        self.fit.validate()
    }
}

/// Trains GCN-E on labelled features.
///
/// `features` are the rows that `graph` was built from (F_L of GCN-V, normalised, or the embeddings themselves);
/// `confidence` is what GCN-V predicts for them.
pub fn train_gcn_e(
    features: &Embeddings,
    labels: &[i64],
    graph: &KnnGraph,
    confidence: &[f32],
    params: &GcnEParams,
    progress: &dyn Progress,
) -> Result<FittedNetwork> {
    let adjacency = Adjacency::from_knn(graph, params.th_sim)?;
    let run = FitRun { resumed: None, after_epoch: &mut |_| Ok(()), progress };
    fit_gcn_e(features, labels, graph, &adjacency, confidence, params, run)
}

/// The same, followed by the caller.
pub(super) fn fit_gcn_e(
    features: &Embeddings,
    labels: &[i64],
    graph: &KnnGraph,
    adjacency: &Adjacency,
    confidence: &[f32],
    params: &GcnEParams,
    run: FitRun,
) -> Result<FittedNetwork> {
    params.validate()?;
    one_per_row("labels", "labels", labels.len(), features)?;
    one_per_row("graph", "vertices", graph.len(), features)?;
    one_per_row("confidence", "confidences", confidence.len(), features)?;
    if let Some(row) = confidence.iter().position(|c| !c.is_finite()) {
        let (place, found) = ("confidence".to_owned(), confidence[row] as f64);
        return Err(Error::NotFinite { place, row, column: 0, found });
    }
    let mut sets = CandidateSets { features, labels, graph, confidence, adjacency, params };
    let division = sets.used(params.rho);
    if division.training.is_empty() {
        let expected = "vertices with neighbours of higher confidence".to_owned();
        return Err(Error::Format { place: "graph".to_owned(), expected, found: "none".to_owned() });
    }
    let shape = Shape {
        dim: features.dim(),
        convolutions: &params.convolutions,
        hidden: params.hidden,
        outputs: params.loss.outputs(),
    };
    fit(initial(&shape, params.fit.seed), &mut sets, &division, params.loss, &params.fit, run)
}

/// The candidate sets of a graph as examples.
struct CandidateSets<'a> {
    features: &'a Embeddings,
    labels: &'a [i64],
    graph: &'a KnnGraph,
    confidence: &'a [f32],
    adjacency: &'a Adjacency,
    params: &'a GcnEParams,
}

impl CandidateSets<'_> {
    fn candidates(&self, i: u32) -> impl Iterator<Item = (u32, f32)> {
        self.params.candidates.candidates(self.graph, self.confidence, i as usize)
    }

    /// The most confident vertices that have candidates, divided by identity.
    fn used(&self, rho: f32) -> Division {
        let n = self.graph.len();
        let mut order: Vec<u32> = (0..n as u32).collect();
        let rank = |&i: &u32| self.confidence[i as usize];
        order.sort_by(|a, b| rank(b).total_cmp(&rank(a)).then(a.cmp(b)));
        let mut used = vec![false; n];
        for &i in &order[..(n as f64 * rho as f64).ceil() as usize] {
            used[i as usize] = self.candidates(i).next().is_some();
        }
        let mut division = divide(self.labels, &self.params.fit);
        division.training.retain(|&i| used[i as usize]);
        division.validation.retain(|&i| used[i as usize]);
        division
    }
}

impl Examples for CandidateSets<'_> {
    fn batch(&self, examples: &[u32], random: &mut Random, augmented: bool) -> Batch {
        let dim = self.features.dim();
        let mut matrix = Sparse::with_capacity(0, 0);
        let mut rows: Vec<f32> = Vec::new();
        let mut targets = Vec::new();
        for &i in examples {
            let first = matrix.rows() as u32;
            let mut set: Vec<u32> = self.candidates(i).map(|(j, _)| j).collect();
            set.sort_unstable();
            for &j in &set {
                let own = self.features.row(j as usize);
                rows.extend(own.iter().zip(self.features.row(i as usize)).map(|(j, i)| j - i));
                targets.push((self.labels[j as usize] == self.labels[i as usize]) as u8 as f32);
                let (columns, values) = self.adjacency.row(j as usize);
                matrix.push_block_row(first, &set, columns, values);
            }
        }
        let mut joined = matrix.joined(&rows, dim);
        if augmented {
            augment(&mut joined, dim, &self.params.fit, random);
        }
        Batch { joined, operators: Operators::Same(Operator::new(matrix)), readout: Readout::All, targets }
    }
}
