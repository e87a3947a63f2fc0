//! The default tau, derived from the data: a cosine of 0.45 is a certain match in one embedding and noise in another.
//!
//! It combines two estimates, which fail in different cases:
//! - a similarity that rows of different identities hardly reach: m + 5s, with m the median of the cosines of random pairs and
//!   s their spread (1.4826 times the median absolute deviation). It is too high if embeddings vary in few directions.
//! - the valley between pairs of different identities and pairs of one identity: Otsu's threshold (1979) of all similarities in
//!   the kNN graph. It is too low if images are so poor that there is no valley, and too high if identities are large.
//!
//! tau lies between them, twice as near to the lower. With it the tree has (mean of pairwise and BCubed F, in
//! brackets that of the best tau): training half of a face set 95.1 (95.2), the same at 24 pixels 60.8 (63.8),
//! synthetic 84.7 (85.1). The factor 5 and the weights were chosen on these three. The
//! scores of test sets were visible at the same time, so results on those are not blind.

use crate::knn::dot;
use crate::random::{Purpose, Stream};
use crate::{Embeddings, KnnGraph};
use rayon::prelude::*;

const PAIRS: usize = 100_000;
const SPREADS: f32 = 5.0;
/// The standard deviation of normal numbers whose median absolute deviation is 1.
const SPREAD: f32 = 1.4826;
const BINS: usize = 512;

/// A similarity between those of different identities and those of one identity. `seed` chooses the random pairs.
pub fn natural_tau(embeddings: &Embeddings, graph: &KnnGraph, seed: u64) -> f32 {
    if graph.k() == 0 {
        return 0.0;
    }
    let guesses = [null_reach(embeddings, seed), otsu(&histogram(graph))];
    let (low, high) = (guesses[0].min(guesses[1]), guesses[0].max(guesses[1]));
    (2.0 * low + high) / 3.0
}

/// m + 5s of the cosines of random pairs.
fn null_reach(embeddings: &Embeddings, seed: u64) -> f32 {
    let [middle, deviation] = null_cosines(embeddings, seed);
    (middle + SPREADS * SPREAD * deviation).clamp(-1.0, 1.0)
}

/// The median of the cosines of random pairs, which are nearly all of different identities, and their median absolute
/// deviation; 0 with fewer than two rows.
pub fn null_cosines(embeddings: &Embeddings, seed: u64) -> [f32; 2] {
    let n = embeddings.len();
    if n < 2 {
        return [0.0; 2];
    }
    let mut random = Stream::new(seed, Purpose::NullModel, 0, 0);
    let mut cosines: Vec<f32> = (0..PAIRS)
        .map(|_| {
            let a = random.below(n);
            let b = (a + 1 + random.below(n - 1)) % n;
            dot(embeddings.row(a), embeddings.row(b))
        })
        .collect();
    let middle = median(&mut cosines);
    cosines.iter_mut().for_each(|c| *c = (*c - middle).abs());
    [middle, median(&mut cosines)]
}

fn median(values: &mut [f32]) -> f32 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f32::total_cmp).1
}

/// The histogram of the similarities of the graph, with [`BINS`] bins from -1 to 1.
fn histogram(graph: &KnnGraph) -> Vec<u64> {
    let count = |mut bins: Vec<u64>, i: usize| {
        for &similarity in graph.neighbours(i).1 {
            let bin = (similarity + 1.0) / 2.0 * BINS as f32;
            bins[(bin as usize).min(BINS - 1)] += 1;
        }
        bins
    };
    let add = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    (0..graph.len()).into_par_iter().fold(|| vec![0; BINS], count).reduce(|| vec![0; BINS], add)
}

/// The threshold with the largest variance between the two sides; of several, the middle one.
fn otsu(bins: &[u64]) -> f32 {
    let value = |bin: usize| (bin as f64 + 0.5) / BINS as f64 * 2.0 - 1.0;
    let total: f64 = bins.iter().map(|&c| c as f64).sum();
    let mean = bins.iter().enumerate().map(|(b, &c)| c as f64 * value(b)).sum::<f64>() / total;
    let (mut below, mut sum_below) = (0.0, 0.0);
    let (mut best, mut first, mut last) = (-1.0, 0, 0);
    for (bin, &count) in bins.iter().enumerate() {
        below += count as f64;
        sum_below += count as f64 * value(bin);
        let above = total - below;
        // With everything on one side there is nothing between.
        let between =
            if below * above == 0.0 { 0.0 } else { (mean * below - sum_below).powi(2) / (below * above) };
        if between > best {
            (best, first) = (between, bin);
        }
        if between == best {
            last = bin;
        }
    }
    (value(first) + value(last)) as f32 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_directions_reach_five_spreads() {
        let mut random = Stream::new(1, Purpose::Image, 0, 0);
        let dim = 100;
        let data = (0..2000 * dim).map(|_| random.rough_normal()).collect();
        let reach = null_reach(&Embeddings::from_rows(data, dim, "test").unwrap(), 0);
        assert!((reach - 0.5).abs() < 0.02, "{reach}");
    }

    #[test]
    fn otsu_lies_between_two_heaps() {
        let mut bins = vec![0; BINS];
        bins[300] = 100;
        bins[301] = 50;
        bins[400] = 70;
        let tau = otsu(&bins);
        let value = |bin: usize| (bin as f32 + 0.5) / BINS as f32 * 2.0 - 1.0;
        assert!(value(301) <= tau && tau < value(400), "{tau}");
    }

    #[test]
    fn one_row_and_equal_rows_have_a_tau() {
        let one = Embeddings::from_rows(vec![3.0, 4.0], 2, "test").unwrap();
        let lonely = KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap();
        assert_eq!(natural_tau(&one, &lonely, 0), 0.0);
        let equal = Embeddings::from_rows([3.0, 4.0].repeat(3), 2, "test").unwrap();
        let graph = KnnGraph::from_parts(3, 1, vec![1, 0, 0], vec![1.0; 3], "test").unwrap();
        assert!(natural_tau(&equal, &graph, 0) < 1.0);
    }
}
