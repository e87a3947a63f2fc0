//! Eigenvalues and eigenvectors of symmetric matrices: all of a small dense one, the largest of a large sparse one.
//!
//! Dense: Householder's reduction to a tridiagonal matrix, then QL iterations with implicit shifts (Golub and Van Loan,
//! "Matrix Computations", 8.3). O(m^3).
//!
//! Sparse: block Lanczos with thick restart (Wu and Simon, 2000). The basis grows by blocks of [`BLOCK`] vectors, each the
//! product of the matrix with the block before, made orthogonal, twice, to all there is; when it is full, the best Ritz vectors
//! stay and it grows again from there. Blocks find eigenvalues that lie close together, which clusters alike make.
//! Vectors are f64. One product takes O(E) for each vector, orthogonalising O(N m) for each.

use crate::random::Stream;
use gemm::Parallelism;
use kinfolk::{Progress, Result};
use rayon::prelude::*;

/// Vectors that are multiplied together: eight f64 are a line of the cache.
pub(crate) const BLOCK: usize = 8;
/// Residuals of at most this count as none.
const TOLERANCE: f64 = 1e-7;
const MOST_RESTARTS: usize = 300;
/// Rows of one task.
const TASK: usize = 512;

/// All eigenvalues of the symmetric `matrix` (m x m), descending, and the eigenvectors, one after the other.
pub(crate) fn dense(mut matrix: Vec<f64>, m: usize, progress: &dyn Progress) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut diagonal, mut beside, mut q) = tridiagonal(&mut matrix, m, progress)?;
    implicit_ql(&mut diagonal, &mut beside, &mut q, m, progress)?;
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_by(|&a, &b| diagonal[b].total_cmp(&diagonal[a]).then(a.cmp(&b)));
    let values = order.iter().map(|&at| diagonal[at]).collect();
    let vectors = order.iter().flat_map(|&at| &q[at * m..][..m]).copied().collect();
    Ok((values, vectors))
}

/// Diagonal, what is beside it, and Q by rows.
type Tridiagonal = (Vec<f64>, Vec<f64>, Vec<f64>);

/// Reduces `a` to a tridiagonal T with A = Q^T T Q.
fn tridiagonal(a: &mut [f64], m: usize, progress: &dyn Progress) -> Result<Tridiagonal> {
    // The reflections, each of a vector v with |v|^2 = 2: H = I - v v^T.
    let mut reflections: Vec<Option<Vec<f64>>> = Vec::with_capacity(m);
    for k in 0..m.saturating_sub(2) {
        progress.check()?;
        // Row k right of the diagonal becomes (alpha, 0, 0, ...).
        let x = &a[k * m + k + 1..(k + 1) * m];
        let rest: f64 = x[1..].iter().map(|v| v * v).sum();
        if rest == 0.0 {
            reflections.push(None);
            continue;
        }
        let length = (x[0] * x[0] + rest).sqrt();
        let alpha = if x[0] > 0.0 { -length } else { length };
        let mut v = x.to_vec();
        v[0] -= alpha;
        let scale = (2.0 / (v[0] * v[0] + rest)).sqrt();
        v.iter_mut().for_each(|value| *value *= scale);
        // With p = A v and w = p - (v . p / 2) v, the rest of the matrix loses v w^T + w v^T.
        let size = m - k - 1;
        let rest = &mut a[(k + 1) * m..];
        let p: Vec<f64> = rest
            .par_chunks(m)
            .with_min_len(64)
            .map(|row| row[k + 1..].iter().zip(&v).map(|(a, v)| a * v).sum())
            .collect();
        let half = p.iter().zip(&v).map(|(p, v)| p * v).sum::<f64>() / 2.0;
        let w: Vec<f64> = p.iter().zip(&v).map(|(p, v)| p - half * v).collect();
        rest.par_chunks_mut(m).with_min_len(64).enumerate().for_each(|(i, row)| {
            for j in 0..size {
                row[k + 1 + j] -= v[i] * w[j] + w[i] * v[j];
            }
        });
        a[k * m + k + 1] = alpha;
        reflections.push(Some(v));
    }
    let diagonal = (0..m).map(|i| a[i * m + i]).collect();
    let beside = (0..m).map(|i| if i + 1 < m { a[i * m + i + 1] } else { 0.0 }).collect();
    // Q is the product of the reflections, the first applied last.
    let mut q = vec![0.0; m * m];
    (0..m).for_each(|i| q[i * m + i] = 1.0);
    q.par_chunks_mut(m.max(1)).for_each(|row| {
        if progress.cancelled() {
            return;
        }
        for (k, reflection) in reflections.iter().enumerate().rev() {
            if let Some(v) = reflection {
                let tail = &mut row[k + 1..];
                let along: f64 = tail.iter().zip(v).map(|(q, v)| q * v).sum();
                tail.iter_mut().zip(v).for_each(|(q, v)| *q -= along * v);
            }
        }
    });
    progress.check()?;
    Ok((diagonal, beside, q))
}

/// Turns the tridiagonal matrix into a diagonal one, and the rows of `q` along.
fn implicit_ql(d: &mut [f64], e: &mut [f64], q: &mut [f64], m: usize, progress: &dyn Progress) -> Result<()> {
    for l in 0..m {
        progress.check()?;
        for _ in 0..100 {
            let small = |i: usize| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs());
            let end = (l..m - 1).find(|&i| small(i)).unwrap_or(m - 1);
            if end == l {
                break;
            }
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let r = g.hypot(1.0);
            let mut g = d[end] - d[l] + e[l] / (g + if g >= 0.0 { r } else { -r });
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut split = false;
            for i in (l..end).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[end] = 0.0;
                    split = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                let (upper, lower) = q.split_at_mut((i + 1) * m);
                for (a, b) in upper[i * m..].iter_mut().zip(&mut lower[..m]) {
                    let (old_a, old_b) = (*a, *b);
                    *b = s * old_a + c * old_b;
                    *a = c * old_a - s * old_b;
                }
            }
            if !split {
                d[l] -= p;
                e[l] = g;
                e[end] = 0.0;
            }
        }
    }
    Ok(())
}

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
        let mut out = vec![0.0; rows * columns];
        // SAFETY: element (a, i) of the left side is data[a * n + i], (i, k) of the right side w[k * n + i], (a, k) of the
        // result out[k * rows + a]: all inside their slices; `out` is not aliased.
        unsafe {
            gemm::gemm(
                rows,
                columns,
                n,
                out.as_mut_ptr(),
                rows as isize,
                1,
                false,
                self.data.as_ptr(),
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

    /// W + factor V C.
    fn combine(&self, c: &[f64], factor: f64, w: &mut [f64]) {
        let (n, inner, columns) = (self.n, self.len(), w.len() / self.n);
        assert_eq!(c.len(), inner * columns, "one coefficient for each pair of columns");
        // SAFETY: element (i, a) of the left side is data[a * n + i], (a, k) of the right side c[k * inner + a], (i, k) of the
        // result w[k * n + i]: all inside their slices; `w` is borrowed mutably, so nothing aliases it.
        unsafe {
            gemm::gemm(
                n,
                columns,
                inner,
                w.as_mut_ptr(),
                n as isize,
                1,
                true,
                self.data.as_ptr(),
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
    }

    /// Takes out of W what lies in the basis; returns how much that was, V^T W.
    fn orthogonalise(&self, w: &mut [f64]) -> Vec<f64> {
        let first = self.project(w);
        self.combine(&first, -1.0, w);
        // Once more for what rounding left.
        let again = self.project(w);
        self.combine(&again, -1.0, w);
        first
    }
}

/// The product of the matrix with the columns of `block`.
fn multiply(matrix: &impl Operator, block: &[f64]) -> Vec<f64> {
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
    let most = (2 * want).max(want + 6 * BLOCK).min(n);
    let mut stream = Stream::new(seed, 0x65_69_67);
    // V^T M V of what was multiplied, `most` wide with room for a last block.
    let width = most + BLOCK;
    let mut t = vec![0.0; width * width];
    (0..known_count).for_each(|i| t[i * width + i] = 1.0);
    let mut done = known_count;
    let mut basis = Basis { n, data: known };
    let mut block: Vec<f64> = (0..n * BLOCK.min(n - done)).map(|_| stream.uniform() - 0.5).collect();
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
            let scale = w.chunks_exact(n).map(norm).fold(0.0, f64::max);
            let along = basis.orthogonalise(&mut w);
            for (k, column) in along.chunks_exact(basis.len()).enumerate() {
                for (a, &value) in column.iter().enumerate() {
                    t[a * width + done + k] = value;
                    t[(done + k) * width + a] = value;
                }
            }
            done += columns;
            let next = BLOCK.min(n - done).min(columns);
            w.truncate(next * n);
            let r = orthonormalise(&basis, &mut w, scale, &mut stream);
            if done >= most {
                break (w, r, columns);
            }
            block = w;
            basis.data.extend_from_slice(&block);
        };
        let (next, r, columns) = r;
        let small: Vec<f64> = (0..done).flat_map(|i| t[i * width..][..done].to_vec()).collect();
        let (values, vectors) = dense(small, done, progress)?;
        let residual = |i: usize| {
            // |R s|, s the part of the Ritz vector that lies in the last block.
            let s = &vectors[i * done + done - columns..(i + 1) * done];
            let wide = next.len() / n;
            let of_row = |row: usize| (0..wide).map(|k| r[row * wide + k] * s[k]).sum::<f64>();
            (0..wide).map(|row| of_row(row).powi(2)).sum::<f64>().sqrt()
        };
        let good = (0..want).take_while(|&i| residual(i) <= TOLERANCE).count();
        progress.advance(good.saturating_sub(converged) as u64);
        converged = converged.max(good);
        let finished = good == want || done == n || restart == MOST_RESTARTS;
        let keep = if finished { want } else { want + (most - want) / 3 };
        let mut kept = vec![0.0; keep * n];
        basis.combine_first(&vectors[..keep * done], done, &mut kept);
        if finished {
            return Ok((values[..want].to_vec(), kept));
        }
        t.fill(0.0);
        (0..keep).for_each(|i| t[i * width + i] = values[i]);
        done = keep;
        basis.data = kept;
        block = next;
        basis.data.extend_from_slice(&block);
    }
    Ok((Vec::new(), Vec::new()))
}

impl Basis {
    /// W + V C with only the first `count` vectors.
    fn combine_first(&mut self, c: &[f64], count: usize, w: &mut [f64]) {
        self.data.truncate(count * self.n);
        self.combine(c, 1.0, w);
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
        let mut stream = Stream::new(seed, 0);
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
        #[test]
        fn dense_eigenvectors_are_eigenvectors(n in 1usize..30, seed in 0u64..999, rank in 1usize..9) {
            let matrix = symmetric(n, seed, rank);
            let (values, vectors) = dense(matrix.clone(), n, &()).unwrap();
            prop_assert!(values.is_sorted_by(|a, b| a >= b));
            prop_assert_eq!(vectors.len(), n * n);
            prop_assert!(check(&matrix, n, &values, &vectors) < 1e-9);
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

    #[test]
    fn diagonal_and_zero_matrices() {
        let (values, vectors) = dense(vec![2.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, -1.0], 3, &()).unwrap();
        assert_eq!(values, [5.0, 2.0, -1.0]);
        assert_eq!(vectors, [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(dense(vec![0.0; 16], 4, &()).unwrap().0, [0.0; 4]);
    }
}
