//! A symmetric kNN graph: each vertex with its neighbours and the vertices that have it as a neighbour.

use kinfolk::KnnGraph;
use rayon::prelude::*;

/// Symmetric edges as compressed sparse rows, by ascending neighbour.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Symmetric {
    starts: Vec<usize>,
    ids: Vec<u32>,
    similarities: Vec<f32>,
}

impl Symmetric {
    /// The edges for which `keep` is true, in both directions; of two similarities the larger.
    pub(crate) fn of(graph: &KnnGraph, keep: impl Fn(f32) -> bool) -> Self {
        let n = graph.len();
        let edges = |i: usize| {
            let (ids, similarities) = graph.neighbours(i);
            ids.iter().copied().zip(similarities.iter().copied()).filter(|&(_, s)| keep(s))
        };
        let mut next = vec![0usize; n + 1];
        for i in 0..n {
            for (j, _) in edges(i) {
                next[i] += 1;
                next[j as usize] += 1;
            }
        }
        let mut total = 0;
        next.iter_mut().for_each(|at| total += std::mem::replace(at, total));
        let mut starts = next.clone();
        let mut both = vec![(0u32, 0f32); total];
        for i in 0..n {
            for (j, s) in edges(i) {
                for (from, to) in [(i, j), (j as usize, i as u32)] {
                    both[next[from]] = (to, s);
                    next[from] += 1;
                }
            }
        }
        // Each row is sorted and deduplicated, then the rows are packed.
        let mut rows = Vec::with_capacity(n);
        let mut rest = both.as_mut_slice();
        for i in 0..n {
            let (row, others) = rest.split_at_mut(starts[i + 1] - starts[i]);
            rows.push(row);
            rest = others;
        }
        let lengths: Vec<usize> = rows
            .into_par_iter()
            .map(|row| {
                row.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
                let mut len = 0;
                for at in 0..row.len() {
                    if len == 0 || row[len - 1].0 != row[at].0 {
                        row[len] = row[at];
                        len += 1;
                    }
                }
                len
            })
            .collect();
        let (mut ids, mut similarities) = (Vec::new(), Vec::new());
        for (i, len) in lengths.into_iter().enumerate() {
            let row = &both[starts[i]..][..len];
            starts[i] = ids.len();
            ids.extend(row.iter().map(|edge| edge.0));
            similarities.extend(row.iter().map(|edge| edge.1));
        }
        starts[n] = ids.len();
        Symmetric { starts, ids, similarities }
    }

    /// Number of vertices.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The neighbours of `i`, ascending, and their similarities.
    pub(crate) fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.ids[range.clone()], &self.similarities[range])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graphs;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn edges_are_seen_from_both_ends(graph in graphs(), least in -1.0f32..1.0) {
            let mut expected = vec![BTreeMap::new(); graph.len()];
            for i in 0..graph.len() {
                let (ids, similarities) = graph.neighbours(i);
                for (&j, &s) in ids.iter().zip(similarities).filter(|edge| *edge.1 > least) {
                    expected[i].insert(j, s);
                    expected[j as usize].insert(i as u32, s);
                }
            }
            let found = Symmetric::of(&graph, |s| s > least);
            prop_assert_eq!(found.len(), graph.len());
            for (i, expected) in expected.into_iter().enumerate() {
                let (ids, similarities) = found.row(i);
                let found: Vec<(u32, f32)> = ids.iter().copied().zip(similarities.iter().copied()).collect();
                prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
            }
        }
    }
}
