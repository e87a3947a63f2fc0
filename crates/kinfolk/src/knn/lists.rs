//! Lists of rows that are near one another: spherical k-means, coarse and quick, for the IVF join.
//!
//! Centroids are scored as int8 like everything else; only their order matters here. On two levels (cells first, then the lists
//! of the nearest cells) k-means is cheaper, but it divides identities: at the same recall, rows then search four times as many
//! others.

use super::Rows;
use super::candidates::Candidates;
use super::codes::{Codes, Packed};
use super::kernel::Kernel;
use super::sweep::{Queries, Sweep};
use crate::random::{Purpose, Stream};
use crate::{Embeddings, Progress, Result};
use rayon::prelude::*;

pub(super) const ITERATIONS: usize = 4;
/// Rows that k-means looks at, for each list.
const SAMPLE_PER_LIST: usize = 16;
/// Rows that one task scores against all centroids.
const TASK: usize = 2048;

/// The centroids, as either side of a sweep.
pub(super) struct Lists {
    dim: usize,
    pub centroids: Packed,
    pub codes: Codes,
}

impl Lists {
    /// Finds `count` centroids of a sample of the rows.
    pub fn train(
        rows: Rows,
        count: usize,
        seed: u64,
        kernel: Kernel,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let sample = Lists::sample(rows.len(), count, seed);
        let mut centroids = Lists::first_centroids(rows, &sample, count);
        progress.begin("lists", ITERATIONS as u64);
        for _ in 0..ITERATIONS {
            let lists = Lists::from_centroids(&centroids, rows.dim());
            let nearest = lists.nearest(sample.len(), |i| rows.row(sample[i] as usize), kernel, progress)?;
            Lists::move_centroids(rows, &sample, &nearest, &mut centroids);
            progress.advance(1);
        }
        Ok(Lists::from_centroids(&centroids, rows.dim()))
    }

    /// The rows that k-means looks at.
    pub fn sample(rows: usize, count: usize, seed: u64) -> Vec<u32> {
        Stream::new(seed, Purpose::Lists, 0, 0).sample(rows, count * SAMPLE_PER_LIST)
    }

    /// The first rows of a sample. It is shuffled, so they are a fair choice.
    pub fn first_centroids(rows: Rows, sample: &[u32], count: usize) -> Vec<f32> {
        sample[..count].iter().flat_map(|&i| rows.row(i as usize)).copied().collect()
    }

    /// Moves every centroid to the mean of the rows of the sample that are nearest to it.
    pub fn move_centroids(rows: Rows, sample: &[u32], nearest: &[u32], centroids: &mut [f32]) {
        let dim = rows.dim();
        let members = group_by_list(nearest, centroids.len() / dim);
        centroids.par_chunks_mut(dim).zip(&members).for_each(|(centroid, members)| {
            // A list that lost all its rows keeps its place.
            if members.is_empty() {
                return;
            }
            centroid.fill(0.0);
            for &member in members {
                let row = rows.row(sample[member as usize] as usize);
                centroid.iter_mut().zip(row).for_each(|(c, v)| *c += v);
            }
            let norm = centroid.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-12);
            centroid.iter_mut().for_each(|c| *c /= norm);
        });
    }

    pub fn from_centroids(centroids: &[f32], dim: usize) -> Self {
        let codes = Codes::from_rows(dim, centroids.len() / dim, |i| &centroids[i * dim..][..dim]);
        Lists { dim, centroids: Packed::of_rows(&codes), codes }
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// The list of every row.
    pub fn of_rows(&self, rows: Rows, kernel: Kernel, progress: &dyn Progress) -> Result<Vec<u32>> {
        self.nearest(rows.len(), |i| rows.row(i), kernel, progress)
    }

    /// The nearest list of each of `n` rows.
    pub fn nearest<'a>(
        &self,
        n: usize,
        row: impl Fn(usize) -> &'a [f32] + Sync,
        kernel: Kernel,
        progress: &dyn Progress,
    ) -> Result<Vec<u32>> {
        let mut nearest = vec![0; n];
        nearest.par_chunks_mut(TASK).enumerate().for_each_init(
            || Sweep::new(kernel, self.codes.width),
            |sweep, (task, nearest)| {
                if progress.cancelled() {
                    return;
                }
                let codes = Codes::from_rows(self.dim, nearest.len(), |i| row(task * TASK + i));
                let places: Vec<u32> = (0..nearest.len() as u32).collect();
                let mut best = Candidates::new(1, vec![0.0; nearest.len()]);
                let queries = Queries { codes: &codes, places: &places };
                sweep.offer(queries, self.centroids.all(), &mut best, |q| q, |_| u32::MAX, |_, _| 0.0);
                for (row, nearest) in nearest.iter_mut().enumerate() {
                    *nearest = best.by_score(row)[0].id;
                }
            },
        );
        progress.check()?;
        Ok(nearest)
    }

    /// The `count` lists nearest to each list, or all if there are fewer, nearest first.
    pub fn near(&self, count: usize, kernel: Kernel) -> Vec<u32> {
        let places: Vec<u32> = (0..self.len() as u32).collect();
        let near = places.par_chunks(TASK).map_init(
            || Sweep::new(kernel, self.codes.width),
            |sweep, places| {
                let mut best = Candidates::new(count, vec![0.0; places.len()]);
                let queries = Queries { codes: &self.codes, places };
                sweep.offer(queries, self.centroids.all(), &mut best, |q| q, |_| u32::MAX, |_, _| 0.0);
                let mut near = Vec::with_capacity(places.len() * count);
                (0..places.len())
                    .for_each(|list| near.extend(best.by_score(list).iter().map(|near| near.id)));
                near
            },
        );
        near.flatten_iter().collect()
    }
}

/// The rows in about sqrt(N) lists of rows near one another, each ascending. Equal rows are in one list.
pub(crate) fn near_lists(
    embeddings: &Embeddings,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Vec<Vec<u32>>> {
    let (rows, kernel) = (Rows::all(embeddings), Kernel::default());
    let count = ((rows.len() as f64).sqrt() as usize).max(1);
    let lists = Lists::train(rows, count, seed, kernel, progress)?;
    Ok(group_by_list(&lists.of_rows(rows, kernel, progress)?, count))
}

/// The members of each list, ascending.
pub(super) fn group_by_list(list_of: &[u32], count: usize) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); count];
    for (i, &list) in list_of.iter().enumerate() {
        members[list as usize].push(i as u32);
    }
    members
}
