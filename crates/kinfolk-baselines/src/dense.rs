//! Products of rows: tiles of dot products, each computed on one thread.
//!
//! Parallel tasks have a fixed size, so that the bits of a result do not depend on the number of threads.

use gemm::Parallelism;

/// Rows of a matrix, one after the other.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub data: &'a [f32],
    pub dim: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn len(self) -> usize {
        self.data.len() / self.dim
    }

    pub(crate) fn row(self, i: usize) -> &'a [f32] {
        &self.data[i * self.dim..][..self.dim]
    }

    /// Rows `range` only.
    pub(crate) fn part(self, range: std::ops::Range<usize>) -> Rows<'a> {
        Rows { data: &self.data[range.start * self.dim..range.end * self.dim], dim: self.dim }
    }
}

impl<'a> From<&'a kinfolk::Embeddings> for Rows<'a> {
    fn from(embeddings: &'a kinfolk::Embeddings) -> Self {
        Rows { data: embeddings.as_slice(), dim: embeddings.dim() }
    }
}

/// `out[i * b.len() + j]` = `a_i` . `b_j`, added to the previous value if `add`.
pub(crate) fn products(a: Rows, b: Rows, out: &mut [f32], add: bool) {
    let (rows, columns, inner) = (a.len(), b.len(), a.dim);
    assert_eq!(inner, b.dim, "rows of equal length");
    assert_eq!(out.len(), rows * columns, "one product for each pair");
    let stride = inner as isize;
    // SAFETY: the asserts above and the length of `Rows` make every element that the strides reach lie inside its
    // slice: element (i, l) of the left side is a[i * inner + l], (l, j) of the right side b[j * inner + l], (i, j) of
    // the result out[i * columns + j]. `out` is borrowed mutably, so nothing aliases it.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.as_mut_ptr(),
            1,
            columns as isize,
            add,
            a.data.as_ptr(),
            1,
            stride,
            b.data.as_ptr(),
            stride,
            1,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// `out` (weights.len() / rows.len() rows) += `weights` times `rows`: sums of rows.
pub(crate) fn weighted_sums(weights: &[f32], rows: Rows, out: &mut [f32]) {
    let (count, dim) = (rows.len(), rows.dim);
    let sums = weights.len() / count;
    assert_eq!(weights.len(), sums * count, "a weight for each row");
    assert_eq!(out.len(), sums * dim, "one sum for each row of weights");
    // SAFETY: element (s, i) of the left side is weights[s * count + i], (i, l) of the right side rows[i * dim + l], (s, l) of
    // the result out[s * dim + l]: all inside their slices by the asserts; `out` is not aliased.
    unsafe {
        gemm::gemm(
            sums,
            dim,
            count,
            out.as_mut_ptr(),
            1,
            dim as isize,
            true,
            weights.as_ptr(),
            1,
            count as isize,
            rows.data.as_ptr(),
            1,
            dim as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// The squared length of a row.
pub(crate) fn square(row: &[f32]) -> f32 {
    row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() as f32
}

/// The dot product of two rows, in eight lanes that the compiler turns into vectors.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (a_chunks, b_chunks) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a_chunks.zip(b_chunks) {
        for l in 0..8 {
            sums[l] += x[l] * y[l];
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// The largest value and its first position.
pub(crate) fn largest(values: &[f32]) -> (f32, usize) {
    // Independent lanes, which vectorise; the position is then searched for once.
    let mut lanes = [f32::NEG_INFINITY; 16];
    let chunks = values.chunks_exact(16);
    let rest = chunks.remainder().iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = if value > *lane { value } else { *lane };
        }
    }
    let largest = lanes.into_iter().fold(rest, f32::max);
    (largest, values.iter().position(|&value| value == largest).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn products_are_dot_products(
            (dim, a, b) in (1usize..20).prop_flat_map(|dim| {
                let rows = || prop::collection::vec(-3i8..4, dim..dim * 40)
                    .prop_map(move |v| v[..v.len() / dim * dim].iter().map(|&v| f32::from(v)).collect::<Vec<_>>());
                (Just(dim), rows(), rows())
            }),
        ) {
            let (a, b) = (Rows { data: &a, dim }, Rows { data: &b, dim });
            let mut out = vec![1.0; a.len() * b.len()];
            products(a, b, &mut out, true);
            for i in 0..a.len() {
                for j in 0..b.len() {
                    prop_assert_eq!(out[i * b.len() + j], 1.0 + dot(a.row(i), b.row(j)));
                }
            }
        }

        #[test]
        fn the_largest_is_found_first(values in prop::collection::vec(-5i8..6, 1..70)) {
            let values: Vec<f32> = values.into_iter().map(f32::from).collect();
            let (value, place) = largest(&values);
            prop_assert!(values.iter().all(|&v| v <= value));
            prop_assert_eq!(values.iter().position(|&v| v == value), Some(place));
        }
    }
}
