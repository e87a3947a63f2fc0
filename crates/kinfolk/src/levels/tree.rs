//! [`MergeTree`]: rows that merge, pair by pair, at heights.
//!
//! Cost of a cut: one pass over the nodes, about 2 N, from the coarsest to the rows.

use crate::{DisjointSets, number_by_size};

/// A binary forest over rows. Every merge has a height, and a cut at a height performs all merges up to it.
///
/// Nodes 0 to N - 1 are the rows, node N + m is the result of merge m. Merges are in the order of their heights, so both parts
/// of a merge come before it.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeTree {
    pub(super) rows: usize,
    pub(super) merges: Vec<[u32; 2]>,
    pub(super) heights: Vec<f64>,
}

impl MergeTree {
    /// A tree from its parts. `None` if a merge names a node that is not there yet or has merged before, or if heights are
    /// not finite and ascending.
    pub fn from_parts(rows: usize, merges: Vec<[u32; 2]>, heights: Vec<f64>) -> Option<Self> {
        let ordered =
            heights.len() == merges.len() && heights.is_sorted() && heights.iter().all(|h| h.is_finite());
        if !ordered || merges.len() > rows.saturating_sub(1) {
            return None;
        }
        let mut merged = vec![false; rows + merges.len()];
        for (at, parts) in merges.iter().enumerate() {
            for &part in parts {
                if part as usize >= rows + at || std::mem::replace(&mut merged[part as usize], true) {
                    return None;
                }
            }
        }
        Some(Self { rows, merges, heights })
    }

    /// A tree from parts that are known to be valid.
    pub(crate) fn of_valid_parts(rows: usize, merges: Vec<[u32; 2]>, heights: Vec<f64>) -> Self {
        Self { rows, merges, heights }
    }

    /// The tree of `links` between rows, (row, row, height), those of the parts of a cluster before that of the cluster.
    /// A height below that of a part is raised to it.
    pub(super) fn of_links(rows: usize, links: &[(u32, u32, f64)]) -> Self {
        let mut sets = DisjointSets::new(rows);
        let mut raised = vec![f64::NEG_INFINITY; rows];
        let mut order: Vec<(f64, u32)> = Vec::with_capacity(links.len());
        for (&(a, b, height), at) in links.iter().zip(0..) {
            let [a, b] = [sets.find(a), sets.find(b)];
            let height = height.max(raised[a as usize]).max(raised[b as usize]);
            sets.join(a, b);
            raised[a.min(b) as usize] = height;
            order.push((height, at));
        }
        // Stable: equal heights stay in their order, parts first.
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sets = DisjointSets::new(rows);
        let mut node: Vec<u32> = (0..rows as u32).collect();
        let mut merges = Vec::with_capacity(links.len());
        for &(_, at) in &order {
            let (a, b, _) = links[at as usize];
            let [a, b] = [sets.find(a), sets.find(b)];
            merges.push([node[a as usize], node[b as usize]]);
            sets.join(a, b);
            node[a.min(b) as usize] = (rows + merges.len() - 1) as u32;
        }
        Self { rows, merges, heights: order.into_iter().map(|(height, _)| height).collect() }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The two nodes of each merge.
    pub fn merges(&self) -> &[[u32; 2]] {
        &self.merges
    }

    /// The height of each merge, ascending.
    pub fn heights(&self) -> &[f64] {
        &self.heights
    }

    /// The number of merges up to `height`.
    pub fn merges_up_to(&self, height: f64) -> usize {
        self.heights.partition_point(|&h| h <= height)
    }

    /// The clusters of all merges up to `height`, numbered by descending size, ties by smallest member.
    pub fn cut(&self, height: f64) -> Vec<i64> {
        number_by_size(&self.roots(self.merges_up_to(height))[..self.rows])
    }

    /// The topmost node above each node after the first `count` merges.
    fn roots(&self, count: usize) -> Vec<u32> {
        let mut root: Vec<u32> = (0..(self.rows + count) as u32).collect();
        for (at, parts) in self.merges[..count].iter().enumerate().rev() {
            for &part in parts {
                root[part as usize] = root[self.rows + at];
            }
        }
        root
    }

    /// The number of rows below each node.
    pub(super) fn sizes(&self) -> Vec<u32> {
        let mut sizes = vec![1; self.rows];
        for &[a, b] in &self.merges {
            sizes.push(sizes[a as usize] + sizes[b as usize]);
        }
        sizes
    }
}
