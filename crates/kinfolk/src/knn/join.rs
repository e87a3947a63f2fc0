//! Approximate neighbours: an IVF join of the set with itself.
//!
//! Rows are assigned to lists around centroids. Each row first searches its [`FIRST_LISTS`] nearest lists, which gives an
//! estimate s_K of its K-th similarity; then every list whose centroid scores at least s_K - reach. So a row with K near
//! neighbours searches few lists and one without searches many: at recall 0.98 this costs two thirds of a fixed number of
//! lists per row. Within a list every row is scored as int8, and the remaining candidates are computed exactly. Tasks own their
//! rows, so there are no locks, and the result is the same on any number of threads.
//!
//! `reach` follows from a sample of rows with exact neighbours. For each of these neighbours, the reach that would have found
//! it is known; their R-quantile finds the share R.

use super::candidates::{Candidate, Candidates};
use super::codes::{Codes, Packed};
use super::dot::dot;
use super::exact::bound;
use super::kernel::Kernel;
use super::lists::{Lists, group_by_list};
use super::sweep::{Queries, Sweep};
use super::{KnnGraph, KnnReport, Rows};
use crate::random::{Purpose, Stream};
use crate::{Progress, Result};
use rayon::prelude::*;

/// Lists that every row looks at.
const FIRST_LISTS: usize = 8;
/// Rows that one task owns.
const TASK: usize = 4096;
/// Tasks between two scatters of results into the graph.
const TASKS_AT_ONCE: usize = 16;
/// Rows whose exact neighbours choose the reach, and as many others that measure the recall.
const SAMPLE: usize = 512;
/// Scores are trusted this much more than their proven bound: errors of many columns average out.
const TRUST: f32 = 8.0;
/// The target is higher than the requested recall by this share of what may be missed, because samples vary.
const CAUTION: f32 = 0.15;

/// The graph of the `k` nearest, with at least the share `recall` of the true ones, as measured on a sample.
pub(super) fn join(
    rows: Rows,
    k: usize,
    recall: f32,
    seed: u64,
    kernel: Kernel,
    progress: &dyn Progress,
) -> Result<(KnnGraph, KnnReport)> {
    let count = list_count(rows.len());
    let lists = Lists::train(rows, count, seed, kernel, progress)?;
    let index = Index::build(rows, lists, kernel, progress)?;
    let sample = Stream::new(seed, Purpose::Recall, 0, 0).sample(rows.len(), 2 * SAMPLE);
    let truth = index.exact_neighbours(&sample, k, progress)?;
    let (to_choose, to_measure) = truth.split_at(truth.len() / 2);
    let mut reaches = index.reaches(to_choose, k);
    reaches.sort_unstable_by(f32::total_cmp);

    let mut aim = recall + CAUTION * (1.0 - recall);
    loop {
        let at = ((aim * reaches.len() as f32).ceil() as usize).clamp(1, reaches.len()) - 1;
        let graph = index.join(k, reaches[at], progress)?;
        let measured = measure_recall(&graph, to_measure);
        if measured >= recall || at + 1 == reaches.len() {
            let report = KnnReport {
                exact: false,
                kernel: kernel.name(),
                recall: Some(measured),
                lists: Some(count),
                reach: Some(reaches[at]),
            };
            return Ok((graph, report));
        }
        aim += (1.0 - aim) / 2.0;
    }
}

/// Few lists make long ones to search, many lists take long to choose from; 4 to 8 times the root of N cost about
/// the same.
fn list_count(n: usize) -> usize {
    ((5.0 * (n as f64).sqrt()) as usize).clamp(1, n)
}

/// A row of the sample with its true neighbours.
struct Truth {
    /// Its place in list order.
    position: u32,
    row: u32,
    neighbours: Vec<Candidate>,
}

/// The share of neighbours at least as similar as the last true one; which of several equals is listed does not
/// count.
fn measure_recall(graph: &KnnGraph, truth: &[Truth]) -> f32 {
    let found = truth.iter().map(|t| {
        let last = t.neighbours[graph.k() - 1].score;
        graph.neighbours(t.row as usize).1.iter().filter(|&&similarity| similarity >= last).count()
    });
    found.sum::<usize>() as f32 / (truth.len() * graph.k()) as f32
}

/// Rows in the order of their lists, ready to be searched.
struct Index<'a> {
    rows: Rows<'a>,
    kernel: Kernel,
    lists: Lists,
    /// Row numbers in list order; `codes` follow it.
    order: Vec<u32>,
    codes: Codes,
    /// The list of each row.
    list_of: Vec<u32>,
    packed: Packed,
    first_panel: Vec<usize>,
    worst_rest: f32,
}

/// Some rows after their first look.
struct FirstLook {
    candidates: Candidates,
    /// The lists that were looked at, FIRST_LISTS (or all) of each row.
    lists: Vec<Vec<u32>>,
    /// The K-th best score of each row.
    last_score: Vec<f32>,
}

impl<'a> Index<'a> {
    fn build(rows: Rows<'a>, lists: Lists, kernel: Kernel, progress: &dyn Progress) -> Result<Self> {
        let unordered = Codes::quantise(rows, &(0..rows.len() as u32).collect::<Vec<_>>());
        let list_of = lists.nearest(&unordered, kernel, progress)?;
        let members = group_by_list(&list_of, lists.centroids.len());
        let mut segments = Vec::with_capacity(members.len());
        let mut order = Vec::with_capacity(rows.len());
        for members in members {
            segments.push(order.len()..order.len() + members.len());
            order.extend(members);
        }
        let codes = unordered.reorder(&order);
        let (packed, first_panel) = Packed::pack(&codes, &segments, |position| order[position]);
        let worst_rest = codes.rest.iter().fold(0.0f32, |m, &r| m.max(r));
        Ok(Index { rows, kernel, lists, order, codes, list_of, packed, first_panel, worst_rest })
    }

    fn queries<'q>(&'q self, positions: &'q [u32]) -> Queries<'q> {
        Queries { codes: &self.codes, places: positions }
    }

    fn similarity(&self, a: u32, b: u32) -> f32 {
        dot(self.rows.row(a as usize), self.rows.row(b as usize))
    }

    fn candidates(&self, positions: &[u32], k: usize, trust: f32) -> Candidates {
        let rest = positions.iter().map(|&p| self.codes.rest[p as usize]);
        Candidates::new(k, rest.map(|r| bound(r, self.worst_rest, self.rows.dim()) / trust).collect())
    }

    /// The rows at some positions, each with its true neighbours.
    fn exact_neighbours(&self, positions: &[u32], k: usize, progress: &dyn Progress) -> Result<Vec<Truth>> {
        const QUERIES: usize = 64;
        progress.begin("sample", positions.len() as u64);
        let found = positions.par_chunks(QUERIES).map_init(
            || Sweep::new(self.kernel, self.codes.width),
            |sweep, positions| {
                if progress.cancelled() {
                    return Vec::new();
                }
                let found = self.search_all(sweep, positions, k, 1.0);
                progress.advance(positions.len() as u64);
                let truth = |(&position, neighbours)| Truth {
                    position,
                    row: self.order[position as usize],
                    neighbours,
                };
                positions.iter().zip(found).map(truth).collect::<Vec<_>>()
            },
        );
        let found = found.flatten().collect();
        progress.check()?;
        Ok(found)
    }

    /// The exact neighbours of the rows at some positions.
    fn search_all(&self, sweep: &mut Sweep, positions: &[u32], k: usize, trust: f32) -> Vec<Vec<Candidate>> {
        let mut candidates = self.candidates(positions, k, trust);
        let row = |q: usize| self.order[positions[q] as usize];
        let exact = |q: usize, other| self.similarity(row(q), other);
        sweep.offer(self.queries(positions), self.packed.all(), &mut candidates, |q| q, row, exact);
        (0..positions.len()).map(|q| candidates.finish(q, |other| exact(q, other)).to_vec()).collect()
    }

    /// For each true neighbour, the reach that finds it: minus infinity if the first look does.
    fn reaches(&self, truth: &[Truth], k: usize) -> Vec<f32> {
        let positions: Vec<u32> = truth.iter().map(|t| t.position).collect();
        let mut sweep = Sweep::new(self.kernel, self.codes.width);
        let look = self.first_look(&mut sweep, &positions, k);
        let mut reaches = Vec::with_capacity(truth.len() * k);
        for (q, truth) in truth.iter().enumerate() {
            let mut score = vec![0.0; self.lists.centroids.len()];
            let own = self.queries(std::slice::from_ref(&truth.position));
            let everything = |_| f32::NEG_INFINITY;
            sweep.above(own, self.lists.centroids.all(), everything, |_, list, s| score[list as usize] = s);
            reaches.extend(truth.neighbours.iter().map(|n| match self.list_of[n.id as usize] {
                list if look.lists[q].contains(&list) => f32::NEG_INFINITY,
                list => look.last_score[q] - score[list as usize],
            }));
        }
        reaches
    }

    fn first_look(&self, sweep: &mut Sweep, positions: &[u32], k: usize) -> FirstLook {
        let mut nearest = Candidates::new(FIRST_LISTS, vec![0.0; positions.len()]);
        let no_self = |_| u32::MAX;
        let queries = self.queries(positions);
        sweep.offer(queries, self.lists.centroids.all(), &mut nearest, |q| q, no_self, |_, _| 0.0);
        let lists: Vec<Vec<u32>> =
            (0..positions.len()).map(|q| nearest.by_score(q).iter().map(|c| c.id).collect()).collect();
        let mut visits = vec![Vec::new(); self.lists.centroids.len()];
        for (q, lists) in lists.iter().enumerate() {
            lists.iter().for_each(|&list| visits[list as usize].push(q as u32));
        }
        let mut candidates = self.candidates(positions, k, TRUST);
        self.visit(sweep, positions, &visits, &mut candidates);
        let last_score = (0..positions.len()).map(|q| candidates.last_score(q)).collect();
        FirstLook { candidates, lists, last_score }
    }

    /// Offers the rows of each list to the queries that visit it.
    fn visit(&self, sweep: &mut Sweep, positions: &[u32], visits: &[Vec<u32>], candidates: &mut Candidates) {
        for (list, queries) in visits.iter().enumerate().filter(|(_, queries)| !queries.is_empty()) {
            let places: Vec<u32> = queries.iter().map(|&q| positions[q as usize]).collect();
            let row = |i: usize| self.order[places[i] as usize];
            sweep.offer(
                self.queries(&places),
                self.packed.panels(self.first_panel[list]..self.first_panel[list + 1]),
                candidates,
                |i| queries[i] as usize,
                row,
                |i, other| self.similarity(row(i), other),
            );
        }
    }

    fn join(&self, k: usize, reach: f32, progress: &dyn Progress) -> Result<KnnGraph> {
        let n = self.order.len();
        let mut graph = KnnGraph { n, k, ids: vec![0; n * k], similarities: vec![0.0; n * k] };
        progress.begin("neighbours", n as u64);
        let positions: Vec<u32> = (0..n as u32).collect();
        for tasks in positions.chunks(TASK * TASKS_AT_ONCE) {
            let found: Vec<Vec<Candidate>> = tasks
                .par_chunks(TASK)
                .map_init(
                    || Sweep::new(self.kernel, self.codes.width),
                    |sweep, task| {
                        if progress.cancelled() {
                            return Vec::new();
                        }
                        let found = self.join_task(sweep, task, k, reach);
                        progress.advance(task.len() as u64);
                        found
                    },
                )
                .collect();
            progress.check()?;
            let found = found.iter().flat_map(|task| task.chunks_exact(k));
            for (&position, found) in tasks.iter().zip(found) {
                let at = self.order[position as usize] as usize * k;
                for (i, neighbour) in found.iter().enumerate() {
                    graph.ids[at + i] = neighbour.id;
                    graph.similarities[at + i] = neighbour.score;
                }
            }
        }
        Ok(graph)
    }

    /// The neighbours of the rows at `positions`, `k` for each.
    fn join_task(&self, sweep: &mut Sweep, positions: &[u32], k: usize, reach: f32) -> Vec<Candidate> {
        let FirstLook { mut candidates, lists, last_score } = self.first_look(sweep, positions, k);
        let mut visits = vec![Vec::new(); self.lists.centroids.len()];
        let within_reach = |q: usize| last_score[q] - reach;
        sweep.above(self.queries(positions), self.lists.centroids.all(), within_reach, |q, list, _| {
            if !lists[q].contains(&list) {
                visits[list as usize].push(q as u32);
            }
        });
        self.visit(sweep, positions, &visits, &mut candidates);
        let mut found = Vec::with_capacity(positions.len() * k);
        for (q, position) in positions.iter().enumerate() {
            let row = self.order[*position as usize];
            let best = candidates.finish(q, |other| self.similarity(row, other));
            if best.len() == k {
                found.extend_from_slice(best);
            } else {
                // Only when all the lists within reach hold fewer than k rows.
                found.extend(self.search_all(sweep, &[*position], k, TRUST).into_iter().flatten());
            }
        }
        found
    }
}
