//! Mean shift: centres move to local maxima of the density.
//!
//! Comaniciu and Meer (2002), with a flat kernel, as in scikit-learn: a centre moves to the mean of the rows within
//! `bandwidth` of it until it moves by less than a thousandth of that. Of centres that end within `bandwidth` of each other,
//! the one with the most rows remains; a row belongs to the nearest centre. Distances are |x - y|.
//!
//! Centres start at all rows, or at the occupied cells of a grid as wide as the bandwidth. The default bandwidth is the mean
//! distance of the rows to their neighbour number N `quantile`.
//!
//! Cost: 2 S N D products in each of about a dozen rounds for S centres that still move; memory O(S D + N).

use crate::check;
use crate::clusters::{Clusters, Noise};
use crate::dense::{Rows, dot, products, square, weighted_sums};
use crate::lloyd::Centroids;
use kinfolk::stages::number_by_size;
use kinfolk::{Clustering, Context, Input, Method, MethodInfo, Parameters, Problem, Progress, Result};
use rayon::prelude::*;
use std::collections::HashMap;

/// Centres that one task moves.
const TASK: usize = 64;
/// Rows of one product.
const TILE: usize = 1024;

/// Where centres start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Seeds {
    /// At every row.
    #[default]
    Rows,
    /// At the occupied cells of a grid; in many dimensions these are hardly fewer than the rows.
    Bins,
}

kinfolk::word_values!(Seeds: "rows or bins", "rows" => Seeds::Rows, "bins" => Seeds::Bins);

kinfolk::parameters! {
    /// Mean shift: moves centres to local maxima of the density.
    ///
    /// Use it on small sets whose clusters are round and have about the same radius, the bandwidth. It finds the number of
    /// clusters itself.
    ///
    /// Cost: about N^2 D products in each of about a dozen rounds; practical up to tens of thousands of rows. Memory O(N D).
    ///
    /// ```
    /// use kinfolk::{Clusterer, Embeddings};
    /// use kinfolk_baselines::Meanshift;
    /// let rows = vec![1.0, 0.1, 1.0, 0.0, 0.9, 0.1, -0.1, 1.0, 0.0, 1.0];
    /// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
    /// let found = Clusterer::with(Meanshift { bandwidth: Some(0.5), ..Meanshift::default() }).fit(&embeddings)?;
    /// assert_eq!(found.labels, [0, 0, 0, 1, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Meanshift {
        /// The radius within which rows count; auto estimates it.
        pub bandwidth: Option<f32> = None, "a finite number above 0",
            |bandwidth| bandwidth.is_none_or(|bandwidth| bandwidth > 0.0 && bandwidth.is_finite());
        /// The share of rows within the radius, when it is estimated.
        pub quantile: f64 = 0.3, "a share above 0, at most 1", |quantile| *quantile > 0.0 && *quantile <= 1.0;
        /// Where centres start: at every row, or at the occupied cells of a grid (bins).
        pub seeds: Seeds = Seeds::Rows;
        /// The minimum number of rows in a cell where a centre starts.
        pub min_bin: usize = 1, "at least 1", |min_bin| *min_bin >= 1;
        /// Maximum number of rounds.
        pub iterations: usize = 300, "at least 1", |iterations| *iterations >= 1;
        /// How rows farther than the bandwidth from all centres are labelled: the nearest centre (assigned), clusters of one
        /// row (singletons), or label -1 (keep).
        pub noise: Noise = Noise::Assigned;
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "meanshift",
    "Mean shift",
    "Moves centres to local maxima of the density; rows join the nearest centre",
)
.when("on small sets with few, broad clusters of similar radius in few dimensions")
.cost("N^2 D, dozens of times")
.input(Input::Rows)
.in_paper()
.color("#9467bd");

impl Method for Meanshift {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn parameters(&self) -> &dyn Parameters {
        self
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        self
    }

    fn operations(&self, rows: usize, dim: usize) -> f64 {
        // All pairs, in dozens of steps.
        24.0 * rows as f64 * rows as f64 * 2.0 * dim as f64
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.check()?;
        let rows = Rows::from(problem.embeddings()?);
        let (found, bandwidth) = context.timed("partition", || {
            let bandwidth = match self.bandwidth {
                Some(bandwidth) => bandwidth,
                None => estimate(rows, self.quantile, context.progress())?,
            };
            self.partition(rows, bandwidth, context.progress()).map(|found| (found, bandwidth))
        })?;
        let mut clustering = found.into_clustering(self, None, context);
        clustering.report.set("bandwidth", bandwidth);
        Ok(clustering)
    }
}

impl Meanshift {
    fn partition(&self, rows: Rows, bandwidth: f32, progress: &dyn Progress) -> Result<Clusters> {
        let seeds = match self.seeds {
            Seeds::Rows => rows.data.to_vec(),
            Seeds::Bins => bins(rows, bandwidth, self.min_bin),
        };
        if seeds.is_empty() {
            let found = format!("{} for cells {bandwidth} wide", self.min_bin);
            return check::refuse("min_bin", "at most the number of rows in the fullest cell", found);
        }
        let peaks = climb(rows, seeds, bandwidth, self.iterations, progress)?;
        let centres = thin_out(peaks, rows.dim, bandwidth);
        if centres.is_empty() {
            let expected = "a radius with rows within it for at least one centre";
            return check::refuse("bandwidth", expected, bandwidth);
        }
        progress.begin("labels", 1);
        let nearest = Centroids::new(centres, rows.dim).nearest(rows, progress)?;
        progress.advance(1);
        let farthest = f64::from(bandwidth) * f64::from(bandwidth);
        let noise: Vec<bool> = nearest
            .iter()
            .enumerate()
            .map(|(i, nearest)| f64::from(square(rows.row(i)) - 2.0 * nearest.score) > farthest)
            .collect();
        let names: Vec<i64> = nearest.iter().map(|nearest| nearest.centroid.into()).collect();
        if self.noise == Noise::Assigned {
            return Ok(Clusters { labels: number_by_size(&names), noise: Some(noise) });
        }
        let names: Vec<i64> =
            names.iter().zip(&noise).map(|(&name, &noise)| if noise { -1 } else { name }).collect();
        Ok(Clusters::with_noise(&names, self.noise, |_| Vec::new()))
    }
}

/// The mean distance of rows to their neighbour number N `quantile`, themselves the first.
fn estimate(rows: Rows, quantile: f64, progress: &dyn Progress) -> Result<f32> {
    let n = rows.len();
    let rank = ((n as f64 * quantile) as usize).max(1);
    progress.begin("bandwidth", n as u64);
    let distances: Vec<f64> = (0..n.div_ceil(TASK))
        .into_par_iter()
        .flat_map_iter(|task| {
            if progress.cancelled() {
                return Vec::new();
            }
            let part = task * TASK..((task + 1) * TASK).min(n);
            let mut scores = vec![0.0; part.len() * n];
            products(rows.part(part.clone()), rows, &mut scores, false);
            progress.advance(part.len() as u64);
            let distance = |scores: &mut [f32]| {
                let (_, score, _) = scores.select_nth_unstable_by(rank - 1, |a, b| b.total_cmp(a));
                f64::from(2.0 - 2.0 * *score).max(0.0).sqrt()
            };
            scores.chunks_exact_mut(n).map(distance).collect::<Vec<_>>()
        })
        .collect();
    progress.check()?;
    // If most rows are copies the radius would be 0, and rounding would exclude even the copies.
    Ok((distances.iter().sum::<f64>() / n as f64).max(1e-3) as f32)
}

/// The cells of a grid with enough rows; the rows themselves if no two share a cell.
fn bins(rows: Rows, width: f32, least: usize) -> Vec<f32> {
    let mut cells: HashMap<Vec<i32>, usize> = HashMap::new();
    let mut order: Vec<(Vec<i32>, usize)> = Vec::new();
    for i in 0..rows.len() {
        let cell: Vec<i32> = rows.row(i).iter().map(|v| (v / width).round_ties_even() as i32).collect();
        let at = *cells.entry(cell).or_insert_with_key(|cell| {
            order.push((cell.clone(), 0));
            order.len() - 1
        });
        order[at].1 += 1;
    }
    let cells: Vec<&Vec<i32>> = order.iter().filter(|cell| cell.1 >= least).map(|cell| &cell.0).collect();
    if cells.len() == rows.len() {
        return rows.data.to_vec();
    }
    cells.into_iter().flatten().map(|&v| v as f32 * width).collect()
}

/// The final position of a centre, and the rows within the bandwidth of it.
struct Peak {
    centre: Vec<f32>,
    rows: usize,
}

/// Moves all centres until they converge; centres without rows are dropped.
fn climb(
    rows: Rows,
    seeds: Vec<f32>,
    bandwidth: f32,
    iterations: usize,
    progress: &dyn Progress,
) -> Result<Vec<Peak>> {
    let dim = rows.dim;
    progress.begin("centres", (seeds.len() / dim) as u64);
    let peaks = seeds.par_chunks(TASK * dim).flat_map_iter(|seeds| {
        let count = seeds.len() / dim;
        let mut peaks: Vec<Option<Peak>> = (0..count).map(|_| None).collect();
        let mut moving: Vec<usize> = (0..count).collect();
        let mut centres = seeds.to_vec();
        let mut buffer = Buffer::default();
        for iteration in 0..=iterations {
            if moving.is_empty() || progress.cancelled() {
                break;
            }
            let means = means(rows, &centres, bandwidth, &mut buffer);
            let (mut still, mut moved) = (Vec::new(), Vec::new());
            for ((&seed, centre), (mean, within)) in
                moving.iter().zip(centres.chunks_exact(dim)).zip(means.0.chunks_exact(dim).zip(means.1))
            {
                if within == 0 {
                    continue;
                }
                let step: f64 = mean.iter().zip(centre).map(|(a, b)| f64::from(a - b).powi(2)).sum();
                if step.sqrt() <= 1e-3 * f64::from(bandwidth) || iteration == iterations {
                    peaks[seed] = Some(Peak { centre: mean.to_vec(), rows: within });
                } else {
                    still.push(seed);
                    moved.extend_from_slice(mean);
                }
            }
            (moving, centres) = (still, moved);
        }
        progress.advance(count as u64);
        peaks.into_iter().flatten()
    });
    let peaks = peaks.collect();
    progress.check()?;
    Ok(peaks)
}

/// Buffers that a task reuses.
#[derive(Default)]
struct Buffer {
    tile: Vec<f32>,
}

/// The mean of the rows within the bandwidth of each centre, and their number.
fn means(rows: Rows, centres: &[f32], bandwidth: f32, buffer: &mut Buffer) -> (Vec<f32>, Vec<usize>) {
    let dim = rows.dim;
    let count = centres.len() / dim;
    // |x - c| <= h is x . c >= (1 + |c|^2 - h^2) / 2 for a unit row x, with a tolerance for rounding.
    let least: Vec<f32> = centres
        .chunks_exact(dim)
        .map(|centre| (1.0 + square(centre) - bandwidth * bandwidth) / 2.0 - 1e-6)
        .collect();
    let mut sums = vec![0.0f32; centres.len()];
    let mut within = vec![0usize; count];
    for first in (0..rows.len()).step_by(TILE) {
        let part = rows.part(first..(first + TILE).min(rows.len()));
        buffer.tile.resize(count * part.len(), 0.0);
        products(Rows { data: centres, dim }, part, &mut buffer.tile, false);
        for ((scores, &least), within) in
            buffer.tile.chunks_exact_mut(part.len()).zip(&least).zip(&mut within)
        {
            scores.iter_mut().for_each(|score| *score = f32::from(u8::from(*score >= least)));
            *within += scores.iter().sum::<f32>() as usize;
        }
        weighted_sums(&buffer.tile, part, &mut sums);
    }
    for (sum, &within) in sums.chunks_exact_mut(dim).zip(&within) {
        sum.iter_mut().for_each(|value| *value /= within.max(1) as f32);
    }
    (sums, within)
}

/// Of centres within the bandwidth of each other, only the one with the most rows; ties go to the lexicographically larger one.
fn thin_out(mut peaks: Vec<Peak>, dim: usize, bandwidth: f32) -> Vec<f32> {
    let by_columns = |a: &Peak, b: &Peak| {
        let differing = a.centre.iter().zip(&b.centre).map(|(a, b)| b.total_cmp(a));
        differing.fold(std::cmp::Ordering::Equal, |order, next| order.then(next))
    };
    peaks.par_sort_by(|a, b| b.rows.cmp(&a.rows).then_with(|| by_columns(a, b)));
    let squares: Vec<f32> = peaks.par_iter().map(|peak| square(&peak.centre)).collect();
    let mut left: Vec<u32> = (0..peaks.len() as u32).collect();
    let mut distinct = Vec::new();
    while let Some(&first) = left.first() {
        let centre = &peaks[first as usize].centre;
        let near = |&i: &u32| {
            let products = dot(&peaks[i as usize].centre, centre);
            squares[i as usize] + squares[first as usize] - 2.0 * products <= bandwidth * bandwidth
        };
        left = left[1..].par_iter().with_min_len(256).copied().filter(|i| !near(i)).collect();
        distinct.extend_from_slice(centre);
    }
    debug_assert_eq!(distinct.len() % dim, 0);
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{embeddings, on_one_and_three_threads, on_rows, refusal, synthetic};
    use kinfolk::Embeddings;
    use proptest::prelude::*;

    fn distance(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt()
    }

    proptest! {
        #[test]
        fn means_are_of_rows_within(rows in embeddings(), bandwidth in 0.1f32..2.0) {
            let all = Rows::from(&rows);
            let (found, within) = means(all, all.data, bandwidth, &mut Buffer::default());
            for i in 0..all.len() {
                // Rounding decides about rows exactly at the bandwidth.
                prop_assume!((0..all.len()).all(|j| (distance(all.row(i), all.row(j)) - bandwidth).abs() > 1e-4));
                let near: Vec<usize> = (0..all.len()).filter(|&j| distance(all.row(i), all.row(j)) <= bandwidth).collect();
                prop_assert_eq!(within[i], near.len());
                for l in 0..all.dim {
                    let mean = near.iter().map(|&j| all.row(j)[l]).sum::<f32>() / near.len() as f32;
                    prop_assert!((found[i * all.dim + l] - mean).abs() < 1e-5);
                }
            }
        }

        #[test]
        fn the_bandwidth_is_a_mean_distance(rows in embeddings(), quantile in 0.01..1.0) {
            let all = Rows::from(&rows);
            let n = all.len();
            let rank = ((n as f64 * quantile) as usize).max(1);
            let of = |i: usize| {
                let mut distances: Vec<f32> = (0..n).map(|j| distance(all.row(i), all.row(j))).collect();
                distances.sort_by(f32::total_cmp);
                distances[rank - 1]
            };
            let expected = (0..n).map(of).sum::<f32>() / n as f32;
            prop_assert!((estimate(all, quantile, &()).unwrap() - expected).abs() < 2e-3);
        }

        #[test]
        fn every_row_has_a_cluster(rows in embeddings(), bandwidth in 0.1f32..2.0, binned: bool) {
            let seeds = if binned { Seeds::Bins } else { Seeds::Rows };
            let params = Meanshift { bandwidth: Some(bandwidth), seeds, ..Default::default() };
            // The corner of a cell may be too far from all rows.
            if let Ok(found) = on_rows(&params, &rows) {
                prop_assert_eq!(found.labels.len(), rows.len());
                prop_assert!(found.labels.iter().all(|&label| label >= 0));
            } else {
                prop_assert!(binned);
            }
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let message = |params: Meanshift| refusal(on_rows(&params, &rows));
        let default = Meanshift::default();
        assert_eq!(
            message(Meanshift { bandwidth: Some(0.0), ..default.clone() }),
            "bandwidth: expected a finite number above 0, found 0"
        );
        assert!(message(Meanshift { quantile: 0.0, ..default.clone() }).starts_with("quantile"));
        assert!(message(Meanshift { min_bin: 0, ..default.clone() }).starts_with("min_bin"));
        assert!(message(Meanshift { iterations: 0, ..default.clone() }).starts_with("iterations"));
        let bins = Meanshift { seeds: Seeds::Bins, min_bin: 3, bandwidth: Some(0.1), ..default };
        assert!(message(bins).starts_with("min_bin"));
    }

    #[test]
    fn copies_two_rows_and_noise() {
        let same = Embeddings::from_rows(vec![1.0; 7], 1, "test").unwrap();
        assert_eq!(on_rows(&Meanshift::default(), &same).unwrap().labels, [0; 7]);
        let two = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let params = Meanshift { bandwidth: Some(0.5), ..Default::default() };
        assert_eq!(on_rows(&params, &two).unwrap().labels, [0, 1]);
        // A cell needs two rows, so the third row is far from all centres.
        let rows = vec![1.0, 0.0, 1.0, 0.0, 0.0, 1.0];
        let rows = Embeddings::from_rows(rows, 2, "test").unwrap();
        let params = Meanshift { seeds: Seeds::Bins, min_bin: 2, noise: Noise::Keep, ..params };
        let found = on_rows(&params, &rows).unwrap();
        assert_eq!((found.labels, found.report.noise_rows), (vec![0, 0, -1], Some(1)));
        let found = params.partition(Rows::from(&rows), 0.5, &()).unwrap();
        assert_eq!(found.noise, Some(vec![false, false, true]));
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(12);
        let params = Meanshift::default();
        let [one, three] =
            on_one_and_three_threads(|| params.partition(Rows::from(&rows), 0.9, &()).unwrap());
        assert_eq!(one, three);
        let scores = kinfolk::metrics::evaluate(&truth, &one.labels).unwrap();
        assert!(scores.bcubed.f > 0.3, "{scores:?}");
    }
}
