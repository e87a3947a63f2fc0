//! GCN-V: the confidence of every vertex, from the features of its neighbourhood (Section 3.2).
//!
//! F_{l+1} = relu([F_l, A~ F_l] W_l + b_l), F_0 the embeddings; confidence = head(F_L).
//!
//! Rows are taken in blocks of [`BLOCK`], in an order in which neighbours are near one another: each task gathers
//! its rows of [F, A~F], multiplies, and hands the rows of the result back. Besides the features, the graph and F_L
//! (which is stored only on request), memory is [`WAVE`] blocks. With more than one layer there are two F at a time.
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

/// Applies GCN-V to all vertices; keeps F_L if `keep_embeddings`.
pub fn vertex_confidence(
    network: &GraphNetwork,
    features: &Embeddings,
    adjacency: &Adjacency,
    keep_embeddings: bool,
    progress: &dyn Progress,
) -> Result<VertexEstimate> {
    estimate(network, features, adjacency, None, keep_embeddings, progress)
}

/// Applies GCN-V whose convolutions after the first aggregate over graphs of their own, which `graph_of` makes.
pub fn vertex_confidence_on_graphs(
    network: &GraphNetwork,
    features: &Embeddings,
    adjacency: &Adjacency,
    graph_of: &mut GraphOf,
    progress: &dyn Progress,
) -> Result<VertexEstimate> {
    estimate(network, features, adjacency, Some(graph_of), false, progress)
}

fn estimate(
    network: &GraphNetwork,
    features: &Embeddings,
    adjacency: &Adjacency,
    mut graph_of: Option<&mut GraphOf>,
    keep_embeddings: bool,
    progress: &dyn Progress,
) -> Result<VertexEstimate> {
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
        let keep = !last || keep_embeddings;
        let convolution = Convolution {
            dense: Dense::new(layer),
            dim: layer.inputs / 2,
            adjacency,
            head: last.then_some(&head),
            keep,
        };
        let x = if l == 0 { features.as_slice() } else { &input };
        (input, confidence) = convolution.apply_to_all(x, progress)?;
    }
    if let Some(row) = confidence.iter().position(|c| !c.is_finite()) {
        let found = confidence[row].into();
        return Err(Error::NotFinite { place: "confidence by GCN-V".to_owned(), row, column: 0, found });
    }
    Ok(VertexEstimate { confidence, embeddings: input })
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
    let convolution = Convolution { dense, dim: layer.inputs / 2, adjacency, head: None, keep: true };
    Ok(convolution.apply_to_all(features.as_slice(), progress)?.0)
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
    /// Whether the output itself is wanted.
    keep: bool,
}

impl Convolution<'_> {
    /// The output, if it is wanted, and the confidences, if the head follows.
    fn apply_to_all(&self, x: &[f32], progress: &dyn Progress) -> Result<(Vec<f32>, Vec<f32>)> {
        let (n, outputs) = (self.adjacency.len(), self.dense.outputs());
        let mut output = vec![0.0; if self.keep { n * outputs } else { 0 }];
        let mut confidence = vec![0.0; if self.head.is_some() { n } else { 0 }];
        for wave in self.adjacency.visiting_order().chunks(BLOCK * WAVE) {
            let blocks: Vec<Block> = wave
                .par_chunks(BLOCK)
                .map_init(Scratch::default, |scratch, rows| {
                    if progress.cancelled() {
                        return Block::default();
                    }
                    let block = self.apply(x, rows, scratch);
                    progress.advance(rows.len() as u64);
                    block
                })
                .collect();
            progress.check()?;
            for (rows, block) in wave.chunks(BLOCK).zip(&blocks) {
                for (&i, &c) in rows.iter().zip(&block.confidence) {
                    confidence[i as usize] = c;
                }
                if self.keep {
                    for (&i, row) in rows.iter().zip(block.output.chunks_exact(outputs)) {
                        output[i as usize * outputs..][..outputs].copy_from_slice(row);
                    }
                }
            }
        }
        Ok((output, confidence))
    }

    fn apply(&self, x: &[f32], rows: &[u32], scratch: &mut Scratch) -> Block {
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
        Block { output: if self.keep { scratch.output.clone() } else { Vec::new() }, confidence }
    }
}
