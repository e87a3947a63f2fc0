//! The input of the map equation: a weighted directed graph, as compressed sparse rows (8 bytes for each edge and for each vertex)
//! or as the heavy edges of a kNN graph, in place.

use crate::graph::{ROWS_PER_TASK, accumulate, split_rows};
use crate::{Error, KnnGraph, Result};
use rayon::prelude::*;

/// Directed edges with weights, by the vertex they leave.
///
/// Weights are not negative; edges of weight 0 are ignored.
///
/// ```
/// use kinfolk::stages::WeightedGraph;
/// use kinfolk::KnnGraph;
/// let knn = KnnGraph::from_parts(3, 2, vec![1, 2, 0, 2, 1, 0], vec![0.9, 0.1, 0.9, 0.2, 0.2, 0.1], "example")?;
/// // Any weight for each edge, in the order of the graph: here similarities, without the weak ones.
/// let weights = [0.9, 0.0, 0.9, 0.2, 0.2, 0.0];
/// let graph = WeightedGraph::from_knn(&knn, &weights)?;
/// assert_eq!(graph.edges(), 4);
/// assert_eq!(graph.row(1), (&[0, 2][..], &[0.9, 0.2][..]));
/// # Ok::<(), kinfolk::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedGraph {
    offsets: Vec<usize>,
    targets: Vec<u32>,
    weights: Vec<f32>,
}

impl WeightedGraph {
    /// The edges of a kNN graph with `weights`, N x K of them in the order of the graph; those of weight 0 are
    /// left out.
    pub fn from_knn(graph: &KnnGraph, weights: &[f32]) -> Result<Self> {
        let (n, k) = (graph.len(), graph.k());
        if weights.len() != n * k {
            let what = format!("weights ({n} vertices x {k} neighbours)");
            return Err(Error::Length {
                place: PLACE.to_owned(),
                what,
                expected: n * k,
                found: weights.len(),
            });
        }
        check_edges(graph, weights)?;
        let row = |i: usize| graph.neighbours(i).0.iter().copied().zip(weights[i * k..].iter().copied());
        let count = |i: usize| row(i).filter(|&(_, weight)| weight != 0.0).count();
        let mut offsets = vec![0; n + 1];
        offsets[1..].par_iter_mut().enumerate().for_each(|(i, length)| *length = count(i));
        accumulate(&mut offsets);
        let (mut targets, mut positive) = (vec![0; offsets[n]], vec![0.0; offsets[n]]);
        let tasks = split_rows(&mut targets, &offsets, ROWS_PER_TASK);
        let tasks: Vec<_> = tasks.zip(split_rows(&mut positive, &offsets, ROWS_PER_TASK)).collect();
        tasks.into_par_iter().enumerate().for_each(|(task, (targets, weights))| {
            let first = task * ROWS_PER_TASK;
            let edges =
                (first..n.min(first + ROWS_PER_TASK)).flat_map(row).filter(|&(_, weight)| weight != 0.0);
            for ((to, weight), edge) in targets.iter_mut().zip(weights).zip(edges) {
                (*to, *weight) = edge;
            }
        });
        Ok(Self { offsets, targets, weights: positive })
    }

    /// A graph from compressed sparse rows: the edges that leave vertex `i` are those from `offsets[i]` to
    /// `offsets[i + 1]`. Edges named twice count twice; an edge from a vertex to itself is an error.
    pub fn from_parts(offsets: Vec<usize>, targets: Vec<u32>, weights: Vec<f32>) -> Result<Self> {
        if targets.len() != weights.len() {
            let what = "weights (one per target)".to_owned();
            let (expected, found) = (targets.len(), weights.len());
            return Err(Error::Length { place: PLACE.to_owned(), what, expected, found });
        }
        let ascending = offsets.first() == Some(&0) && offsets.is_sorted();
        if !ascending || offsets.last() != Some(&targets.len()) || offsets.len() - 1 > u32::MAX as usize {
            return Err(Error::Parameter {
                field: "offsets",
                expected: "ascending numbers from 0 to the number of edges, one more than vertices",
                found: format!("{} offsets that end with {:?}", offsets.len(), offsets.last()),
            });
        }
        let n = offsets.len() - 1;
        for i in 0..n {
            for (column, at) in (offsets[i]..offsets[i + 1]).enumerate() {
                check_edge(n, i, column, targets[at], weights[at])?;
            }
        }
        Ok(Self { offsets, targets, weights })
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// True when there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of edges.
    pub fn edges(&self) -> usize {
        self.targets.len()
    }

    /// The targets of the edges of vertex `i`, and their weights.
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.offsets[i]..self.offsets[i + 1];
        (&self.targets[range.clone()], &self.weights[range])
    }
}

/// What the map equation needs of a graph.
pub(super) trait Edges: Sync {
    /// Number of vertices.
    fn len(&self) -> usize;

    /// The edges that leave `i`, as (vertex, weight).
    fn leaving(&self, i: usize) -> impl Iterator<Item = (usize, f32)>;
}

impl Edges for WeightedGraph {
    fn len(&self) -> usize {
        self.len()
    }

    fn leaving(&self, i: usize) -> impl Iterator<Item = (usize, f32)> {
        let (targets, weights) = self.row(i);
        targets.iter().map(|&target| target as usize).zip(weights.iter().copied())
    }
}

/// The edges of a kNN graph whose weights exceed a least one. Nothing is copied: of millions of rows a copy takes gigabytes.
pub(crate) struct HeavyEdges<'a> {
    graph: &'a KnnGraph,
    weights: &'a [f32],
    least: f32,
}

impl<'a> HeavyEdges<'a> {
    /// `weights` are N x K, in the order of the graph; `least` is not negative.
    pub(crate) fn of(graph: &'a KnnGraph, weights: &'a [f32], least: f32) -> Result<Self> {
        check_edges(graph, weights)?;
        Ok(Self { graph, weights, least })
    }
}

impl Edges for HeavyEdges<'_> {
    fn len(&self) -> usize {
        self.graph.len()
    }

    fn leaving(&self, i: usize) -> impl Iterator<Item = (usize, f32)> {
        let k = self.graph.k();
        let targets = self.graph.neighbours(i).0.iter().map(|&target| target as usize);
        targets.zip(self.weights[i * k..][..k].iter().copied()).filter(|&(_, weight)| weight > self.least)
    }
}

/// Refuses weights, N x K of them in the order of the graph, if any edge is not one of a weighted graph.
fn check_edges(graph: &KnnGraph, weights: &[f32]) -> Result<()> {
    let (n, k) = (graph.len(), graph.k());
    let wrong = |i: usize| {
        let mut edges = graph.neighbours(i).0.iter().zip(&weights[i * k..]).enumerate();
        edges.find_map(|(column, (&target, &weight))| check_edge(n, i, column, target, weight).err())
    };
    (0..n).into_par_iter().find_map_first(wrong).map_or(Ok(()), Err)
}

const PLACE: &str = "weighted graph";

fn check_edge(n: usize, row: usize, column: usize, target: u32, weight: f32) -> Result<()> {
    let value = |expected: String, found: String| {
        Err(Error::Value { place: PLACE.to_owned(), row, column, expected, found })
    };
    if target as usize >= n {
        return value(format!("a vertex below {n}"), target.to_string());
    }
    if target as usize == row {
        return value("a vertex other than the one the edge leaves".to_owned(), target.to_string());
    }
    if !(weight >= 0.0 && weight.is_finite()) {
        return value("a weight of 0 or more".to_owned(), weight.to_string());
    }
    Ok(())
}
