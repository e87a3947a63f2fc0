//! Approximate neighbours: an IVF join of the set with itself.
//!
//! Rows are grouped into lists around centroids. A row searches the lists whose centroid scores at most `reach`
//! below its best, so a row in a crowd looks further than one that lies alone; within a list every row is
//! scored as int8, and what survives is computed exactly. Tasks own their rows: no locks, and the same result
//! on any number of threads.
//!
//! `reach` is not guessed. For a sample of rows the exact neighbours are found, and for each of them the reach
//! that would have found it; the share R of these is below their R-quantile.

use super::candidates::{Candidate, Candidates};
use super::codes::{Codes, Packed};
use super::dot::dot;
use super::exact::bound;
use super::kernel::Kernel;
use super::lists::{Lists, group_by_list};
use super::sweep::Sweep;
use super::{KnnGraph, KnnReport};
use crate::random::Random;
use crate::{Embeddings, Progress};
use rayon::prelude::*;

/// Rows that one task owns.
const TASK: usize = 4096;
/// Tasks between two scatters of results into the graph.
const TASKS_AT_ONCE: usize = 16;
/// Rows whose exact neighbours choose the reach, and as many others that measure the recall.
const SAMPLE: usize = 512;
/// Scores are trusted this much more than their proven bound: errors of 256 columns average out.
const TRUST: f32 = 8.0;
/// Recall is aimed at above what was asked, by this share of what may be missed, since samples vary.
const CAUTION: f32 = 0.2;

/// The graph of the `k` nearest, with at least the share `recall` of the true ones, as measured on a sample.
pub(super) fn join(
    rows: &Embeddings,
    k: usize,
    recall: f32,
    seed: u64,
    kernel: Kernel,
    progress: &dyn Progress,
) -> (KnnGraph, KnnReport) {
    let count = list_count(rows.len());
    let lists = Lists::train(rows, count, seed, kernel, progress);
    let index = Index::build(rows, lists, kernel);
    let sample = Random::new(seed ^ 0x5eed).sample(rows.len(), 2 * SAMPLE);
    let truth = index.exact_neighbours(&sample, k, progress);
    let (to_choose, to_measure) = truth.split_at(truth.len() / 2);
    let mut reaches = index.reaches(to_choose);
    reaches.sort_unstable_by(f32::total_cmp);

    let mut aim = recall + CAUTION * (1.0 - recall);
    loop {
        let at = ((aim * reaches.len() as f32).ceil() as usize).clamp(1, reaches.len()) - 1;
        let graph = index.join(k, reaches[at], progress);
        let measured = overlap(&graph, to_measure);
        if measured >= recall || at + 1 == reaches.len() {
            let report = KnnReport {
                exact: false,
                kernel: kernel.name(),
                recall: Some(measured),
                lists: Some(count),
                reach: Some(reaches[at]),
            };
            return (graph, report);
        }
        aim += (1.0 - aim) / 2.0;
    }
}

fn list_count(n: usize) -> usize {
    ((4.0 * (n as f64).sqrt()) as usize).clamp(1, n)
}

/// A row of the sample with its true neighbours.
struct Truth {
    /// Its place in list order.
    position: usize,
    row: u32,
    neighbours: Vec<u32>,
}

/// The share of the true neighbours that a graph has.
fn overlap(graph: &KnnGraph, truth: &[Truth]) -> f32 {
    let found = truth.iter().map(|t| {
        let (ids, _) = graph.neighbours(t.row as usize);
        t.neighbours.iter().filter(|id| ids.contains(id)).count()
    });
    found.sum::<usize>() as f32 / (truth.len() * graph.k()) as f32
}

/// Rows in the order of their lists, ready to be searched.
struct Index<'a> {
    rows: &'a Embeddings,
    kernel: Kernel,
    lists: Lists,
    /// Row numbers in list order; `codes` follow it.
    order: Vec<u32>,
    codes: Codes,
    /// The list of each row, and the score of its centroid.
    home: Vec<Candidate>,
    packed: Packed,
    first_panel: Vec<usize>,
    worst_rest: f32,
}

impl<'a> Index<'a> {
    fn build(rows: &'a Embeddings, lists: Lists, kernel: Kernel) -> Self {
        let unordered = Codes::quantise(rows, &(0..rows.len() as u32).collect::<Vec<_>>());
        let nearest = lists.nearest(&unordered, kernel);
        let members = group_by_list(nearest.iter().map(|c| c.id), lists.centroids.len());
        let mut segments = Vec::with_capacity(members.len());
        let mut order = Vec::with_capacity(rows.len());
        for members in members {
            segments.push(order.len()..order.len() + members.len());
            order.extend(members);
        }
        let codes = unordered.reorder(&order);
        let (packed, first_panel) = Packed::pack(&codes, &segments, |position| order[position]);
        let worst_rest = codes.rest.iter().fold(0.0f32, |m, &r| m.max(r));
        Index { rows, kernel, lists, order, codes, home: nearest, packed, first_panel, worst_rest }
    }

    fn exact_similarity(&self, a: u32, b: u32) -> f32 {
        dot(self.rows.row(a as usize), self.rows.row(b as usize))
    }

    fn uncertainty(&self, positions: impl Iterator<Item = usize>, trust: f32) -> Vec<f32> {
        positions.map(|p| bound(self.codes.rest[p], self.worst_rest, self.rows.dim()) / trust).collect()
    }

    /// The rows at some positions, each with its true neighbours.
    fn exact_neighbours(&self, positions: &[u32], k: usize, progress: &dyn Progress) -> Vec<Truth> {
        const QUERIES: usize = 64;
        progress.begin("sample", positions.len() as u64);
        let found = positions.par_chunks(QUERIES).map_init(
            || Sweep::new(self.kernel, self.codes.width),
            |sweep, positions| {
                let ids = || positions.iter().map(|&p| p as usize);
                let mut candidates = Candidates::new(k, self.uncertainty(ids(), 1.0));
                let row = |q: usize| self.order[positions[q] as usize];
                let exact = |q: usize, other| self.exact_similarity(row(q), other);
                sweep.offer(&self.codes, ids(), self.packed.all(), &mut candidates, |q| q, row, exact);
                progress.advance(positions.len() as u64);
                (0..positions.len())
                    .map(|q| {
                        let best = candidates.finish(q, |other| exact(q, other));
                        let neighbours = best.iter().map(|c| c.id).collect();
                        Truth { position: positions[q] as usize, row: row(q), neighbours }
                    })
                    .collect::<Vec<_>>()
            },
        );
        found.flatten().collect()
    }

    /// For each true neighbour, how far its list's centroid scores below the best centroid of the row.
    fn reaches(&self, truth: &[Truth]) -> Vec<f32> {
        let of_row = |sweep: &mut Sweep, truth: &Truth| {
            let mut score = vec![0.0; self.lists.centroids.len()];
            let own = truth.position..truth.position + 1;
            let everything = |_| f32::NEG_INFINITY;
            sweep.above(&self.codes, own, self.lists.centroids.all(), everything, |_, list, s| {
                score[list as usize] = s
            });
            let home = self.home[truth.row as usize].score;
            let reach = |&n: &u32| home - score[self.home[n as usize].id as usize];
            truth.neighbours.iter().map(reach).collect::<Vec<_>>()
        };
        truth
            .par_iter()
            .map_init(|| Sweep::new(self.kernel, self.codes.width), of_row)
            .flatten_iter()
            .collect()
    }

    fn join(&self, k: usize, reach: f32, progress: &dyn Progress) -> KnnGraph {
        let n = self.order.len();
        let mut graph = KnnGraph { n, k, ids: vec![0; n * k], similarities: vec![0.0; n * k] };
        progress.begin("neighbours", n as u64);
        let tasks: Vec<_> = (0..n).step_by(TASK).map(|start| start..(start + TASK).min(n)).collect();
        for tasks in tasks.chunks(TASKS_AT_ONCE) {
            let done: Vec<Vec<Candidate>> = tasks
                .par_iter()
                .map_init(
                    || Sweep::new(self.kernel, self.codes.width),
                    |sweep, task| {
                        let found = self.join_task(sweep, task.clone(), k, reach);
                        progress.advance(task.len() as u64);
                        found
                    },
                )
                .collect();
            for (task, found) in tasks.iter().zip(done) {
                for (position, found) in task.clone().zip(found.chunks_exact(k)) {
                    let at = self.order[position] as usize * k;
                    for (i, neighbour) in found.iter().enumerate() {
                        graph.ids[at + i] = neighbour.id;
                        graph.similarities[at + i] = neighbour.score;
                    }
                }
            }
        }
        graph
    }

    /// The neighbours of the rows at `positions`, `k` for each.
    fn join_task(
        &self,
        sweep: &mut Sweep,
        positions: std::ops::Range<usize>,
        k: usize,
        reach: f32,
    ) -> Vec<Candidate> {
        let first = positions.start;
        let row = |q: usize| self.order[first + q];
        let home = |q: usize| self.home[row(q) as usize];
        let mut visits = vec![Vec::new(); self.lists.centroids.len()];
        let within_reach = |q: usize| home(q).score - reach;
        sweep.above(
            &self.codes,
            positions.clone(),
            self.lists.centroids.all(),
            within_reach,
            |q, list, _| visits[list as usize].push(q),
        );
        let mut candidates = Candidates::new(k, self.uncertainty(positions.clone(), TRUST));
        let exact = |q: usize, other| self.exact_similarity(row(q), other);
        // The home lists first, in which thresholds rise: what follows is then mostly turned away at once.
        let homes = home(0).id as usize..home(positions.len() - 1).id as usize + 1;
        let others = (0..visits.len()).filter(|list| !homes.contains(list));
        for list in homes.clone().chain(others) {
            let queries = &visits[list];
            sweep.offer(
                &self.codes,
                queries.iter().map(|q| first + q),
                self.packed.panels(self.first_panel[list]..self.first_panel[list + 1]),
                &mut candidates,
                |i| queries[i],
                |i| row(queries[i]),
                |i, other| exact(queries[i], other),
            );
        }
        let mut found = Vec::with_capacity(positions.len() * k);
        for q in 0..positions.len() {
            let best = candidates.finish(q, |other| exact(q, other));
            if best.len() == k {
                found.extend_from_slice(best);
            } else {
                found.extend(self.search_all(sweep, first + q, k));
            }
        }
        found
    }

    /// For the rare row whose lists hold fewer than `k` others: all rows are searched.
    fn search_all(&self, sweep: &mut Sweep, position: usize, k: usize) -> Vec<Candidate> {
        let own = position..position + 1;
        let row = self.order[position];
        let mut candidates = Candidates::new(k, self.uncertainty(own.clone(), TRUST));
        let exact = |other| self.exact_similarity(row, other);
        sweep.offer(
            &self.codes,
            own,
            self.packed.all(),
            &mut candidates,
            |_| 0,
            |_| row,
            |_, other| exact(other),
        );
        candidates.finish(0, exact).to_vec()
    }
}
