//! An order of the vertices in which those that share neighbours are near each other.
//!
//! The parent of a vertex is its nearest neighbour of higher density. The trees are visited depth first, so that the rows of an
//! identity, which is mostly a subtree, follow each other. This is the density tree of the partition, without a threshold.
//!
//! Cost: O(N K) time at worst, a few steps per vertex in practice; some 30 bytes per vertex.

use super::{ROWS_PER_TASK, accumulate};
use crate::KnnGraph;
use rayon::prelude::*;

/// A permutation of the vertices. `degree[i]` is the density of `i`, such as the sum of its affinities.
pub(crate) fn by_locality(graph: &KnnGraph, degree: &[f32]) -> Vec<u32> {
    let n = graph.len();
    let parent: Vec<usize> = (0..n)
        .into_par_iter()
        .with_min_len(ROWS_PER_TASK)
        .map(|i| {
            let denser = |j: usize| degree[j] > degree[i] || (degree[j] == degree[i] && j < i);
            graph.neighbours(i).0.iter().map(|&j| j as usize).find(|&j| denser(j)).unwrap_or(n)
        })
        .collect();
    depth_first(&parent)
}

/// The vertices of a forest, depth first; `parent[i]` is the number of vertices for a root.
pub(crate) fn depth_first(parent: &[usize]) -> Vec<u32> {
    let n = parent.len();
    // Children by parent; the roots are the children of the vertex `n` that is not there.
    let mut ends = vec![0; n + 2];
    parent.iter().for_each(|&p| ends[p + 1] += 1);
    accumulate(&mut ends);
    let mut children = vec![0; n];
    for (i, &p) in parent.iter().enumerate() {
        children[ends[p]] = i as u32;
        ends[p] += 1;
    }
    // Filling moved every start to its end, which is the start of the next.
    let children = |p: usize| &children[if p == 0 { 0 } else { ends[p - 1] }..ends[p]];

    let mut order = Vec::with_capacity(n);
    let mut stack = children(n).to_vec();
    while let Some(i) = stack.pop() {
        order.push(i);
        stack.extend(children(i as usize));
    }
    order
}
