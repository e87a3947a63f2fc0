//! The largest eigenvalues of a large sparse symmetric matrix, and their eigenvectors.
//!
//! Block Lanczos with thick restart (Wu and Simon, 2000). The basis grows by blocks of vectors, each the product of the matrix
//! with the block before, made orthogonal, twice, to all there is; when it is full, the best Ritz vectors stay and it grows
//! again from there. Blocks find eigenvalues that lie close together, which clusters alike make. Vectors are f64.
//!
//! For C vectors the basis holds up to m = 2 C. One product takes O(E) for each vector, orthogonalising O(N m) for each, and
//! every restart a dense problem (`eigen_dense`) of O(m^3). Memory: 27 N C bytes, and 80 C^2 while the dense problem is solved.

use crate::eigen_dense::dense;
use crate::random::{Stream, stream};
use gemm::Parallelism;
use kinfolk::{Progress, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Vectors that are multiplied together: eight f64 are a line of the cache.
const BLOCK: usize = 8;
const MOST_RESTARTS: usize = 300;
/// Rows of one task.
const TASK: usize = 512;
/// Vectors of the basis of one task.
const VECTORS: usize = 128;
/// Columns that are combined at a time.
const COLUMNS: usize = 64;
/// Vectors up to which they are computed as precisely as f32 can tell.
pub(crate) const MANY: usize = 2_000;

/// A symmetric matrix with few entries, by rows.
pub(crate) trait Operator: Sync {
    /// Number of rows.
    fn len(&self) -> usize;
    /// Columns and values of row `i`.
    fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)>;
}

/// Column vectors of length n, one after the other.
struct Basis {
    n: usize,
    data: Vec<f64>,
}

impl Basis {
    fn len(&self) -> usize {
        self.data.len() / self.n
    }

    /// V^T W, by columns of W.
    fn project(&self, w: &[f64]) -> Vec<f64> {
        let (n, rows, columns) = (self.n, self.len(), w.len() / self.n);
        let parts: Vec<Vec<f64>> =
            self.data.par_chunks(VECTORS * n).map(|vectors| transposed_product(vectors, w, n)).collect();
        let mut out = vec![0.0; rows * columns];
        for (part, first) in parts.iter().zip((0..).step_by(VECTORS)) {
            for (to, from) in out.chunks_exact_mut(rows).zip(part.chunks_exact(part.len() / columns)) {
                to[first..first + from.len()].copy_from_slice(from);
            }
        }
        out
    }

    /// W + factor V C, with the vectors `which` of V.
    fn combine(&self, which: Range<usize>, c: &[f64], factor: f64, w: &mut [f64]) {
        if which.is_empty() {
            return;
        }
        let n = self.n;
        let vectors = &self.data[which.start * n..which.end * n];
        for (w, c) in w.chunks_mut(COLUMNS * n).zip(c.chunks(COLUMNS * which.len())) {
            let first_rows: Vec<usize> = (0..n).step_by(TASK).collect();
            let part = |&first: &usize| add_product(vectors, c, factor, w, n, first..n.min(first + TASK));
            let parts: Vec<Vec<f64>> = first_rows.par_iter().map(part).collect();
            for (k, column) in w.chunks_exact_mut(n).enumerate() {
                for (to, part) in column.chunks_mut(TASK).zip(&parts) {
                    to.copy_from_slice(&part[k * to.len()..][..to.len()]);
                }
            }
        }
    }

    /// Takes out of W what lies in the basis; returns how much that was, V^T W.
    fn orthogonalise(&self, w: &mut [f64]) -> Vec<f64> {
        let first = self.project(w);
        self.combine(0..self.len(), &first, -1.0, w);
        // Once more for what rounding left.
        let again = self.project(w);
        self.combine(0..self.len(), &again, -1.0, w);
        first
    }
}

/// V^T W, by columns of W, of columns of length n.
fn transposed_product(v: &[f64], w: &[f64], n: usize) -> Vec<f64> {
    let (rows, columns) = (v.len() / n, w.len() / n);
    let mut out = vec![0.0; rows * columns];
    // SAFETY: element (a, i) of the left side is v[a * n + i], (i, k) of the right side w[k * n + i], (a, k) of the result
    // out[k * rows + a]: all inside their slices; `out` is not aliased.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            n,
            out.as_mut_ptr(),
            rows as isize,
            1,
            false,
            v.as_ptr(),
            1,
            n as isize,
            w.as_ptr(),
            n as isize,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
    out
}

/// The rows `part` of W + factor V C, by columns; those of V and W have length n.
fn add_product(v: &[f64], c: &[f64], factor: f64, w: &[f64], n: usize, part: Range<usize>) -> Vec<f64> {
    let (inner, columns, rows) = (v.len() / n, w.len() / n, part.len());
    assert_eq!(c.len(), inner * columns, "one coefficient for each pair of columns");
    let mut out: Vec<f64> = w.chunks_exact(n).flat_map(|column| &column[part.clone()]).copied().collect();
    // SAFETY: element (i, a) of the left side is v[a * n + part.start + i], (a, k) of the right side c[k * inner + a], (i, k)
    // of the result out[k * rows + i]: all inside their slices; `out` is not aliased.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.as_mut_ptr(),
            rows as isize,
            1,
            true,
            v[part.start..].as_ptr(),
            n as isize,
            1,
            c.as_ptr(),
            inner as isize,
            1,
            1.0,
            factor,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
    out
}

/// The product of the matrix with the columns of `block`.
fn multiply(matrix: &impl Operator, block: &[f64]) -> Vec<f64> {
    block.chunks(BLOCK * matrix.len()).flat_map(|few| multiply_few(matrix, few)).collect()
}

/// The product of the matrix with at most [`BLOCK`] columns.
fn multiply_few(matrix: &impl Operator, block: &[f64]) -> Vec<f64> {
    let n = matrix.len();
    let columns = block.len() / n;
    // By rows, so that one look at an edge serves all columns.
    let mut by_rows = vec![[0.0f64; BLOCK]; n];
    by_rows.par_iter_mut().enumerate().with_min_len(TASK).for_each(|(i, row)| {
        row[..columns].iter_mut().enumerate().for_each(|(k, value)| *value = block[k * n + i]);
    });
    let product: Vec<[f64; BLOCK]> = (0..n)
        .into_par_iter()
        .with_min_len(TASK)
        .map(|i| {
            let mut sums = [0.0; BLOCK];
            for (j, value) in matrix.row(i) {
                for (sum, x) in sums.iter_mut().zip(&by_rows[j]) {
                    *sum += value * x;
                }
            }
            sums
        })
        .collect();
    let mut out = vec![0.0; block.len()];
    out.par_chunks_mut(n).enumerate().for_each(|(k, column)| {
        column.iter_mut().zip(&product).for_each(|(value, row)| *value = row[k]);
    });
    out
}

/// Makes the columns of W orthonormal, W = Q R. What is small beside `scale`, the length that columns had before the basis was
/// taken out of them, is mostly rounding and is taken out once more; columns without anything of their own become random ones.
/// Returns R by rows, as wide as W.
fn orthonormalise(basis: &Basis, w: &mut [f64], scale: f64, stream: &mut Stream) -> Vec<f64> {
    let n = basis.n;
    let columns = w.len() / n;
    let mut r = vec![0.0; columns * columns];
    for k in 0..columns {
        let (before, rest) = w.split_at_mut(k * n);
        let column = &mut rest[..n];
        for _ in 0..2 {
            for (l, along) in remove(before, column).into_iter().enumerate() {
                r[l * columns + k] += along;
            }
        }
        let own = norm(column);
        if own > 1e-10 * scale {
            r[k * columns + k] = own;
            column.iter_mut().for_each(|c| *c /= own);
        } else {
            column.iter_mut().for_each(|c| *c = stream.uniform() - 0.5);
        }
        if own <= 1e-3 * scale {
            for _ in 0..2 {
                basis.orthogonalise(column);
                remove(before, column);
                let length = norm(column).max(f64::MIN_POSITIVE);
                column.iter_mut().for_each(|c| *c /= length);
            }
        }
    }
    r
}

/// Takes out of `column` what lies along each of the orthonormal `others`; returns how much that was.
fn remove(others: &[f64], column: &mut [f64]) -> Vec<f64> {
    let n = column.len();
    let take_out = |other: &[f64]| {
        let along: f64 = other.iter().zip(&*column).map(|(a, b)| a * b).sum();
        column.iter_mut().zip(other).for_each(|(c, o)| *c -= along * o);
        along
    };
    others.chunks_exact(n).map(take_out).collect()
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Products shorter than this, of unit vectors, are rounding: there is no direction in them.
const ROUNDING: f64 = 1e-6;

/// How many vectors a block has, and how small residuals are that count as none.
#[derive(Debug, Clone, Copy)]
struct Effort {
    block: usize,
    tolerance: f64,
}

impl Effort {
    /// Beyond [`MANY`] vectors blocks grow with the basis, so that the number of products stays what it was and each takes
    /// fewer passes over the basis. Large eigenvalues converge first, and they tell clusters apart; the last of so many
    /// lie so close together that waiting for them would take several more dense problems.
    fn of(want: usize) -> Self {
        if want <= MANY {
            Effort { block: BLOCK, tolerance: 1e-7 }
        } else {
            Effort { block: 4 * BLOCK, tolerance: 1e-2 }
        }
    }
}

/// The `want` largest eigenvalues, descending, and their vectors, one after the other. `known` are orthonormal eigenvectors of
/// eigenvalue 1, which is the largest there is.
pub(crate) fn largest(
    matrix: &impl Operator,
    known: Vec<f64>,
    want: usize,
    seed: u64,
    progress: &dyn Progress,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let n = matrix.len();
    let known_count = known.len() / n;
    if known_count >= want {
        return Ok((vec![1.0; want], known[..want * n].to_vec()));
    }
    // Where most are known they stay as they are, and the dense problem is one of the others.
    let fixed = if 2 * known_count >= want { known_count } else { 0 };
    search(matrix, Basis { n, data: known }, fixed, want - fixed, Effort::of(want - fixed), seed, progress)
}

/// The largest eigenvalues and their vectors: the first `fixed` of the basis, which stay, and `want` others. All of the basis
/// has eigenvalue 1.
fn search(
    matrix: &impl Operator,
    mut basis: Basis,
    fixed: usize,
    want: usize,
    effort: Effort,
    seed: u64,
    progress: &dyn Progress,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (n, wide) = (basis.n, effort.block);
    let room = n - fixed;
    let most = (2 * want).max(want + 6 * wide).min(room);
    let mut stream = stream(seed, 0x65_69_67);
    let mut done = basis.len() - fixed;
    basis.data.reserve_exact((most + wide).min(room) * n - done * n);
    let mut t = Projected::of(&vec![1.0; done], most + wide);
    let mut block: Vec<f64> = (0..n * wide.min(room - done)).map(|_| stream.uniform() - 0.5).collect();
    basis.orthogonalise(&mut block);
    orthonormalise(&basis, &mut block, 1.0, &mut stream);
    basis.data.extend_from_slice(&block);
    progress.begin("eigenvectors", want as u64);
    let mut converged = 0;
    for restart in 0.. {
        let r = loop {
            progress.check()?;
            let mut w = multiply(matrix, &block);
            let columns = block.len() / n;
            let scale = w.chunks_exact(n).map(norm).fold(ROUNDING, f64::max);
            let along = basis.orthogonalise(&mut w);
            for (k, column) in along.chunks_exact(basis.len()).enumerate() {
                t.set(done + k, &column[fixed..]);
            }
            done += columns;
            let next = wide.min(room - done).min(columns);
            w.truncate(next * n);
            let r = orthonormalise(&basis, &mut w, scale, &mut stream);
            if done >= most {
                break (w, r, columns);
            }
            block = w;
            basis.data.extend_from_slice(&block);
        };
        let (next, r, columns) = r;
        let (values, vectors) = dense(t.take(done), done, progress)?;
        let residual = |i: usize| {
            // |R s|, s the part of the Ritz vector that lies in the last block.
            let s = &vectors[i * done + done - columns..(i + 1) * done];
            let width = next.len() / n;
            let of_row = |row: usize| (0..width).map(|k| r[row * width + k] * s[k]).sum::<f64>();
            (0..width).map(|row| of_row(row).powi(2)).sum::<f64>().sqrt()
        };
        let good = (0..want).take_while(|&i| residual(i) <= effort.tolerance).count();
        progress.advance(good.saturating_sub(converged) as u64);
        converged = converged.max(good);
        let finished = good == want || done == room || restart == MOST_RESTARTS;
        let keep = if finished { want } else { want + (most - want) / 3 };
        let mut kept = vec![0.0; keep * n];
        basis.combine(fixed..fixed + done, &vectors[..keep * done], 1.0, &mut kept);
        basis.data.truncate(fixed * n);
        basis.data.extend_from_slice(&kept);
        if finished {
            let values = std::iter::repeat_n(1.0, fixed).chain(values[..want].iter().copied());
            return Ok((values.collect(), basis.data));
        }
        t = Projected::of(&values[..keep], most + wide);
        done = keep;
        block = next;
        basis.data.extend_from_slice(&block);
    }
    Ok((Vec::new(), Vec::new()))
}

/// V^T M V of the vectors that were multiplied, with room for `width` of them.
struct Projected {
    width: usize,
    data: Vec<f64>,
}

impl Projected {
    fn of(diagonal: &[f64], width: usize) -> Self {
        let mut data = vec![0.0; width * width];
        diagonal.iter().enumerate().for_each(|(i, &value)| data[i * width + i] = value);
        Projected { width, data }
    }

    /// Row and column `at`.
    fn set(&mut self, at: usize, values: &[f64]) {
        for (a, &value) in values.iter().enumerate() {
            self.data[a * self.width + at] = value;
            self.data[at * self.width + a] = value;
        }
    }

    /// The first `count` rows and columns; leaves nothing, to save memory.
    fn take(&mut self, count: usize) -> Vec<f64> {
        let (width, data) = (self.width, std::mem::take(&mut self.data));
        (0..count).flat_map(|i| &data[i * width..][..count]).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Full {
        n: usize,
        data: Vec<f64>,
    }

    impl Operator for Full {
        fn len(&self) -> usize {
            self.n
        }

        fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
            self.data[i * self.n..][..self.n].iter().copied().enumerate()
        }
    }

    fn symmetric(n: usize, seed: u64, rank: usize) -> Vec<f64> {
        let mut stream = stream(seed, 0);
        let factors: Vec<f64> = (0..n * rank).map(|_| stream.uniform() - 0.5).collect();
        let entry =
            |i: usize, j: usize| (0..rank).map(|l| factors[i * rank + l] * factors[j * rank + l]).sum();
        (0..n * n).map(|at| entry(at / n, at % n)).collect()
    }

    /// |A v - lambda v| and |V^T V - I|.
    fn check(matrix: &[f64], n: usize, values: &[f64], vectors: &[f64]) -> f64 {
        let mut worst = 0.0f64;
        for (k, v) in vectors.chunks_exact(n).enumerate() {
            for i in 0..n {
                let product: f64 = (0..n).map(|j| matrix[i * n + j] * v[j]).sum();
                worst = worst.max((product - values[k] * v[i]).abs());
            }
            for (l, u) in vectors.chunks_exact(n).enumerate() {
                let along: f64 = v.iter().zip(u).map(|(a, b)| a * b).sum();
                worst = worst.max((along - f64::from(k == l)).abs());
            }
        }
        worst
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Projections and combinations in tasks are those of plain loops.
        #[test]
        fn products_are_those_of_loops(
            n in 1usize..1100, vectors in 0usize..300, columns in 1usize..70, seed in 0u64..99,
        ) {
            let mut stream = stream(seed, 0);
            let mut any = |count: usize| (0..count).map(|_| stream.uniform() - 0.5).collect::<Vec<f64>>();
            let (basis, w) = (Basis { n, data: any(vectors * n) }, any(columns * n));
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let projected = basis.project(&w);
            prop_assert_eq!(projected.len(), vectors * columns);
            for (at, found) in projected.iter().enumerate() {
                let expected = dot(&basis.data[at % vectors * n..][..n], &w[at / vectors * n..][..n]);
                prop_assert!((found - expected).abs() < 1e-10);
            }
            let which = vectors / 3..vectors;
            let c = any(which.len() * columns);
            let mut combined = w.clone();
            basis.combine(which.clone(), &c, -1.5, &mut combined);
            let mut expected = w;
            for (k, column) in expected.chunks_exact_mut(n).enumerate() {
                for (a, vector) in which.clone().enumerate() {
                    let factor = -1.5 * c[k * which.len() + a];
                    column.iter_mut().zip(&basis.data[vector * n..]).for_each(|(w, v)| *w += factor * v);
                }
            }
            prop_assert!(combined.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-10));
        }
    }

    proptest! {
        /// Wide blocks find the same values, and a coarse tolerance is kept.
        #[test]
        fn wide_blocks_find_the_largest(n in 2usize..150, seed in 0u64..999, rank in 1usize..40) {
            let matrix = Full { n, data: symmetric(n, seed, rank) };
            let want = 1 + seed as usize % n.min(12);
            let find = |effort| search(&matrix, Basis { n, data: Vec::new() }, 0, want, effort, seed, &()).unwrap();
            let coarse = Effort::of(MANY + 1);
            let (values, vectors) = find(coarse);
            prop_assert!(check(&matrix.data, n, &values, &vectors) < 1.1 * coarse.tolerance);
            let (values, _) = find(Effort { tolerance: 1e-7, ..coarse });
            let (expected, _) = dense(matrix.data.clone(), n, &()).unwrap();
            for (found, expected) in values.iter().zip(&expected) {
                prop_assert!((found - expected).abs() < 1e-7, "{:?} {:?}", values, expected);
            }
        }

        #[test]
        fn the_largest_are_those_of_the_dense(n in 2usize..150, seed in 0u64..999, rank in 1usize..40) {
            let matrix = Full { n, data: symmetric(n, seed, rank) };
            let want = 1 + seed as usize % n.min(12);
            let (values, vectors) = largest(&matrix, Vec::new(), want, seed, &()).unwrap();
            let (expected, _) = dense(matrix.data.clone(), n, &()).unwrap();
            for (found, expected) in values.iter().zip(&expected) {
                prop_assert!((found - expected).abs() < 1e-7, "{:?} {:?}", values, expected);
            }
            prop_assert!(check(&matrix.data, n, &values, &vectors) < 1e-5);
        }
    }
}
