//! Rows in the order of their lists, ready to be searched.
//!
//! Within the search a row is known by its position in this order, because what lies near in space then lies near in memory.

use super::candidates::{Candidate, Candidates};
use super::codes::{Codes, Packed};
use super::dot::dot;
use super::exact::bound;
use super::kernel::{Kernel, PANEL};
use super::layout::Layout;
use super::lists::Lists;
use super::sweep::{Queries, Sweep};
use super::{KnnGraph, Rows};
use crate::values::Values;
use crate::work::Journal;
use crate::{Progress, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Lists that every row of a list searches, the list itself among them.
pub(super) const FIRST_LISTS: usize = 12;
/// Rows that one task owns.
const TASK: usize = 8192;
/// Scores are trusted this much more than their proven bound: errors of many columns average out.
const TRUST: f32 = 8.0;

pub(super) struct Index<'a> {
    pub rows: Rows<'a>,
    pub kernel: Kernel,
    pub lists: Lists,
    /// The lists that the rows of each list search first, the same number for each.
    pub near: Values<u32>,
    pub layout: Layout,
    pub codes: Codes,
    pub packed: Packed,
    /// The first panel of each list, and at the end the number of panels.
    pub first_panel: Vec<usize>,
    pub worst_rest: f32,
}

impl<'a> Index<'a> {
    pub fn build(rows: Rows<'a>, lists: Lists, kernel: Kernel, progress: &dyn Progress) -> Result<Self> {
        let list_of = lists.of_rows(rows, kernel, progress)?;
        let layout = Layout::of(&list_of, lists.len());
        drop(list_of);
        let (codes, packed) = pack(rows, &layout, 0..lists.len());
        let near = lists.near(FIRST_LISTS, kernel).into();
        let (first_panel, worst_rest) = (layout.first_panels(), worst_rest(&codes.rest));
        Ok(Index { rows, kernel, lists, near, layout, codes, packed, first_panel, worst_rest })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.layout.order.len()
    }

    pub fn sweep(&self) -> Sweep {
        Sweep::new(self.kernel, self.codes.width)
    }

    pub fn queries<'q>(&'q self, positions: &'q [u32]) -> Queries<'q> {
        Queries { codes: &self.codes, places: positions }
    }

    /// The exact similarity of the rows at two positions.
    pub fn similarity(&self, a: u32, b: u32) -> f32 {
        dot(self.row(a), self.row(b))
    }

    fn row(&self, position: u32) -> &'a [f32] {
        self.rows.row(self.layout.order[position as usize] as usize)
    }

    /// How far the score of a pair with the row at a position is from its similarity, nearly always.
    pub fn uncertainty(&self, position: u32) -> f32 {
        bound(self.codes.rest[position as usize], self.worst_rest, self.rows.dim()) / TRUST
    }

    /// The lists that the rows of a list search first.
    fn near(&self, list: usize) -> &[u32] {
        let count = self.near.len() / self.lists.len();
        &self.near[list * count..][..count]
    }

    /// The exact neighbours of the rows at some positions.
    pub fn exact_neighbours(&self, sweep: &mut Sweep, positions: &[u32], k: usize) -> Vec<Vec<Candidate>> {
        let proven = |&p: &u32| self.uncertainty(p) * TRUST;
        let mut candidates = Candidates::new(k, positions.iter().map(proven).collect());
        let exact = |q: usize, other| self.similarity(positions[q], other);
        let own = |q: usize| positions[q];
        sweep.offer(self.queries(positions), self.packed.all(), &mut candidates, |q| q, own, exact);
        (0..positions.len()).map(|q| candidates.finish(q, |other| exact(q, other)).to_vec()).collect()
    }

    /// Offers the rows of a list to those at some positions, the i-th of which is row `row(i)` of the candidates.
    fn offer(
        &self,
        sweep: &mut Sweep,
        positions: &[u32],
        list: usize,
        candidates: &mut Candidates,
        row: impl Fn(usize) -> usize,
    ) {
        let panels = self.packed.panels(self.first_panel[list]..self.first_panel[list + 1]);
        let exact = |i: usize, other| self.similarity(positions[i], other);
        sweep.offer(self.queries(positions), panels, candidates, row, |i| positions[i], exact);
    }

    /// The reach within which the row at a position searches each list: minus infinity for those of its first look.
    pub fn reaches(&self, sweep: &mut Sweep, position: u32, k: usize) -> Vec<f32> {
        let near = self.near(self.layout.list_at(position));
        let mut candidates = Candidates::new(k, vec![self.uncertainty(position)]);
        for &list in near {
            self.offer(sweep, &[position], list as usize, &mut candidates, |i| i);
        }
        let last_score = candidates.last_score(0);
        let mut reaches = vec![f32::NEG_INFINITY; self.lists.len()];
        let everything = |_| f32::NEG_INFINITY;
        sweep.above(self.queries(&[position]), self.lists.centroids.all(), everything, |_, list, score| {
            if !near.contains(&list) {
                reaches[list as usize] = last_score - score;
            }
        });
        reaches
    }

    /// The `k` nearest of every row, by position, that the first look and lists within `reach` of the K-th score find.
    /// With a journal, blocks of this attempt that it has are taken from there, and others are added to it.
    pub fn search(
        &self,
        k: usize,
        reach: f32,
        journal: Option<(&Journal, u32)>,
        progress: &dyn Progress,
    ) -> Result<KnnGraph> {
        let n = self.len();
        let (mut ids, mut similarities) = (vec![0; n * k], vec![0.0; n * k]);
        progress.begin("neighbours", n as u64);
        let mut tasks = Vec::new();
        let (mut ids_left, mut similarities_left) = (&mut ids[..], &mut similarities[..]);
        for lists in self.layout.tasks(TASK) {
            let rows = self.layout.positions(lists.clone()).len();
            let (these, rest) = std::mem::take(&mut ids_left).split_at_mut(rows * k);
            let (those, others) = std::mem::take(&mut similarities_left).split_at_mut(rows * k);
            (ids_left, similarities_left) = (rest, others);
            tasks.push((lists, these, those));
        }
        tasks.into_par_iter().enumerate().with_max_len(1).try_for_each_init(
            || [self.sweep(), self.sweep()],
            |sweeps, (task, (lists, ids, similarities))| {
                progress.check()?;
                let number = |attempt: u32| u64::from(attempt) << 32 | task as u64;
                let done = match journal {
                    Some((journal, attempt)) => journal.take(
                        number(attempt),
                        &mut [bytemuck::cast_slice_mut(ids), bytemuck::cast_slice_mut(similarities)],
                    )?,
                    None => false,
                };
                if !done {
                    self.search_task(sweeps, lists, k, reach, ids, similarities);
                    if let Some((journal, attempt)) = journal {
                        let arrays = [bytemuck::cast_slice(ids), bytemuck::cast_slice(similarities)];
                        journal.add(number(attempt), &arrays)?;
                    }
                }
                progress.advance((ids.len() / k) as u64);
                Ok(())
            },
        )?;
        Ok(KnnGraph::of_valid_parts(n, k, ids, similarities))
    }

    /// The `k` nearest of the rows of some lists.
    pub fn search_task(
        &self,
        sweeps: &mut [Sweep; 2],
        lists: Range<usize>,
        k: usize,
        reach: f32,
        ids: &mut [u32],
        similarities: &mut [f32],
    ) {
        let first = self.layout.starts[lists.start];
        let positions: Vec<u32> = self.layout.positions(lists.clone()).map(|p| p as u32).collect();
        let mut candidates = Candidates::new(k, positions.iter().map(|&p| self.uncertainty(p)).collect());
        let mut near = Vec::with_capacity(positions.len());
        for list in lists {
            let rows = self.layout.starts[list] - first..self.layout.starts[list + 1] - first;
            for &other in self.near(list) {
                let places = &positions[rows.start as usize..rows.end as usize];
                self.offer(&mut sweeps[0], places, other as usize, &mut candidates, |i| {
                    i + rows.start as usize
                });
            }
            near.extend(rows.map(|_| self.near(list)));
        }
        let least: Vec<f32> = (0..positions.len()).map(|q| candidates.last_score(q) - reach).collect();
        let [choose, search] = sweeps;
        let mut visit = |list: usize, queries: &[u32]| {
            let places: Vec<u32> = queries.iter().map(|&q| positions[q as usize]).collect();
            self.offer(search, &places, list, &mut candidates, |i| queries[i] as usize);
        };
        let mut visits = Visits::default();
        choose.above(
            self.queries(&positions),
            self.lists.centroids.all(),
            |q| least[q],
            |q, list, _| {
                if !near[q].contains(&list) {
                    visits.push(list, q as u32, &mut visit);
                }
            },
        );
        visits.finish(&mut visit);
        let rows = ids.chunks_exact_mut(k).zip(similarities.chunks_exact_mut(k));
        for (q, (ids, similarities)) in rows.enumerate() {
            let exact = |other| self.similarity(positions[q], other);
            let mut best = candidates.finish(q, exact).to_vec();
            if best.len() < k {
                // Only when all the lists within reach hold fewer than k rows.
                best = self.exact_neighbours(search, &positions[q..=q], k).remove(0);
            }
            for ((id, similarity), found) in ids.iter_mut().zip(similarities).zip(&best) {
                (*id, *similarity) = (found.id, found.score);
            }
        }
    }

    /// A graph of positions as one of rows.
    pub fn to_rows(&self, graph: KnnGraph) -> KnnGraph {
        let (n, k) = (graph.n, graph.k);
        let position_of = self.layout.position_of();
        // One array after the other, and the old one freed before the next.
        let ids = {
            let of_positions = graph.ids;
            let mut ids = vec![0; n * k];
            ids.par_chunks_exact_mut(k).zip(&position_of).for_each(|(ids, &position)| {
                self.layout.rows_at(&of_positions[position as usize * k..][..k], ids);
            });
            ids
        };
        let mut similarities = vec![0.0; n * k];
        similarities.par_chunks_exact_mut(k).zip(&position_of).for_each(|(similarities, &position)| {
            similarities.copy_from_slice(&graph.similarities[position as usize * k..][..k]);
        });
        drop(graph.similarities);
        let mut ids = ids;
        let rows = ids.par_chunks_exact_mut(k).zip(similarities.par_chunks_exact(k));
        rows.for_each(|(ids, similarities)| order_equals(ids, similarities));
        KnnGraph::of_valid_parts(n, k, ids, similarities)
    }
}

/// Neighbours of equal similarity are ordered by id.
pub(super) fn order_equals(ids: &mut [u32], similarities: &[f32]) {
    let mut start = 0;
    for equal in similarities.chunk_by(|a, b| a == b) {
        ids[start..start + equal.len()].sort_unstable();
        start += equal.len();
    }
}

/// The codes of the rows of some lists, by position, and the same packed so that every list begins a panel.
pub(super) fn pack(rows: Rows, layout: &Layout, lists: Range<usize>) -> (Codes, Packed) {
    let positions = layout.positions(lists.clone());
    let first = positions.start;
    let codes = Codes::quantise(rows, &layout.order[positions]);
    let place = |list: usize| layout.starts[list] as usize - first;
    let segments: Vec<Range<usize>> = lists.map(|list| place(list)..place(list + 1)).collect();
    let packed = Packed::pack(&codes, &segments, |place| (first + place) as u32).0;
    (codes, packed)
}

/// The largest of the rests of all rows.
pub(super) fn worst_rest(rests: &[f32]) -> f32 {
    rests.iter().fold(0.0f32, |most, &rest| most.max(rest))
}

/// Rows that search lists, grouped by list while the lists come in blocks of [`Visits::BLOCK`], each block whole before the next.
#[derive(Default)]
struct Visits {
    block: usize,
    queries: [Vec<u32>; Visits::BLOCK],
}

impl Visits {
    /// Lists whose scores come together: those of a tile of centroids.
    const BLOCK: usize = 2 * PANEL;

    /// Adds a visit; `search` is called for the lists of the block before where this one begins another.
    fn push(&mut self, list: u32, query: u32, search: &mut impl FnMut(usize, &[u32])) {
        let (block, at) = (list as usize / Self::BLOCK, list as usize % Self::BLOCK);
        if block != self.block {
            self.finish(search);
            self.block = block;
        }
        self.queries[at].push(query);
    }

    /// Calls `search` for the lists of the last block.
    fn finish(&mut self, search: &mut impl FnMut(usize, &[u32])) {
        let first = self.block * Self::BLOCK;
        for (at, queries) in self.queries.iter_mut().enumerate().filter(|(_, queries)| !queries.is_empty()) {
            search(first + at, queries);
            queries.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_grouped_by_list() {
        let mut seen = Vec::new();
        let mut search = |list: usize, queries: &[u32]| seen.push((list, queries.to_vec()));
        let mut visits = Visits::default();
        for (list, query) in [(4, 7), (1, 9), (4, 2), (40, 9), (33, 3), (95, 1)] {
            visits.push(list, query, &mut search);
        }
        visits.finish(&mut search);
        visits.finish(&mut search);
        assert_eq!(seen, [(1, vec![9]), (4, vec![7, 2]), (33, vec![3]), (40, vec![9]), (95, vec![1])]);
    }
}
