//! The neighbours of rows that are added to a graph, and the old rows to which a new one is nearer than their last neighbour.
//!
//! Rows are in lists, as for the approximate search; each new row says which lists it searches. Every pair of a new row and one
//! of these lists is scored once, as int8, and serves both ends. Scores are trusted only as far as their proven bound, so within
//! the lists that are searched nothing is missed, in whichever order they are. If every row searches every list, the search is
//! exact.
//!
//! Cost: D integer products for each pair; the rows of the lists are coded anew, which costs less than reading them.

use super::candidates::{Candidate, Candidates};
use super::codes::{Codes, Packed};
use super::dot::dot;
use super::exact::bound;
use super::index::worst_rest;
use super::kernel::{Kernel, Left, PANEL};
use super::scan::{Hit, Sides, scan};
use crate::{Embeddings, Error, Progress, Result};
use rayon::prelude::*;

/// Rows of the lists that are coded at a time.
const BLOCK: usize = 16_384;
/// New rows that one task owns.
const TASK: usize = 64;

/// Rows that are added, and where they search.
pub struct Added<'a> {
    /// Number of columns.
    pub dim: usize,
    /// Any row, old or new, of unit length.
    pub row: &'a (dyn Fn(u32) -> &'a [f32] + Sync),
    /// The new rows, ascending.
    pub new: &'a [u32],
    /// The rows of each list; new rows are found if they are listed.
    pub lists: &'a [Vec<u32>],
    /// For each list the places in `new` of those that search it, ascending.
    pub visits: &'a [Vec<u32>],
    /// What coding loses of any row of the lists, at most: [`coding_loss`].
    pub loss: f32,
}

/// The largest part of any of these rows that is lost by coding it as int8.
pub fn coding_loss(rows: &Embeddings) -> f32 {
    let tasks: Vec<u32> = (0..rows.len().div_ceil(BLOCK) as u32).collect();
    let of_task = |&task: &u32| {
        let first = task as usize * BLOCK;
        let count = (rows.len() - first).min(BLOCK);
        worst_rest(&Codes::from_rows(rows.dim(), count, |i| rows.row(first + i)).rest)
    };
    tasks.iter().map(of_task).fold(0.0, f32::max)
}

/// An old row, a new one that is nearer to it than it must be, and their similarity.
type Near = (u32, u32, f32);

/// What [`Added::neighbours`] finds.
#[derive(Debug, PartialEq)]
pub struct AddedNeighbours {
    /// The neighbours of each new row, row-major.
    pub ids: Vec<u32>,
    /// Their similarities.
    pub similarities: Vec<f32>,
    /// (old row, new row, similarity) for every pair in which the new row is nearer than it must be, in this order.
    pub nearer: Vec<(u32, u32, f32)>,
}

impl Added<'_> {
    /// The `k` nearest rows of each new row; and the rows to which a new one is more similar than `last` of them, which is
    /// infinity for rows that are not asked about.
    pub fn neighbours(
        &self,
        k: usize,
        last: impl Fn(u32) -> f32 + Sync,
        progress: &dyn Progress,
    ) -> Result<AddedNeighbours> {
        let code = |rows: &[u32]| Codes::from_rows(self.dim, rows.len(), |i| (self.row)(rows[i]));
        let codes = code(self.new);
        let worst_new = worst_rest(&codes.rest);
        let mut tasks: Vec<Task> = (0..self.new.len())
            .step_by(TASK)
            .map(|first| {
                let rests = &codes.rest[first..self.new.len().min(first + TASK)];
                let uncertainty = rests.iter().map(|&rest| bound(rest, self.loss, self.dim)).collect();
                Task::new(first, k, uncertainty, codes.width)
            })
            .collect();
        progress.begin("neighbours", self.lists.len() as u64);
        for lists in self.blocks() {
            progress.check()?;
            let members: Vec<u32> = self.lists[lists.clone()].concat();
            let mut segments = Vec::with_capacity(lists.len());
            let mut start = 0;
            for list in &self.lists[lists.clone()] {
                segments.push(start..start + list.len());
                start += list.len();
            }
            let coded = code(&members);
            let (packed, first_panel) = Packed::pack(&coded, &segments, |place| place as u32);
            let threshold = |&place: &u32| match members.get(place as usize) {
                Some(&row) => last(row) - bound(coded.rest[place as usize], worst_new, self.dim),
                None => f32::INFINITY,
            };
            let thresholds: Vec<f32> = packed.ids.par_iter().map(threshold).collect();
            let block = Block { members: &members, packed: &packed, thresholds: &thresholds };
            tasks.par_iter_mut().for_each(|task| {
                for (at, list) in lists.clone().enumerate() {
                    task.visit(self, &codes, &block, first_panel[at]..first_panel[at + 1], list, &last);
                }
            });
            progress.advance(lists.len() as u64);
        }
        let found: Vec<(Vec<Candidate>, Vec<Near>)> =
            tasks.into_par_iter().map(|task| task.finish(self)).collect();
        let (mut ids, mut similarities, mut nearer) = (Vec::new(), Vec::new(), Vec::new());
        for (neighbours, near) in found {
            ids.extend(neighbours.iter().map(|neighbour| neighbour.id));
            similarities.extend(neighbours.iter().map(|neighbour| neighbour.score));
            nearer.extend(near);
        }
        if ids.len() != self.new.len() * k {
            let what = format!("neighbours ({} new rows x {k})", self.new.len());
            let (expected, found) = (self.new.len() * k, ids.len());
            return Err(Error::Length { place: "lists".to_owned(), what, expected, found });
        }
        nearer.sort_unstable_by_key(|near: &Near| (near.0, near.1));
        Ok(AddedNeighbours { ids, similarities, nearer })
    }

    /// Consecutive lists that some row searches, of about [`BLOCK`] rows.
    fn blocks(&self) -> Vec<std::ops::Range<usize>> {
        let (mut blocks, mut start, mut rows) = (Vec::new(), 0, 0);
        for (list, members) in self.lists.iter().enumerate() {
            rows += members.len();
            if rows >= BLOCK || list + 1 == self.lists.len() {
                blocks.push(start..list + 1);
                (start, rows) = (list + 1, 0);
            }
        }
        blocks.retain(|block| self.visits[block.clone()].iter().any(|visits| !visits.is_empty()));
        blocks
    }
}

/// Some lists, ready to be searched.
struct Block<'a> {
    members: &'a [u32],
    packed: &'a Packed,
    /// What a score must reach for a new row to be among the neighbours of each row of the panels.
    thresholds: &'a [f32],
}

/// Some of the new rows, and what was found for them.
struct Task {
    first: usize,
    candidates: Candidates,
    rows: usize,
    left: Left,
    row_thresholds: Vec<f32>,
    hits: [Vec<Hit>; 2],
    nearer: Vec<Near>,
}

impl Task {
    fn new(first: usize, k: usize, uncertainty: Vec<f32>, width: usize) -> Self {
        Task {
            first,
            rows: uncertainty.len(),
            candidates: Candidates::new(k, uncertainty),
            left: Left::new(width),
            row_thresholds: Vec::new(),
            hits: Default::default(),
            nearer: Vec::new(),
        }
    }

    /// Searches one list.
    fn visit(
        &mut self,
        added: &Added<'_>,
        codes: &Codes,
        block: &Block<'_>,
        panels: std::ops::Range<usize>,
        list: usize,
        last: &(impl Fn(u32) -> f32 + Sync),
    ) {
        let visits = &added.visits[list];
        let own = |place: u32| (place as usize) < self.first + self.rows;
        let start = visits.partition_point(|&place| (place as usize) < self.first);
        let visits: Vec<usize> =
            visits[start..].iter().take_while(|&&place| own(place)).map(|&place| place as usize).collect();
        if visits.is_empty() {
            return;
        }
        let Task { first, candidates, left, row_thresholds, hits: [for_rows, for_columns], nearer, .. } =
            self;
        left.gather(codes, visits.iter().copied());
        row_thresholds.clear();
        row_thresholds.extend(visits.iter().map(|place| candidates.thresholds()[place - *first]));
        row_thresholds.resize(left.rows(), f32::INFINITY);
        let thresholds = &block.thresholds[panels.start * PANEL..panels.end * PANEL];
        let panels = block.packed.panels(panels);
        let kernel = Kernel::default();
        let similarity = |place: usize, row: u32| dot((added.row)(added.new[place]), (added.row)(row));
        kernel.for_each_tile(left, panels.bytes, |row, panel, count, tile| {
            let column = panel * PANEL;
            let sides = Sides {
                row_scale: &left.scale[row..],
                row_threshold: &row_thresholds[row..],
                column_scale: &panels.scale[column..],
                column_threshold: Some(&thresholds[column..]),
            };
            scan(kernel, tile, count, &sides, for_rows, for_columns);
            let pair = |hit: &Hit| {
                let member = block.members[panels.ids[column + hit.column as usize] as usize];
                (visits[row + hit.row as usize], member)
            };
            for hit in for_rows.drain(..) {
                let (place, member) = pair(&hit);
                if member != added.new[place] {
                    let candidate = Candidate { score: hit.score, id: member };
                    candidates.push(place - *first, candidate, |other| similarity(place, other));
                    row_thresholds[row + hit.row as usize] = candidates.thresholds()[place - *first];
                }
            }
            for hit in for_columns.drain(..) {
                let (place, member) = pair(&hit);
                let exact = similarity(place, member);
                if member != added.new[place] && exact > last(member) {
                    nearer.push((member, added.new[place], exact));
                }
            }
        });
    }

    /// The neighbours of each row, one after the other, and the pairs in which a new row is nearer.
    fn finish(mut self, added: &Added<'_>) -> (Vec<Candidate>, Vec<Near>) {
        let mut neighbours = Vec::new();
        for row in 0..self.rows {
            let own = (added.row)(added.new[self.first + row]);
            let exact = |other: u32| dot(own, (added.row)(other));
            neighbours.extend_from_slice(self.candidates.finish(row, exact));
        }
        (neighbours, self.nearer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{embeddings_and_graph, knn, on_one_and_three_threads};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn old_and_new_lists_are_those_of_a_search_of_all((embeddings, whole) in embeddings_and_graph(), share in 0.0..1.0) {
            let (n, k) = (embeddings.len(), whole.k());
            let old = (k + 1 + ((n - k - 1) as f64 * share) as usize).min(n);
            prop_assume!(k > 0 && old < n);
            let before = Embeddings::from_rows(embeddings.as_slice()[..old * embeddings.dim()].to_vec(), embeddings.dim(), "test").unwrap();
            let before = knn(&before, k);
            let new: Vec<u32> = (old as u32..n as u32).collect();
            let lists: Vec<Vec<u32>> = (0..3).map(|list| (0..n as u32).filter(|i| i % 3 == list).collect()).collect();
            let all: Vec<u32> = (0..new.len() as u32).collect();
            let visits = vec![all; 3];
            let row = |row: u32| embeddings.row(row as usize);
            let added = Added { dim: embeddings.dim(), row: &row, new: &new, lists: &lists, visits: &visits, loss: coding_loss(&embeddings) };
            let last = |row: u32| if (row as usize) < old { before.neighbours(row as usize).1[k - 1] } else { f32::INFINITY };
            let [found, three] = on_one_and_three_threads(|| added.neighbours(k, last, &()).unwrap());
            prop_assert_eq!(&found, &three);
            // Of similarities that are equal but for rounding, any may be listed.
            let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
            for (at, row) in (old..n).enumerate() {
                prop_assert!(close(&found.similarities[at * k..][..k], whole.neighbours(row).1));
            }
            for row in 0..old {
                let mut list = before.neighbours(row).1.to_vec();
                list.extend(found.nearer.iter().filter(|near| near.0 as usize == row).map(|near| near.2));
                list.sort_by(|a, b| b.total_cmp(a));
                prop_assert!(close(&list[..k], whole.neighbours(row).1));
            }
        }
    }
}
