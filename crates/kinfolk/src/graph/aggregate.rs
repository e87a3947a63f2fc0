//! The product of the adjacency with a dense matrix: the A~ F of Equations 2 and 3.
//!
//! Cost: 2 nnz D floating-point operations. Memory bandwidth is the limit: 4 nnz D bytes if every row has to come from memory,
//! 4 N D if every row is read once and then stays in the cache. The order of the rows decides between the two, so they are
//! visited in the order of `order.rs`. The sums of a row stay in registers, and the rows of the next neighbours are
//! prefetched. Measured in one run at 100,000 x 256 and K = 80, vertices shuffled, in CPU-seconds: 0.70 by ascending id, 0.49
//! in this order, 0.41 with prefetching; SciPy's product 1.65. Blocks of columns, each for many rows, were slower, because
//! every row is read several times.
//!
//! Every sum runs over its neighbours by ascending id, on one thread. So the bits do not depend on the number
//! of threads, nor on the width of the vectors, only on whether the processor has fused multiply-add.

use super::Adjacency;
use rayon::prelude::*;

/// Rows handled by one task: with 80 to 200 neighbours each, a few milliseconds.
const ROWS_PER_TASK: usize = 256;

/// How many neighbours ahead to prefetch. Measured: 2 is too late, 6 no better.
const AHEAD: usize = 4;

/// Floats in a cache line.
const LINE: usize = 16;

impl Adjacency {
    /// Replaces each row of `dense` by the weighted mean of its neighbours' rows and its own: `out` = A~
    /// `dense`.
    ///
    /// Both matrices are row-major with `dim` columns and one row per vertex.
    ///
    /// # Panics
    /// When a matrix does not have `len() * dim` values.
    ///
    /// ```
    /// use kinfolk::stages::Adjacency;
    /// use kinfolk::KnnGraph;
    /// let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.25, 0.25], "example")?;
    /// let adjacency = Adjacency::from_knn(&graph, 0.0)?;
    /// let mut out = [0.0; 4];
    /// adjacency.aggregate(&[1.0, 0.0, 0.0, 1.0], 2, &mut out);
    /// assert_eq!(out, [0.8, 0.2, 0.2, 0.8]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    pub fn aggregate(&self, dense: &[f32], dim: usize, out: &mut [f32]) {
        assert_eq!(dense.len(), self.len() * dim, "dense: expected {} rows of {dim}", self.len());
        assert_eq!(out.len(), self.len() * dim, "out: expected {} rows of {dim}", self.len());
        let row_product = fastest();
        let rows = Rows { start: out.as_mut_ptr(), dim };
        self.order.par_chunks(ROWS_PER_TASK).for_each(|order| {
            for &i in order {
                let (columns, values) = self.row(i as usize);
                // SAFETY: `order` is a permutation of 0..len, so `i` is in bounds (`out` has len rows of dim,
                // see above) and no other turn of this loop, on any thread, gets the same row.
                let out = unsafe { rows.get(i as usize) };
                row_product(columns, values, dense, dim, out);
            }
        });
    }

    /// Some rows of A~ `dense`, one after the other, on the calling thread, if the whole result would not fit into memory. The
    /// bits are those of [`aggregate`](Self::aggregate).
    ///
    /// # Panics
    /// When `dense` does not have `len() * dim` values or `out` not `rows.len() * dim`, or a row is not a
    /// vertex.
    pub fn aggregate_rows(&self, rows: &[u32], dense: &[f32], dim: usize, out: &mut [f32]) {
        assert_eq!(dense.len(), self.len() * dim, "dense: expected {} rows of {dim}", self.len());
        assert_eq!(out.len(), rows.len() * dim, "out: expected {} rows of {dim}", rows.len());
        let row_product = fastest();
        for (&i, out) in rows.iter().zip(out.chunks_exact_mut(dim.max(1))) {
            let (columns, values) = self.row(i as usize);
            row_product(columns, values, dense, dim, out);
        }
    }

    /// All vertices in the order in which [`aggregate`](Self::aggregate) visits them: those that share neighbours
    /// follow each other.
    pub fn visiting_order(&self) -> &[u32] {
        &self.order
    }
}

/// The rows of the result, handed out in any order, each once.
struct Rows {
    start: *mut f32,
    dim: usize,
}

// SAFETY: `get` is the only access, and its caller promises that threads ask for different rows.
unsafe impl Sync for Rows {}

impl Rows {
    /// # Safety
    /// `i` is a row of the matrix, and no other reference to it exists.
    #[allow(clippy::mut_from_ref)]
    unsafe fn get(&self, i: usize) -> &mut [f32] {
        // SAFETY: the caller's promise: the row is inside the matrix and aliased by nothing.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(i * self.dim), self.dim) }
    }
}

/// `out` = the sum of `values[e]` times row `columns[e]` of `dense`, whose rows are `stride` apart and at least as
/// long as `out`: one row of a sparse matrix times a dense one, as fast as this processor can.
///
/// ```
/// let mut out = [0.0; 2];
/// // Rows (1, 2) and (3, 4), with something else after each.
/// kinfolk::laboratory::weighted_sum(&[0, 1], &[0.5, 2.0], &[1.0, 2.0, 9.0, 3.0, 4.0, 9.0], 3, &mut out);
/// assert_eq!(out, [6.5, 9.0]);
/// ```
///
/// # Panics
/// When a column is not a row of `dense`.
pub fn weighted_sum(columns: &[u32], values: &[f32], dense: &[f32], stride: usize, out: &mut [f32]) {
    fastest()(columns, values, dense, stride, out);
}

/// The versions of [`weighted_sum`].
type RowProduct = fn(columns: &[u32], values: &[f32], dense: &[f32], stride: usize, out: &mut [f32]);

/// The widest of the versions below that this processor runs.
fn fastest() -> RowProduct {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has AVX-512F.
            return |columns, values, dense, stride, out| unsafe {
                avx512(columns, values, dense, stride, out)
            };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has AVX2 and FMA.
            return |columns, values, dense, stride, out| unsafe {
                avx2(columns, values, dense, stride, out)
            };
        }
    }
    portable
}

/// 128 sums in 8 of the 32 registers; more gained nothing.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(columns: &[u32], values: &[f32], dense: &[f32], stride: usize, out: &mut [f32]) {
    sum_rows::<128>(columns, values, dense, stride, out, |x, w, sum| x.mul_add(w, sum));
}

/// 64 sums in half of the 16 registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(columns: &[u32], values: &[f32], dense: &[f32], stride: usize, out: &mut [f32]) {
    sum_rows::<64>(columns, values, dense, stride, out, |x, w, sum| x.mul_add(w, sum));
}

/// Every 64-bit ARM has fused multiply-add; elsewhere `mul_add` would be a slow call to a library.
fn portable(columns: &[u32], values: &[f32], dense: &[f32], stride: usize, out: &mut [f32]) {
    if cfg!(target_arch = "aarch64") {
        sum_rows::<64>(columns, values, dense, stride, out, |x, w, sum| x.mul_add(w, sum));
    } else {
        sum_rows::<64>(columns, values, dense, stride, out, |x, w, sum| x * w + sum);
    }
}

/// The columns in blocks of `WIDTH`, then of a cache line, then what is left one by one.
#[inline(always)]
fn sum_rows<const WIDTH: usize>(
    columns: &[u32],
    values: &[f32],
    dense: &[f32],
    stride: usize,
    out: &mut [f32],
    fma: impl Fn(f32, f32, f32) -> f32 + Copy,
) {
    let dim = out.len();
    let (wide, rest) = out.as_chunks_mut::<WIDTH>();
    let (lines, single) = rest.as_chunks_mut::<LINE>();
    let (wide_end, lines_end) = (wide.len() * WIDTH, dim - single.len());
    for (first, sums) in (0..).step_by(WIDTH).zip(wide) {
        sum_block(columns, values, dense, stride, first, sums, fma);
    }
    for (first, sums) in (wide_end..).step_by(LINE).zip(lines) {
        sum_block(columns, values, dense, stride, first, sums, fma);
    }
    for (first, sum) in (lines_end..).zip(single) {
        sum_block(columns, values, dense, stride, first, std::array::from_mut(sum), fma);
    }
}

/// The columns `first..first + WIDTH`. The width is known to the compiler, which keeps the sums in registers.
#[inline(always)]
fn sum_block<const WIDTH: usize>(
    columns: &[u32],
    values: &[f32],
    dense: &[f32],
    stride: usize,
    first: usize,
    out: &mut [f32; WIDTH],
    fma: impl Fn(f32, f32, f32) -> f32,
) {
    let mut sums = [0.0; WIDTH];
    for (at, (&j, &value)) in columns.iter().zip(values).enumerate() {
        if let Some(&next) = columns.get(at + AHEAD) {
            prefetch(&dense[next as usize * stride + first..][..WIDTH]);
        }
        let block = &dense[j as usize * stride + first..][..WIDTH];
        for (sum, &x) in sums.iter_mut().zip(block) {
            *sum = fma(x, value, *sum);
        }
    }
    *out = sums;
}

/// Prefetches the cache lines of a block, if there is an instruction for it.
#[inline(always)]
fn prefetch(block: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in block.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint; it reads nothing and the address is that of a live slice anyway.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = block;
}

#[cfg(test)]
pub(super) mod versions {
    //! Every version this machine can run, for the tests to compare.
    use super::*;

    pub fn all() -> Vec<RowProduct> {
        let mut all: Vec<RowProduct> = vec![portable, fastest()];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has AVX2 and FMA.
            all.push(|columns, values, dense, stride, out| unsafe {
                avx2(columns, values, dense, stride, out)
            });
        }
        all
    }
}
