//! Rows in the order of their lists, ready to be searched.
//!
//! Within the search a row is known by its position in this order, because what lies near in space then lies near in memory.

use super::candidates::{Candidate, Candidates};
use super::codes::{Codes, Packed};
use super::dot::dot;
use super::exact::bound;
use super::kernel::{Kernel, PANEL};
use super::lists::{Lists, group_by_list};
use super::sweep::{Queries, Sweep};
use super::{KnnGraph, Rows};
use crate::work::Journal;
use crate::{Progress, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Lists that every row of a list searches, the list itself among them.
const FIRST_LISTS: usize = 12;
/// Rows that one task owns.
const TASK: usize = 8192;
/// Scores are trusted this much more than their proven bound: errors of many columns average out.
const TRUST: f32 = 8.0;

pub(super) struct Index<'a> {
    rows: Rows<'a>,
    pub kernel: Kernel,
    pub lists: Lists,
    /// The lists that the rows of each list search first.
    near: Vec<Vec<u32>>,
    /// The row at each position.
    pub order: Vec<u32>,
    /// The position of the first row of each list, and at the end N.
    starts: Vec<u32>,
    pub codes: Codes,
    packed: Packed,
    first_panel: Vec<usize>,
    worst_rest: f32,
}

impl<'a> Index<'a> {
    pub fn build(rows: Rows<'a>, lists: Lists, kernel: Kernel, progress: &dyn Progress) -> Result<Self> {
        let list_of = lists.of_rows(rows, kernel, progress)?;
        let mut starts = Vec::with_capacity(lists.len() + 1);
        let mut order = Vec::with_capacity(rows.len());
        for members in group_by_list(&list_of, lists.len()) {
            starts.push(order.len() as u32);
            order.extend(members);
        }
        starts.push(order.len() as u32);
        drop(list_of);
        let codes = Codes::quantise(rows, &order);
        let segments: Vec<Range<usize>> = starts.windows(2).map(|w| w[0] as usize..w[1] as usize).collect();
        let (packed, first_panel) = Packed::pack(&codes, &segments, |position| position as u32);
        let worst_rest = codes.rest.iter().fold(0.0f32, |m, &r| m.max(r));
        let near = lists.near(FIRST_LISTS, kernel);
        Ok(Index { rows, kernel, lists, near, order, starts, codes, packed, first_panel, worst_rest })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    pub fn sweep(&self) -> Sweep {
        Sweep::new(self.kernel, self.codes.width)
    }

    pub fn queries<'q>(&'q self, positions: &'q [u32]) -> Queries<'q> {
        Queries { codes: &self.codes, places: positions }
    }

    /// The exact similarity of the rows at two positions.
    pub fn similarity(&self, a: u32, b: u32) -> f32 {
        dot(self.rows.row(self.order[a as usize] as usize), self.rows.row(self.order[b as usize] as usize))
    }

    /// How far the score of a pair with the row at a position is from its similarity, nearly always.
    pub fn uncertainty(&self, position: u32) -> f32 {
        bound(self.codes.rest[position as usize], self.worst_rest, self.rows.dim()) / TRUST
    }

    /// The list of the row at a position.
    pub fn list_at(&self, position: u32) -> u32 {
        // The last that starts at or before it; lists without rows start where the next one does.
        self.starts.partition_point(|&start| start <= position) as u32 - 1
    }

    /// Rows that searching a list multiplies with, padding included.
    pub fn rows_searched(&self, list: usize) -> usize {
        (self.first_panel[list + 1] - self.first_panel[list]) * PANEL
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

    /// The K-th best score of the row at a position after its first look, and the scores of all other lists.
    pub fn look(&self, sweep: &mut Sweep, position: u32, k: usize) -> (f32, Vec<(f32, u32)>) {
        let near = &self.near[self.list_at(position) as usize];
        let mut candidates = Candidates::new(k, vec![self.uncertainty(position)]);
        for &list in near {
            self.offer(sweep, &[position], list as usize, &mut candidates, |i| i);
        }
        let mut others = Vec::with_capacity(self.lists.len());
        let everything = |_| f32::NEG_INFINITY;
        sweep.above(self.queries(&[position]), self.lists.centroids.all(), everything, |_, list, score| {
            if !near.contains(&list) {
                others.push((score, list));
            }
        });
        (candidates.last_score(0), others)
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
        let mut graph = KnnGraph { n, k, ids: vec![0; n * k], similarities: vec![0.0; n * k] };
        progress.begin("neighbours", n as u64);
        let mut tasks = Vec::new();
        let (mut ids, mut similarities) = (&mut graph.ids[..], &mut graph.similarities[..]);
        for lists in self.tasks() {
            let rows = (self.starts[lists.end] - self.starts[lists.start]) as usize;
            let (these, rest) = std::mem::take(&mut ids).split_at_mut(rows * k);
            let (those, others) = std::mem::take(&mut similarities).split_at_mut(rows * k);
            (ids, similarities) = (rest, others);
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
        Ok(graph)
    }

    /// Ranges of lists that have about [`TASK`] rows together.
    fn tasks(&self) -> Vec<Range<usize>> {
        let mut tasks = Vec::new();
        let mut first = 0;
        for list in 1..self.starts.len() {
            if (self.starts[list] - self.starts[first]) as usize >= TASK || list + 1 == self.starts.len() {
                tasks.push(first..list);
                first = list;
            }
        }
        tasks
    }

    fn search_task(
        &self,
        sweeps: &mut [Sweep; 2],
        lists: Range<usize>,
        k: usize,
        reach: f32,
        ids: &mut [u32],
        similarities: &mut [f32],
    ) {
        let first = self.starts[lists.start];
        let positions: Vec<u32> = (first..self.starts[lists.end]).collect();
        let mut candidates = Candidates::new(k, positions.iter().map(|&p| self.uncertainty(p)).collect());
        let mut near = Vec::with_capacity(positions.len());
        for list in lists {
            let rows = self.starts[list] - first..self.starts[list + 1] - first;
            for &other in &self.near[list] {
                let places = &positions[rows.start as usize..rows.end as usize];
                self.offer(&mut sweeps[0], places, other as usize, &mut candidates, |i| {
                    i + rows.start as usize
                });
            }
            near.extend(rows.map(|_| &self.near[list]));
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
        let KnnGraph { n, k, ids, similarities } = graph;
        let mut position_of = vec![0u32; n];
        for (position, &row) in self.order.iter().enumerate() {
            position_of[row as usize] = position as u32;
        }
        let ids = in_order(&ids, &position_of, k, |id| self.order[id as usize]);
        let similarities = in_order(&similarities, &position_of, k, |s| s);
        let mut graph = KnnGraph { n, k, ids, similarities };
        graph.ids.par_chunks_exact_mut(k).zip(graph.similarities.par_chunks_exact(k)).for_each(
            |(ids, similarities)| {
                let mut start = 0;
                for equal in similarities.chunk_by(|a, b| a == b) {
                    ids[start..start + equal.len()].sort_unstable();
                    start += equal.len();
                }
            },
        );
        graph
    }
}

/// Rows of `k` values in another order, each value mapped; the old rows are freed.
fn in_order<T: Copy + Default + Send + Sync>(
    values: &[T],
    order: &[u32],
    k: usize,
    map: impl Fn(T) -> T + Sync,
) -> Vec<T> {
    let mut ordered = vec![T::default(); values.len()];
    ordered.par_chunks_exact_mut(k).zip(order).for_each(|(to, &from)| {
        let from = &values[from as usize * k..][..k];
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = map(from));
    });
    ordered
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
