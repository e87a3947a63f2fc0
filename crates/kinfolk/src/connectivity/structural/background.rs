//! The background: the distribution of the similarities of random pairs, which is the unit of similarities.
//!
//! z(i, j) = ((s - m_i) / d_i + (s - m_j) / d_j) / 2, with m_i the median of vertex i's cosines to a random cohort and d_i
//! the root mean square deviation of the cosines below the median. The upper side is not used, because it contains rows of the
//! same identity. d_i^2 is averaged with that of the whole set, because an estimate from a few hundred cosines has an error of
//! a few percent. This is a robust form of score normalisation in speaker recognition (S-norm; Kenny, 2010).
//!
//! Cost: O(N C D) with C = 256, in blocks of rows.

use crate::Embeddings;
use crate::knn::Cohort;
use crate::random::{Purpose, Stream};
use crate::values::Values;
use rayon::prelude::*;

const COHORT: usize = 256;
/// The minimum spread. If all rows are equal, similarities differ by rounding only.
const LEAST_SPREAD: f32 = 1e-4;

/// Medians and spreads of the similarities to random rows, for each vertex and for the whole set.
pub(crate) struct Background {
    pub(crate) medians: Values<f32>,
    pub(crate) spreads: Values<f32>,
    pub(crate) median: f32,
    pub(crate) spread: f32,
}

impl Background {
    pub(crate) fn of(embeddings: &Embeddings, seed: u64) -> Self {
        let mut ids = Self::cohort(embeddings.len(), seed);
        ids.sort_unstable();
        Self::by(embeddings, &ids)
    }

    /// Random rows.
    pub(crate) fn cohort(n: usize, seed: u64) -> Vec<u32> {
        Stream::new(seed, Purpose::NullModel, 1, 0).sample(n, COHORT)
    }

    /// By the cosines to these rows, in ascending order.
    pub(crate) fn by(embeddings: &Embeddings, ids: &[u32]) -> Self {
        let n = embeddings.len();
        let null = NullModel::of(embeddings, ids);
        let (mut medians, mut spreads) = (vec![0.0; n], vec![0.0; n]);
        let blocks = medians.par_chunks_mut(Cohort::BLOCK).zip(spreads.par_chunks_mut(Cohort::BLOCK));
        blocks.enumerate().for_each_init(Scratch::default, |scratch, (block, (medians, spreads))| {
            null.of_rows(embeddings, block * Cohort::BLOCK, medians, spreads, scratch);
        });
        Self { medians: medians.into(), spreads: spreads.into(), median: null.median, spread: null.spread }
    }
}

/// By the definition: `features` looks up what it needs of many rows at a time.
#[cfg(test)]
impl Background {
    /// Similarity `s` of `i` and `j` in units of their backgrounds.
    pub(super) fn standard(&self, i: usize, j: usize, s: f32) -> f32 {
        0.5 * (self.of_vertex(i, s) + self.of_vertex(j, s))
    }

    pub(super) fn of_vertex(&self, i: usize, s: f32) -> f32 {
        (s - self.medians[i]) / self.spreads[i]
    }
}

/// Random rows, and the similarities among them.
pub(crate) struct NullModel {
    ids: Vec<u32>,
    cohort: Cohort,
    pub(crate) median: f32,
    pub(crate) spread: f32,
}

impl NullModel {
    /// Of these rows, in ascending order.
    pub(crate) fn of(embeddings: &Embeddings, ids: &[u32]) -> Self {
        let cohort = Cohort::of(embeddings, ids);
        let mut pairs = Vec::with_capacity(ids.len() * ids.len());
        let mut cosines = Vec::new();
        for &i in ids {
            cohort.cosines(embeddings, i as usize, 1, &mut cosines);
            let others = ids.iter().zip(&cosines).filter(|(j, _)| **j != i);
            pairs.extend(others.map(|(_, &cosine)| cosine));
        }
        let (median, spread) = middle_and_spread(&pairs, &mut Vec::new());
        Self { ids: ids.to_vec(), cohort, median, spread: spread.max(LEAST_SPREAD) }
    }

    /// The median and the spread of each of a few consecutive rows from `first` on.
    pub(crate) fn of_rows(
        &self,
        embeddings: &Embeddings,
        first: usize,
        medians: &mut [f32],
        spreads: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let Scratch { cosines, row, sorted } = scratch;
        self.cohort.cosines(embeddings, first, medians.len(), cosines);
        let places = medians.iter_mut().zip(spreads);
        for (at, (cosines, place)) in cosines.chunks_exact(self.ids.len()).zip(places).enumerate() {
            row.clear();
            row.extend_from_slice(cosines);
            // Never a row with itself.
            if let Ok(own) = self.ids.binary_search(&((first + at) as u32)) {
                row.remove(own);
            }
            let (median, own) = middle_and_spread(row, sorted);
            *place.0 = median;
            *place.1 = ((own * own + self.spread * self.spread) / 2.0).sqrt();
        }
    }
}

/// Buffers that the rows of one thread share.
#[derive(Default)]
pub(crate) struct Scratch {
    cosines: Vec<f32>,
    row: Vec<f32>,
    sorted: Vec<f32>,
}

/// The median, and the root mean square deviation of the values below it; `scratch` is a buffer for a copy.
fn middle_and_spread(values: &[f32], scratch: &mut Vec<f32>) -> (f32, f32) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    scratch.clear();
    scratch.extend_from_slice(values);
    let (_, &mut median, _) = scratch.select_nth_unstable_by(values.len() / 2, f32::total_cmp);
    let (mut sum, mut count) = (0.0f64, 0u32);
    for &value in values.iter().filter(|&&value| value < median) {
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
        let (median, spread) = middle_and_spread(&values, &mut Vec::new());
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
