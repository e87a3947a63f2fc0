//! Applies a network to many small graphs at once, for GCN-E, L-GCN and the two networks of LTC.
//!
//! Rows of a small graph are X_j = f_j - f_i, relative to its origin i, a vertex or the mean of its rows; rows of its adjacency
//! A^ sum to one. Three ideas reduce the cost:
//!
//! - [X, A^X] W = X W_1 + A^ (X W_2): one product with [W_1 W_2], and the aggregation runs over as few columns
//!   as the layer has outputs.
//! - In the first layer X W_1 = f_j W_1 - f_i W_1, and, since rows of A^ sum to one, A^ (X W_2) = A^ (f W_2) -
//!   f_i W_2: f W_1 and f W_2 are computed once for each vertex and not for each row of each graph.
//! - The rows of many graphs are stacked for one tall product, and aggregated each within its own: as a product of dense
//!   matrices where most of the rows of a graph are neighbours of each other, as candidates of one vertex are.
//!
//! Cost: 4 D H operations for each vertex, H outputs of the first layer, and 4 H_l H_l+1 for each row of each graph and
//! each further layer. Memory: 8 H bytes for each vertex.

use super::dense::{Head, relu};
use crate::product::{Matrix, Right, dense_pays, multiply};
use crate::{GraphNetwork, Linear};
use kinfolk::laboratory::weighted_sum;
use rayon::prelude::*;
use std::ops::Range;

/// Rows at which a stack is full.
pub(crate) const BATCH: usize = 256;

/// Stands for no vertex.
pub(crate) const NONE: u32 = u32::MAX;

/// The origin of a graph, which is subtracted from its rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Centre {
    Vertex(u32),
    /// The mean of the graph's own rows.
    Mean,
}

/// Several small graphs, one after the other, with one block-diagonal matrix of compressed sparse rows.
#[derive(Debug, Default)]
pub(crate) struct SubGraphs {
    /// Where the rows of each graph end.
    ends: Vec<usize>,
    /// The origin of each graph.
    centres: Vec<Centre>,
    /// The vertex of each row.
    pub(crate) vertices: Vec<u32>,
    /// Where the entries of each row end.
    pub(crate) offsets: Vec<usize>,
    /// Rows of the stack.
    pub(crate) columns: Vec<u32>,
    /// Of each row they sum to one.
    pub(crate) values: Vec<f32>,
    /// The last column of X, where the network has one more than the features.
    pub(crate) extra: Vec<f32>,
}

impl SubGraphs {
    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.centres.clear();
        self.vertices.clear();
        self.offsets.clear();
        self.columns.clear();
        self.values.clear();
        self.extra.clear();
    }

    pub(crate) fn rows(&self) -> usize {
        self.vertices.len()
    }

    /// The rows of each graph.
    pub(crate) fn graphs(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| start..end)
    }

    /// Adds a row of those of `entries` whose column is not [`NONE`], divided by their sum.
    pub(crate) fn push_row(&mut self, entries: impl ExactSizeIterator<Item = (u32, f32)>) {
        let mut end = self.columns.len();
        // Every entry is written, and one that is not wanted is overwritten by the next: no branch predictor could guess which.
        self.columns.resize(end + entries.len(), 0);
        self.values.resize(end + entries.len(), 0.0);
        for (column, value) in entries {
            (self.columns[end], self.values[end]) = (column, value);
            end += usize::from(column != NONE);
        }
        self.columns.truncate(end);
        self.values.truncate(end);
        self.end_row();
    }

    /// Ends a row with the entries since the last, which are divided by their sum.
    pub(crate) fn end_row(&mut self) {
        let begin = self.offsets.last().copied().unwrap_or(0);
        let sum: f32 = self.values[begin..].iter().sum();
        self.values[begin..].iter_mut().for_each(|value| *value /= sum);
        self.offsets.push(self.values.len());
    }

    /// Ends a graph with the rows since the last.
    pub(crate) fn end_graph(&mut self, centre: Centre) {
        debug_assert_eq!(self.offsets.len(), self.vertices.len());
        self.ends.push(self.vertices.len());
        self.centres.push(centre);
    }

    fn entries(&self, row: usize) -> (&[u32], &[f32]) {
        let begin = if row == 0 { 0 } else { self.offsets[row - 1] };
        let range = begin..self.offsets[row];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// The number of entries of some rows.
    fn count(&self, rows: &Range<usize>) -> usize {
        let end = |row: usize| if row == 0 { 0 } else { self.offsets[row - 1] };
        end(rows.end) - end(rows.start)
    }

    /// Some rows of the adjacency of the graph of these members, with zeros.
    fn dense(&self, rows: &[u32], members: &Range<usize>, out: &mut Vec<f32>) {
        out.clear();
        out.resize(rows.len() * members.len(), 0.0);
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(members.len())) {
            let (columns, values) = self.entries(row as usize);
            for (&column, &value) in columns.iter().zip(values) {
                out[column as usize - members.start] = value;
            }
        }
    }
}

/// A network, prepared for many stacks of graphs whose vertices are rows of one matrix.
pub(crate) struct Prepared<'a> {
    network: &'a GraphNetwork,
    /// f [W_1 W_2] of the first layer, for each vertex.
    first: Vec<f32>,
    /// [W_1 W_2] of the column beyond the features, if the network has one.
    extra: Option<Vec<f32>>,
    /// [W_1 W_2] of the other layers.
    weights: Vec<Right<'a>>,
    head: Head<'a>,
}

/// Buffers that a thread reuses.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The rows that the last layer gave.
    pub(crate) x: Vec<f32>,
    product: Vec<f32>,
    hidden: Vec<f32>,
    /// The adjacency of one graph, with its zeros.
    dense: Vec<f32>,
    bias: Vec<f32>,
}

/// [W_1 W_2] of every layer, where the layer's weight is W_1 above W_2.
pub(crate) fn side_by_side(network: &GraphNetwork) -> Vec<Vec<f32>> {
    let one = |layer: &Linear| {
        let (upper, lower) = layer.weight.split_at(layer.weight.len() / 2);
        let rows = upper.chunks_exact(layer.outputs).zip(lower.chunks_exact(layer.outputs));
        rows.flat_map(|(upper, lower)| upper.iter().chain(lower)).copied().collect()
    };
    network.convolutions.iter().map(one).collect()
}

impl<'a> Prepared<'a> {
    /// `weights` are [`side_by_side`]; the vertices are `count` rows of `dim` columns.
    pub(crate) fn new<'f>(
        network: &'a GraphNetwork,
        weights: &'a [Vec<f32>],
        dim: usize,
        count: usize,
        row: impl Fn(usize) -> &'f [f32] + Sync,
    ) -> Self {
        let columns = 2 * network.convolutions[0].outputs;
        let (weight, extra) = weights[0].split_at(dim * columns);
        let prepared = Right::new(Matrix::new(weight, columns));
        let mut first = vec![0.0; count * columns];
        first.par_chunks_mut(BATCH * columns).enumerate().for_each(|(at, out)| {
            let rows = at * BATCH..at * BATCH + out.len() / columns;
            let x: Vec<f32> = rows.flat_map(&row).copied().collect();
            multiply(Matrix::new(&x, dim), &prepared, out);
        });
        let others = network.convolutions.iter().zip(weights).skip(1);
        Prepared {
            network,
            first,
            extra: (!extra.is_empty()).then(|| extra.to_vec()),
            weights: others
                .map(|(layer, weight)| Right::new(Matrix::new(weight, 2 * layer.outputs)))
                .collect(),
            head: Head::new(network),
        }
    }

    /// The convolutions; of the last only the rows of `wanted`, which ascend, or all. The result is `buffers.x`.
    pub(crate) fn embed(&self, graphs: &SubGraphs, wanted: Option<&[u32]>, buffers: &mut Buffers) {
        let all: Vec<u32> = (0..graphs.rows() as u32).collect();
        let last = self.network.convolutions.len() - 1;
        let rows = |l: usize| if l == last { wanted.unwrap_or(&all) } else { &all };
        self.gather_first(graphs, &mut buffers.product);
        self.aggregate(graphs, 0, rows(0), buffers);
        for (l, (layer, weight)) in (1..).zip(self.network.convolutions[1..].iter().zip(&self.weights)) {
            buffers.product.resize(graphs.rows() * 2 * layer.outputs, 0.0);
            multiply(Matrix::new(&buffers.x, layer.inputs / 2), weight, &mut buffers.product);
            self.aggregate(graphs, l, rows(l), buffers);
        }
    }

    /// The outputs of the head for every row that `embed` left, or that was made of these.
    pub(crate) fn outputs(&self, buffers: &mut Buffers, out: &mut Vec<f32>) {
        self.head.apply(&buffers.x, &mut buffers.hidden, out);
    }

    /// The product of the first layer for every row.
    fn gather_first(&self, graphs: &SubGraphs, product: &mut Vec<f32>) {
        let columns = 2 * self.network.convolutions[0].outputs;
        product.clear();
        for (row, &vertex) in graphs.vertices.iter().enumerate() {
            product.extend_from_slice(&self.first[vertex as usize * columns..][..columns]);
            if let Some(extra) = &self.extra {
                let (out, value) = (&mut product[row * columns..], graphs.extra[row]);
                out.iter_mut().zip(extra).for_each(|(out, weight)| *out += value * weight);
            }
        }
    }

    /// `buffers.x` = relu(Y + A^ Z + b) for `rows`, where each row of `buffers.product` is a row of Y and then one of Z. In
    /// the first layer b includes what the origin of the graph contributes.
    fn aggregate(&self, graphs: &SubGraphs, l: usize, rows: &[u32], buffers: &mut Buffers) {
        let layer = &self.network.convolutions[l];
        let width = layer.outputs;
        let Buffers { x, product, dense, bias, .. } = buffers;
        x.resize(rows.len() * width, 0.0);
        bias.clone_from(&layer.bias);
        let (mut rows, mut out) = (rows, &mut x[..]);
        for (graph, members) in graphs.graphs().enumerate() {
            let (here, later) = rows.split_at(rows.partition_point(|&row| (row as usize) < members.end));
            let (sums, rest) = out.split_at_mut(here.len() * width);
            (rows, out) = (later, rest);
            if l == 0 {
                self.seen_from(graphs, graph, bias);
            }
            if dense_pays(graphs.count(&members), members.len()) {
                graphs.dense(here, &members, dense);
                let z = &product[members.start * 2 * width + width..members.end * 2 * width];
                let right = Right::alone(Matrix::strided(z, members.len(), width, 2 * width));
                multiply(Matrix::new(dense, members.len()), &right, sums);
                right.recycle();
            } else {
                for (&row, sums) in here.iter().zip(sums.chunks_exact_mut(width)) {
                    let (columns, values) = graphs.entries(row as usize);
                    weighted_sum(columns, values, &product[width..], 2 * width, sums);
                }
            }
            for (&row, sums) in here.iter().zip(sums.chunks_exact_mut(width)) {
                let own = &product[row as usize * 2 * width..][..width];
                for ((sum, own), bias) in sums.iter_mut().zip(own).zip(&*bias) {
                    *sum += own + bias;
                }
                relu(sums);
            }
        }
    }

    /// b - f_i W_1 - f_i W_2, where i is the origin of the graph.
    fn seen_from(&self, graphs: &SubGraphs, graph: usize, own: &mut Vec<f32>) {
        let layer = &self.network.convolutions[0];
        let width = layer.outputs;
        let alone;
        let vertices = match &graphs.centres[graph] {
            Centre::Vertex(i) => {
                alone = [*i];
                &alone[..]
            }
            Centre::Mean => {
                let start = graph.checked_sub(1).map_or(0, |before| graphs.ends[before]);
                &graphs.vertices[start..graphs.ends[graph]]
            }
        };
        let share = 1.0 / vertices.len() as f32;
        own.clear();
        own.extend_from_slice(&layer.bias);
        for &vertex in vertices {
            let (first, second) = self.first[vertex as usize * 2 * width..][..2 * width].split_at(width);
            for ((own, first), second) in own.iter_mut().zip(first).zip(second) {
                *own -= share * (first + second);
            }
        }
    }
}

/// The probability from the outputs of a row: one output is the probability, two are logits.
pub(crate) fn probability(outputs: &[f32]) -> f32 {
    match *outputs {
        [different, same] => 1.0 / (1.0 + (different - same).exp()),
        [value, ..] => value,
        [] => f32::NAN,
    }
}
