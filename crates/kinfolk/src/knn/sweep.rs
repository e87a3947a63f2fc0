//! One-sided search: some rows against panels of others, each keeping its best candidates.

use super::candidates::{Candidate, Candidates};
use super::codes::{Codes, PackedPanels};
use super::kernel::{Kernel, Left, PANEL};
use super::scan::{Hit, Sides, scan};

/// The rows that search: those of `codes` at some places, which count as query 0, 1, 2 ...
#[derive(Clone, Copy)]
pub(super) struct Queries<'a> {
    pub codes: &'a Codes,
    pub places: &'a [u32],
}

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

    /// Calls `each(query, other, score)` for the pairs of `queries` and `panels` that score at least
    /// `threshold(query)`; `other` is the id of the panel's row.
    pub fn above(
        &mut self,
        queries: Queries,
        panels: PackedPanels,
        threshold: impl Fn(usize) -> f32,
        mut each: impl FnMut(usize, u32, f32),
    ) {
        self.run(queries, panels, threshold, |query, other, score| {
            each(query, other, score);
            None
        });
    }

    /// Offers every row of `panels` to the queries; query `q` is row `row(q)` of `candidates`. A row is not
    /// offered to itself: `own(q)` is its id.
    pub fn offer(
        &mut self,
        queries: Queries,
        panels: PackedPanels,
        candidates: &mut Candidates,
        row: impl Fn(usize) -> usize,
        own: impl Fn(usize) -> u32,
        exact: impl Fn(usize, u32) -> f32,
    ) {
        let thresholds: Vec<f32> =
            (0..queries.places.len()).map(|q| candidates.thresholds()[row(q)]).collect();
        self.run(
            queries,
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
        queries: Queries,
        panels: PackedPanels,
        threshold: impl Fn(usize) -> f32,
        mut each: impl FnMut(usize, u32, f32) -> Option<f32>,
    ) {
        self.left.gather(queries.codes, queries.places.iter().map(|&place| place as usize));
        self.threshold.clear();
        self.threshold.extend((0..queries.places.len()).map(threshold));
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
