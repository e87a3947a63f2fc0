//! The normalised adjacency of Section 3.2: D^-1 (A + I).
//!
//! A_ij = max(a_ij, a_ji) over the edges of the kNN graph whose similarity is at least `th_sim`. An edge that only
//! one end lists counts for both, so the number of entries varies from one (the vertex itself) to the in-degree of a hub. Then
//! the self loop of weight 1 is added and every row is divided by its sum.
//!
//! Cost: O(N K log K) time. Memory, with E = N K listed edges: 8 E bytes for the incoming edges while
//! building and 8 bytes per entry of the result, of which there are at most 2 E + N and in practice, since
//! most edges between near vertices are mutual, about 1.3 E. No step sorts more than one row.

mod aggregate;
mod order;

pub use aggregate::weighted_sum;
pub(crate) use order::{by_locality, depth_first};

use crate::{Error, KnnGraph, Result};
use rayon::prelude::*;

/// Rows handled by one task: enough to hide the cost of handing it out, few enough to spread hubs evenly.
pub(crate) const ROWS_PER_TASK: usize = 1024;

/// The symmetric, row-normalised adjacency with self loops, D^-1 (A + I), as compressed sparse rows.
///
/// ```
/// use kinfolk::stages::Adjacency;
/// use kinfolk::KnnGraph;
/// // Vertex 2 lists 1, which does not list it back: the edge still counts for both.
/// let graph = KnnGraph::from_parts(3, 1, vec![1, 0, 1], vec![0.5, 0.5, 0.25], "example")?;
/// let adjacency = Adjacency::from_knn(&graph, 0.0)?;
/// let (columns, values) = adjacency.row(2);
/// assert_eq!(columns, [1, 2]);
/// assert_eq!(values, [0.2, 0.8]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Adjacency {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
    /// The order in which `aggregate` visits the rows: vertices that share neighbours follow each other.
    order: Vec<u32>,
}

impl Adjacency {
    /// Symmetrises and normalises a kNN graph, keeping the edges with similarity >= `th_sim`.
    ///
    /// `th_sim` is between 0 and 1, usually 0. A negative one is refused: negative weights would let a row
    /// sum to zero, and such a row cannot be normalised.
    pub fn from_knn(graph: &KnnGraph, th_sim: f32) -> Result<Self> {
        if !(0.0..=1.0).contains(&th_sim) {
            return Err(Error::Parameter { field: "th_sim", expected: "0 to 1", found: th_sim.to_string() });
        }
        let n = graph.len();
        let incoming = Incoming::of(graph, th_sim);

        // Counting before filling keeps the memory at what the result needs.
        let mut offsets = vec![0; n + 1];
        let rows = n.div_ceil(rayon::current_num_threads()).max(1);
        offsets[1..].par_chunks_mut(rows).enumerate().for_each(|(task, lengths)| {
            let mut listed_by = vec![u32::MAX; n];
            for (i, length) in (task * rows..).zip(lengths) {
                // Itself, what it lists, and what lists it without being listed.
                let mut count = 1;
                for (j, _) in listed(graph, th_sim, i) {
                    listed_by[j as usize] = i as u32;
                    count += 1;
                }
                let incoming = incoming.row(i).iter();
                *length =
                    count + incoming.filter(|&&edge| listed_by[vertex(edge) as usize] != i as u32).count();
            }
        });
        accumulate(&mut offsets);

        let mut columns = vec![0; offsets[n]];
        let mut values = vec![0.0; offsets[n]];
        let mut degrees = vec![0.0; n];
        let tasks: Vec<_> = split_rows(&mut columns, &offsets, ROWS_PER_TASK)
            .zip(split_rows(&mut values, &offsets, ROWS_PER_TASK))
            .zip(degrees.chunks_mut(ROWS_PER_TASK))
            .collect();
        tasks.into_par_iter().enumerate().for_each(|(task, ((columns, values), degrees))| {
            let mut scratch = Scratch::default();
            let mut entries = columns.iter_mut().zip(values);
            for (i, degree) in (task * ROWS_PER_TASK..).zip(degrees) {
                incoming.merge(graph, th_sim, i, &mut scratch);
                let sum: f64 = scratch.row.iter().map(|&edge| similarity(edge) as f64).sum();
                *degree = sum as f32;
                for (&edge, (column, value)) in scratch.row.iter().zip(&mut entries) {
                    *column = vertex(edge);
                    *value = (similarity(edge) as f64 / sum) as f32;
                }
            }
        });
        drop(incoming);
        let order = by_locality(graph, &degrees);
        Ok(Self { offsets, columns, values, order })
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// True when there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of entries, self loops included.
    pub fn nnz(&self) -> usize {
        self.columns.len()
    }

    /// The entries of row `i`: ascending column ids, and values that sum to one.
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.offsets[i]..self.offsets[i + 1];
        (&self.columns[range.clone()], &self.values[range])
    }
}

/// An edge as one integer, vertex above similarity: sorting edges sorts by vertex and then, because the bits
/// of non-negative floats sort like the floats, by similarity.
fn pack(vertex: u32, similarity: f32) -> u64 {
    // Adding zero turns -0.0 into 0.0.
    (vertex as u64) << 32 | (similarity + 0.0).to_bits() as u64
}

fn vertex(edge: u64) -> u32 {
    (edge >> 32) as u32
}

fn similarity(edge: u64) -> f32 {
    f32::from_bits(edge as u32)
}

/// The outgoing edges of a vertex with similarity >= `th_sim`, as (neighbour, similarity).
fn listed(graph: &KnnGraph, th_sim: f32, i: usize) -> impl Iterator<Item = (u32, f32)> {
    let (ids, similarities) = graph.neighbours(i);
    let similar = move |&(j, a): &(u32, f32)| a >= th_sim && j as usize != i;
    ids.iter().copied().zip(similarities.iter().copied()).filter(similar)
}

/// The incoming edges of each vertex with similarity >= `th_sim`, by ascending source.
struct Incoming {
    offsets: Vec<usize>,
    edges: Vec<u64>,
}

impl Incoming {
    /// Each thread owns a range of vertices and picks from all edges those that arrive there, so the rows
    /// come out sorted whatever the number of threads. Reading all ids once per thread has its price, a tenth
    /// to a third of the build's CPU time for the second thread, but sharing atomic counters instead cost more:
    /// 2.7 times the CPU time of the whole build on one thread, and rows left to sort.
    fn of(graph: &KnnGraph, th_sim: f32) -> Self {
        let n = graph.len();
        let range = n.div_ceil(rayon::current_num_threads()).max(1);

        let mut offsets = vec![0; n + 1];
        offsets[1..].par_chunks_mut(range).enumerate().for_each(|(task, lengths)| {
            for (j, _) in (0..n).flat_map(|i| listed(graph, th_sim, i)) {
                if let Some(length) = lengths.get_mut((j as usize).wrapping_sub(task * range)) {
                    *length += 1;
                }
            }
        });
        accumulate(&mut offsets);

        let mut edges = vec![0; offsets[n]];
        let tasks: Vec<_> = split_rows(&mut edges, &offsets, range).collect();
        tasks.into_par_iter().enumerate().for_each(|(task, edges)| {
            let first = task * range;
            let start = offsets[first];
            let mut next: Vec<usize> =
                offsets[first..n.min(first + range)].iter().map(|o| o - start).collect();
            for i in 0..n {
                for (j, a) in listed(graph, th_sim, i) {
                    if let Some(next) = next.get_mut((j as usize).wrapping_sub(first)) {
                        edges[*next] = pack(i as u32, a);
                        *next += 1;
                    }
                }
            }
        });
        Self { offsets, edges }
    }

    fn row(&self, i: usize) -> &[u64] {
        &self.edges[self.offsets[i]..self.offsets[i + 1]]
    }

    /// Writes row `i` of A + I, by ascending vertex: what `i` lists, what lists `i`, and `i` itself.
    fn merge(&self, graph: &KnnGraph, th_sim: f32, i: usize, scratch: &mut Scratch) {
        let Scratch { outgoing, row } = scratch;
        outgoing.clear();
        outgoing.extend(listed(graph, th_sim, i).map(|(j, a)| pack(j, a)));
        outgoing.push(pack(i as u32, 1.0));
        outgoing.sort_unstable();

        row.clear();
        let mut incoming = self.row(i).iter().copied().peekable();
        for &edge in outgoing.iter() {
            while let Some(before) = incoming.next_if(|&other| other < edge) {
                push_strongest(row, before);
            }
            push_strongest(row, edge);
        }
        incoming.for_each(|edge| push_strongest(row, edge));
    }
}

/// What `merge` reuses from row to row.
#[derive(Default)]
struct Scratch {
    outgoing: Vec<u64>,
    row: Vec<u64>,
}

/// Appends an edge that sorts after those in `row`; of two edges to one vertex only the stronger stays.
fn push_strongest(row: &mut Vec<u64>, edge: u64) {
    match row.last_mut() {
        Some(last) if vertex(*last) == vertex(edge) => *last = edge,
        _ => row.push(edge),
    }
}

/// Turns the lengths in `offsets[1..]` into the offsets where each row ends.
pub(crate) fn accumulate(offsets: &mut [usize]) {
    let mut end = 0;
    for offset in offsets {
        end += *offset;
        *offset = end;
    }
}

/// Cuts the entries of a matrix into the slices of consecutive tasks of `rows` rows.
pub(crate) fn split_rows<'a, T>(
    mut entries: &'a mut [T],
    offsets: &'a [usize],
    rows: usize,
) -> impl Iterator<Item = &'a mut [T]> {
    let n = offsets.len() - 1;
    (0..n).step_by(rows).map(move |first| {
        let (task, rest) =
            std::mem::take(&mut entries).split_at_mut(offsets[n.min(first + rows)] - offsets[first]);
        entries = rest;
        task
    })
}

#[cfg(test)]
mod tests;
