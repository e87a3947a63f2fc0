//! How large identities are, from the agreement of two views of the same rows.
//!
//! A random rotation divides the coordinates into two halves. What all rows of an identity have in common is in both halves,
//! while what tells its rows apart is different in each, as far as it is noise. So the nearest r rows by one half and by the
//! other agree best where r is the number of other rows of the identity: within it, either half orders the rows in its own way;
//! beyond it, either adds strangers of its own. For a row, with A_r and B_r the nearest r by each half,
//!
//! ```text
//! agreement(r) = (|A_r and B_r| - r^2 / N) / (r + 4),
//! ```
//!
//! where r^2 / N rows agree by chance, and 4 keeps two or three rows from agreeing perfectly by chance. The size of the row's
//! identity is 1 + r where its agreement is largest, or 1 if it is nowhere 0.1. The result is the quartiles over a sample of rows.
//!
//! Nothing else that was tried distinguishes many look-alike identities of 20 rows from few diffuse ones of 150: within one view
//! the two have the same kind of graph.
//!
//! Rows are not rotated. With R the rotation and H the projection on one half of the coordinates, the similarity of row y to a
//! row q by that half is <H R q, R y> = <R' H R q, y>, so only the sample is transformed.
//!
//! Cost: O(N D) for each row of the sample, as integer products.

use crate::knn::{Cohort, dot};
use crate::random::{Purpose, Stream};
use crate::{Embeddings, Result};
use rayon::prelude::*;

/// The numbers of nearest rows that are compared, in steps of about half an octave.
const DEPTHS: [usize; 19] = [2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 724, 1024];
const LAST: usize = DEPTHS[DEPTHS.len() - 1];
/// Rows of the sample.
const SAMPLE: usize = 512;
/// Rows that are added to the denominator of the agreement, so that few rows are not a large share by chance.
const DOUBT: f64 = 4.0;
/// A row whose views agree by less than this is alone.
const ALONE: f64 = 0.1;

/// The sizes of the identities of rows, as logarithms to base 2: lower quartile, median, upper quartile. 0 is a row without
/// relatives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes(pub [f32; 3]);

impl Sizes {
    /// The quartiles of these sizes.
    pub(super) fn of(mut sizes: Vec<usize>) -> Self {
        sizes.sort_unstable();
        let at = |share: f64| (sizes[(share * (sizes.len() - 1) as f64) as usize] as f32).log2();
        Self([at(0.25), at(0.5), at(0.75)])
    }
}

/// The nearest rows to a sample of rows, by one half of the coordinates and by the other.
pub(crate) struct HalfViews {
    /// Two lists for each row of the sample.
    lists: Vec<Vec<u32>>,
    ids: Vec<u32>,
    rotation: Rotation,
    n: usize,
}

impl HalfViews {
    pub(crate) fn of(embeddings: &Embeddings, seed: u64) -> Self {
        let (n, dim) = (embeddings.len(), embeddings.dim());
        let ids = Stream::new(seed, Purpose::Views, 0, 0).sample(n, SAMPLE);
        let rotation = Rotation::new(seed, dim);
        let mut halves = Vec::with_capacity(2 * ids.len() * dim);
        for &id in &ids {
            let row = embeddings.row(id as usize);
            let one = rotation.half(row);
            halves.extend_from_slice(&one);
            halves.extend(row.iter().zip(&one).map(|(v, one)| v - one));
        }
        Self { lists: nearest(embeddings, &halves, &ids), ids, rotation, n }
    }

    /// The sizes of identities.
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes::of(self.lists.par_chunks_exact(2).map(|lists| size(&lists[0], &lists[1], self.n)).collect())
    }

    /// The rows nearest to some random rows, `count` to each of `regions`, in ascending order.
    pub(crate) fn regions(&self, embeddings: &Embeddings, regions: usize, count: usize) -> Vec<u32> {
        let mut rows: Vec<u32> = Vec::new();
        for &centre in self.ids.iter().take(regions) {
            let centre = embeddings.row(centre as usize);
            let cosine = |i: usize| (dot(centre, embeddings.row(i)), i as u32);
            let mut all: Vec<(f32, u32)> = (0..self.n).into_par_iter().map(cosine).collect();
            if count < all.len() {
                all.select_nth_unstable_by(count, nearer);
                all.truncate(count);
            }
            rows.extend(all.into_iter().map(|(_, row)| row));
        }
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// These rows, as each half of the coordinates sees them.
    pub(crate) fn both(&self, embeddings: &Embeddings, rows: &[u32]) -> Result<[Embeddings; 2]> {
        let dim = embeddings.dim();
        let middle = dim / 2;
        let half = |from: usize, to: usize| {
            Embeddings::from_fn(rows.len(), to - from, "half of the columns", |at, values| {
                let mut row = embeddings.row(rows[at] as usize).to_vec();
                self.rotation.turn(&mut row);
                values.iter_mut().zip(&row[from..to]).for_each(|(value, &v)| *value = v.into());
                // A row may be in one half alone.
                if values.iter().all(|&v| v.abs() < 1e-9) {
                    values[0] = 1.0;
                }
            })
        };
        Ok([half(0, middle)?, half(middle, dim)?])
    }
}

/// The size of the identity of a row, by its nearest rows in both views.
fn size(one: &[u32], other: &[u32], n: usize) -> usize {
    let mut best = (ALONE, 1);
    for depth in DEPTHS {
        let agreement = agreement(one, other, depth, n);
        if agreement > best.0 {
            best = (agreement, 1 + depth);
        }
    }
    best.1
}

/// The agreement of two lists of nearest rows among their first `depth`, or as many as half of the set.
fn agreement(one: &[u32], other: &[u32], depth: usize, n: usize) -> f64 {
    let depth = depth.min(n / 2).min(one.len());
    let mut sorted = one[..depth].to_vec();
    sorted.sort_unstable();
    let both = other[..depth].iter().filter(|id| sorted.binary_search(id).is_ok()).count();
    let by_chance = (depth * depth) as f64 / n as f64;
    (both as f64 - by_chance) / (depth as f64 + DOUBT)
}

/// The nearest rows to each vector, at most 1,024, nearest first; of which there are two for each of `ids`, which are not their
/// own neighbours.
fn nearest(embeddings: &Embeddings, vectors: &[f32], ids: &[u32]) -> Vec<Vec<u32>> {
    let n = embeddings.len();
    let cohort = Cohort::of_vectors(vectors, embeddings.dim());
    let none = || (vec![Nearest::default(); 2 * ids.len()], Vec::new());
    let look = |(mut lists, mut products): (Vec<Nearest>, Vec<f32>), block: usize| {
        let first = block * Cohort::BLOCK;
        let count = Cohort::BLOCK.min(n - first);
        cohort.cosines(embeddings, first, count, &mut products);
        for (row, products) in (first as u32..).zip(products.chunks_exact(lists.len())) {
            for (at, (list, &product)) in lists.iter_mut().zip(products).enumerate() {
                if product >= list.least && ids[at / 2] != row {
                    list.add(product, row);
                }
            }
        }
        (lists, products)
    };
    let join = |mut one: Vec<Nearest>, other: Vec<Nearest>| {
        for (one, other) in one.iter_mut().zip(other) {
            other.found.into_iter().for_each(|(product, row)| one.add(product, row));
        }
        one
    };
    let lists = (0..n.div_ceil(Cohort::BLOCK))
        .into_par_iter()
        .fold(none, look)
        .map(|(lists, _)| lists)
        .reduce(|| none().0, join);
    lists.into_par_iter().map(Nearest::sorted).collect()
}

/// The nearest rows so far, and perhaps as many more.
#[derive(Clone)]
struct Nearest {
    found: Vec<(f32, u32)>,
    /// Rows of a smaller product cannot be among the nearest.
    least: f32,
}

impl Default for Nearest {
    fn default() -> Self {
        Self { found: Vec::new(), least: f32::MIN }
    }
}

impl Nearest {
    fn add(&mut self, product: f32, row: u32) {
        self.found.push((product, row));
        if self.found.len() == 2 * LAST {
            self.found.select_nth_unstable_by(LAST - 1, nearer);
            self.found.truncate(LAST);
            self.least = self.found.iter().map(|found| found.0).fold(f32::MAX, f32::min);
        }
    }

    fn sorted(mut self) -> Vec<u32> {
        self.found.sort_unstable_by(nearer);
        self.found.truncate(LAST);
        self.found.into_iter().map(|(_, row)| row).collect()
    }
}

fn nearer(a: &(f32, u32), b: &(f32, u32)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

/// A random rotation: rounds in which random pairs of coordinates turn by 45 degrees. After log2 D rounds every coordinate
/// depends on nearly every other; twice as many spread them evenly.
struct Rotation {
    /// Pairs of coordinates of each round.
    rounds: Vec<Vec<(u32, u32)>>,
    dim: usize,
}

impl Rotation {
    fn new(seed: u64, dim: usize) -> Self {
        let rounds = 2 * (usize::BITS - dim.leading_zeros()) as u64;
        let pairs = |round: u64| {
            let order = Stream::new(seed, Purpose::Views, 1, round).sample(dim, dim);
            order.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
        };
        Self { rounds: (0..rounds).map(pairs).collect(), dim }
    }

    /// Rotates a row.
    fn turn(&self, row: &mut [f32]) {
        for pairs in &self.rounds {
            pairs.iter().for_each(|&pair| turn(row, pair, 1.0));
        }
    }

    /// The part of a row in the first half of the rotated coordinates.
    fn half(&self, row: &[f32]) -> Vec<f32> {
        let mut row = row.to_vec();
        self.turn(&mut row);
        row[self.dim / 2..].fill(0.0);
        for pairs in self.rounds.iter().rev() {
            pairs.iter().for_each(|&pair| turn(&mut row, pair, -1.0));
        }
        row
    }
}

/// Turns two coordinates by 45 degrees, or back.
fn turn(row: &mut [f32], (a, b): (u32, u32), way: f32) {
    let (a, b) = (a as usize, b as usize);
    let (x, y) = (row[a], row[b]);
    row[a] = std::f32::consts::FRAC_1_SQRT_2 * (x - way * y);
    row[b] = std::f32::consts::FRAC_1_SQRT_2 * (y + way * x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{embeddings_and_graph, on_one_and_three_threads};
    use proptest::prelude::*;

    /// Identities of these sizes, in 64 columns.
    fn identities(sizes: &[usize]) -> Embeddings {
        let mut stream = Stream::new(7, Purpose::Image, 0, 0);
        let mut rows = Vec::new();
        for &size in sizes {
            let centre: Vec<f32> = (0..64).map(|_| stream.rough_normal()).collect();
            for _ in 0..size {
                rows.extend(centre.iter().map(|v| v + 0.6 * stream.rough_normal()));
            }
        }
        Embeddings::from_rows(rows, 64, "test").unwrap()
    }

    #[test]
    fn views_agree_most_at_the_size_of_identities() {
        for (count, size) in [(300, 5), (160, 12), (40, 40), (10, 160), (5, 600)] {
            let views = HalfViews::of(&identities(&vec![size; count]), 0);
            let truth = (size as f32).log2();
            let found = views.sizes().0;
            assert!(found.iter().all(|found| (found - truth).abs() < 0.6), "{size}: {found:?}");
        }
    }

    #[test]
    fn sizes_may_vary() {
        let sizes = [[1].repeat(600), [16].repeat(30), [120].repeat(6)].concat();
        let [few, some, many] = HalfViews::of(&identities(&sizes), 0).sizes().0;
        assert!(few < 1.5 && (3.0..5.0).contains(&some) && many > 6.0, "{few} {some} {many}");
    }

    #[test]
    fn rows_without_relatives_are_alone() {
        for rows in [1, 2, 1500] {
            let views = HalfViews::of(&identities(&vec![1; rows]), 0);
            assert_eq!(views.sizes(), Sizes([0.0; 3]));
        }
    }

    #[test]
    fn a_region_is_the_rows_nearest_to_one() {
        let rows = identities(&[40; 50]);
        let views = HalfViews::of(&rows, 0);
        let region = views.regions(&rows, 1, 40);
        // The identity of the row in the middle, whose rows follow each other.
        assert_eq!(region.len(), 40);
        assert!(region[39] - region[0] == 39 && region[0].is_multiple_of(40), "{region:?}");
        let two = views.regions(&rows, 2, 1500);
        assert!((1500..2000).contains(&two.len()) && two.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn halves_of_a_row_add_up_and_are_orthogonal() {
        let rows = identities(&[1; 3]);
        let rotation = Rotation::new(1, 64);
        let one = rotation.half(rows.row(0));
        let other: Vec<f32> = rows.row(0).iter().zip(&one).map(|(v, one)| v - one).collect();
        assert!(dot(&one, &other).abs() < 1e-5);
        assert!((dot(&one, &one) - 0.5).abs() < 0.2);
        // A projection: the half of a half is itself.
        assert!(rotation.half(&one).iter().zip(&one).all(|(a, b)| (a - b).abs() < 1e-5));
    }

    proptest! {
        #[test]
        fn it_is_what_the_definition_says_on_any_number_of_threads((embeddings, _) in embeddings_and_graph()) {
            let means = |views: &HalfViews| {
                let mean = |depth: usize| {
                    let lists = views.lists.chunks_exact(2);
                    lists.map(|lists| agreement(&lists[0], &lists[1], depth, views.n)).sum::<f64>() / views.n as f64
                };
                DEPTHS.map(mean)
            };
            let [found, three] = on_one_and_three_threads(|| means(&HalfViews::of(&embeddings, 3)));
            prop_assert_eq!(found, three);
            let (n, dim) = (embeddings.len(), embeddings.dim());
            let rotation = Rotation::new(3, dim);
            let mut sums = [0.0; DEPTHS.len()];
            for i in 0..n {
                let one = rotation.half(embeddings.row(i));
                let other: Vec<f32> = embeddings.row(i).iter().zip(&one).map(|(v, one)| v - one).collect();
                let [one, other] = [one, other].map(|half| {
                    let mut others: Vec<usize> = (0..n).filter(|&j| j != i).collect();
                    others.sort_by(|&a, &b| dot(&half, embeddings.row(b)).total_cmp(&dot(&half, embeddings.row(a))));
                    others
                });
                for (sum, depth) in sums.iter_mut().zip(DEPTHS) {
                    let depth = depth.min(n / 2).min(n - 1);
                    let both = one[..depth].iter().filter(|j| other[..depth].contains(j)).count() as f64;
                    *sum += (both - (depth * depth) as f64 / n as f64) / (depth as f64 + 4.0) / n as f64;
                }
            }
            // Products are rounded, so rows that are nearly equally near may be exchanged.
            for (mean, sum) in found.iter().zip(sums) {
                prop_assert!((mean - sum).abs() <= 0.05, "{found:?} {sums:?}");
            }
        }
    }
}
