//! How near strangers come in this very set: the share d(z) of strangers among all pairs at z.
//!
//! d(z) = h0(z) / h(z), a local false discovery rate (Efron, 2004). h counts pairs by z as vertices taken at random see all N
//! rows; h0 as vertices of sure clusters see all rows outside a generously drawn cluster of theirs and which they
//! are not tied to. Both per vertex, in bins, smoothed; d falls with z.
//!
//! In a set of singletons h and h0 are the same until z is far above what strangers reach; in a set of large identities
//! relatives outnumber strangers early, and d leaves weaker ties alone. No threshold would do for both.
//!
//! Cost: O(N M D) with M = 2 x 256, in blocks of rows, the sampled rows in cache.

use super::background::gather;
use super::{Background, Ties};
use crate::knn::dot;
use crate::random::{Purpose, Stream};
use crate::{Embeddings, KnnGraph};
use rayon::prelude::*;

const SAMPLE: usize = 256;
const BINS: usize = 120;
const WIDTH: f32 = 0.25;
/// Pairs per vertex that count as none: far out, where there is neither, the share is decided by what is nearer.
const NOTHING: f64 = 1e-3;

/// Shares of strangers, by z.
pub(crate) struct Strangers {
    shares: Vec<f32>,
}

/// Two partitions by ties: `strict` joins what is surely one, `generous` whatever may be one.
pub(crate) struct Drawn<'a> {
    pub(crate) strict: &'a [i64],
    pub(crate) generous: &'a [i64],
}

impl Strangers {
    pub(crate) fn of(
        embeddings: &Embeddings,
        graph: &KnnGraph,
        background: &Background,
        ties: &Ties,
        drawn: &Drawn,
        seed: u64,
    ) -> Self {
        let n = embeddings.len();
        let mut stream = Stream::new(seed, Purpose::Strangers, 2, 0);
        let sure = sure_vertices(graph, ties, drawn.strict);
        let sure: Vec<u32> = stream.sample(sure.len(), SAMPLE).iter().map(|&at| sure[at as usize]).collect();
        let anyone = stream.sample(n, SAMPLE);
        let strange =
            |i: usize, j: usize| drawn.generous[i] != drawn.generous[j] && drawn.strict[i] != drawn.strict[j];
        let mut null = histogram(embeddings, background, &sure, strange);
        // Those tied to a vertex are few: taken back here rather than looked for among all N.
        let k = graph.k();
        for &i in &sure {
            let i = i as usize;
            let edges = i * k..(i + 1) * k;
            let row = graph.neighbours(i).0.iter().zip(&ties.standard[edges.clone()]);
            for ((&j, &z), &p) in row.zip(&ties.probabilities[edges]) {
                if p > 0.5 && z >= 0.0 && strange(i, j as usize) {
                    null[bin(z)] = null[bin(z)].saturating_sub(1);
                }
            }
        }
        let all = histogram(embeddings, background, &anyone, |_, _| true);
        let per_vertex = |bins: Vec<u64>, vertices: usize| -> Vec<f64> {
            bins.iter().map(|&count| count as f64 / vertices as f64).collect()
        };
        let (null, all) = (per_vertex(null, sure.len()), per_vertex(all, anyone.len()));
        Self { shares: shares(&null, &all) }
    }

    /// The share of strangers among pairs at `z`, between the middles of bins on a line.
    pub(super) fn share(&self, z: f32) -> f32 {
        let at = (z / WIDTH - 0.5).clamp(0.0, (BINS - 1) as f32);
        let (below, part) = (at as usize, at.fract());
        let above = (below + 1).min(BINS - 1);
        self.shares[below] * (1.0 - part) + self.shares[above] * part
    }
}

/// Vertices with a sure tie in a cluster of four or more; where there are hardly any, of two; else all.
fn sure_vertices(graph: &KnnGraph, ties: &Ties, strict: &[i64]) -> Vec<u32> {
    let mut sizes = vec![0u32; strict.iter().max().map_or(0, |&last| last as usize + 1)];
    strict.iter().for_each(|&label| sizes[label as usize] += 1);
    let k = graph.k();
    let with = |size: u32, tie: f32| -> Vec<u32> {
        let sure = |i: &usize| {
            sizes[strict[*i] as usize] >= size && ties.probabilities[i * k..][..k].iter().any(|&p| p > tie)
        };
        (0..strict.len()).filter(sure).map(|i| i as u32).collect()
    };
    let enough = |least: usize| move |vertices: &Vec<u32>| vertices.len() >= least;
    Some(with(4, 0.9))
        .filter(enough(50))
        .or_else(|| Some(with(2, 0.6)).filter(enough(20)))
        .unwrap_or_else(|| (0..strict.len() as u32).collect())
}

/// The bin of a z that is not negative.
fn bin(z: f32) -> usize {
    ((z / WIDTH) as usize).min(BINS - 1)
}

/// How many pairs of a vertex of `from` and any other row fall into each bin of z.
fn histogram(
    embeddings: &Embeddings,
    background: &Background,
    from: &[u32],
    counts: impl Fn(usize, usize) -> bool + Sync,
) -> Vec<u64> {
    let (dim, rows) = (embeddings.dim(), gather(embeddings, from));
    let count = |mut bins: Vec<u64>, j: usize| {
        let row = embeddings.row(j);
        for (&i, other) in from.iter().zip(rows.chunks_exact(dim)) {
            let i = i as usize;
            let z = background.standard(i, j, dot(row, other));
            // Below 0 are half of all pairs, and none of interest.
            if z >= 0.0 && i != j && counts(i, j) {
                bins[bin(z)] += 1;
            }
        }
        bins
    };
    let add = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let none = || vec![0; BINS];
    (0..embeddings.len()).into_par_iter().with_min_len(256).fold(none, count).reduce(none, add)
}

/// h0 / h, smoothed over five bins, never rising with z.
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
        let lonely = Strangers { shares: shares(&bins, &bins) };
        assert_eq!(lonely.share(3.0), 1.0);
        let nobody = Strangers { shares: shares(&[0.0; BINS], &bins) };
        assert!(nobody.share(3.0) < 0.001);
    }

    #[test]
    fn the_share_never_rises() {
        let null: Vec<f64> = (0..BINS).map(|b| ((b * 7) % 11) as f64).collect();
        let all: Vec<f64> = (0..BINS).map(|b| 5.0 + ((b * 5) % 13) as f64).collect();
        let strangers = Strangers { shares: shares(&null, &all) };
        let along: Vec<f32> = (-20..400).map(|z| strangers.share(z as f32 / 10.0)).collect();
        assert!(along.is_sorted_by(|a, b| a >= b) && along.iter().all(|s| (0.0..=1.0).contains(s)));
    }
}
