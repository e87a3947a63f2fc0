//! Training of the confidence estimator, GCN-V (Section 3.2 of the paper).
//!
//! Targets come from the labels (Equation 1 by default), the loss is the mean squared error. With one convolution,
//! as published, A~ X is a constant: it is computed once, and training is that of a plain perceptron on mini-batches
//! of [X, A~ X]. When A~ X does not fit the memory budget, that of the rows of a batch is computed for each batch.
//!
//! With L > 1 convolutions a row needs its neighbours' rows of the layer before, those need their neighbours' and so on:
//! the first product with A~ is still the constant one, for the L - 1 others neighbours are sampled, as in GraphSAGE
//! (Hamilton et al., 2017; Section 3.2 of the paper points to it). A row aggregates over itself and S of its neighbours,
//! drawn anew for each batch, their weights scaled to sum to one.
//!
//! Memory: 4 N D bytes for A~ X within the budget, besides the features and the graph.

use super::augment::augment;
use super::batch::{Batch, Examples, Readout};
use super::division::divide;
use super::fit::{FitRun, FittedNetwork, fit};
use super::initial::{Shape, initial};
use super::loss::Loss;
use super::params::{FitParams, at_least_one, one_per_row};
use super::random::Random;
use super::sparse::{Operator, Sparse};
use kinfolk::stages::{Adjacency, s_avg, s_center, s_nbr};
use kinfolk::{Embeddings, KnnGraph, Progress, Result};
use std::collections::HashMap;

/// The confidence that GCN-V is taught.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Target {
    /// [`kinfolk::stages::s_nbr`], Equation 1.
    #[default]
    Neighbours,
    /// [`kinfolk::stages::s_avg`].
    Average,
    /// [`kinfolk::stages::s_center`].
    Centre,
}

kinfolk::word_values!(Target: "s-nbr, s-avg or s-center",
    "s-nbr" => Target::Neighbours, "s-avg" => Target::Average, "s-center" => Target::Centre);

/// Parameters of [`train_gcn_v`].
#[derive(Debug, Clone, PartialEq)]
pub struct GcnVParams {
    /// Edges below this similarity are left out of the adjacency. Default 0.
    pub th_sim: f32,
    /// What is taught. Default s_nbr.
    pub target: Target,
    /// Outputs of each convolution. Default 512, once.
    pub convolutions: Vec<usize>,
    /// Outputs of the head's first layer. Default 512.
    pub hidden: usize,
    /// Neighbours that a row aggregates over in each convolution after the first. Default 10.
    pub sampled: usize,
    /// Bytes that may be spent on keeping A~ X. Default 4 GiB.
    pub memory: usize,
    /// How the weights are fitted.
    pub fit: FitParams,
}

impl Default for GcnVParams {
    fn default() -> Self {
        Self {
            th_sim: 0.0,
            target: Target::default(),
            convolutions: vec![512],
            hidden: 512,
            sampled: 10,
            memory: 4 << 30,
            fit: FitParams::default(),
        }
    }
}

impl GcnVParams {
    /// Refuses what cannot be.
    pub fn validate(&self) -> Result<()> {
        at_least_one("layers", self.convolutions.len())?;
        for &width in self.convolutions.iter().chain([&self.hidden]) {
            at_least_one("width", width)?;
        }
        at_least_one("sampled", self.sampled)?;
        self.fit.validate()
    }
}

/// Trains GCN-V on labelled embeddings and their graph.
pub fn train_gcn_v(
    embeddings: &Embeddings,
    labels: &[i64],
    graph: &KnnGraph,
    params: &GcnVParams,
    progress: &dyn Progress,
) -> Result<FittedNetwork> {
    let adjacency = Adjacency::from_knn(graph, params.th_sim)?;
    let run = FitRun { resumed: None, after_epoch: &mut |_| Ok(()), progress };
    fit_gcn_v(embeddings, labels, graph, &adjacency, params, run)
}

/// The same, followed by the caller.
pub(super) fn fit_gcn_v(
    embeddings: &Embeddings,
    labels: &[i64],
    graph: &KnnGraph,
    adjacency: &Adjacency,
    params: &GcnVParams,
    run: FitRun,
) -> Result<FittedNetwork> {
    params.validate()?;
    one_per_row("labels", "labels", labels.len(), embeddings)?;
    one_per_row("graph", "vertices", graph.len(), embeddings)?;
    let targets = match params.target {
        Target::Neighbours => s_nbr(graph, labels)?,
        Target::Average => s_avg(embeddings, labels)?,
        Target::Centre => s_center(embeddings, labels)?,
    };
    let dim = embeddings.dim();
    let rows = embeddings.as_slice();
    let means = (size_of_val(rows) <= params.memory).then(|| {
        let mut means = vec![0.0; rows.len()];
        adjacency.aggregate(rows, dim, &mut means);
        means
    });
    let vertices = Vertices { embeddings, adjacency, means, targets, params };
    let division = divide(labels, &params.fit);
    let shape = Shape { dim, convolutions: &params.convolutions, hidden: params.hidden, outputs: 1 };
    fit(initial(&shape, params.fit.seed), &vertices, &division, Loss::Squares, &params.fit, run)
}

/// The vertices of a graph as examples.
struct Vertices<'a> {
    embeddings: &'a Embeddings,
    adjacency: &'a Adjacency,
    /// A~ X, if it fits.
    means: Option<Vec<f32>>,
    targets: Vec<f32>,
    params: &'a GcnVParams,
}

impl Vertices<'_> {
    /// [X, A~ X] of some rows.
    fn joined(&self, rows: &[u32]) -> Vec<f32> {
        let dim = self.embeddings.dim();
        let mut computed = Vec::new();
        if self.means.is_none() {
            computed.resize(rows.len() * dim, 0.0);
            self.adjacency.aggregate_rows(rows, self.embeddings.as_slice(), dim, &mut computed);
        }
        let mut joined = Vec::with_capacity(2 * rows.len() * dim);
        for (at, &i) in rows.iter().enumerate() {
            joined.extend_from_slice(self.embeddings.row(i as usize));
            joined.extend_from_slice(match &self.means {
                Some(means) => &means[i as usize * dim..][..dim],
                None => &computed[at * dim..][..dim],
            });
        }
        joined
    }

    /// `examples` and all that their outputs depend on beyond the first convolution, and the sampled adjacency.
    fn sampled(&self, examples: &[u32], random: &mut Random) -> (Vec<u32>, Operator) {
        let mut rows = examples.to_vec();
        let mut place: HashMap<u32, u32> = (0..).zip(examples).map(|(at, &i)| (i, at)).collect();
        let mut matrix = Sparse::with_capacity(rows.len(), 0);
        let mut entries: Vec<(u32, f32)> = Vec::new();
        // Each round takes in the neighbours of the rows that the round before took in.
        for _ in 1..self.params.convolutions.len() {
            for at in matrix.rows()..rows.len() {
                let own = rows[at];
                let (columns, values) = self.adjacency.row(own as usize);
                entries.clear();
                entries.extend(columns.iter().copied().zip(values.iter().copied()));
                // Itself first, then the others shuffled as far as they are wanted.
                if let Some(itself) = entries.iter().position(|&(j, _)| j == own) {
                    entries.swap(0, itself);
                }
                let wanted = (self.params.sampled + 1).min(entries.len());
                for slot in 1..wanted {
                    let other = slot + random.below(entries.len() - slot);
                    entries.swap(slot, other);
                }
                for &(j, value) in &entries[..wanted] {
                    let next = rows.len() as u32;
                    let column = *place.entry(j).or_insert(next);
                    if column == next {
                        rows.push(j);
                    }
                    matrix.columns.push(column);
                    matrix.values.push(value);
                }
                matrix.end_row();
            }
        }
        // What the last layer's outputs do not depend on still needs a row of the matrix.
        for at in matrix.rows()..rows.len() {
            matrix.columns.push(at as u32);
            matrix.values.push(1.0);
            matrix.end_row();
        }
        (rows, Operator::new(matrix))
    }
}

impl Examples for Vertices<'_> {
    fn batch(&self, examples: &[u32], random: &mut Random, augmented: bool) -> Batch {
        let targets = examples.iter().map(|&i| self.targets[i as usize]).collect();
        let (mut joined, operator, readout) = match self.params.convolutions.len() {
            1 => (self.joined(examples), None, Readout::All),
            _ => {
                let (rows, operator) = self.sampled(examples, random);
                (self.joined(&rows), Some(operator), Readout::Rows((0..examples.len() as u32).collect()))
            }
        };
        if augmented {
            augment(&mut joined, self.embeddings.dim(), &self.params.fit, random);
        }
        Batch { joined, operator, readout, targets }
    }
}
