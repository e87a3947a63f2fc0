//! GCN-V: the confidence of every vertex, from the features of its neighbourhood (Section 3.2).
//!
//! F_{l+1} = relu([F_l, A~ F_l] W_l + b_l), F_0 the embeddings; confidence = head(F_L).
//!
//! Rows are taken in blocks of [`BLOCK`], in an order in which neighbours are near one another: each task gathers
//! its rows of [F, A~F], multiplies, and hands the rows of the result back. Besides the features and the graph, memory is
//! [`WAVE`] blocks; what becomes of F_L is up to the caller. With more than one layer there are two F at a time.
//!
//! Cost, with D columns and H outputs: 4 N D H operations for a layer, 2 N H (H + 1) for the head, and the
//! product with the adjacency.

use super::dense::{Dense, Head, relu};
use crate::GraphNetwork;
use kinfolk::stages::Adjacency;
use kinfolk::{Embeddings, Error, Progress, Result};
use rayon::prelude::*;

/// Rows of one product: enough to use a core well, few enough to stay in its cache.
const BLOCK: usize = 256;

/// Blocks that are computed before their results are copied to their places.
const WAVE: usize = 64;

/// The estimates of GCN-V.
#[derive(Debug, Clone, PartialEq)]
pub struct VertexEstimate {
    /// The confidence of each vertex.
    pub confidence: Vec<f32>,
    /// F_L, the last graph convolution's output, row-major, not normalised; empty unless requested.
    pub embeddings: Vec<f32>,
}

/// Makes the graph of a convolution from the outputs of the one before, row-major, not normalised.
pub type GraphOf<'a> = dyn FnMut(Vec<f32>) -> Result<Adjacency> + 'a;

/// Takes a row of the output of a convolution and its number.
pub type RowOf<'a> = dyn FnMut(usize, &[f32]) -> Result<()> + 'a;

/// Applies GCN-V to all vertices; keeps F_L if `keep_embeddings`.
pub fn vertex_confidence(
    network: &GraphNetwork,
    features: &Embeddings,
    adjacency: &Adjacency,
    keep_embeddings: bool,
    progress: &dyn Progress,
) -> Result<VertexEstimate> {
    let width = network.width();
    let mut embeddings = vec![0.0; if keep_embeddings { adjacency.len() * width } else { 0 }];
    let mut copy = |i: usize, row: &[f32]| {
        embeddings[i * width..][..width].copy_from_slice(row);
        Ok(())
    };
    let keep: Option<&mut RowOf> = if keep_embeddings { Some(&mut copy) } else { None };
    let confidence = estimate(network, features, adjacency, None, keep, progress)?;
    Ok(VertexEstimate { confidence, embeddings })
}

/// Applies GCN-V to all vertices and hands every row of F_L over as it is computed, in an order of its own.
pub fn vertex_confidence_and_rows(
    network: &GraphNetwork,
    features: &Embeddings,
    adjacency: &Adjacency,
    keep: &mut RowOf,
    progress: &dyn Progress,
) -> Result<Vec<f32>> {
    estimate(network, features, adjacency, None, Some(keep), progress)
}

/// Applies GCN-V whose convolutions after the first aggregate over graphs of their own, which `graph_of` makes.
pub fn vertex_confidence_on_graphs(
    network: &GraphNetwork,
    features: &Embeddings,
    adjacency: &Adjacency,
    graph_of: &mut GraphOf,
    progress: &dyn Progress,
) -> Result<VertexEstimate> {
    let confidence = estimate(network, features, adjacency, Some(graph_of), None, progress)?;
    Ok(VertexEstimate { confidence, embeddings: Vec::new() })
}

fn estimate(
    network: &GraphNetwork,
    features: &Embeddings,
    adjacency: &Adjacency,
    mut graph_of: Option<&mut GraphOf>,
    mut keep: Option<&mut RowOf>,
    progress: &dyn Progress,
) -> Result<Vec<f32>> {
    check(network, features, adjacency)?;
    let layers = network.convolutions.len();
    progress.begin("confidence", (adjacency.len() * layers) as u64);
    let head = Head::new(network);
    let mut input: Vec<f32> = Vec::new();
    let mut confidence = Vec::new();
    for (l, layer) in network.convolutions.iter().enumerate() {
        let last = l + 1 == layers;
        let own = match &mut graph_of {
            Some(graph_of) if l > 0 => Some(graph_of(input.clone())?),
            _ => None,
        };
        let adjacency = own.as_ref().unwrap_or(adjacency);
        let head = last.then_some(&head);
        let convolution = Convolution { dense: Dense::new(layer), dim: layer.inputs / 2, adjacency, head };
        let x = if l == 0 { features.as_slice() } else { &input };
        if last {
            confidence = convolution.apply_to_all(x, keep.take(), progress)?;
        } else {
            input = convolution.outputs(x, progress)?;
        }
    }
    if let Some(row) = confidence.iter().position(|c| !c.is_finite()) {
        let found = confidence[row].into();
        return Err(Error::NotFinite { place: "confidence by GCN-V".to_owned(), row, column: 0, found });
    }
    Ok(confidence)
}

/// F_1 of all vertices.
#[cfg(feature = "training")]
pub(crate) fn first_convolution(
    network: &GraphNetwork,
    features: &Embeddings,
    adjacency: &Adjacency,
    progress: &dyn Progress,
) -> Result<Vec<f32>> {
    check(network, features, adjacency)?;
    let layer = &network.convolutions[0];
    let dense = Dense::new(layer);
    let convolution = Convolution { dense, dim: layer.inputs / 2, adjacency, head: None };
    convolution.outputs(features.as_slice(), progress)
}

fn check(network: &GraphNetwork, features: &Embeddings, adjacency: &Adjacency) -> Result<()> {
    let length = |what: &str, expected, found| match expected == found {
        true => Ok(()),
        false => Err(Error::Length { place: "GCN-V".to_owned(), what: what.to_owned(), expected, found }),
    };
    length("columns of features", network.inputs(), features.dim())?;
    length("vertices (one per embedding)", features.len(), adjacency.len())?;
    length("outputs (the confidence)", 1, network.output.outputs)
}

/// The result of one block.
#[derive(Default)]
struct Block {
    /// Only if requested.
    output: Vec<f32>,
    /// Only of the last layer.
    confidence: Vec<f32>,
}

/// Buffers that a thread reuses.
#[derive(Default)]
struct Scratch {
    aggregated: Vec<f32>,
    /// [F, A~F], row after row.
    joined: Vec<f32>,
    output: Vec<f32>,
    hidden: Vec<f32>,
}

/// One layer as it is applied to a block.
struct Convolution<'a> {
    dense: Dense<'a>,
    /// Columns of its input.
    dim: usize,
    adjacency: &'a Adjacency,
    /// What follows the last one.
    head: Option<&'a Head<'a>>,
}

impl Convolution<'_> {
    /// All outputs.
    fn outputs(&self, x: &[f32], progress: &dyn Progress) -> Result<Vec<f32>> {
        let outputs = self.dense.outputs();
        let mut all = vec![0.0; self.adjacency.len() * outputs];
        let mut copy = |i: usize, row: &[f32]| {
            all[i * outputs..][..outputs].copy_from_slice(row);
            Ok(())
        };
        self.apply_to_all(x, Some(&mut copy), progress)?;
        Ok(all)
    }

    /// The confidences, if the head follows; hands every row of the output over if it is wanted.
    fn apply_to_all(
        &self,
        x: &[f32],
        mut keep: Option<&mut RowOf>,
        progress: &dyn Progress,
    ) -> Result<Vec<f32>> {
        let (n, outputs) = (self.adjacency.len(), self.dense.outputs());
        let mut confidence = vec![0.0; if self.head.is_some() { n } else { 0 }];
        for wave in self.adjacency.visiting_order().chunks(BLOCK * WAVE) {
            let kept = keep.is_some();
            let blocks: Vec<Block> = wave
                .par_chunks(BLOCK)
                .map_init(Scratch::default, |scratch, rows| {
                    if progress.cancelled() {
                        return Block::default();
                    }
                    let block = self.apply(x, rows, kept, scratch);
                    progress.advance(rows.len() as u64);
                    block
                })
                .collect();
            progress.check()?;
            for (rows, block) in wave.chunks(BLOCK).zip(&blocks) {
                for (&i, &c) in rows.iter().zip(&block.confidence) {
                    confidence[i as usize] = c;
                }
                if let Some(keep) = &mut keep {
                    for (&i, row) in rows.iter().zip(block.output.chunks_exact(outputs)) {
                        keep(i as usize, row)?;
                    }
                }
            }
        }
        Ok(confidence)
    }

    fn apply(&self, x: &[f32], rows: &[u32], keep: bool, scratch: &mut Scratch) -> Block {
        let dim = self.dim;
        scratch.aggregated.resize(rows.len() * dim, 0.0);
        self.adjacency.aggregate_rows(rows, x, dim, &mut scratch.aggregated);
        scratch.joined.clear();
        for (&i, aggregated) in rows.iter().zip(scratch.aggregated.chunks_exact(dim)) {
            scratch.joined.extend_from_slice(&x[i as usize * dim..][..dim]);
            scratch.joined.extend_from_slice(aggregated);
        }
        self.dense.apply(&scratch.joined, &mut scratch.output);
        relu(&mut scratch.output);
        let mut confidence = Vec::new();
        if let Some(head) = self.head {
            head.apply(&scratch.output, &mut scratch.hidden, &mut confidence);
        }
        Block { output: if keep { scratch.output.clone() } else { Vec::new() }, confidence }
    }
}
