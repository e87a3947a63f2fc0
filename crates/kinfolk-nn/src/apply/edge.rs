//! GCN-E: how likely each candidate of a vertex is of the vertex's identity (Section 3.3).
//!
//! For vertex i with the candidate set S: rows X_j = f_j - f_i for j in S; A^ is the sub-matrix over S of the
//! normalised adjacency, its rows divided by their sums again; graph convolutions as in GCN-V; connectivity r_ij =
//! head(F_L)_j, or with two outputs the second's share of the softmax.
//!
//! Only the round(rho N) most confident vertices use it. Their candidates are the neighbours of higher confidence, which
//! are among them too: what is more confident than one of the most confident is one itself. Or, to see what the
//! candidate set is worth (M = -1 in Section 4.3.2), all neighbours. Four ideas make it cheap:
//!
//! - [X, A^X] W = X W_1 + A^ (X W_2): one product with [W_1 W_2], and the aggregation runs over as few columns
//!   as the layer has outputs.
//! - In the first layer X W_1 = f_j W_1 - f_i W_1, and, since rows of A^ sum to one, A^ (X W_2) = A^ (f W_2) -
//!   f_i W_2: f W_1 and f W_2 are computed once for each vertex and not for each pair.
//! - The rows of many subgraphs are stacked for one tall product, and aggregated each within its own.
//! - Batches run in parallel; where they begin depends on the sizes of the candidate sets alone.
//!
//! Cost, with R = the sum of |S| over the vertices that use it: 4 R (512 x 512 + 512 x 256 + 256 x 256) operations
//! with the published widths, 4 rho N D 512 for the first layer. Memory: 8 rho N 512 bytes for that (8 N 512
//! when all neighbours are candidates).

use super::dense::{Head, relu};
use crate::product::{Matrix, Right, multiply};
use crate::{GraphNetwork, Linear};
use kinfolk::{Adjacency, Embeddings, Error, KnnGraph, Progress, Result, candidates, weighted_sum};
use rayon::prelude::*;

/// Rows at which a batch is full.
const BATCH: usize = 512;

/// Stands for "not in this candidate set".
const OUTSIDE: u32 = u32::MAX;

/// Which neighbours of a vertex are its candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Among {
    /// Those of higher confidence (Equation 6), nearest first.
    #[default]
    MoreConfident,
    /// All, nearest first: M = -1 in the paper's ablation.
    AllNeighbours,
}

impl Among {
    /// The candidates of vertex `i` and their similarities, nearest first.
    pub(crate) fn candidates<'a>(
        self,
        graph: &'a KnnGraph,
        confidence: &'a [f32],
        i: usize,
    ) -> impl Iterator<Item = (u32, f32)> + 'a {
        let higher = (self == Among::MoreConfident).then(|| candidates(graph, confidence, i));
        let (ids, similarities) = graph.neighbours(i);
        let all =
            (self == Among::AllNeighbours).then(|| ids.iter().copied().zip(similarities.iter().copied()));
        higher.into_iter().flatten().chain(all.into_iter().flatten())
    }
}

/// The connectivities of some vertices with their candidates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Connectivity {
    /// The vertices, most confident first.
    pub vertices: Vec<u32>,
    /// The candidates of `vertices[v]` are entries `offsets[v]..offsets[v + 1]`.
    pub offsets: Vec<usize>,
    /// Candidates, nearest first.
    pub candidates: Vec<u32>,
    /// Their similarities to the vertex.
    pub similarities: Vec<f32>,
    /// Their connectivities. That of an only candidate is 1: there is nothing to choose.
    pub values: Vec<f32>,
}

impl Connectivity {
    fn range(&self, v: usize) -> std::ops::Range<usize> {
        self.offsets[v]..self.offsets[v + 1]
    }

    /// What a smaller rho would have given: only the round(`rho` N) most confident of `n` vertices.
    pub fn up_to(&self, rho: f32, n: usize) -> Connectivity {
        let vertices = ((f64::from(rho) * n as f64).round() as usize).min(self.vertices.len());
        let entries = self.offsets[vertices];
        Connectivity {
            vertices: self.vertices[..vertices].to_vec(),
            offsets: self.offsets[..=vertices].to_vec(),
            candidates: self.candidates[..entries].to_vec(),
            similarities: self.similarities[..entries].to_vec(),
            values: self.values[..entries].to_vec(),
        }
    }
}

/// Which pairs GCN-E is asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// The share of vertices, by descending confidence.
    pub rho: f32,
    /// Which of their neighbours.
    pub among: Among,
}

/// Estimates the connectivity of the round(rho N) most confident vertices with their candidates.
///
/// `features` are the rows that `graph` was built from, `adjacency` is that of `graph`.
pub fn edge_connectivity(
    network: &GraphNetwork,
    features: &Embeddings,
    graph: &KnnGraph,
    adjacency: &Adjacency,
    confidence: &[f32],
    asked: &Asked,
    progress: &dyn Progress,
) -> Result<Connectivity> {
    check(network, features, graph, adjacency, confidence)?;
    let (mut found, others) = most_confident(graph, confidence, asked);
    let batches = batches(&found.offsets);
    progress.begin("connectivity", found.vertices.len() as u64);
    let weights: Vec<Vec<f32>> = network.convolutions.iter().map(side_by_side).collect();
    let estimator = Estimator::new(network, &weights, features, adjacency, &found, &others);
    let values: Vec<Vec<f32>> = batches
        .par_iter()
        .map_init(
            || Scratch { slots: vec![OUTSIDE; found.vertices.len() + others.len()], ..Scratch::default() },
            |scratch, batch| {
                progress.tick();
                let values = estimator.run(batch.clone(), scratch);
                progress.advance(batch.len() as u64);
                values
            },
        )
        .collect();
    drop(estimator);
    found.values = values.concat();
    if let Some(at) = found.values.iter().position(|value| !value.is_finite()) {
        let v = found.offsets.partition_point(|&offset| offset <= at) - 1;
        return Err(Error::NotFinite {
            place: "connectivity by GCN-E".to_owned(),
            row: found.vertices[v] as usize,
            column: found.candidates[at] as usize,
            found: found.values[at].into(),
        });
    }
    Ok(found)
}

fn check(
    network: &GraphNetwork,
    features: &Embeddings,
    graph: &KnnGraph,
    adjacency: &Adjacency,
    confidence: &[f32],
) -> Result<()> {
    let length = |what: &str, expected, found| match expected == found {
        true => Ok(()),
        false => Err(Error::Length { place: "GCN-E".to_owned(), what: what.to_owned(), expected, found }),
    };
    length("columns of features", network.inputs(), features.dim())?;
    length("vertices of the graph (one per embedding)", features.len(), graph.len())?;
    length("vertices of the adjacency (one per embedding)", features.len(), adjacency.len())?;
    length("confidences (one per vertex)", graph.len(), confidence.len())?;
    match confidence.iter().position(|c| !c.is_finite()) {
        Some(row) => {
            let (place, found) = ("confidence".to_owned(), confidence[row].into());
            Err(Error::NotFinite { place, row, column: 0, found })
        }
        None => Ok(()),
    }
}

/// The round(rho N) most confident vertices and their candidates, without connectivities; and the other vertices, as
/// far as they may be candidates.
fn most_confident(graph: &KnnGraph, confidence: &[f32], asked: &Asked) -> (Connectivity, Vec<u32>) {
    let n = graph.len();
    // The order of `candidates`, in which -0 and 0 are equal.
    let key = |&i: &u32| confidence[i as usize] + 0.0;
    let mut vertices: Vec<u32> = (0..n as u32).collect();
    vertices.par_sort_unstable_by(|a, b| key(b).total_cmp(&key(a)).then(a.cmp(b)));
    let mut others = vertices.split_off((f64::from(asked.rho) * n as f64).round() as usize);
    if asked.among == Among::MoreConfident {
        others.clear();
    }
    let mut found = Connectivity { vertices, offsets: vec![0], ..Connectivity::default() };
    for &i in &found.vertices {
        for (j, similarity) in asked.among.candidates(graph, confidence, i as usize) {
            found.candidates.push(j);
            found.similarities.push(similarity);
        }
        found.offsets.push(found.candidates.len());
    }
    (found, others)
}

/// Consecutive vertices whose candidates together make about [`BATCH`] rows.
fn batches(offsets: &[usize]) -> Vec<std::ops::Range<usize>> {
    let mut batches = Vec::new();
    let mut first = 0;
    for end in 1..offsets.len() {
        if offsets[end] - offsets[first] >= BATCH || end + 1 == offsets.len() {
            batches.push(first..end);
            first = end;
        }
    }
    batches
}

/// [W_1 W_2], where the layer's weight is W_1 above W_2.
fn side_by_side(layer: &Linear) -> Vec<f32> {
    let (upper, lower) = layer.weight.split_at(layer.weight.len() / 2);
    let rows = upper.chunks_exact(layer.outputs).zip(lower.chunks_exact(layer.outputs));
    rows.flat_map(|(upper, lower)| upper.iter().chain(lower)).copied().collect()
}

struct Estimator<'a> {
    network: &'a GraphNetwork,
    adjacency: &'a Adjacency,
    found: &'a Connectivity,
    /// The place of each vertex among `found.vertices` and then the others that may be candidates, or [`OUTSIDE`].
    rank: Vec<u32>,
    /// f [W_1 W_2] of the first layer, for each of these.
    first: Vec<f32>,
    /// [W_1 W_2] of the other layers.
    weights: Vec<Right<'a>>,
    head: Head<'a>,
}

/// What one thread reuses from batch to batch.
#[derive(Default)]
struct Scratch {
    /// For each vertex, by rank, its place in the current candidate set.
    slots: Vec<u32>,
    block: SubGraphs,
    x: Vec<f32>,
    product: Vec<f32>,
    hidden: Vec<f32>,
}

impl<'a> Estimator<'a> {
    fn new(
        network: &'a GraphNetwork,
        weights: &'a [Vec<f32>],
        features: &Embeddings,
        adjacency: &'a Adjacency,
        found: &'a Connectivity,
        others: &[u32],
    ) -> Self {
        let known = [&found.vertices[..], others].concat();
        let mut rank = vec![OUTSIDE; features.len()];
        for (v, &i) in known.iter().enumerate() {
            rank[i as usize] = v as u32;
        }
        let columns = 2 * network.convolutions[0].outputs;
        let prepare =
            |(layer, weight): (&Linear, &'a Vec<f32>)| Right::new(Matrix::new(weight, 2 * layer.outputs));
        let mut weights = network.convolutions.iter().zip(weights).map(prepare);
        let weight = weights.next().expect("a network has a convolution");
        let mut first = vec![0.0; known.len() * columns];
        first.par_chunks_mut(BATCH * columns).zip(known.par_chunks(BATCH)).for_each(|(out, rows)| {
            let x: Vec<f32> = rows.iter().flat_map(|&i| features.row(i as usize)).copied().collect();
            multiply(Matrix::new(&x, features.dim()), &weight, out);
        });
        let weights = weights.collect();
        Estimator { network, adjacency, found, rank, first, weights, head: Head::new(network) }
    }

    /// relu(f_j W_1 - f_i W_1 + A^ (f W_2) - f_i W_2 + b) for the candidates j of each of `vertices`.
    fn first_layer(&self, vertices: impl Iterator<Item = usize>, block: &SubGraphs, out: &mut Vec<f32>) {
        let layer = &self.network.convolutions[0];
        let width = layer.outputs;
        out.resize(block.rows() * width, 0.0);
        let mut rows = out.chunks_exact_mut(width).enumerate();
        let product = |rank: usize| &self.first[rank * 2 * width..][..2 * width];
        let mut own = vec![0.0; width];
        for v in vertices {
            let (first, second) = product(v).split_at(width);
            for (((own, first), second), bias) in own.iter_mut().zip(first).zip(second).zip(&layer.bias) {
                *own = bias - first - second;
            }
            for (&j, (row, out)) in self.found.candidates[self.found.range(v)].iter().zip(&mut rows) {
                let range = block.offsets[row]..block.offsets[row + 1];
                let (ranks, values) = (&block.ranks[range.clone()], &block.values[range]);
                weighted_sum(ranks, values, &self.first[width..], 2 * width, out);
                let first = product(self.rank[j as usize] as usize);
                for ((out, first), own) in out.iter_mut().zip(first).zip(&own) {
                    *out += first + own;
                }
                relu(out);
            }
        }
    }

    /// The connectivities of a batch of vertices, in the order of their candidates.
    fn run(&self, batch: std::ops::Range<usize>, scratch: &mut Scratch) -> Vec<f32> {
        let found = self.found;
        let chosen = batch.clone().filter(|&v| found.range(v).len() > 1);
        scratch.block.gather(self, chosen.clone(), &mut scratch.slots);
        self.first_layer(chosen, &scratch.block, &mut scratch.x);
        for (layer, weight) in self.network.convolutions[1..].iter().zip(&self.weights) {
            let rows = scratch.block.rows();
            scratch.product.resize(rows * 2 * layer.outputs, 0.0);
            multiply(Matrix::new(&scratch.x, layer.inputs / 2), weight, &mut scratch.product);
            scratch.block.aggregate(layer, &scratch.product, &mut scratch.x);
        }
        let mut outputs = Vec::new();
        self.head.apply(&scratch.x, &mut scratch.hidden, &mut outputs);
        let outputs = &mut outputs.chunks_exact(self.network.output.outputs);

        let mut values = Vec::with_capacity(found.offsets[batch.end] - found.offsets[batch.start]);
        for v in batch {
            match found.range(v).len() {
                1 => values.push(1.0),
                count => values.extend(outputs.take(count).map(connectivity)),
            }
        }
        values
    }
}

/// The connectivity that the outputs of a row stand for.
fn connectivity(outputs: &[f32]) -> f32 {
    match *outputs {
        [different, same] => 1.0 / (1.0 + (different - same).exp()),
        [value, ..] => value,
        [] => f32::NAN,
    }
}

/// The adjacencies of several subgraphs as one block-diagonal matrix of compressed sparse rows.
#[derive(Default)]
struct SubGraphs {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    /// Of the vertices that the columns are.
    ranks: Vec<u32>,
    values: Vec<f32>,
}

impl SubGraphs {
    fn rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// The sub-matrices over the candidates of each of `vertices`, rows divided by their sums.
    fn gather(&mut self, of: &Estimator, vertices: impl Iterator<Item = usize>, slots: &mut [u32]) {
        self.offsets.clear();
        self.offsets.push(0);
        self.columns.clear();
        self.ranks.clear();
        self.values.clear();
        for v in vertices {
            let set = &of.found.candidates[of.found.range(v)];
            let start = self.rows() as u32;
            let rank = |j: u32| of.rank[j as usize];
            for (slot, &j) in (start..).zip(set) {
                slots[rank(j) as usize] = slot;
            }
            for &j in set {
                let (columns, values) = of.adjacency.row(j as usize);
                let begin = self.values.len();
                for (&k, &value) in columns.iter().zip(values) {
                    let slot = slots.get(rank(k) as usize).copied().unwrap_or(OUTSIDE);
                    if slot != OUTSIDE {
                        self.columns.push(slot);
                        self.ranks.push(rank(k));
                        self.values.push(value);
                    }
                }
                // Never zero: a vertex is its own neighbour.
                let sum: f32 = self.values[begin..].iter().sum();
                self.values[begin..].iter_mut().for_each(|value| *value /= sum);
                self.offsets.push(self.values.len());
            }
            set.iter().for_each(|&j| slots[rank(j) as usize] = OUTSIDE);
        }
    }

    /// `out` = relu(Y + A^ Z + b), where each row of `product` is a row of Y and then one of Z.
    fn aggregate(&self, layer: &Linear, product: &[f32], out: &mut Vec<f32>) {
        let width = layer.outputs;
        out.resize(self.rows() * width, 0.0);
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            let range = self.offsets[row]..self.offsets[row + 1];
            let (columns, values) = (&self.columns[range.clone()], &self.values[range]);
            weighted_sum(columns, values, &product[width..], 2 * width, out);
            let own = &product[row * 2 * width..][..width];
            for ((out, own), bias) in out.iter_mut().zip(own).zip(&layer.bias) {
                *out += own + bias;
            }
            relu(out);
        }
    }
}
