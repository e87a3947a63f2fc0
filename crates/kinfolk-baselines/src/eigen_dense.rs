//! All eigenvalues and eigenvectors of a dense symmetric matrix.
//!
//! Householder's reduction to a tridiagonal matrix, then QL iterations with implicit shifts (Golub and Van Loan, "Matrix
//! Computations", 8.3). O(m^3).
//!
//! Matrices lie in stripes of [`LANES`] columns. A stripe is a task: it stays in the second-level cache, its lanes fill
//! vectors, and no other stripe touches it, so the bits depend neither on threads nor on the width of vectors.
//!
//! - The update of the matrix after a reflection waits for the next one, whose product with the matrix takes the same pass.
//! - Rotations of the eigenvectors wait until there are [`WAITING`] of them.
//!
//! Memory: 20 m^2 bytes beside the matrix that is given.

use kinfolk::{Progress, Result};
use rayon::prelude::*;

/// Columns of a stripe: 16 f64 are two lines of the cache.
const LANES: usize = 16;
/// Rotations that are applied together.
const WAITING: usize = 1 << 20;
/// Rows of stripes that are worth a task.
const TASK: usize = 4096;

/// Sums of squares below this are nothing. Near the smallest numbers squares lose their digits, and a reflection that is not of
/// length 2 would spoil all other entries.
const NOTHING: f64 = 1e-200;

type Lanes = [f64; LANES];

/// All eigenvalues of the symmetric `matrix` (m x m), descending, and the eigenvectors, one after the other.
pub(crate) fn dense(matrix: Vec<f64>, m: usize, progress: &dyn Progress) -> Result<(Vec<f64>, Vec<f64>)> {
    let mut stripes = Stripes::of(&matrix, m);
    drop(matrix);
    let Tridiagonal { mut diagonal, mut beside, reflections } = tridiagonal(&mut stripes, progress)?;
    drop(stripes);
    let mut q = product(&reflections, m, progress)?;
    drop(reflections);
    implicit_ql(&mut diagonal, &mut beside, &mut q, progress)?;
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_by(|&a, &b| diagonal[b].total_cmp(&diagonal[a]).then(a.cmp(&b)));
    let values = order.iter().map(|&at| diagonal[at]).collect();
    Ok((values, q.rows(&order)))
}

/// A square matrix in stripes of columns: entry (i, j) is lane j % LANES of row i of stripe j / LANES.
#[derive(Debug, Clone, PartialEq)]
struct Stripes {
    m: usize,
    data: Vec<Lanes>,
}

impl Stripes {
    fn zero(m: usize) -> Self {
        Stripes { m, data: vec![[0.0; LANES]; m * m.div_ceil(LANES)] }
    }

    fn identity(m: usize) -> Self {
        let mut stripes = Self::zero(m);
        (0..m).for_each(|i| stripes.data[i / LANES * m + i][i % LANES] = 1.0);
        stripes
    }

    fn of(matrix: &[f64], m: usize) -> Self {
        let mut stripes = Self::zero(m);
        stripes.each_mut().for_each(|(s, stripe)| {
            for (lanes, row) in stripe.iter_mut().zip(matrix.chunks_exact(m)) {
                let row = &row[s * LANES..m.min((s + 1) * LANES)];
                lanes[..row.len()].copy_from_slice(row);
            }
        });
        stripes
    }

    fn transposed(&self) -> Self {
        let mut stripes = Self::zero(self.m);
        stripes.each_mut().for_each(|(s, stripe)| {
            for (i, lanes) in stripe.iter_mut().enumerate() {
                let columns = s * LANES..self.m.min((s + 1) * LANES);
                lanes.iter_mut().zip(columns).for_each(|(value, j)| *value = self.at(j, i));
            }
        });
        stripes
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.data[j / LANES * self.m + i][j % LANES]
    }

    /// The rows `which`, one after the other.
    fn rows(&self, which: &[usize]) -> Vec<f64> {
        let m = self.m;
        let mut rows = vec![0.0; which.len() * m];
        rows.par_chunks_mut(m.max(1)).zip(which).for_each(|(row, &i)| {
            row.chunks_mut(LANES)
                .enumerate()
                .for_each(|(s, part)| part.copy_from_slice(&self.data[s * m + i][..part.len()]));
        });
        rows
    }

    /// The stripes and their places, in parallel.
    fn each_mut(&mut self) -> impl IndexedParallelIterator<Item = (usize, &mut [Lanes])> {
        self.data.par_chunks_mut(self.m.max(1)).enumerate()
    }
}

/// What a task does to a stripe.
trait Work {
    type Output;
    fn run(self) -> Self::Output;
}

/// Compiled for the widest vectors there are, without fused multiply-add: the bits are the same on all of them.
fn widest<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: just detected.
            return unsafe { with_avx512(work) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: just detected.
            return unsafe { with_avx2(work) };
        }
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn with_avx512<W: Work>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<W: Work>(work: W) -> W::Output {
    work.run()
}

/// T, and the reflections that made it: A = Q^T T Q.
struct Tridiagonal {
    diagonal: Vec<f64>,
    beside: Vec<f64>,
    /// The k-th is that of the entries after the k-th, H = I - v v^T with |v|^2 = 2; None where nothing is to be done.
    reflections: Vec<Option<Vec<f64>>>,
}

/// Reduces the symmetric `a`, which holds nothing of use afterwards.
fn tridiagonal(a: &mut Stripes, progress: &dyn Progress) -> Result<Tridiagonal> {
    let m = a.m;
    let padded = m.next_multiple_of(LANES);
    let (mut diagonal, mut beside, mut reflections) = (vec![0.0; m], vec![0.0; m], Vec::with_capacity(m));
    let mut update = Update { v: vec![0.0; padded], w: vec![0.0; padded] };
    for k in 0..m {
        progress.check()?;
        let column: Vec<f64> = (k..m).map(|i| a.at(i, k) - update.at(i, k)).collect();
        diagonal[k] = column[0];
        if k + 1 == m {
            break;
        }
        let (alpha, reflection) = reflection(&column[1..]);
        beside[k] = alpha;
        let mut v = vec![0.0; padded];
        reflection.iter().for_each(|tail| v[k + 1..m].copy_from_slice(tail));
        // With p = A v and w = p - (v . p / 2) v, the rest of the matrix loses v w^T + w v^T.
        let p = update_and_multiply(a, k + 1, &update, &v);
        let half = p[k + 1..m].iter().zip(&v[k + 1..]).map(|(p, v)| p * v).sum::<f64>() / 2.0;
        let w = p.iter().zip(&v).map(|(p, v)| p - half * v).collect();
        update = Update { v, w };
        reflections.push(reflection);
    }
    Ok(Tridiagonal { diagonal, beside, reflections })
}

/// The reflection that turns `x` into (alpha, 0, 0, ...), and alpha.
fn reflection(x: &[f64]) -> (f64, Option<Vec<f64>>) {
    let rest: f64 = x[1..].iter().map(|v| v * v).sum();
    if rest < NOTHING {
        return (x[0], None);
    }
    let length = (x[0] * x[0] + rest).sqrt();
    let alpha = if x[0] > 0.0 { -length } else { length };
    let mut v = x.to_vec();
    v[0] -= alpha;
    let scale = (2.0 / (v[0] * v[0] + rest)).sqrt();
    v.iter_mut().for_each(|value| *value *= scale);
    (alpha, Some(v))
}

/// v w^T + w v^T, with zeros up to whole stripes.
struct Update {
    v: Vec<f64>,
    w: Vec<f64>,
}

impl Update {
    fn at(&self, i: usize, j: usize) -> f64 {
        self.v[i] * self.w[j] + self.w[i] * self.v[j]
    }
}

/// Takes `update` out of the rows and columns of the symmetric `a` from `first` on; returns their product with `v`, which is 0
/// before `first`, in the same pass.
fn update_and_multiply(a: &mut Stripes, first: usize, update: &Update, v: &[f64]) -> Vec<f64> {
    let (m, skipped) = (a.m, first / LANES);
    let of_stripes: Vec<Lanes> = a.data[skipped * m..]
        .par_chunks_mut(m)
        .enumerate()
        .with_min_len(TASK.div_ceil(m))
        .map(|(s, stripe)| {
            let column = (skipped + s) * LANES;
            widest(UpdateAndMultiply { stripe, column, first, update, v })
        })
        .collect();
    let mut product = vec![0.0; skipped * LANES];
    product.extend(of_stripes.into_iter().flatten());
    product
}

struct UpdateAndMultiply<'a> {
    stripe: &'a mut [Lanes],
    /// The first column of the stripe.
    column: usize,
    first: usize,
    update: &'a Update,
    v: &'a [f64],
}

impl Work for UpdateAndMultiply<'_> {
    type Output = Lanes;

    #[inline(always)]
    fn run(self) -> Lanes {
        let lanes_of = |values: &[f64]| -> Lanes { std::array::from_fn(|l| values[self.column + l]) };
        let (v_lanes, w_lanes) = (lanes_of(&self.update.v), lanes_of(&self.update.w));
        let mut sums = [0.0; LANES];
        let (rows, first) = (self.stripe.len(), self.first);
        let last = self.update.v[first..rows].iter().zip(&self.update.w[first..rows]);
        for ((lanes, (&v, &w)), &next) in self.stripe[first..].iter_mut().zip(last).zip(&self.v[first..rows])
        {
            for l in 0..LANES {
                lanes[l] -= v * w_lanes[l] + w * v_lanes[l];
                sums[l] += lanes[l] * next;
            }
        }
        sums
    }
}

/// Q, the product of the reflections, the first applied last.
fn product(reflections: &[Option<Vec<f64>>], m: usize, progress: &dyn Progress) -> Result<Stripes> {
    // The lanes of a stripe of Q^T are rows of Q.
    let mut transposed = Stripes::identity(m);
    transposed.each_mut().for_each(|(s, stripe)| {
        if !progress.cancelled() {
            // Those that begin after the last of these rows find only zeros.
            let reflections = &reflections[..reflections.len().min((s + 1) * LANES)];
            widest(Reflect { stripe, reflections });
        }
    });
    progress.check()?;
    Ok(transposed.transposed())
}

struct Reflect<'a> {
    stripe: &'a mut [Lanes],
    reflections: &'a [Option<Vec<f64>>],
}

impl Work for Reflect<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (k, reflection) in self.reflections.iter().enumerate().rev() {
            let Some(v) = reflection else { continue };
            let tail = &mut self.stripe[k + 1..];
            let mut along = [0.0; LANES];
            for (lanes, &v) in tail.iter().zip(v) {
                for l in 0..LANES {
                    along[l] += lanes[l] * v;
                }
            }
            for (lanes, &v) in tail.iter_mut().zip(v) {
                for l in 0..LANES {
                    lanes[l] -= along[l] * v;
                }
            }
        }
    }
}

/// Of rows `at` and `at` + 1, by the angle with cosine `c` and sine `s`.
#[derive(Debug, Clone, Copy)]
struct Rotation {
    at: usize,
    c: f64,
    s: f64,
}

struct Rotate<'a> {
    stripe: &'a mut [Lanes],
    rotations: &'a [Rotation],
}

impl Work for Rotate<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for &Rotation { at, c, s } in self.rotations {
            let [a, b] = &mut self.stripe[at..at + 2] else { continue };
            for l in 0..LANES {
                let (old_a, old_b) = (a[l], b[l]);
                b[l] = s * old_a + c * old_b;
                a[l] = c * old_a - s * old_b;
            }
        }
    }
}

/// Applies the rotations in their order and forgets them.
fn rotate(q: &mut Stripes, rotations: &mut Vec<Rotation>, progress: &dyn Progress) -> Result<()> {
    q.each_mut().with_min_len(TASK.div_ceil(rotations.len().max(1))).for_each(|(_, stripe)| {
        if !progress.cancelled() {
            widest(Rotate { stripe, rotations });
        }
    });
    rotations.clear();
    progress.check()
}

/// Turns the tridiagonal matrix into a diagonal one, and the rows of `q` along.
fn implicit_ql(d: &mut [f64], e: &mut [f64], q: &mut Stripes, progress: &dyn Progress) -> Result<()> {
    let m = q.m;
    let mut rotations = Vec::new();
    for l in 0..m {
        progress.check()?;
        for _ in 0..100 {
            let small = |i: usize| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs());
            let end = (l..m - 1).find(|&i| small(i)).unwrap_or(m - 1);
            if end == l {
                break;
            }
            sweep(d, e, l, end, &mut rotations);
            if rotations.len() >= WAITING {
                rotate(q, &mut rotations, progress)?;
            }
        }
    }
    rotate(q, &mut rotations, progress)
}

/// One implicit QL step on rows `l` to `end`; adds its rotations.
fn sweep(d: &mut [f64], e: &mut [f64], l: usize, end: usize, rotations: &mut Vec<Rotation>) {
    let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
    let r = g.hypot(1.0);
    let mut g = d[end] - d[l] + e[l] / (g + if g >= 0.0 { r } else { -r });
    let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
    for i in (l..end).rev() {
        let (f, b) = (s * e[i], c * e[i]);
        let r = f.hypot(g);
        e[i + 1] = r;
        if r == 0.0 {
            d[i + 1] -= p;
            e[end] = 0.0;
            return;
        }
        (s, c) = (f / r, g / r);
        g = d[i + 1] - p;
        let r = (d[i] - g) * s + 2.0 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        rotations.push(Rotation { at: i, c, s });
    }
    d[l] -= p;
    e[l] = g;
    e[end] = 0.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;
    use crate::testing::on_one_and_three_threads;
    use proptest::prelude::*;

    /// Any symmetric matrix of low rank, and zeros where `holes` says so.
    fn symmetric(n: usize, seed: u64, rank: usize, holes: bool) -> Vec<f64> {
        let mut stream = stream(seed, 0);
        let factors: Vec<f64> = (0..n * rank).map(|_| stream.uniform() - 0.5).collect();
        let entry = |i: usize, j: usize| -> f64 {
            let product = (0..rank).map(|l| factors[i * rank + l] * factors[j * rank + l]).sum();
            if holes && !(i + j).is_multiple_of(3) { 0.0 } else { product }
        };
        (0..n * n).map(|at| entry(at / n, at % n)).collect()
    }

    /// |A v - lambda v| and |V^T V - I|.
    fn error(matrix: &[f64], n: usize, values: &[f64], vectors: &[f64]) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut worst = 0.0f64;
        for (k, v) in vectors.chunks_exact(n).enumerate() {
            for i in 0..n {
                worst = worst.max((dot(&matrix[i * n..][..n], v) - values[k] * v[i]).abs());
            }
            for (l, u) in vectors.chunks_exact(n).enumerate() {
                worst = worst.max((dot(u, v) - f64::from(k == l)).abs());
            }
        }
        worst
    }

    /// Rows of m, changed at once, one after the other, by one thread.
    fn slow_dense(mut a: Vec<f64>, m: usize) -> (Vec<f64>, Vec<f64>) {
        let mut reflections = Vec::new();
        let (mut diagonal, mut beside) = (vec![0.0; m], vec![0.0; m]);
        for k in 0..m {
            diagonal[k] = a[k * m + k];
            if k + 1 == m {
                break;
            }
            let (alpha, found) = reflection(&a[k * m + k + 1..(k + 1) * m]);
            beside[k] = alpha;
            if let Some(v) = &found {
                let row = |i: usize| &a[(k + 1 + i) * m + k + 1..(k + 2 + i) * m];
                let p: Vec<f64> =
                    (0..v.len()).map(|i| row(i).iter().zip(v).map(|(a, v)| a * v).sum()).collect();
                let half = p.iter().zip(v).map(|(p, v)| p * v).sum::<f64>() / 2.0;
                let w: Vec<f64> = p.iter().zip(v).map(|(p, v)| p - half * v).collect();
                for i in 0..v.len() {
                    for j in 0..v.len() {
                        a[(k + 1 + i) * m + k + 1 + j] -= v[i] * w[j] + w[i] * v[j];
                    }
                }
            }
            reflections.push(found);
        }
        let mut q = slow_product(&reflections, m);
        for l in 0..m {
            let small =
                |d: &[f64], e: &[f64], i: usize| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs());
            let end = |d: &[f64], e: &[f64]| (l..m - 1).find(|&i| small(d, e, i)).unwrap_or(m - 1);
            while end(&diagonal, &beside) > l {
                let (mut rotations, last) = (Vec::new(), end(&diagonal, &beside));
                sweep(&mut diagonal, &mut beside, l, last, &mut rotations);
                slow_rotate(&mut q, m, &rotations);
            }
        }
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_by(|&a, &b| diagonal[b].total_cmp(&diagonal[a]).then(a.cmp(&b)));
        let vectors = order.iter().flat_map(|&at| q[at * m..][..m].to_vec()).collect();
        (order.iter().map(|&at| diagonal[at]).collect(), vectors)
    }

    fn slow_product(reflections: &[Option<Vec<f64>>], m: usize) -> Vec<f64> {
        let mut q = vec![0.0; m * m];
        (0..m).for_each(|i| q[i * m + i] = 1.0);
        for row in q.chunks_exact_mut(m) {
            for (k, reflection) in reflections.iter().enumerate().rev() {
                if let Some(v) = reflection {
                    let along: f64 = row[k + 1..].iter().zip(v).map(|(q, v)| q * v).sum();
                    row[k + 1..].iter_mut().zip(v).for_each(|(q, v)| *q -= along * v);
                }
            }
        }
        q
    }

    fn slow_rotate(q: &mut [f64], m: usize, rotations: &[Rotation]) {
        for &Rotation { at, c, s } in rotations {
            for j in 0..m {
                let (a, b) = (q[at * m + j], q[(at + 1) * m + j]);
                q[at * m + j] = c * a - s * b;
                q[(at + 1) * m + j] = s * a + c * b;
            }
        }
    }

    proptest! {
        #[test]
        fn eigenvectors_are_eigenvectors(n in 1usize..40, seed in 0u64..999, rank in 1usize..9, holes: bool) {
            let matrix = symmetric(n, seed, rank, holes);
            let (values, vectors) = dense(matrix.clone(), n, &()).unwrap();
            prop_assert!(values.is_sorted_by(|a, b| a >= b));
            prop_assert_eq!(vectors.len(), n * n);
            prop_assert!(error(&matrix, n, &values, &vectors) < 1e-9);
        }

        /// Stripes and waiting change no bit.
        #[test]
        fn it_is_the_slow_one(n in 1usize..70, seed in 0u64..999, rank in 1usize..40, holes: bool) {
            let matrix = symmetric(n, seed, rank, holes);
            let (values, vectors) = dense(matrix.clone(), n, &()).unwrap();
            let (slow_values, slow_vectors) = slow_dense(matrix, n);
            prop_assert_eq!(values, slow_values);
            prop_assert_eq!(vectors, slow_vectors);
        }

        #[test]
        fn reflections_of_stripes_are_those_of_rows(m in 1usize..70, seed in 0u64..999) {
            let mut stream = stream(seed, 0);
            let mut any = |k: usize| (k + 1..m).map(|_| stream.uniform() - 0.5).collect::<Vec<f64>>();
            let reflections: Vec<Option<Vec<f64>>> =
                (0..m - 1).map(|k| Some(any(k)).filter(|_| !(seed as usize + k).is_multiple_of(5))).collect();
            let q = product(&reflections, m, &()).unwrap();
            prop_assert_eq!(q.rows(&(0..m).collect::<Vec<_>>()), slow_product(&reflections, m));
        }

        #[test]
        fn rotations_of_stripes_are_those_of_rows(m in 2usize..70, seed in 0u64..999, count in 0usize..300) {
            let mut stream = stream(seed, 0);
            let mut rows: Vec<f64> = (0..m * m).map(|_| stream.uniform()).collect();
            let mut rotation = |_| {
                let (s, c) = (stream.uniform() * 7.0).sin_cos();
                Rotation { at: stream.below(m - 1), c, s }
            };
            let mut rotations: Vec<Rotation> = (0..count).map(&mut rotation).collect();
            let mut stripes = Stripes::of(&rows, m);
            slow_rotate(&mut rows, m, &rotations);
            rotate(&mut stripes, &mut rotations, &()).unwrap();
            prop_assert!(rotations.is_empty());
            prop_assert_eq!(stripes.rows(&(0..m).collect::<Vec<_>>()), rows);
        }

        #[test]
        fn stripes_hold_the_matrix(m in 1usize..40, seed in 0u64..99) {
            let mut stream = stream(seed, 0);
            let matrix: Vec<f64> = (0..m * m).map(|_| stream.uniform()).collect();
            let stripes = Stripes::of(&matrix, m);
            let turned = stripes.transposed();
            for (at, &value) in matrix.iter().enumerate() {
                prop_assert_eq!(stripes.at(at / m, at % m), value);
                prop_assert_eq!(turned.at(at % m, at / m), value);
            }
        }
    }

    #[test]
    fn threads_change_nothing() {
        let matrix = symmetric(300, 3, 60, false);
        let [one, three] = on_one_and_three_threads(|| dense(matrix.clone(), 300, &()).unwrap());
        assert_eq!(one, three);
    }

    #[test]
    fn diagonal_and_zero_matrices() {
        let (values, vectors) = dense(vec![2.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, -1.0], 3, &()).unwrap();
        assert_eq!(values, [5.0, 2.0, -1.0]);
        assert_eq!(vectors, [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(dense(vec![0.0; 16], 4, &()).unwrap().0, [0.0; 4]);
        let (values, vectors) = dense(vec![1e-160; 25], 5, &()).unwrap();
        assert!(values.iter().chain(&vectors).all(|value| value.is_finite()));
        assert_eq!(dense(Vec::new(), 0, &()).unwrap(), (Vec::new(), Vec::new()));
    }
}
