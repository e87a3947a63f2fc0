//! GCN-V on a dynamic graph: the second convolution aggregates over the kNN graph of F_1.
//!
//! After DGCNN (Wang et al., 2019), where every layer has the graph of its own input. There the graph of a few
//! thousand points is rebuilt in every step. Here it is that of all training rows and is rebuilt from the weights at
//! the start of every epoch; steps within an epoch sample neighbours from it, as from the input graph. The graph is a
//! constant for the gradient. It is built like the input graph: K nearest by cosine, symmetric, row-normalised. When
//! the network is applied, it is built from F_1 of the rows it is applied to.
//!
//! Cost beyond GCN-V of two convolutions: F_1 and the neighbour search of all rows, once for each epoch and each
//! application.

use super::ablation::Ablation;
use super::ranked::{Part, Ranked};
use crate::measure::measure;
use kinfolk::stages::Adjacency;
use kinfolk::{KnnParams, knn_graph};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_nn::GraphNetwork;
use kinfolk_nn::stages::{rebuilt_features, vertex_confidence_on_graphs};
use kinfolk_nn::training::{GcnVParams, train_gcn_v_on_graphs};
use std::rc::Rc;

/// Fits GCN-V of two convolutions; also returns the time.
pub fn fit(ablation: &Ablation, params: &GcnVParams) -> Result<(GraphNetwork, f64), Failure> {
    let Part { features, labels, graph, .. } = &*ablation.fitted;
    let (k, width) = (graph.k(), params.convolutions[0]);
    let mut graph_of = |f_1: Vec<f32>| neighbours_of(f_1, width, k);
    let bars = Bars::default();
    let (trained, cost) =
        measure(|| train_gcn_v_on_graphs(features, labels, graph, params, &mut graph_of, &bars));
    Ok((trained?.network, cost.seconds))
}

/// Confidences by such a network, with candidates from the input graph.
pub fn rank(gcn_v: &GraphNetwork, part: &Rc<Part>) -> Result<Ranked, Failure> {
    let Part { features, graph, adjacency, .. } = &**part;
    let (k, width) = (graph.k(), gcn_v.convolutions[0].outputs);
    let mut graph_of = |f_1: Vec<f32>| neighbours_of(f_1, width, k);
    let estimate = vertex_confidence_on_graphs(gcn_v, features, adjacency, &mut graph_of, &Bars::default())?;
    Ok(Ranked { part: part.clone(), confidence: estimate.confidence })
}

fn neighbours_of(f_1: Vec<f32>, width: usize, k: usize) -> kinfolk::Result<Adjacency> {
    let rows = rebuilt_features(f_1, width)?;
    let (graph, _) = knn_graph(&rows, &KnnParams { k, ..KnnParams::default() }, &())?;
    Adjacency::from_knn(&graph, 0.0)
}
