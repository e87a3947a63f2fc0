//! GCN-E: the probability that a candidate has the identity of the vertex (Section 3.3).
//!
//! For vertex i with the candidate set S: rows X_j = f_j - f_i for j in S; A^ is the sub-matrix over S of the
//! normalised adjacency, its rows divided by their sums again; graph convolutions as in GCN-V; connectivity r_ij =
//! head(F_L)_j, or with two outputs the second's share of the softmax.
//!
//! Only the round(rho N) most confident vertices use it. Their candidates are the neighbours of higher confidence, which are
//! therefore also among the most confident, or, for the ablation of the candidate set (M = -1 in Section 4.3.2), all neighbours.
//! `subgraphs.rs` describes the computation. Batches run in parallel and depend only on the sizes of the candidate sets.
//!
//! Cost, with R = the sum of |S| over the vertices that use it: 4 R (512 x 512 + 512 x 256 + 256 x 256) operations
//! with the published widths, 4 rho N D 512 for the first layer. Memory: 8 rho N 512 bytes for that (8 N 512
//! when all neighbours are candidates).

use super::subgraphs::{BATCH, Buffers, Centre, NONE, Prepared, SubGraphs, probability, side_by_side};
use crate::GraphNetwork;
use kinfolk::stages::{Adjacency, candidates};
use kinfolk::{Embeddings, Error, KnnGraph, Progress, Result};
use rayon::prelude::*;

/// Which neighbours of a vertex are its candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Candidates {
    /// Those of higher confidence (Equation 6), nearest first.
    #[default]
    MoreConfident,
    /// All, nearest first: M = -1 in the paper's ablation.
    AllNeighbours,
}

impl Candidates {
    /// The candidates of vertex `i` and their similarities, nearest first.
    pub(crate) fn candidates<'a>(
        self,
        graph: &'a KnnGraph,
        confidence: &'a [f32],
        i: usize,
    ) -> impl Iterator<Item = (u32, f32)> + 'a {
        let higher = (self == Candidates::MoreConfident).then(|| candidates(graph, confidence, i));
        let (ids, similarities) = graph.neighbours(i);
        let all = (self == Candidates::AllNeighbours)
            .then(|| ids.iter().copied().zip(similarities.iter().copied()));
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
    /// Their connectivities. That of a single candidate is 1.
    pub values: Vec<f32>,
}

impl Connectivity {
    fn range(&self, v: usize) -> std::ops::Range<usize> {
        self.offsets[v]..self.offsets[v + 1]
    }

    /// The result for a smaller rho: only the round(`rho` N) most confident of `n` vertices.
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

/// Which pairs GCN-E estimates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EdgeQuery {
    /// The share of vertices, by descending confidence.
    pub rho: f32,
    /// Which of their neighbours.
    pub candidates: Candidates,
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
    query: &EdgeQuery,
    progress: &dyn Progress,
) -> Result<Connectivity> {
    check(network, features, graph, adjacency, confidence)?;
    let (mut found, others) = most_confident(graph, confidence, query);
    let batches = batches(&found.offsets);
    progress.begin("connectivity", found.vertices.len() as u64);
    let weights = side_by_side(network);
    let estimator = Estimator::new(network, &weights, features, adjacency, &found, &others);
    let values: Vec<Vec<f32>> = batches
        .par_iter()
        .map_init(
            || Scratch { slots: vec![NONE; features.len()], ..Scratch::default() },
            |scratch, batch| {
                if progress.cancelled() {
                    return Vec::new();
                }
                let values = estimator.run(batch.clone(), scratch);
                progress.advance(batch.len() as u64);
                values
            },
        )
        .collect();
    drop(estimator);
    progress.check()?;
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
fn most_confident(graph: &KnnGraph, confidence: &[f32], query: &EdgeQuery) -> (Connectivity, Vec<u32>) {
    let n = graph.len();
    // The order of `candidates`, in which -0 and 0 are equal.
    let key = |&i: &u32| confidence[i as usize] + 0.0;
    let mut vertices: Vec<u32> = (0..n as u32).collect();
    vertices.par_sort_unstable_by(|a, b| key(b).total_cmp(&key(a)).then(a.cmp(b)));
    let mut others = vertices.split_off((f64::from(query.rho) * n as f64).round() as usize);
    if query.candidates == Candidates::MoreConfident {
        others.clear();
    }
    let mut found = Connectivity { vertices, offsets: vec![0], ..Connectivity::default() };
    for &i in &found.vertices {
        for (j, similarity) in query.candidates.candidates(graph, confidence, i as usize) {
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

struct Estimator<'a> {
    adjacency: &'a Adjacency,
    found: &'a Connectivity,
    /// The index of each vertex in `found.vertices` followed by the other possible candidates, or [`NONE`].
    rank: Vec<u32>,
    /// The network; its vertices are ranks.
    prepared: Prepared<'a>,
    outputs: usize,
}

/// Buffers that a thread reuses.
#[derive(Default)]
struct Scratch {
    /// For each vertex its row in the stack if it is in the current candidate set.
    slots: Vec<u32>,
    graphs: SubGraphs,
    buffers: Buffers,
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
        let mut rank = vec![NONE; features.len()];
        for (v, &i) in known.iter().enumerate() {
            rank[i as usize] = v as u32;
        }
        let row = |v: usize| features.row(known[v] as usize);
        let prepared = Prepared::new(network, weights, features.dim(), known.len(), row);
        Estimator { adjacency, found, rank, prepared, outputs: network.output.outputs }
    }

    /// The connectivities of a batch of vertices, in the order of their candidates.
    fn run(&self, batch: std::ops::Range<usize>, scratch: &mut Scratch) -> Vec<f32> {
        let found = self.found;
        let chosen = batch.clone().filter(|&v| found.range(v).len() > 1);
        self.gather(chosen, scratch);
        self.prepared.embed(&scratch.graphs, None, &mut scratch.buffers);
        let mut outputs = Vec::new();
        self.prepared.outputs(&mut scratch.buffers, &mut outputs);
        let outputs = &mut outputs.chunks_exact(self.outputs);

        let mut values = Vec::with_capacity(found.offsets[batch.end] - found.offsets[batch.start]);
        for v in batch {
            match found.range(v).len() {
                1 => values.push(1.0),
                count => values.extend(outputs.take(count).map(probability)),
            }
        }
        values
    }

    /// The sub-matrices over the candidates of each of `vertices`, rows divided by their sums.
    fn gather(&self, vertices: impl Iterator<Item = usize>, scratch: &mut Scratch) {
        let Scratch { slots, graphs, .. } = scratch;
        graphs.clear();
        for v in vertices {
            let set = &self.found.candidates[self.found.range(v)];
            let start = graphs.rows() as u32;
            for (slot, &j) in (start..).zip(set) {
                slots[j as usize] = slot;
                graphs.vertices.push(self.rank[j as usize]);
            }
            for &j in set {
                let (columns, values) = self.adjacency.row(j as usize);
                // Never without entries: a vertex is its own neighbour.
                graphs.push_row(columns.iter().zip(values).map(|(&k, &value)| (slots[k as usize], value)));
            }
            graphs.end_graph(Centre::Vertex(v as u32));
            set.iter().for_each(|&j| slots[j as usize] = NONE);
        }
    }
}
