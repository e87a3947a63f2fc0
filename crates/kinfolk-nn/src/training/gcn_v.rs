//! Training of the confidence estimator, GCN-V (Section 3.2 of the paper).
//!
//! Targets come from the labels (Equation 1 by default), the loss is the mean squared error. With one convolution,
//! as published, A~ X is a constant: it is computed once, and training is that of a plain perceptron on mini-batches
//! of [X, A~ X]. When A~ X does not fit the memory budget, that of the rows of a batch is computed for each batch.
//!
//! With L > 1 convolutions a row needs its neighbours' rows of the layer before, those need their neighbours' and so on:
//! the first product with A~ is still the constant one, for the L - 1 others neighbours or vertices are sampled
//! (`sampling.rs`).
//!
//! The second of two convolutions may aggregate over another graph than the first, which is made from F_1 at the start of
//! every epoch ([`train_gcn_v_on_graphs`]).
//!
//! Memory: 4 N D bytes for A~ X within the budget, besides the features and the graph.

use super::augment::augment;
use super::batch::{Batch, Examples, Operators, Readout};
use super::division::divide;
use super::fit::{FitRun, FittedNetwork, fit};
use super::initial::{Shape, initial};
use super::loss::Loss;
use super::params::{FitParams, at_least_one, one_per_row};
use super::random::Random;
use super::sampling::{Sampler, Sampling};
use crate::GraphNetwork;
use crate::apply::{GraphOf, first_convolution};
use kinfolk::stages::{Adjacency, s_avg, s_center, s_nbr};
use kinfolk::{Embeddings, Error, KnnGraph, Progress, Quiet, Result};
use std::borrow::Cow;

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
    /// What a batch aggregates over in each convolution after the first. Default: ten neighbours of each row.
    pub sampling: Sampling,
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
            sampling: Sampling::default(),
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
        self.sampling.validate()?;
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

/// Trains GCN-V of two convolutions, the second of which aggregates over a graph of its own: `graph_of` makes it from F_1, at
/// the start of every epoch. [`crate::stages::vertex_confidence_on_graphs`] applies such a network.
pub fn train_gcn_v_on_graphs(
    embeddings: &Embeddings,
    labels: &[i64],
    graph: &KnnGraph,
    params: &GcnVParams,
    graph_of: &mut GraphOf,
    progress: &dyn Progress,
) -> Result<FittedNetwork> {
    if params.convolutions.len() != 2 {
        let found = params.convolutions.len().to_string();
        return Err(Error::Parameter { field: "layers", expected: "2, one for each graph", found });
    }
    let adjacency = Adjacency::from_knn(graph, params.th_sim)?;
    let run = FitRun { resumed: None, after_epoch: &mut |_| Ok(()), progress };
    fit_on(embeddings, labels, graph, &adjacency, params, Some(graph_of), run)
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
    fit_on(embeddings, labels, graph, adjacency, params, None, run)
}

fn fit_on(
    embeddings: &Embeddings,
    labels: &[i64],
    graph: &KnnGraph,
    adjacency: &Adjacency,
    params: &GcnVParams,
    graph_of: Option<&mut GraphOf>,
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
    let deep = params.convolutions.len() > 1;
    let sampler = deep.then(|| Sampler::new(params.sampling, adjacency));
    let later = Cow::Borrowed(adjacency);
    let mut vertices = Vertices { embeddings, adjacency, means, targets, params, sampler, later, graph_of };
    let division = divide(labels, &params.fit);
    let shape = Shape { dim, convolutions: &params.convolutions, hidden: params.hidden, outputs: 1 };
    fit(initial(&shape, params.fit.seed), &mut vertices, &division, Loss::Squares, &params.fit, run)
}

/// The vertices of a graph as examples.
struct Vertices<'a, 'g> {
    embeddings: &'a Embeddings,
    adjacency: &'a Adjacency,
    /// A~ X, if it fits.
    means: Option<Vec<f32>>,
    targets: Vec<f32>,
    params: &'a GcnVParams,
    /// What the convolutions after the first see of `later`; `None` if there are none.
    sampler: Option<Sampler>,
    /// The graph of the convolutions after the first.
    later: Cow<'a, Adjacency>,
    /// Makes `later` anew, if it is not the graph of the first.
    graph_of: Option<&'a mut GraphOf<'g>>,
}

impl Vertices<'_, '_> {
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
}

impl Examples for Vertices<'_, '_> {
    fn begin_epoch(&mut self, weights: &GraphNetwork, progress: &dyn Progress) -> Result<()> {
        if let Some(graph_of) = &mut self.graph_of {
            let f_1 = first_convolution(weights, self.embeddings, self.adjacency, &Quiet(progress))?;
            let later = graph_of(f_1)?;
            one_per_row("graph of F_1", "vertices", later.len(), self.embeddings)?;
            self.sampler = Some(Sampler::new(self.params.sampling, &later));
            self.later = Cow::Owned(later);
        }
        Ok(())
    }

    fn batch(&self, examples: &[u32], random: &mut Random, augmented: bool) -> Batch {
        let targets = examples.iter().map(|&i| self.targets[i as usize]).collect();
        let (mut joined, operators, readout) = match &self.sampler {
            None => (self.joined(examples), Operators::None, Readout::All),
            Some(sampler) => {
                let convolutions = self.params.convolutions.len();
                let (rows, operators) = sampler.draw(&self.later, convolutions, examples, random);
                (self.joined(&rows), operators, Readout::Rows((0..examples.len() as u32).collect()))
            }
        };
        if augmented {
            augment(&mut joined, self.embeddings.dim(), &self.params.fit, random);
        }
        Batch { joined, operators, readout, targets }
    }
}
