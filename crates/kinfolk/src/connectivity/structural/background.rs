//! What random pairs look like: the unit in which similarities are told.
//!
//! z(i, j) = ((s - m_i) / d_i + (s - m_j) / d_j) / 2, with m_i the median of vertex i's cosines to a random cohort and d_i
//! the root mean square of how far those below it are below it. Only the lower side, because some of the upper side are
//! relatives. d_i is drawn half way (in squares) to that of the whole set, since a few hundred cosines tell it only
//! to some percent. This is score normalisation as in speaker recognition (S-norm; Kenny, 2010), robust.
//!
//! Cost: O(N C D) with C = 256, in blocks of rows.

use crate::Embeddings;
use crate::knn::dots;
use crate::random::{Purpose, Stream};
use rayon::prelude::*;

const COHORT: usize = 256;
/// Where all rows are equal there is no spread; similarities then differ by rounding only.
const LEAST_SPREAD: f32 = 1e-4;

/// Medians and spreads of what each vertex, and the whole set, see at random.
pub(crate) struct Background {
    pub(super) medians: Vec<f32>,
    pub(super) spreads: Vec<f32>,
    pub(super) median: f32,
    pub(super) spread: f32,
}

impl Background {
    pub(crate) fn of(embeddings: &Embeddings, seed: u64) -> Self {
        let n = embeddings.len();
        let cohort = Stream::new(seed, Purpose::Strangers, 1, 0).sample(n, COHORT);
        let rows = gather(embeddings, &cohort);
        // Never a row with itself.
        let seen = |i: usize, cosines: &mut Vec<f32>| {
            dots(embeddings.row(i), &rows, |at, cosine| {
                if cohort[at] as usize != i {
                    cosines.push(cosine);
                }
            });
        };
        let mut among = Vec::with_capacity(cohort.len() * cohort.len());
        cohort.iter().for_each(|&i| seen(i as usize, &mut among));
        let (median, spread) = middle_and_spread(&mut among);
        let spread = spread.max(LEAST_SPREAD);
        let (medians, spreads) = (0..n)
            .into_par_iter()
            .with_min_len(64)
            .map_init(Vec::new, |cosines, i| {
                cosines.clear();
                seen(i, cosines);
                let (median, own) = middle_and_spread(cosines);
                (median, ((own * own + spread * spread) / 2.0).sqrt())
            })
            .unzip();
        Self { medians, spreads, median, spread }
    }

    /// Similarity `s` of `i` and `j` in units of their backgrounds.
    #[inline]
    pub(super) fn standard(&self, i: usize, j: usize, s: f32) -> f32 {
        0.5 * (self.of_vertex(i, s) + self.of_vertex(j, s))
    }

    #[inline]
    pub(super) fn of_vertex(&self, i: usize, s: f32) -> f32 {
        (s - self.medians[i]) / self.spreads[i]
    }
}

/// Some rows, one after the other: small enough to stay in a cache while all others pass by.
pub(super) fn gather(embeddings: &Embeddings, ids: &[u32]) -> Vec<f32> {
    ids.iter().flat_map(|&i| embeddings.row(i as usize)).copied().collect()
}

/// The median, and the root mean square of the distance to it of what is below.
fn middle_and_spread(values: &mut [f32]) -> (f32, f32) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let middle = values.len() / 2;
    let (below, &mut median, _) = values.select_nth_unstable_by(middle, f32::total_cmp);
    let (mut sum, mut count) = (0.0f64, 0u32);
    // Summed in order of value, because the order in which selection leaves them is nobody's promise.
    below.sort_unstable_by(f32::total_cmp);
    for &value in below.iter().filter(|&&value| value < median) {
        sum += ((value - median) as f64).powi(2);
        count += 1;
    }
    (median, (sum / count.max(1) as f64).sqrt() as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_a_normal_is_its_deviation_whatever_is_above() {
        let mut stream = Stream::new(3, Purpose::Image, 0, 0);
        let mut values: Vec<f32> = (0..20_000).map(|_| 0.1 + 0.05 * stream.normal() as f32).collect();
        // Relatives: a few cosines far above.
        values.iter_mut().take(200).for_each(|value| *value = 0.9);
        let (median, spread) = middle_and_spread(&mut values);
        assert!((median - 0.1).abs() < 0.003 && (spread - 0.05).abs() < 0.003, "{median} {spread}");
    }

    #[test]
    fn one_row_and_equal_rows_have_a_background() {
        let one = Embeddings::from_rows(vec![3.0, 4.0], 2, "test").unwrap();
        assert!(Background::of(&one, 0).standard(0, 0, 1.0).is_finite());
        let equal = Embeddings::from_rows([3.0, 4.0].repeat(5), 2, "test").unwrap();
        assert!(Background::of(&equal, 0).standard(0, 4, 1.0).abs() < 1.0);
    }
}
