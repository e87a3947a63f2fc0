//! The null model: the share d(z) of pairs of different identities among all pairs at z, in this set.
//!
//! d(z) = h0(z) / h(z), a local false discovery rate (Efron, 2004). h is the histogram of z over pairs of a random vertex and
//! any of the N rows; h0 over pairs of a vertex of a certain cluster and a row outside that cluster, except probable edges.
//! Clusters are those of a first partition. Both are per vertex and smoothed; d decreases with z.
//!
//! In a set of singletons, h and h0 are equal up to z far above those of different identities. In a set of large identities,
//! pairs of one identity outnumber the others already at low z, and d affects weak edges only. No fixed threshold suits both.
//! One set can contain both cases, so h is counted for five kinds of vertices, by the number of neighbours beyond the z that
//! only 0.05 rows of other identities per vertex exceed. The correction of an edge is the mean over its ends. The maximum
//! instead of the mean is better if many rows are singletons (faces: BCubed F 93.9 instead of 93.2) and isolates poor images
//! elsewhere (synthetic, 102,000 rows: pairwise F 93.0 instead of 94.4; both with an earlier network).
//!
//! Cost: O(N M D) integer products with M = 256 + 5 x 128, in blocks of rows.

use super::{Background, EdgeProbabilities};
use crate::knn::Cohort;
use crate::random::{Purpose, Stream};
use crate::{Embeddings, KnnGraph};
use rayon::prelude::*;

const SAMPLE: usize = 256;
/// Kinds of vertices, by their minimum number of neighbours that are unlikely under the null model.
const KINDS: [usize; 5] = [0, 1, 3, 8, 25];
/// Rows of other identities per vertex beyond the z from which neighbours are unlikely under the null model.
const FEW: f64 = 0.05;
const BINS: usize = 120;
const WIDTH: f32 = 0.25;
/// Pairs per vertex that count as none: at high z, where both histograms are empty, the share is that of lower z.
const NOTHING: f64 = 1e-3;

/// Shares of pairs of different identities, by z.
pub(crate) struct NullModel {
    /// The kind of each vertex, an index into [`KINDS`].
    kinds: Vec<u8>,
    /// By kind.
    shares: Vec<Vec<f32>>,
}

impl NullModel {
    pub(crate) fn of(
        embeddings: &Embeddings,
        graph: &KnnGraph,
        background: &Background,
        edges: &EdgeProbabilities,
        clusters: &[i64],
        seed: u64,
    ) -> Self {
        let n = embeddings.len();
        let mut stream = Stream::new(seed, Purpose::NullModel, 2, 0);
        let sure = sure_vertices(graph, edges, clusters);
        if sure.is_empty() {
            // No vertex has a certain edge: all pairs count as different identities, except copies.
            return Self { kinds: vec![0; n], shares: vec![vec![1.0; BINS]] };
        }
        let sure: Vec<u32> = stream.sample(sure.len(), SAMPLE).iter().map(|&at| sure[at as usize]).collect();
        let order = stream.sample(n, n);
        let apart = |i: usize, j: usize| clusters[i] != clusters[j];
        // Bins below those that smooth the bin of the least similar edge are never read.
        let least = edges.standard.par_iter().copied().reduce(|| f32::MAX, f32::min) - 4.0 * WIDTH;
        let pairs = Pairs { embeddings, background, least };
        let from: Vec<(u32, usize)> = sure.iter().map(|&i| (i, 0)).collect();
        let mut null = pairs.histograms(&from, 1, apart).remove(0);
        // Probable edges to other clusters are few: they are subtracted here instead of being tested for all N rows.
        let k = graph.k();
        for &i in &sure {
            let i = i as usize;
            let list = i * k..(i + 1) * k;
            let row = graph.neighbours(i).0.iter().zip(&edges.standard[list.clone()]);
            for ((&j, &z), &p) in row.zip(&edges.probabilities[list]) {
                if p > 0.5 && apart(i, j as usize) {
                    null[bin(z)] = null[bin(z)].saturating_sub(1);
                }
            }
        }
        let per_vertex = |bins: Vec<u64>, vertices: usize| -> Vec<f64> {
            bins[1..].iter().map(|&count| count as f64 / vertices.max(1) as f64).collect()
        };
        let null = per_vertex(null, sure.len());
        let level = null_level(&null);
        let kind = |i: usize| {
            let near = edges.standard[i * k..][..k].iter().filter(|&&z| z > level).count();
            KINDS.iter().take_while(|&&least| near >= least).count() as u8 - 1
        };
        let kinds: Vec<u8> = (0..n).into_par_iter().map(kind).collect();
        let mut taken = [0; KINDS.len()];
        let mut from = Vec::new();
        for &i in &order {
            let kind = kinds[i as usize] as usize;
            if taken[kind] < SAMPLE / 2 {
                taken[kind] += 1;
                from.push((i, kind));
            }
        }
        let all = pairs.histograms(&from, KINDS.len(), |_, _| true);
        let shares = all.into_iter().zip(taken).map(|(all, taken)| shares(&null, &per_vertex(all, taken)));
        let shares = shares.collect();
        Self { kinds, shares }
    }

    /// The share of pairs of different identities at `z`, the mean of those for `i` and `j`.
    pub(super) fn share(&self, i: usize, j: usize, z: f32) -> f32 {
        let seen = |v: usize| along(&self.shares[self.kinds[v] as usize], z);
        (seen(i) + seen(j)) / 2.0
    }
}

/// The value at `z`, interpolated linearly between the centres of bins.
fn along(bins: &[f32], z: f32) -> f32 {
    let at = (z / WIDTH - 0.5).clamp(0.0, (BINS - 1) as f32);
    let (below, part) = (at as usize, at.fract());
    let above = (below + 1).min(BINS - 1);
    bins[below] * (1.0 - part) + bins[above] * part
}

/// The z beyond which a vertex has [`FEW`] rows of other identities, interpolated linearly within the bin.
fn null_level(null: &[f64]) -> f32 {
    let mut beyond = 0.0;
    for (at, &count) in null.iter().enumerate().rev() {
        if beyond + count >= FEW {
            return ((at + 1) as f64 - (FEW - beyond) / count) as f32 * WIDTH;
        }
        beyond += count;
    }
    0.0
}

/// Vertices with a certain edge in a cluster of four or more rows; if there are too few, of two; else none.
fn sure_vertices(graph: &KnnGraph, edges: &EdgeProbabilities, clusters: &[i64]) -> Vec<u32> {
    let mut sizes = vec![0u32; clusters.iter().max().map_or(0, |&last| last as usize + 1)];
    clusters.iter().for_each(|&label| sizes[label as usize] += 1);
    let k = graph.k();
    let with = |size: u32| -> Vec<u32> {
        let sure = |i: &usize| {
            sizes[clusters[*i] as usize] >= size && edges.probabilities[i * k..][..k].iter().any(|&p| p > 0.9)
        };
        (0..clusters.len()).filter(sure).map(|i| i as u32).collect()
    };
    let enough = |vertices: &Vec<u32>| vertices.len() >= (clusters.len() / 50).max(20);
    [4, 2].into_iter().map(with).find(enough).unwrap_or_default()
}

/// The bin of z, one more than its index in a distribution: bin 0 is for z below 0, which is not used.
fn bin(z: f32) -> usize {
    ((z / WIDTH + 1.0) as usize).min(BINS)
}

/// Pairs of rows whose z is at least `least`; the others, almost all, are skipped.
struct Pairs<'a> {
    embeddings: &'a Embeddings,
    background: &'a Background,
    least: f32,
}

/// Pairs that are tested together.
const LANES: usize = 16;

impl Pairs<'_> {
    /// The histogram of z over pairs of a vertex of `from` and any other row, by the group of that vertex.
    fn histograms(
        &self,
        from: &[(u32, usize)],
        groups: usize,
        counts: impl Fn(usize, usize) -> bool + Sync,
    ) -> Vec<Vec<u64>> {
        let Pairs { embeddings, background, .. } = self;
        let ids: Vec<u32> = from.iter().map(|&(i, _)| i).collect();
        let cohort = Cohort::rough(embeddings, &ids);
        let n = embeddings.len();
        let lines: Vec<[f32; 2]> = ids.iter().map(|&i| background.line(i as usize)).collect();
        let (slopes, offsets): (Vec<f32>, Vec<f32>) =
            lines.iter().map(|&[slope, offset]| (slope, offset)).unzip();
        let count = |(mut bins, mut cosines): (Vec<Vec<u64>>, Vec<f32>), block: usize| {
            let first = block * Cohort::BLOCK;
            cohort.cosines(embeddings, first, Cohort::BLOCK.min(n - first), &mut cosines);
            for (at, row) in cosines.chunks_exact(from.len()).enumerate() {
                let j = first + at;
                let line = background.line(j);
                let chunks = row.chunks(LANES).zip(slopes.chunks(LANES)).zip(offsets.chunks(LANES));
                for (((cosines, slopes), offsets), from) in chunks.zip(from.chunks(LANES)) {
                    let mut z = [f32::MIN; LANES];
                    for (((z, cosine), slope), offset) in z.iter_mut().zip(cosines).zip(slopes).zip(offsets) {
                        *z = cosine * (line[0] + slope) - (line[1] + offset);
                    }
                    if z.iter().fold(false, |any, &z| any | (z >= self.least)) {
                        for (&z, &(i, group)) in z.iter().zip(from) {
                            // Branch-free, because half of the pairs would take the branch: pairs that do not count go to
                            // bin 0.
                            let i = i as usize;
                            let counted = usize::from((i != j) & (z >= self.least) & counts(i, j));
                            bins[group][counted * bin(z)] += 1;
                        }
                    }
                }
            }
            (bins, cosines)
        };
        let add = |mut a: Vec<Vec<u64>>, b: Vec<Vec<u64>>| {
            a.iter_mut().flatten().zip(b.iter().flatten()).for_each(|(a, b)| *a += b);
            a
        };
        let none = || vec![vec![0; BINS + 1]; groups];
        (0..if from.is_empty() { 0 } else { n.div_ceil(Cohort::BLOCK) })
            .into_par_iter()
            .fold(|| (none(), Vec::new()), count)
            .map(|(bins, _)| bins)
            .reduce(none, add)
    }
}

/// h0 / h, smoothed over five bins, non-increasing in z.
fn shares(null: &[f64], all: &[f64]) -> Vec<f32> {
    let smooth = |bins: &[f64], at: usize| {
        let weights = [1.0, 2.0, 3.0, 2.0, 1.0];
        let of = |(offset, weight): (usize, f64)| {
            (at + offset).checked_sub(2).and_then(|b| bins.get(b)).map_or(0.0, |v| v * weight)
        };
        weights.into_iter().enumerate().map(of).sum::<f64>() / 9.0
    };
    let mut least = 1.0f64;
    (0..null.len())
        .map(|at| {
            least = least.min((smooth(null, at) + NOTHING) / (smooth(all, at) + NOTHING));
            least as f32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_all_are_strangers_nobody_is_trusted_and_the_reverse() {
        let mut bins = vec![0.0; BINS];
        bins[..16].fill(5.0);
        assert_eq!(along(&shares(&bins, &bins), 3.0), 1.0);
        assert!(along(&shares(&[0.0; BINS], &bins), 3.0) < 0.001);
    }

    #[test]
    fn the_share_never_rises() {
        let null: Vec<f64> = (0..BINS).map(|b| ((b * 7) % 11) as f64).collect();
        let all: Vec<f64> = (0..BINS).map(|b| 5.0 + ((b * 5) % 13) as f64).collect();
        let shares = shares(&null, &all);
        let shares: Vec<f32> = (-20..400).map(|z| along(&shares, z as f32 / 10.0)).collect();
        assert!(shares.is_sorted_by(|a, b| a >= b) && shares.iter().all(|s| (0.0..=1.0).contains(s)));
    }

    #[test]
    fn hardly_any_stranger_is_beyond_the_level() {
        let mut null = vec![1.0; BINS];
        null[20..].fill(0.0);
        null[22] = 0.04;
        // The level lies one hundredth into the bin.
        assert!((null_level(&null) - 19.99 * WIDTH).abs() < 1e-4);
        assert_eq!(null_level(&[0.0; BINS]), 0.0);
    }

    #[test]
    fn both_ends_have_a_say() {
        let null = NullModel {
            kinds: vec![0, 4],
            shares: (0..5).map(|s| vec![1.0 - 0.2 * s as f32; BINS]).collect(),
        };
        assert!((null.share(0, 1, 4.0) - 0.6).abs() < 1e-6);
        assert!(null.share(1, 1, 4.0) < 0.3);
    }
}
