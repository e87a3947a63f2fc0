//! Whitening by the covariance within identities: directions in which rows of one identity vary much get less weight.
//!
//! W is the covariance of rows about the mean of their identity, with equal weight for every identity of two or more rows, and
//! W' = (1 - shrink) W + shrink mean(diag W) I. Rows become L^-1 x with W' = L L^T, so that their dot products are
//! x^T W'^-1 y: within-class covariance normalisation (Hatch, Kajarekar and Stolcke, 2006). It needs labels from
//! the domain, and applies to other identities of the same domain.
//!
//! Cost: O(N D^2) to fit and to apply, O(D^3) for the factor; memory a second matrix of embeddings.

use crate::knn::dot;
use crate::{Embeddings, Error, Result};
use rayon::prelude::*;

/// The number of partial sums of the covariance, which does not depend on the number of threads.
const PARTS: usize = 16;

/// A linear map after which rows of one identity vary equally in all directions.
#[derive(Debug, Clone, PartialEq)]
pub struct Whitening {
    dim: usize,
    /// L^-1, D x D, row-major, lower triangular.
    inverse: Vec<f32>,
}

impl Whitening {
    /// Fits it to the rows that are `taken` and their labels; `None` if no identity has two of them that differ.
    ///
    /// ```
    /// use kinfolk::stages::Whitening;
    /// use kinfolk::Embeddings;
    /// // Within an identity rows differ in the second direction only.
    /// let rows = vec![1.0, 0.5, 1.0, -0.5, -1.0, 0.5, -1.0, -0.5];
    /// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
    /// let whitening = Whitening::fit(&embeddings, &[0, 0, 1, 1], |_| true, 0.1).unwrap();
    /// let whitened = whitening.apply(&embeddings)?;
    /// let cosine = |of: &Embeddings| of.row(0)[0] * of.row(1)[0] + of.row(0)[1] * of.row(1)[1];
    /// assert!(cosine(&embeddings) < 0.7 && cosine(&whitened) > 0.9);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    pub fn fit(
        embeddings: &Embeddings,
        labels: &[i64],
        taken: impl Fn(usize) -> bool,
        shrink: f64,
    ) -> Option<Self> {
        let dim = embeddings.dim();
        let mut covariance = covariance(embeddings, labels, taken)?;
        let mean = (0..dim).map(|a| covariance[a * dim + a]).sum::<f64>() / dim as f64;
        if mean <= 0.0 {
            return None;
        }
        covariance.iter_mut().for_each(|value| *value *= 1.0 - shrink);
        (0..dim).for_each(|a| covariance[a * dim + a] += shrink * mean);
        factorise(&mut covariance, dim)?;
        invert(&mut covariance, dim);
        // Rows are normalised afterwards, so the scale is arbitrary; this one gives numbers near 1.
        let scale = mean.sqrt();
        Some(Self { dim, inverse: covariance.iter().map(|&value| (scale * value) as f32).collect() })
    }

    /// The whitened rows, of unit length again.
    pub fn apply(&self, embeddings: &Embeddings) -> Result<Embeddings> {
        if embeddings.dim() != self.dim {
            let expected = format!("{} columns, as the model was trained on", self.dim);
            return Err(Error::format("embeddings", expected, embeddings.dim().to_string()));
        }
        Embeddings::from_fn(embeddings.len(), self.dim, "whitened embeddings", |i, values| {
            let row = embeddings.row(i);
            for (a, value) in values.iter_mut().enumerate() {
                *value = dot(&self.inverse[a * self.dim..][..=a], &row[..=a]).into();
            }
        })
    }

    /// D.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// D x D numbers, row-major, for a file.
    pub fn to_numbers(&self) -> &[f32] {
        &self.inverse
    }

    /// From [`Whitening::to_numbers`], if these are a lower triangle with a positive diagonal.
    pub fn from_numbers(dim: usize, numbers: &[f32]) -> Option<Self> {
        let right = |(at, &number): (usize, &f32)| {
            let (a, b) = (at / dim, at % dim);
            number.is_finite() && (b < a || if a == b { number > 0.0 } else { number == 0.0 })
        };
        let fits = dim > 0 && dim.checked_mul(dim) == Some(numbers.len());
        (fits && numbers.iter().enumerate().all(right)).then(|| Self { dim, inverse: numbers.to_vec() })
    }
}

/// The lower triangle of the covariance within identities; `None` where none has two rows.
fn covariance(embeddings: &Embeddings, labels: &[i64], taken: impl Fn(usize) -> bool) -> Option<Vec<f64>> {
    let dim = embeddings.dim();
    let mut rows: Vec<usize> = (0..labels.len()).filter(|&i| taken(i)).collect();
    rows.sort_by_key(|&i| labels[i]);
    let identities: Vec<&[usize]> =
        rows.chunk_by(|&i, &j| labels[i] == labels[j]).filter(|rows| rows.len() > 1).collect();
    if identities.is_empty() {
        return None;
    }
    let parts = identities.par_chunks(identities.len().div_ceil(PARTS));
    let parts: Vec<Vec<f64>> = parts.map(|part| scatter(embeddings, part)).collect();
    let mut sum = vec![0.0; dim * dim];
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part / identities.len() as f64);
    }
    Some(sum)
}

/// The sum of the covariances of some identities.
fn scatter(embeddings: &Embeddings, identities: &[&[usize]]) -> Vec<f64> {
    let dim = embeddings.dim();
    let mut sum = vec![0.0; dim * dim];
    let (mut mean, mut difference) = (vec![0.0; dim], vec![0.0; dim]);
    for rows in identities {
        mean.fill(0.0);
        for &i in *rows {
            mean.iter_mut().zip(embeddings.row(i)).for_each(|(mean, &v)| *mean += f64::from(v));
        }
        mean.iter_mut().for_each(|mean| *mean /= rows.len() as f64);
        let weight = 1.0 / (rows.len() - 1) as f64;
        for &i in *rows {
            let values = difference.iter_mut().zip(embeddings.row(i)).zip(&mean);
            values.for_each(|((difference, &v), mean)| *difference = f64::from(v) - mean);
            for a in 0..dim {
                let by = weight * difference[a];
                let products = sum[a * dim..][..=a].iter_mut().zip(&difference);
                products.for_each(|(sum, &difference)| *sum += by * difference);
            }
        }
    }
    sum
}

/// Cholesky's L in place of the lower triangle of a matrix; `None` if it is not positive definite.
fn factorise(matrix: &mut [f64], dim: usize) -> Option<()> {
    for a in 0..dim {
        let (above, row) = matrix.split_at_mut(a * dim);
        for b in 0..a {
            let other = &above[b * dim..][..=b];
            let sum: f64 = row[..b].iter().zip(other).map(|(x, y)| x * y).sum();
            row[b] = (row[b] - sum) / other[b];
        }
        let left = row[a] - row[..a].iter().map(|x| x * x).sum::<f64>();
        if left <= 0.0 {
            return None;
        }
        row[a] = left.sqrt();
        row[a + 1..dim].fill(0.0);
    }
    Some(())
}

/// The inverse of a lower triangle, in its place: row a is (e_a - sum over b < a of L[a][b] row b) / L[a][a].
fn invert(matrix: &mut [f64], dim: usize) {
    let mut row = vec![0.0; dim];
    for a in 0..dim {
        let (above, this) = matrix.split_at_mut(a * dim);
        row.fill(0.0);
        for b in 0..a {
            let by = this[b];
            row.iter_mut().zip(&above[b * dim..][..=b]).for_each(|(value, inverse)| *value -= by * inverse);
        }
        row[a] = 1.0;
        let diagonal = this[a];
        this[..dim].iter_mut().zip(&row).for_each(|(value, row)| *value = row / diagonal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::{Synth, SynthParams};
    use crate::testing::on_one_and_three_threads;

    fn set() -> (Embeddings, Vec<i64>) {
        let params = SynthParams { identities: 30, dim: 24, seed: 3, ..SynthParams::default() };
        Synth::new(params).unwrap().whole().to_embeddings().unwrap()
    }

    #[test]
    fn without_shrinking_rows_of_an_identity_differ_alike_in_all_directions() {
        let (embeddings, labels) = set();
        let [whitening, again] =
            on_one_and_three_threads(|| Whitening::fit(&embeddings, &labels, |_| true, 0.0).unwrap());
        assert_eq!(whitening, again);
        // Of the mapped rows before they are made unit rows again: L^-1 W L^-T, by the formula.
        let (dim, mut full) = (24, covariance(&embeddings, &labels, |_| true).unwrap());
        (0..dim).for_each(|a| (0..a).for_each(|b| full[b * dim + a] = full[a * dim + b]));
        let m = |a: usize, b: usize| f64::from(whitening.inverse[a * dim + b]);
        let product = |a: usize, b: usize| -> f64 {
            (0..dim)
                .flat_map(|i| (0..dim).map(move |j| (i, j)))
                .map(|(i, j)| m(a, i) * full[i * dim + j] * m(b, j))
                .sum()
        };
        let scale = product(0, 0);
        for a in 0..dim {
            for b in 0..dim {
                let expected = if a == b { scale } else { 0.0 };
                assert!((product(a, b) - expected).abs() < 1e-4 * scale, "{a} {b}: {}", product(a, b));
            }
        }
    }

    #[test]
    fn shrunk_to_the_end_nothing_changes() {
        let (embeddings, labels) = set();
        let whitening = Whitening::fit(&embeddings, &labels, |_| true, 1.0).unwrap();
        let whitened = whitening.apply(&embeddings).unwrap();
        for (a, b) in embeddings.as_slice().iter().zip(whitened.as_slice()) {
            assert!((a - b).abs() < 1e-6);
        }
    }

    #[test]
    fn only_rows_that_are_taken_count() {
        let (embeddings, labels) = set();
        let taken = |i: usize| labels[i] < 10;
        let some: Vec<usize> = (0..labels.len()).filter(|&i| taken(i)).collect();
        let rows = some.iter().flat_map(|&i| embeddings.row(i)).copied().collect();
        let alone = Embeddings::from_rows(rows, 24, "test").unwrap();
        let own: Vec<i64> = some.iter().map(|&i| labels[i]).collect();
        assert_eq!(
            Whitening::fit(&embeddings, &labels, taken, 0.5),
            Whitening::fit(&alone, &own, |_| true, 0.5)
        );
    }

    #[test]
    fn where_no_identity_has_two_rows_there_is_none() {
        let (embeddings, labels) = set();
        let apart: Vec<i64> = (0..labels.len() as i64).collect();
        assert_eq!(Whitening::fit(&embeddings, &apart, |_| true, 0.5), None);
        let copies = Embeddings::from_rows([0.6, 0.8].repeat(5), 2, "test").unwrap();
        assert_eq!(Whitening::fit(&copies, &[1; 5], |_| true, 0.5), None);
    }

    #[test]
    fn numbers_are_a_whitening_and_the_reverse() {
        let (embeddings, labels) = set();
        let whitening = Whitening::fit(&embeddings, &labels, |_| true, 0.5).unwrap();
        let numbers = whitening.to_numbers();
        assert_eq!(Whitening::from_numbers(24, numbers).as_ref(), Some(&whitening));
        assert_eq!(Whitening::from_numbers(23, numbers), None);
        for (at, wrong) in [(0, 0.0), (1, 0.5), (24, f32::NAN)] {
            let mut numbers = numbers.to_vec();
            numbers[at] = wrong;
            assert_eq!(Whitening::from_numbers(24, &numbers), None);
        }
        let others = Embeddings::from_rows(vec![1.0, 0.0], 2, "test").unwrap();
        let message = whitening.apply(&others).unwrap_err().to_string();
        assert!(message.contains("24 columns") && message.contains("found 2"), "{message}");
    }
}
