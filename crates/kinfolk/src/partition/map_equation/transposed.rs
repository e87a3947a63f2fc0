//! The edges of a graph by the vertex they arrive at.
//!
//! Cost: O(E) time for each thread; 8 bytes for each edge.

use super::network::Link;
use super::weighted_graph::Edges;
use crate::graph::{accumulate, split_rows};
use rayon::prelude::*;

pub(super) struct Transposed {
    offsets: Vec<usize>,
    links: Vec<Link>,
}

impl Transposed {
    /// Each thread owns a range of vertices and picks from all edges those that arrive there, so rows are sorted by
    /// the vertex the edge leaves, whatever the number of threads.
    pub fn of(graph: &impl Edges) -> Self {
        let n = graph.len();
        let range = n.div_ceil(rayon::current_num_threads()).max(1);
        let mut offsets = vec![0; n + 1];
        offsets[1..].par_chunks_mut(range).enumerate().for_each(|(task, lengths)| {
            for (target, _) in (0..n).flat_map(|i| graph.leaving(i)) {
                if let Some(length) = lengths.get_mut(target.wrapping_sub(task * range)) {
                    *length += 1;
                }
            }
        });
        accumulate(&mut offsets);

        let mut links = vec![Link { target: 0, flow: 0.0 }; offsets[n]];
        let tasks: Vec<_> = split_rows(&mut links, &offsets, range).collect();
        tasks.into_par_iter().enumerate().for_each(|(task, links)| {
            let first = task * range;
            let start = offsets[first];
            let mut next: Vec<usize> =
                offsets[first..n.min(first + range)].iter().map(|o| o - start).collect();
            for i in 0..n {
                for (target, weight) in graph.leaving(i) {
                    if let Some(next) = next.get_mut(target.wrapping_sub(first)) {
                        links[*next] = Link { target: i as u32, flow: weight };
                        *next += 1;
                    }
                }
            }
        });
        Self { offsets, links }
    }

    /// The edges that arrive at `i`: the vertices they leave, and their weights.
    pub fn row(&self, i: usize) -> &[Link] {
        &self.links[self.offsets[i]..self.offsets[i + 1]]
    }
}
