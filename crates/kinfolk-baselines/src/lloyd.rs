//! Centroids: seeding, assignment and means, for k-means and whoever builds on it.
//!
//! - Seeding is k-means++ (Arthur and Vassilvitskii, 2007): the next centre is row x with probability proportional to
//!   D(x)^2, its squared distance to the nearest centre so far. D is brought up to date only every [`SEEDS`] centres, by
//!   one product of matrices; in between a draw by the old D is accepted with probability D_now^2 / D_old^2, which is
//!   drawing by D_now exactly, since D never grows.
//! - Greedy seeding compares all rows with a few candidates for every centre. Beyond [`SKETCHED`] columns it looks at sketches
//!   of the rows, their products with [`SKETCH`] random vectors of signs (Achlioptas, 2003), which keep distances well enough
//!   to draw by.
//! - The nearest centroid of x has the largest x . c - |c|^2 / 2: a product of matrices and a scan.
//! - A centroid that lost all its rows takes half of another's, chosen by size, as faiss does: both are the old one moved by
//!   1/1024 of itself in opposite directions.
//!
//! After the first iteration a row whose own centroid stayed where it was is compared only with those that moved: nothing
//! else can have come nearer.
//!
//! Cost: N C D products for seeding and for each iteration, fewer as centroids come to rest; O(N + C D) memory.

use crate::dense::{Rows, dot, largest, products, square};
use crate::random::Stream;
use kinfolk::{Progress, Result};
use rayon::prelude::*;

/// Rows that one task assigns.
const TASK: usize = 512;
/// Centroids of one product: with a task's rows it makes a tile that stays in the second-level cache.
const TILE: usize = 512;
/// Centres between two updates of the distances while seeding.
const SEEDS: usize = 64;
/// Columns beyond which greedy seeding works on sketches.
const SKETCHED: usize = 2_000;
/// Columns of a sketch: squared distances are right to about sqrt(2 / 128) = 12%.
const SKETCH: usize = 128;

/// Means of rows, and -|c|^2 / 2 of each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Centroids {
    pub data: Vec<f32>,
    offsets: Vec<f32>,
    pub dim: usize,
}

impl Centroids {
    pub(crate) fn new(data: Vec<f32>, dim: usize) -> Self {
        let offsets = data.par_chunks(dim).map(offset).collect();
        Centroids { data, offsets, dim }
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// The chosen rows as centroids.
    pub(crate) fn of_rows(rows: Rows, chosen: &[u32]) -> Self {
        Self::new(gather(rows, chosen), rows.dim)
    }

    /// Only the centroids `which`.
    fn some(&self, which: &[u32]) -> Self {
        let rows = Rows { data: &self.data, dim: self.dim };
        let offsets = which.iter().map(|&c| self.offsets[c as usize]).collect();
        Centroids { data: gather(rows, which), offsets, dim: self.dim }
    }

    /// The nearest centroid of each row.
    pub(crate) fn nearest(&self, rows: Rows, progress: &dyn Progress) -> Result<Vec<Nearest>> {
        let mut nearest = vec![Nearest::NONE; rows.len()];
        nearest.par_chunks_mut(TASK).enumerate().for_each(|(task, nearest)| {
            if progress.cancelled() {
                return;
            }
            let first = task * TASK;
            self.offer(rows.part(first..first + nearest.len()), |at| at as u32, nearest);
        });
        progress.check()?;
        Ok(nearest)
    }

    /// Replaces in `nearest` what one of these centroids beats; `name` is what the centroid at a place is called. Of equal
    /// scores the smaller name wins.
    fn offer(&self, rows: Rows, name: impl Fn(usize) -> u32, nearest: &mut [Nearest]) {
        let mut tile = Vec::new();
        for first in (0..self.len()).step_by(TILE) {
            let part = first..(first + TILE).min(self.len());
            let offsets = &self.offsets[part.clone()];
            tile.clear();
            (0..rows.len()).for_each(|_| tile.extend_from_slice(offsets));
            let centroids = Rows { data: &self.data, dim: self.dim }.part(part);
            products(rows, centroids, &mut tile, true);
            for (nearest, scores) in nearest.iter_mut().zip(tile.chunks_exact(offsets.len())) {
                let (score, at) = largest(scores);
                let centroid = name(first + at);
                if score > nearest.score || (score == nearest.score && centroid < nearest.centroid) {
                    *nearest = Nearest { centroid, score };
                }
            }
        }
    }

    /// The mean of the rows of each centroid, which then has unit length if `spherical`; true for those that moved. A centroid
    /// without rows stays.
    fn move_to_means(&mut self, rows: Rows, groups: &Groups, spherical: bool) -> Vec<bool> {
        let dim = self.dim;
        let moved = self.data.par_chunks_mut(dim).zip(&mut self.offsets).enumerate().map_init(
            || vec![0.0f64; dim],
            |sums, (c, (centroid, offset_of))| {
                let members = groups.of(c);
                if members.is_empty() {
                    return false;
                }
                sums.fill(0.0);
                for &member in members {
                    sums.iter_mut().zip(rows.row(member as usize)).for_each(|(s, &v)| *s += f64::from(v));
                }
                let count = members.len() as f64;
                sums.iter_mut().for_each(|s| *s /= count);
                if spherical {
                    normalise(sums);
                }
                let moved = centroid.iter().zip(&*sums).any(|(&c, &s)| c != s as f32);
                centroid.iter_mut().zip(&*sums).for_each(|(c, &s)| *c = s as f32);
                *offset_of = offset(centroid);
                moved
            },
        );
        moved.collect()
    }

    /// Gives each centroid without rows half of another's; returns which centroids moved.
    fn split(&mut self, sizes: &mut [usize], spherical: bool, stream: &mut Stream) -> Vec<usize> {
        let mut moved = Vec::new();
        for empty in 0..sizes.len() {
            if sizes[empty] > 0 {
                continue;
            }
            let spare: usize = sizes.iter().map(|&size| size.saturating_sub(1)).sum();
            if spare == 0 {
                break;
            }
            let mut at = stream.below(spare);
            let mut from = 0;
            while at >= sizes[from].saturating_sub(1) {
                at -= sizes[from].saturating_sub(1);
                from += 1;
            }
            let old = self.data[from * self.dim..][..self.dim].to_vec();
            for (c, sign) in [(empty, 1.0), (from, -1.0f32)] {
                let moved = old.iter().enumerate().map(|(l, &v)| {
                    let up = if l % 2 == 0 { sign } else { -sign };
                    f64::from(v * (1.0 + up / 1024.0))
                });
                let mut moved: Vec<f64> = moved.collect();
                if spherical {
                    normalise(&mut moved);
                }
                let centroid = &mut self.data[c * self.dim..][..self.dim];
                centroid.iter_mut().zip(&moved).for_each(|(c, &v)| *c = v as f32);
                self.offsets[c] = offset(centroid);
            }
            sizes[empty] = sizes[from] / 2;
            sizes[from] -= sizes[empty];
            moved.extend([empty, from]);
        }
        moved
    }
}

fn offset(centroid: &[f32]) -> f32 {
    -square(centroid) / 2.0
}

fn normalise(values: &mut [f64]) {
    let length = values.iter().map(|v| v * v).sum::<f64>().sqrt();
    if length > 0.0 {
        values.iter_mut().for_each(|v| *v /= length);
    }
}

/// The rows `which`, one after the other.
pub(crate) fn gather(rows: Rows, which: &[u32]) -> Vec<f32> {
    let mut data = vec![0.0; which.len() * rows.dim];
    data.par_chunks_mut(rows.dim).zip(which).with_min_len(64).for_each(|(to, &i)| {
        to.copy_from_slice(rows.row(i as usize));
    });
    data
}

/// The nearest centroid of a row, and x . c - |c|^2 / 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Nearest {
    pub centroid: u32,
    pub score: f32,
}

impl Nearest {
    const NONE: Nearest = Nearest { centroid: u32::MAX, score: f32::NEG_INFINITY };
}

/// Rows by centroid, ascending within each.
pub(crate) struct Groups {
    members: Vec<u32>,
    starts: Vec<usize>,
}

impl Groups {
    pub(crate) fn new(nearest: &[Nearest], count: usize) -> Self {
        let mut starts = vec![0; count + 1];
        nearest.iter().for_each(|n| starts[n.centroid as usize + 1] += 1);
        (0..count).for_each(|c| starts[c + 1] += starts[c]);
        let mut next = starts.clone();
        let mut members = vec![0; nearest.len()];
        for (row, n) in nearest.iter().enumerate() {
            let at = &mut next[n.centroid as usize];
            members[*at] = row as u32;
            *at += 1;
        }
        Groups { members, starts }
    }

    pub(crate) fn of(&self, centroid: usize) -> &[u32] {
        &self.members[self.starts[centroid]..self.starts[centroid + 1]]
    }

    fn sizes(&self) -> Vec<usize> {
        self.starts.windows(2).map(|w| w[1] - w[0]).collect()
    }
}

/// How [`fit`] goes about it.
pub(crate) struct Fit {
    pub clusters: usize,
    pub iterations: usize,
    /// Ends when an iteration lowers the sum of squared distances by at most this share.
    pub tolerance: f64,
    pub spherical: bool,
    /// Seeds by [`greedy_plus_plus`].
    pub greedy: bool,
}

/// Where the rows ended.
pub(crate) struct Fitted {
    pub nearest: Vec<Nearest>,
    /// The sum of squared distances.
    pub inertia: f64,
}

/// k-means++ and Lloyd's iterations.
pub(crate) fn fit(rows: Rows, how: &Fit, stream: &mut Stream, progress: &dyn Progress) -> Result<Fitted> {
    let squares = squares_of(rows);
    progress.begin("seeds", how.clusters as u64);
    let mut centroids = Centroids::of_rows(rows, &seeds(rows, &squares, how, stream, progress)?);
    progress.begin("iterations", how.iterations as u64);
    let mut nearest = centroids.nearest(rows, progress)?;
    let mut last = inertia(&squares, &nearest);
    for iteration in 0..how.iterations {
        progress.check()?;
        let groups = Groups::new(&nearest, how.clusters);
        let mut moved = centroids.move_to_means(rows, &groups, how.spherical);
        for c in centroids.split(&mut groups.sizes(), how.spherical, stream) {
            moved[c] = true;
        }
        update(rows, &centroids, &moved, &mut nearest, progress)?;
        let now = inertia(&squares, &nearest);
        progress.advance(1);
        progress.note(&format!("mean squared distance {:.5}", now / rows.len() as f64));
        let at_rest = !moved.contains(&true);
        if at_rest || (iteration > 0 && how.tolerance > 0.0 && last - now <= how.tolerance * last) {
            break;
        }
        last = now;
    }
    let inertia = inertia(&squares, &nearest);
    Ok(Fitted { nearest, inertia })
}

/// The squared length of each row.
fn squares_of(rows: Rows) -> Vec<f32> {
    (0..rows.len()).into_par_iter().with_min_len(64).map(|i| square(rows.row(i))).collect()
}

/// The rows that become the first centroids.
fn seeds(
    rows: Rows,
    squares: &[f32],
    how: &Fit,
    stream: &mut Stream,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    if !how.greedy {
        return plus_plus(rows, squares, how.clusters, stream, progress);
    }
    if rows.dim <= SKETCHED {
        return greedy_plus_plus(rows, squares, how.clusters, stream, progress);
    }
    let data = sketches(rows, &signs(rows.dim, stream));
    let sketches = Rows { data: &data, dim: SKETCH };
    greedy_plus_plus(sketches, &squares_of(sketches), how.clusters, stream, progress)
}

/// [`SKETCH`] random vectors, each entry 1 or -1 over the square root of their number.
fn signs(dim: usize, stream: &mut Stream) -> Vec<f32> {
    let size = 1.0 / (SKETCH as f32).sqrt();
    (0..SKETCH * dim).map(|_| if stream.uniform() < 0.5 { size } else { -size }).collect()
}

/// The products of each row with each of the vectors.
fn sketches(rows: Rows, vectors: &[f32]) -> Vec<f32> {
    let vectors = Rows { data: vectors, dim: rows.dim };
    let mut out = vec![0.0; rows.len() * vectors.len()];
    out.par_chunks_mut(TASK * vectors.len()).enumerate().for_each(|(task, tile)| {
        let first = task * TASK;
        products(rows.part(first..first + tile.len() / vectors.len()), vectors, tile, false);
    });
    out
}

/// The sum of squared distances to the nearest centroid, in an order that does not depend on threads.
pub(crate) fn inertia(squares: &[f32], nearest: &[Nearest]) -> f64 {
    let of = |(&square, nearest): (&f32, &Nearest)| f64::from(square - 2.0 * nearest.score).max(0.0);
    squares.iter().zip(nearest).map(of).sum()
}

/// Assigns again after the centroids `moved`.
fn update(
    rows: Rows,
    centroids: &Centroids,
    moved: &[bool],
    nearest: &mut [Nearest],
    progress: &dyn Progress,
) -> Result<()> {
    let names: Vec<u32> = (0..moved.len() as u32).filter(|&c| moved[c as usize]).collect();
    if names.is_empty() {
        return Ok(());
    }
    // Those whose own centroid moved meet all again, the others only what moved.
    let (uprooted, settled): (Vec<u32>, Vec<u32>) =
        (0..rows.len() as u32).partition(|&i| moved[nearest[i as usize].centroid as usize]);
    let some = centroids.some(&names);
    let again = |which: &[u32], all: bool| -> Vec<Nearest> {
        let tasks = which.par_chunks(TASK).flat_map_iter(|task| {
            if progress.cancelled() {
                return Vec::new();
            }
            let data: Vec<f32> = task.iter().flat_map(|&i| rows.row(i as usize)).copied().collect();
            let part = Rows { data: &data, dim: rows.dim };
            if all {
                let mut best = vec![Nearest::NONE; task.len()];
                centroids.offer(part, |at| at as u32, &mut best);
                best
            } else {
                let mut best: Vec<Nearest> = task.iter().map(|&i| nearest[i as usize]).collect();
                some.offer(part, |at| names[at], &mut best);
                best
            }
        });
        tasks.collect()
    };
    let (of_uprooted, of_settled) = (again(&uprooted, true), again(&settled, false));
    progress.check()?;
    for (which, found) in [(uprooted, of_uprooted), (settled, of_settled)] {
        which.into_iter().zip(found).for_each(|(i, found)| nearest[i as usize] = found);
    }
    Ok(())
}

/// The rows that k-means++ draws as centres. Where all rows equal a centre, the rest are drawn evenly from the others.
pub(crate) fn plus_plus(
    rows: Rows,
    squares: &[f32],
    count: usize,
    stream: &mut Stream,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    let n = rows.len();
    let mut chosen = vec![stream.below(n) as u32];
    let mut distances = vec![f32::INFINITY; n];
    let mut fresh = 0;
    while chosen.len() < count {
        progress.check()?;
        lower(rows, squares, &chosen[fresh..], &mut distances);
        progress.advance((chosen.len() - fresh) as u64);
        fresh = chosen.len();
        let mut total = 0.0;
        let sums: Vec<f64> = distances
            .iter()
            .map(|&d| {
                total += f64::from(d);
                total
            })
            .collect();
        if total <= 0.0 {
            chosen.extend(drawn_evenly(n, count - chosen.len(), &chosen, stream));
            break;
        }
        let want = (count - fresh).min(SEEDS);
        let mut tries = 0;
        while chosen.len() < fresh + want && tries < 4 * want {
            tries += 1;
            let draw = stream.uniform() * total;
            let row = sums.partition_point(|&sum| sum <= draw).min(n - 1);
            let to = |&c: &u32| distance(rows, squares, row, c as usize);
            let now = chosen[fresh..].iter().map(to).fold(distances[row], f32::min);
            if stream.uniform() * f64::from(distances[row]) < f64::from(now) {
                chosen.push(row as u32);
            }
        }
    }
    Ok(chosen)
}

/// k-means++ that draws 2 + ln C candidates for each centre and takes the one that leaves the smallest sum of squared
/// distances, as scikit-learn does: better centres for as many times the products, so for samples.
pub(crate) fn greedy_plus_plus(
    rows: Rows,
    squares: &[f32],
    count: usize,
    stream: &mut Stream,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    let n = rows.len();
    let trials = 2 + (count as f64).ln() as usize;
    let mut chosen = vec![stream.below(n) as u32];
    let mut distances = vec![f32::INFINITY; n];
    lower(rows, squares, &chosen, &mut distances);
    let mut with_candidate = vec![0.0; n * trials];
    while chosen.len() < count {
        progress.check()?;
        progress.advance(1);
        let mut total = 0.0;
        let sums: Vec<f64> = distances
            .iter()
            .map(|&d| {
                total += f64::from(d);
                total
            })
            .collect();
        if total <= 0.0 {
            chosen.extend(drawn_evenly(n, count - chosen.len(), &chosen, stream));
            break;
        }
        let draw = |_| {
            let at = stream.uniform() * total;
            sums.partition_point(|&sum| sum <= at).min(n - 1) as u32
        };
        let candidates: Vec<u32> = (0..trials).map(draw).collect();
        let data = gather(rows, &candidates);
        let centres = Rows { data: &data, dim: rows.dim };
        let left: Vec<Vec<f64>> = with_candidate
            .par_chunks_mut(TASK * trials)
            .enumerate()
            .map(|(task, tile)| {
                let first = task * TASK;
                let part = first..first + tile.len() / trials;
                products(rows.part(part.clone()), centres, tile, false);
                let mut left = vec![0.0; trials];
                for (i, products) in part.zip(tile.chunks_exact_mut(trials)) {
                    for ((value, &candidate), left) in products.iter_mut().zip(&candidates).zip(&mut left) {
                        *value = squared(squares[i], squares[candidate as usize], *value).min(distances[i]);
                        *left += f64::from(*value);
                    }
                }
                left
            })
            .collect();
        let left = |candidate: usize| left.iter().map(|left| left[candidate]).sum::<f64>();
        let best =
            (0..trials).map(|at| (left(at), at)).min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |best| best.1);
        distances.iter_mut().zip(with_candidate.chunks_exact(trials)).for_each(|(d, with)| *d = with[best]);
        distances[candidates[best] as usize] = 0.0;
        chosen.push(candidates[best]);
    }
    Ok(chosen)
}

/// `count` rows that are not among the chosen.
fn drawn_evenly(n: usize, count: usize, chosen: &[u32], stream: &mut Stream) -> Vec<u32> {
    let mut taken = vec![false; n];
    chosen.iter().for_each(|&i| taken[i as usize] = true);
    let rest: Vec<u32> = (0..n as u32).filter(|&i| !taken[i as usize]).collect();
    stream.sample(rest.len(), count).into_iter().map(|at| rest[at as usize]).collect()
}

/// Squared distance of two rows; what rounding leaves of 0 is 0.
fn distance(rows: Rows, squares: &[f32], i: usize, j: usize) -> f32 {
    squared(squares[i], squares[j], dot(rows.row(i), rows.row(j)))
}

pub(crate) fn squared(square_a: f32, square_b: f32, product: f32) -> f32 {
    let lengths = square_a + square_b;
    let squared = lengths - 2.0 * product;
    if squared < 1e-6 * lengths { 0.0 } else { squared }
}

/// Lowers each row's squared distance to that to the nearest of `centres`.
fn lower(rows: Rows, squares: &[f32], centres: &[u32], distances: &mut [f32]) {
    let data = gather(rows, centres);
    let centres_of = Rows { data: &data, dim: rows.dim };
    distances.par_chunks_mut(TASK).enumerate().for_each_init(Vec::new, |tile, (task, distances)| {
        let first = task * TASK;
        tile.resize(distances.len() * centres.len(), 0.0);
        products(rows.part(first..first + distances.len()), centres_of, tile, false);
        for (i, (distance, products)) in
            distances.iter_mut().zip(tile.chunks_exact(centres.len())).enumerate()
        {
            for (&product, &centre) in products.iter().zip(centres) {
                *distance = distance.min(squared(squares[first + i], squares[centre as usize], product));
            }
        }
    });
    centres.iter().for_each(|&centre| distances[centre as usize] = 0.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;
    use crate::testing::{embeddings, on_one_and_three_threads};
    use proptest::prelude::*;

    /// Every row with every centroid, one by one.
    fn slow_nearest(rows: Rows, centroids: &Centroids) -> Vec<f32> {
        let score = |i: usize, c: usize| {
            let centroid = &centroids.data[c * rows.dim..][..rows.dim];
            dot(rows.row(i), centroid) - dot(centroid, centroid) / 2.0
        };
        (0..rows.len())
            .map(|i| (0..centroids.len()).map(|c| score(i, c)).fold(f32::NEG_INFINITY, f32::max))
            .collect()
    }

    proptest! {
        #[test]
        fn the_nearest_is_nearest_and_stays_so(rows in embeddings(), seed in 0u64..99, spherical: bool) {
            let rows = Rows::from(&rows);
            let squares = vec![1.0; rows.len()];
            let mut stream = stream(seed, 0);
            let k = 1 + stream.below(rows.len());
            let mut centroids = Centroids::of_rows(rows, &plus_plus(rows, &squares, k, &mut stream, &()).unwrap());
            let mut nearest = centroids.nearest(rows, &()).unwrap();
            for _ in 0..4 {
                for (found, best) in nearest.iter().zip(slow_nearest(rows, &centroids)) {
                    prop_assert!((found.score - best).abs() < 1e-5);
                }
                let groups = Groups::new(&nearest, k);
                let mut moved = centroids.move_to_means(rows, &groups, spherical);
                let mut sizes = groups.sizes();
                centroids.split(&mut sizes, spherical, &mut stream).into_iter().for_each(|c| moved[c] = true);
                prop_assert_eq!(sizes.iter().sum::<usize>(), rows.len());
                prop_assert!(sizes.iter().all(|&size| size > 0));
                update(rows, &centroids, &moved, &mut nearest, &()).unwrap();
            }
        }

        #[test]
        fn centres_are_different_rows(rows in embeddings(), seed in 0u64..99) {
            let rows = Rows::from(&rows);
            let squares = vec![1.0; rows.len()];
            let mut chosen = plus_plus(rows, &squares, rows.len(), &mut stream(seed, 0), &()).unwrap();
            chosen.sort_unstable();
            prop_assert_eq!(chosen, (0..rows.len() as u32).collect::<Vec<_>>());
            let mut chosen = greedy_plus_plus(rows, &squares, rows.len(), &mut stream(seed, 0), &()).unwrap();
            chosen.sort_unstable();
            prop_assert_eq!(chosen, (0..rows.len() as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn centres_are_drawn_by_squared_distance() {
        // On a line: after the first centre, the others have squared distances 1, 4, 9 and so on.
        let data = [0.0, 1.0, 2.0, 4.0];
        let rows = Rows { data: &data, dim: 1 };
        let squares: Vec<f32> = data.iter().map(|v| v * v).collect();
        let draws = 40_000;
        let mut found = [[[0.0f64; 4]; 4]; 4];
        for seed in 0..draws {
            let drawn = plus_plus(rows, &squares, 3, &mut stream(seed, 7), &()).unwrap();
            found[drawn[0] as usize][drawn[1] as usize][drawn[2] as usize] += 1.0 / draws as f64;
        }
        let d = |i: usize, centres: &[usize]| {
            centres.iter().map(|&j| (data[i] - data[j]).powi(2)).fold(f32::INFINITY, f32::min) as f64
        };
        let share = |i: usize, centres: &[usize]| d(i, centres) / (0..4).map(|j| d(j, centres)).sum::<f64>();
        for at in 0..64 {
            let (a, b, c) = (at / 16, at / 4 % 4, at % 4);
            let expected = share(b, &[a]) * share(c, &[a, b]) / 4.0;
            assert!((found[a][b][c] - expected).abs() < 0.01, "{a} {b} {c}: {expected}");
        }
    }

    #[test]
    fn the_greedy_choice_leaves_less() {
        let (rows, _) = crate::testing::synthetic(30);
        let rows = Rows::from(&rows);
        let squares = vec![1.0; rows.len()];
        let left =
            |chosen: &[u32]| inertia(&squares, &Centroids::of_rows(rows, chosen).nearest(rows, &()).unwrap());
        let mean = |draw: &dyn Fn(&mut Stream) -> Vec<u32>| {
            (0..8).map(|seed| left(&draw(&mut stream(seed, 0)))).sum::<f64>() / 8.0
        };
        let plain = mean(&|stream| plus_plus(rows, &squares, 30, stream, &()).unwrap());
        let greedy = mean(&|stream| greedy_plus_plus(rows, &squares, 30, stream, &()).unwrap());
        assert!(greedy < plain, "{greedy} {plain}");
    }

    #[test]
    fn sketches_keep_distances() {
        let (rows, _) = crate::testing::synthetic(30);
        let rows = Rows::from(&rows);
        let vectors = signs(rows.dim, &mut stream(3, 0));
        let [data, on_three] = on_one_and_three_threads(|| sketches(rows, &vectors));
        assert_eq!(data, on_three);
        for (at, found) in data.iter().enumerate() {
            let vector = &vectors[at % SKETCH * rows.dim..][..rows.dim];
            let expected: f32 = rows.row(at / SKETCH).iter().zip(vector).map(|(x, s)| x * s).sum();
            assert!((found - expected).abs() < 1e-5);
        }
        let sketched = Rows { data: &data, dim: SKETCH };
        let (squares, of_sketches) = (squares_of(rows), squares_of(sketched));
        for i in 0..rows.len() / 2 {
            let other = rows.len() - 1 - i;
            let (is, was) = (distance(sketched, &of_sketches, i, other), distance(rows, &squares, i, other));
            assert!((is - was).abs() <= 0.6 * was + 1e-5, "{is} {was}");
        }
    }

    #[test]
    fn threads_change_nothing() {
        let (rows, _) = crate::testing::synthetic(60);
        let how = Fit { clusters: 70, iterations: 5, tolerance: 0.0, spherical: false, greedy: false };
        let [one, three] = on_one_and_three_threads(|| {
            fit(Rows::from(&rows), &how, &mut stream(5, 0), &()).unwrap().nearest
        });
        assert_eq!(one, three);
    }
}
