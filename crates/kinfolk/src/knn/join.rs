//! Approximate neighbours: an IVF join of the set with itself, made better by its own edges.
//!
//! Rows are assigned to lists around centroids. The rows of a list first search the lists nearest to it, which gives each an
//! estimate s_K of its K-th similarity; then every row searches the lists whose centroids score at least s_K - reach with it. So a
//! row with K near neighbours searches few lists and one without searches many. Within a list every row is scored as int8, and the
//! remaining candidates are computed exactly (`index`). Then the other ends of all edges are added and, if the recall is missed all
//! the same, neighbours of neighbours (`refine`).
//!
//! `reach` follows from a sample of rows with exact neighbours. For each of these neighbours, the reach that would have found it is
//! known; their R-quantile finds the share R. The other ends of edges find more, so a smaller share is enough. A second sample
//! measures the recall.

use super::candidates::Candidate;
use super::index::Index;
use super::kernel::Kernel;
use super::lists::Lists;
use super::refine::Refinement;
use super::sweep::Sweep;
use super::{KnnGraph, KnnReport, Rows};
use crate::random::{Purpose, Stream};
use crate::work::Journal;
use crate::{Progress, Result};
use rayon::prelude::*;

/// Rows whose exact neighbours choose the reach, and as many others that measure the recall.
pub(super) const SAMPLE: usize = 512;
/// A round after which this share of what was missed is still missed is the last.
const STALLED: f32 = 0.9;

/// The share of what the search missed that is still missed once the other ends of edges are added: 0.37 to 0.45 on synthetic sets
/// of 102,000 to 2,040,000 rows. That leaves nothing to rounds of refinement: one costs as much as scoring 30,000 to 100,000 rows
/// more for each row (584,120 and 2,040,000 rows), which would find as much.
const MISSED_AFTER_ENDS: f32 = 0.45;
/// A first graph that misses more has too few edges to go on from.
const MOST_MISSED: f32 = 0.3;

/// The graph of the `k` nearest, with at least the share `recall` of the true ones, as measured on a sample.
pub(super) fn join(
    rows: Rows,
    k: usize,
    recall: f32,
    seed: u64,
    kernel: Kernel,
    journal: Option<&Journal>,
    progress: &dyn Progress,
) -> Result<(KnnGraph, KnnReport)> {
    let lists = Lists::train(rows, list_count(rows.len()), seed, kernel, progress)?;
    let index = Index::build(rows, lists, kernel, progress)?;
    let sample = sample(rows.len(), seed);
    let truth = exact_neighbours(&index, &sample, k, progress)?;
    let (to_choose, to_measure) = truth.split_at(truth.len() / 2);
    let reaches = Reaches::of(&index, to_choose, k);
    let mut missed = 1.0 - recall;
    let mut attempt = 0;
    loop {
        let (reach, most) = reaches.choose(missed);
        let mut graph = index.search(k, reach, journal.map(|journal| (journal, attempt)), progress)?;
        let mut refinement = Refinement::start(&mut graph);
        let mut measured = measure_recall(&graph, to_measure);
        while measured < recall {
            refinement.round(&index, &mut graph, progress)?;
            let before = std::mem::replace(&mut measured, measure_recall(&graph, to_measure));
            if has_stalled(before, measured) {
                break;
            }
        }
        if measured >= recall || most {
            let report = KnnReport {
                exact: false,
                kernel: kernel.name(),
                recall: Some(measured),
                lists: Some(index.lists.len()),
                reach: Some(reach),
            };
            return Ok((index.to_rows(graph), report));
        }
        missed /= 2.0;
        attempt += 1;
    }
}

/// The positions of both samples.
pub(super) fn sample(rows: usize, seed: u64) -> Vec<u32> {
    Stream::new(seed, Purpose::Recall, 0, 0).sample(rows, 2 * SAMPLE)
}

/// Whether a round that changed the recall like this was the last.
pub(super) fn has_stalled(before: f32, after: f32) -> bool {
    1.0 - after > STALLED * (1.0 - before)
}

/// Few lists make long ones to search, many take long to find and to choose from. Up to 500,000 rows 7 to 12 times the root of N
/// cost about the same; in larger sets rows search more, and more lists pay: 12 to 24 times the root at 2,040,000 rows.
pub(super) fn list_count(n: usize) -> usize {
    let rows = n as f64;
    let more = (rows / 5e5).max(1.0).sqrt().sqrt();
    ((8.0 * rows.sqrt() * more * more.sqrt()) as usize).clamp(1, n)
}

/// A row of the sample with its true neighbours, all by position.
pub(super) struct Truth {
    pub position: u32,
    pub neighbours: Vec<Candidate>,
}

/// The rows at some positions, each with its true neighbours.
fn exact_neighbours(
    index: &Index,
    positions: &[u32],
    k: usize,
    progress: &dyn Progress,
) -> Result<Vec<Truth>> {
    const QUERIES: usize = 64;
    progress.begin("sample", positions.len() as u64);
    let found = positions.par_chunks(QUERIES).map_init(
        || index.sweep(),
        |sweep, positions| {
            if progress.cancelled() {
                return Vec::new();
            }
            let found = index.exact_neighbours(sweep, positions, k);
            progress.advance(positions.len() as u64);
            let truth = |(&position, neighbours)| Truth { position, neighbours };
            positions.iter().zip(found).map(truth).collect::<Vec<_>>()
        },
    );
    let found = found.flatten().collect();
    progress.check()?;
    Ok(found)
}

/// The share of neighbours at least as similar as the last true one; which of several equals is listed does not
/// count.
pub(super) fn measure_recall(graph: &KnnGraph, truth: &[Truth]) -> f32 {
    let found = truth.iter().map(|t| {
        let last = t.neighbours[graph.k() - 1].score;
        graph.neighbours(t.position as usize).1.iter().filter(|&&similarity| similarity >= last).count()
    });
    found.sum::<usize>() as f32 / (truth.len() * graph.k()) as f32
}

/// The reach that finds each true neighbour of a sample, ascending: minus infinity if the first look does.
pub(super) struct Reaches(Vec<f32>);

impl Reaches {
    fn of(index: &Index, truth: &[Truth], k: usize) -> Self {
        let of_row = |sweep: &mut Sweep, truth: &Truth| Self::of_row(index, sweep, truth, k);
        Self::of_rows(truth.par_iter().map_init(|| index.sweep(), of_row).flatten().collect())
    }

    /// Those of one row.
    pub(super) fn of_row(index: &Index, sweep: &mut Sweep, truth: &Truth, k: usize) -> Vec<f32> {
        let of_lists = index.reaches(sweep, truth.position, k);
        truth.neighbours.iter().map(|neighbour| of_lists[index.layout.list_at(neighbour.id)]).collect()
    }

    /// From those of all rows.
    pub(super) fn of_rows(mut reaches: Vec<f32>) -> Self {
        reaches.sort_unstable_by(f32::total_cmp);
        Self(reaches)
    }

    /// The reach after which the graph misses this share in the end; and whether there is no larger one.
    pub(super) fn choose(&self, missed: f32) -> (f32, bool) {
        let count = self.0.len();
        let found = 1.0 - (missed / MISSED_AFTER_ENDS).min(MOST_MISSED);
        let at = ((found * count as f32).ceil() as usize).clamp(1, count) - 1;
        (self.0[at], at + 1 == count)
    }
}
