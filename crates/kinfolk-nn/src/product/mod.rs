//! Dense products of row-major matrices.
//!
//! With AMX each number is taken as the sum of two bfloat16, 16 bits of its 24, and three of the four products of the
//! halves are added up in f32 ([`amx`]); elsewhere it is the `gemm` crate, on parts of the sums. Every element is summed by one thread in an
//! order that its place alone determines, so bits depend neither on the number of threads nor on who else is in the
//! matrix; they do depend on the processor.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(test)]
mod tests;

use gemm::Parallelism;
use rayon::prelude::*;

/// Rows at which a parallel product is divided.
const ROWS: usize = 32;
/// The `gemm` crate divides longer sums at places that depend on the number of rows, so it is given parts of this length.
const INNER: usize = 256;
/// It also has other ways for few rows, so it is always given this many.
const PLAIN_ROWS: usize = 32;

/// A matrix in a slice that is row-major, or of which the transpose is.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    /// From one row (column, if transposed) to the next.
    stride: usize,
    transposed: bool,
}

impl<'a> Matrix<'a> {
    /// `values` holds rows of `columns`.
    pub fn new(values: &'a [f32], columns: usize) -> Self {
        let rows = values.len().checked_div(columns).unwrap_or(0);
        assert_eq!(values.len(), rows * columns, "expected rows of {columns}");
        Self { values, rows, columns, stride: columns, transposed: false }
    }

    /// Rows that are `stride` apart in `values`, which ends with the last.
    pub(crate) fn strided(values: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(
            columns <= stride
                && rows.checked_sub(1).is_none_or(|last| last * stride + columns <= values.len())
        );
        Self { values, rows, columns, stride, transposed: false }
    }

    /// Its transpose, in place.
    #[cfg(any(test, feature = "training"))]
    pub fn transpose(self) -> Self {
        Self { rows: self.columns, columns: self.rows, transposed: !self.transposed, ..self }
    }

    /// `count` rows from `first` on.
    fn part(self, first: usize, count: usize) -> Self {
        let begin = if self.transposed { first } else { first * self.stride };
        Self { values: &self.values[begin..], rows: count, ..self }
    }

    /// The steps in the slice from row to row and from column to column.
    fn strides(self) -> (isize, isize) {
        let stride = self.stride as isize;
        if self.transposed { (1, stride) } else { (stride, 1) }
    }
}

/// A right-hand side, prepared once for many products.
#[derive(Debug)]
pub(crate) enum Right<'a> {
    Plain(Matrix<'a>),
    #[cfg(target_arch = "x86_64")]
    Tiles(amx::Tiles),
}

impl<'a> Right<'a> {
    pub(crate) fn new(matrix: Matrix<'a>) -> Self {
        #[cfg(target_arch = "x86_64")]
        if amx::available() {
            return Right::Tiles(amx::Tiles::right(matrix, true));
        }
        Right::Plain(matrix)
    }

    /// The same without the help of other threads.
    pub(crate) fn alone(matrix: Matrix<'a>) -> Self {
        #[cfg(target_arch = "x86_64")]
        if amx::available() {
            return Right::Tiles(amx::Tiles::right(matrix, false));
        }
        Right::Plain(matrix)
    }

    /// Leaves its memory to the next on this thread.
    pub(crate) fn recycle(self) {
        #[cfg(target_arch = "x86_64")]
        if let Right::Tiles(tiles) = self {
            tiles.recycle();
        }
    }
}

/// Whether a sparse square matrix of `n` rows is multiplied faster as a dense one.
pub(crate) fn dense_pays(entries: usize, n: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    if amx::available() {
        // Packing takes about as long as three entries of each row, a product of tiles as 64 entries.
        return entries > 3 * n + n * n / 16;
    }
    entries > n * n / 2
}

/// `out` = `left` times `right`, row-major; on this thread.
pub(crate) fn multiply(left: Matrix, right: &Right, out: &mut [f32]) {
    match right {
        Right::Plain(right) => multiply_plain(left, *right, out),
        #[cfg(target_arch = "x86_64")]
        Right::Tiles(right) => amx::multiply(left, right, out),
    }
}

/// `left` times `right`, row-major; on all threads. `finish` is then given some rows and the number of the first.
#[cfg(any(test, feature = "training"))]
pub fn product(left: Matrix, right: Matrix, finish: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    assert_eq!(left.columns, right.rows, "the columns of the left must be the rows of the right");
    let columns = right.columns;
    let mut out = vec![0.0; left.rows * columns];
    if columns == 0 {
        return out;
    }
    let right = Right::new(right);
    // As few parts as keep every thread busy: each packs its rows again.
    let rows = left.rows.div_ceil(rayon::current_num_threads()).next_multiple_of(ROWS).min(16 * ROWS);
    out.par_chunks_mut(rows * columns).enumerate().for_each(|(at, out)| {
        multiply(left.part(at * rows, out.len() / columns), &right, out);
        finish(at * rows, out);
    });
    right.recycle();
    out
}

fn multiply_plain(left: Matrix, right: Matrix, out: &mut [f32]) {
    let (rows, inner, columns) = (left.rows, left.columns, right.columns);
    assert_eq!(inner, right.rows, "the columns of the left must be the rows of the right");
    assert_eq!(out.len(), rows * columns, "out: expected {rows} rows of {columns}");
    let reaches = |m: Matrix| {
        let (across, along) = if m.transposed { (m.columns, m.rows) } else { (m.rows, m.columns) };
        across.checked_sub(1).map_or(0, |last| last * m.stride + along)
    };
    assert!(
        reaches(left) <= left.values.len() && reaches(right) <= right.values.len(),
        "a slice is too short"
    );
    for first in (0..rows).step_by(PLAIN_ROWS) {
        let count = PLAIN_ROWS.min(rows - first);
        let out = &mut out[first * columns..][..count * columns];
        if count == PLAIN_ROWS {
            multiply_block(left.part(first, count), right, out);
            continue;
        }
        // The last rows, and zeros.
        let mut padded = vec![0.0; PLAIN_ROWS * inner];
        let (row, column) = left.strides();
        for (at, value) in padded[..count * inner].iter_mut().enumerate() {
            let (i, k) = (first + at / inner, at % inner);
            *value = left.values[i * row as usize + k * column as usize];
        }
        let mut product = vec![0.0; PLAIN_ROWS * columns];
        multiply_block(Matrix::new(&padded, inner), right, &mut product);
        out.copy_from_slice(&product[..count * columns]);
    }
}

/// `left` has [`PLAIN_ROWS`] rows, and both reach as far as they say.
fn multiply_block(left: Matrix, right: Matrix, out: &mut [f32]) {
    let (inner, columns) = (left.columns, right.columns);
    let ((left_row, left_column), (right_row, right_column)) = (left.strides(), right.strides());
    if inner == 0 {
        out.fill(0.0);
    }
    for first in (0..inner).step_by(INNER) {
        let (left, right) =
            (&left.values[first * left_column as usize..], &right.values[first * right_row as usize..]);
        let added = first > 0;
        // SAFETY: `multiply_plain` has checked that every element that the strides reach lies inside its slice; `out` is
        // borrowed mutably, so nothing aliases it.
        unsafe {
            gemm::gemm(
                PLAIN_ROWS,
                columns,
                INNER.min(inner - first),
                out.as_mut_ptr(),
                1,
                columns as isize,
                added,
                left.as_ptr(),
                left_column,
                left_row,
                right.as_ptr(),
                right_column,
                right_row,
                if added { 1.0 } else { 0.0 },
                1.0,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}
