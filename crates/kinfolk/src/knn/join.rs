//! Approximate neighbours: an IVF join of the set with itself, made better by its own edges.
//!
//! Rows are assigned to lists around centroids. The rows of a list first search the lists nearest to it, which gives each an
//! estimate s_K of its K-th similarity; then every row searches the lists whose centroids score at least s_K - reach with it. So a
//! row with K near neighbours searches few lists and one without searches many. Within a list every row is scored as int8, and the
//! remaining candidates are computed exactly (`index`). Then the other ends of all edges, and neighbours of neighbours, are added
//! (`refine`) until the recall is reached.
//!
//! `reach` follows from a sample of rows with exact neighbours. For each of these neighbours, the reach that would have found it is
//! known; their R-quantile finds the share R. How much is left to the refinement is decided by the number of rows that the sample
//! would search. A second sample measures the recall.

use super::candidates::Candidate;
use super::index::Index;
use super::kernel::{Kernel, PANEL};
use super::layout::Layout;
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

/// A number of rounds of refinement.
struct Way {
    /// The share of what the search missed that is still missed afterwards.
    missed: f32,
    /// Its cost for a row, in rows of searched lists.
    cost: f32,
}

/// No round, one, two. Measured with K = 80 on synthetic sets of 102,000 and 584,120 rows.
const WAYS: [Way; 3] = [
    Way { missed: 0.45, cost: 0.0 },
    Way { missed: 0.24, cost: 27_000.0 },
    Way { missed: 0.18, cost: 36_000.0 },
];
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
        let (reach, most) = reaches.choose(&index.first_panel, missed);
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

/// Few lists make long ones to search, many lists take long to choose from. From 7 to 12 times the root of N cost about the same.
pub(super) fn list_count(n: usize) -> usize {
    ((8.0 * (n as f64).sqrt()) as usize).clamp(1, n)
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

/// What a reach finds and costs, on a sample.
pub(super) struct Reaches {
    /// The reach that finds each true neighbour, ascending: minus infinity if the first look does.
    of_neighbours: Vec<f32>,
    /// For each row the reach within which it searches each list: minus infinity for those of its first look.
    of_lists: Vec<Vec<f32>>,
}

impl Reaches {
    fn of(index: &Index, truth: &[Truth], k: usize) -> Self {
        let of_row = |sweep: &mut Sweep, truth: &Truth| index.reaches(sweep, truth.position, k);
        let of_lists = truth.par_iter().map_init(|| index.sweep(), of_row).collect();
        Self::from_lists(&index.layout, truth, of_lists)
    }

    /// From the reaches within which each row of the sample searches each list.
    pub(super) fn from_lists(layout: &Layout, truth: &[Truth], of_lists: Vec<Vec<f32>>) -> Self {
        let of_row = |(truth, reaches): (&Truth, &Vec<f32>)| -> Vec<f32> {
            truth.neighbours.iter().map(|neighbour| reaches[layout.list_at(neighbour.id)]).collect()
        };
        let mut of_neighbours: Vec<f32> = truth.iter().zip(&of_lists).flat_map(of_row).collect();
        of_neighbours.sort_unstable_by(f32::total_cmp);
        Reaches { of_neighbours, of_lists }
    }

    /// The reach that costs least if the graph may miss this share in the end; and whether there is no larger one. Lists have
    /// their `first_panel`.
    pub(super) fn choose(&self, first_panel: &[usize], missed: f32) -> (f32, bool) {
        let count = self.of_neighbours.len();
        let way = |way: &Way| {
            let found = 1.0 - (missed / way.missed).min(MOST_MISSED);
            let at = ((found * count as f32).ceil() as usize).clamp(1, count) - 1;
            let reach = self.of_neighbours[at];
            let searched = |lists: &Vec<f32>| -> usize {
                let panels = lists.iter().zip(first_panel.windows(2));
                let within = panels.filter(|(needed, _)| (f32::MIN..=reach).contains(needed));
                within.map(|(_, panels)| (panels[1] - panels[0]) * PANEL).sum()
            };
            let rows: usize = self.of_lists.par_iter().map(searched).sum();
            let cost = rows as f32 / self.of_lists.len() as f32 + way.cost;
            (cost, reach, at + 1 == count)
        };
        let ways = WAYS.iter().map(way);
        let (_, reach, most) = ways.min_by(|a, b| a.0.total_cmp(&b.0)).expect("there is a way");
        (reach, most)
    }
}
