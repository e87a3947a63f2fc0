//! Subtracts from every row what all rows share.
//!
//! Embeddings of voices or sentences often share an offset: cosines of random pairs are around 0.6 instead of 0, and what
//! distinguishes rows is a small part of each. Row x becomes (x - o) / |x - o|. The offset o has the direction of the mean row,
//! and |o|^2 is the median cosine of random pairs, at most the square of the mean's length: if rows are o plus parts that are
//! independent of each other, the cosine of two is |o|^2. The median, and not the mean, because an album may consist mainly of
//! one person: the mean row is then near that person, and subtracting it would erase what its rows have in common.
//!
//! Cost: O(N D), and a second matrix of embeddings.

use crate::knn::dot;
use crate::random::{Purpose, Stream};
use crate::{Context, Embeddings, Result};
use rayon::prelude::*;

/// Rows whose pairs are a sample of all pairs.
const SAMPLE: usize = 512;
/// The number of rows whose sum is one term, which does not depend on the number of threads.
pub(crate) const PART: usize = 1024;
/// A row of which less than this is left is not changed: it has no direction but the offset's.
const LEAST: f64 = 1e-3;

/// The embeddings without their common offset; in a file in the directory for large matrices, if they are one.
pub fn centred(embeddings: &Embeddings, context: &Context) -> Result<Embeddings> {
    let (n, dim) = (embeddings.len(), embeddings.dim());
    let parts: Vec<Vec<f64>> =
        embeddings.as_slice().par_chunks(PART * dim).map(|part| sum_of_part(part, dim)).collect();
    let offset = offset(parts.iter().map(Vec::as_slice), embeddings, context.seed());
    let without = |i: usize, values: &mut [f64]| without_offset(embeddings.row(i), &offset, values);
    let place = "centred embeddings";
    match context.scratch() {
        Some(directory) if context.memory().is_large(4 * (n * dim) as u64) => {
            Embeddings::in_file(directory, n, dim, place, without)
        }
        _ => Embeddings::from_fn(n, dim, place, without),
    }
}

/// A row without the offset, not yet of unit length.
pub(crate) fn without_offset(row: &[f32], offset: &[f64], values: &mut [f64]) {
    for ((value, &v), o) in values.iter_mut().zip(row).zip(offset) {
        *value = f64::from(v) - o;
    }
    if values.iter().map(|v| v * v).sum::<f64>() < LEAST * LEAST {
        values.iter_mut().zip(row).for_each(|(value, &v)| *value = v.into());
    }
}

/// The sum of [`PART`] rows, or of the last ones.
pub(crate) fn sum_of_part(rows: &[f32], dim: usize) -> Vec<f64> {
    let mut sum = vec![0.0f64; dim];
    for row in rows.chunks_exact(dim) {
        sum.iter_mut().zip(row).for_each(|(sum, &v)| *sum += f64::from(v));
    }
    sum
}

/// The offset, from the sums of all parts in order.
pub(crate) fn offset<'a>(
    parts: impl Iterator<Item = &'a [f64]>,
    embeddings: &Embeddings,
    seed: u64,
) -> Vec<f64> {
    let n = embeddings.len() as f64;
    let mut mean = vec![0.0; embeddings.dim()];
    parts.for_each(|part| mean.iter_mut().zip(part).for_each(|(mean, v)| *mean += v / n));
    let square = mean.iter().map(|v| v * v).sum::<f64>();
    let shared = median_cosine(embeddings, seed).clamp(0.0, square);
    let share = if square > 0.0 { (shared / square).sqrt() } else { 0.0 };
    mean.iter_mut().for_each(|v| *v *= share);
    mean
}

/// The median cosine of pairs of different rows, on a sample.
fn median_cosine(embeddings: &Embeddings, seed: u64) -> f64 {
    let ids = Stream::new(seed, Purpose::Views, 2, 0).sample(embeddings.len(), SAMPLE);
    let of_row = |(at, &i): (usize, &u32)| {
        let row = embeddings.row(i as usize);
        ids[..at].iter().map(|&j| dot(row, embeddings.row(j as usize))).collect::<Vec<f32>>()
    };
    let mut cosines: Vec<f32> = ids.par_iter().enumerate().flat_map_iter(of_row).collect();
    if cosines.is_empty() {
        return 0.0;
    }
    let middle = cosines.len() / 2;
    f64::from(*cosines.select_nth_unstable_by(middle, f32::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_one_and_three_threads;

    /// Random directions, with an offset of this length added to each.
    fn rows(count: usize, offset: f32) -> Vec<f32> {
        let mut stream = Stream::new(2, Purpose::Image, 0, 0);
        let row = |_| {
            let row: Vec<f32> = (0..64).map(|_| stream.rough_normal() / 8.0).collect();
            row.into_iter()
                .enumerate()
                .map(|(at, v)| if at == 0 { v + offset } else { v })
                .collect::<Vec<_>>()
        };
        (0..count).flat_map(row).collect()
    }

    #[test]
    fn a_shared_offset_is_subtracted() {
        let embeddings = Embeddings::from_rows(rows(600, 1.2), 64, "test").unwrap();
        assert!(median_cosine(&embeddings, 0) > 0.5);
        let [one, three] = on_one_and_three_threads(|| centred(&embeddings, &Context::default()).unwrap());
        assert_eq!(one.as_slice(), three.as_slice());
        assert!(median_cosine(&one, 0).abs() < 0.02);
    }

    #[test]
    fn a_frequent_identity_is_not_an_offset() {
        // A third of the rows are one identity: the mean row is near it.
        let mut data = rows(400, 0.0);
        data.extend(rows(200, 1.2));
        let embeddings = Embeddings::from_rows(data, 64, "test").unwrap();
        let cosine = |of: &Embeddings| dot(of.row(450), of.row(550));
        let after = cosine(&centred(&embeddings, &Context::default()).unwrap());
        assert!(after > 0.85 * cosine(&embeddings), "{after} {}", cosine(&embeddings));
    }

    #[test]
    fn rows_that_are_all_offset_stay() {
        let embeddings = Embeddings::from_rows([0.6, 0.8].repeat(5), 2, "test").unwrap();
        assert_eq!(centred(&embeddings, &Context::default()).unwrap().as_slice(), embeddings.as_slice());
        let one = Embeddings::from_rows(vec![3.0, 4.0], 2, "test").unwrap();
        assert_eq!(centred(&one, &Context::default()).unwrap().as_slice(), one.as_slice());
    }
}
