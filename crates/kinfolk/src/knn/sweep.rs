//! One-sided search: some rows against panels of others, each keeping its best candidates.

use super::candidates::{Candidate, Candidates};
use super::codes::{Codes, PackedPanels};
use super::kernel::{Kernel, Left, PANEL};
use super::scan::{Hit, Sides, scan};

/// What one thread needs to search; reused from one search to the next.
pub(super) struct Sweep {
    kernel: Kernel,
    left: Left,
    threshold: Vec<f32>,
    hits: Vec<Hit>,
}

impl Sweep {
    pub fn new(kernel: Kernel, width: usize) -> Self {
        Sweep { kernel, left: Left::new(width), threshold: Vec::new(), hits: Vec::new() }
    }

    /// Calls `each(query, other, score)` for the pairs of `codes[ids]` and `panels` that score at least
    /// `threshold(query)`; `query` counts the ids from 0, `other` is the id of the panel's row.
    pub fn above(
        &mut self,
        codes: &Codes,
        ids: impl ExactSizeIterator<Item = usize>,
        panels: PackedPanels,
        threshold: impl Fn(usize) -> f32,
        mut each: impl FnMut(usize, u32, f32),
    ) {
        self.run(codes, ids, panels, threshold, |query, other, score| {
            each(query, other, score);
            None
        });
    }

    /// Offers every row of `panels` to the candidates of the rows `codes[ids]`, of which number `q` is row
    /// `row(q)` of `candidates`. A row is not offered to itself: `own(q)` is its id.
    pub fn offer(
        &mut self,
        codes: &Codes,
        ids: impl ExactSizeIterator<Item = usize>,
        panels: PackedPanels,
        candidates: &mut Candidates,
        row: impl Fn(usize) -> usize,
        own: impl Fn(usize) -> u32,
        exact: impl Fn(usize, u32) -> f32,
    ) {
        let thresholds: Vec<f32> = (0..ids.len()).map(|q| candidates.thresholds()[row(q)]).collect();
        self.run(
            codes,
            ids,
            panels,
            |q| thresholds[q],
            |q, id, score| {
                if id == own(q) {
                    return None;
                }
                candidates.push(row(q), Candidate { score, id }, |other| exact(q, other));
                Some(candidates.thresholds()[row(q)])
            },
        );
    }

    /// `each` may return a new threshold for its query.
    fn run(
        &mut self,
        codes: &Codes,
        ids: impl ExactSizeIterator<Item = usize>,
        panels: PackedPanels,
        threshold: impl Fn(usize) -> f32,
        mut each: impl FnMut(usize, u32, f32) -> Option<f32>,
    ) {
        let queries = ids.len();
        self.left.gather(codes, ids);
        self.threshold.clear();
        self.threshold.extend((0..queries).map(threshold));
        self.threshold.resize(self.left.rows(), f32::INFINITY);
        self.kernel.for_each_tile(&self.left, panels.bytes, |row, panel, count, tile| {
            let column = panel * PANEL;
            let sides = Sides {
                row_scale: &self.left.scale[row..],
                row_threshold: &self.threshold[row..],
                column_scale: &panels.scale[column..],
                column_threshold: None,
            };
            scan(self.kernel, tile, count, &sides, &mut self.hits, &mut Vec::new());
            for hit in self.hits.drain(..) {
                let query = row + hit.row as usize;
                let other = panels.ids[column + hit.column as usize];
                if let Some(threshold) = each(query, other, hit.score) {
                    self.threshold[query] = threshold;
                }
            }
        });
    }
}
