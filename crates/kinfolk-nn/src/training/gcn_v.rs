//! Training of the confidence estimator, GCN-V (Section 3.2 of the paper).
//!
//! Targets come from the labels (Equation 1 by default), the loss is the mean squared error. With one convolution,
//! as published, [X, A~ X] is a constant: it is computed once, and training is that of a plain perceptron on
//! mini-batches of its rows. With more, every step runs the whole graph.
//!
//! Memory: 8 N D bytes for [X, A~ X], besides the graph.

use super::disturb::disturb;
use super::division::divide;
use super::fit::{Batch, Examples, Trained, fit};
use super::network::{Shape, initial};
use super::params::{FitParams, at_least_one, one_per_row};
use super::random::Random;
use super::sparse::Operator;
use kinfolk::{
    Adjacency, Embeddings, KnnGraph, KnnParams, Progress, Result, knn_graph, s_avg, s_center, s_nbr,
};

/// The confidence that GCN-V is taught.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Target {
    /// [`kinfolk::s_nbr`], Equation 1.
    #[default]
    Neighbours,
    /// [`kinfolk::s_avg`].
    Average,
    /// [`kinfolk::s_center`].
    Centre,
}

/// Parameters of [`train_gcn_v`].
#[derive(Debug, Clone, PartialEq)]
pub struct GcnVParams {
    /// The graph that is trained on. Default: K = 80.
    pub knn: KnnParams,
    /// Edges below this similarity are left out of the adjacency. Default 0.
    pub th_sim: f32,
    /// What is taught. Default s_nbr.
    pub target: Target,
    /// Outputs of each convolution. Default 512, once.
    pub convolutions: Vec<usize>,
    /// Outputs of the head's first layer. Default 512.
    pub hidden: usize,
    /// How the weights are fitted.
    pub fit: FitParams,
}

impl Default for GcnVParams {
    fn default() -> Self {
        Self {
            knn: KnnParams::default(),
            th_sim: 0.0,
            target: Target::default(),
            convolutions: vec![512],
            hidden: 512,
            fit: FitParams::default(),
        }
    }
}

impl GcnVParams {
    /// Refuses what cannot be.
    pub fn validate(&self) -> Result<()> {
        at_least_one("--layers", self.convolutions.len())?;
        for &width in self.convolutions.iter().chain([&self.hidden]) {
            at_least_one("--width", width)?;
        }
        self.fit.validate()
    }
}

/// Trains GCN-V on labelled embeddings.
///
/// `graph` is searched for when it is not given; `params.knn` is for that.
pub fn train_gcn_v(
    embeddings: &Embeddings,
    labels: &[i64],
    graph: Option<&KnnGraph>,
    params: &GcnVParams,
    progress: &dyn Progress,
) -> Result<Trained> {
    params.validate()?;
    one_per_row("labels", "labels", labels.len(), embeddings)?;
    let found;
    let graph = match graph {
        Some(graph) => {
            one_per_row("graph", "vertices", graph.len(), embeddings)?;
            graph
        }
        None => {
            found = knn_graph(embeddings, &params.knn, progress)?.0;
            &found
        }
    };
    let targets = match params.target {
        Target::Neighbours => s_nbr(graph, labels)?,
        Target::Average => s_avg(embeddings, labels)?,
        Target::Centre => s_center(embeddings, labels)?,
    };
    let adjacency = Adjacency::from_knn(graph, params.th_sim)?;
    let dim = embeddings.dim();
    let mut fitting = params.fit.clone();
    let operator = (params.convolutions.len() > 1).then(|| Operator::of(&adjacency));
    if operator.is_some() {
        fitting.batch = embeddings.len();
    }
    let vertices =
        Vertices { joined: join(embeddings, &adjacency), dim, targets, operator, params: &params.fit };
    let division = divide(labels, &params.fit);
    let shape = Shape { dim, convolutions: &params.convolutions, hidden: params.hidden };
    fit(&initial(&shape, params.fit.seed), &vertices, &division, &fitting, progress)
}

/// [X, A~ X].
fn join(embeddings: &Embeddings, adjacency: &Adjacency) -> Vec<f32> {
    let (rows, dim) = (embeddings.as_slice(), embeddings.dim());
    let mut means = vec![0.0; rows.len()];
    adjacency.aggregate(rows, dim, &mut means);
    let pairs = rows.chunks_exact(dim).zip(means.chunks_exact(dim));
    pairs.flat_map(|(own, mean)| own.iter().chain(mean).copied()).collect()
}

/// The vertices of a graph as examples.
struct Vertices<'a> {
    joined: Vec<f32>,
    dim: usize,
    targets: Vec<f32>,
    /// Only for more than one convolution; then a batch is the whole graph.
    operator: Option<Operator>,
    params: &'a FitParams,
}

impl Examples for Vertices<'_> {
    fn batch(&self, examples: &[u32], noise: Option<&mut Random>) -> Batch {
        let columns = self.columns();
        let mut joined = match self.operator {
            Some(_) => self.joined.clone(),
            None => {
                let row = |&i: &u32| &self.joined[i as usize * columns..][..columns];
                examples.iter().flat_map(row).copied().collect()
            }
        };
        if let Some(random) = noise {
            disturb(&mut joined, self.dim, self.params, random);
        }
        Batch {
            joined,
            operator: self.operator.clone(),
            counted: self.operator.as_ref().map(|_| examples.to_vec()),
            targets: examples.iter().map(|&i| self.targets[i as usize]).collect(),
        }
    }

    fn columns(&self) -> usize {
        2 * self.dim
    }
}
