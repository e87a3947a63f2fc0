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
use std::ops::Range;

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
    fn of(mut sizes: Vec<usize>) -> Self {
        sizes.sort_unstable();
        let at = |share: f64| (sizes[(share * (sizes.len() - 1) as f64) as usize] as f32).log2();
        Self([at(0.25), at(0.5), at(0.75)])
    }

    /// The sizes of the identities of rows with these labels.
    pub(super) fn of_labels(labels: &[u32]) -> Self {
        let mut sizes = vec![0; labels.iter().max().map_or(0, |&last| last as usize + 1)];
        labels.iter().for_each(|&label| sizes[label as usize] += 1);
        Self::of(labels.iter().map(|&label| sizes[label as usize]).collect())
    }
}

impl std::fmt::Display for Sizes {
    /// The three sizes as numbers of rows.
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let [lower, median, upper] = self.0.map(|size| size.exp2().round());
        write!(f, "{lower}, {median}, {upper}")
    }
}

/// Two views of rows: those by either half of the coordinates.
pub(crate) struct HalfViews {
    /// The sizes of identities by a sample of rows.
    pub(crate) sizes: Sizes,
    ids: Vec<u32>,
    rotation: Rotation,
}

impl HalfViews {
    pub(crate) fn of(embeddings: &Embeddings, seed: u64) -> Self {
        let sample = ViewSample::of(embeddings, ViewSample::sample(embeddings.len(), seed), seed);
        let blocks = embeddings.len().div_ceil(Cohort::BLOCK);
        // Every part keeps lists of its own, so there are no more parts than threads.
        let lists = (0..blocks)
            .into_par_iter()
            .with_min_len(blocks.div_ceil(rayon::current_num_threads()))
            .fold(
                || (sample.no_lists(), Vec::new()),
                |(mut lists, mut products), block| {
                    let first = block * Cohort::BLOCK;
                    let rows = first..embeddings.len().min(first + Cohort::BLOCK);
                    sample.look(embeddings, rows, &mut lists, &mut products);
                    (lists, products)
                },
            )
            .map(|(lists, _)| lists)
            .reduce(|| sample.no_lists(), joined);
        sample.into_views(lists, embeddings.len())
    }

    /// With sizes that were estimated before, by a sample of rows.
    pub(crate) fn of_sizes(sizes: Sizes, ids: Vec<u32>, dim: usize, seed: u64) -> Self {
        Self { sizes, ids, rotation: Rotation::new(seed, dim) }
    }

    /// The rows nearest to some random rows, `count` to each of `regions`, in ascending order.
    pub(crate) fn regions(&self, embeddings: &Embeddings, regions: usize, count: usize) -> Vec<u32> {
        let centres = self.ids.iter().take(regions);
        let near = centres.map(|&centre| nearest_to(embeddings, centre, 0..embeddings.len(), count));
        rows_of_regions(near)
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
fn size(views: &[Vec<u32>; 2], n: usize) -> usize {
    let shared = Shared::of(views);
    let mut best = (ALONE, 1);
    for depth in DEPTHS {
        let agreement = shared.agreement(depth, n);
        if agreement > best.0 {
            best = (agreement, 1 + depth);
        }
    }
    best.1
}

/// The depths from which on a row is in both of two lists of nearest rows, in ascending order, and the length of the lists.
struct Shared {
    depths: Vec<u32>,
    length: usize,
}

impl Shared {
    fn of([one, other]: &[Vec<u32>; 2]) -> Self {
        let mut places: Vec<(u32, u32)> = one.iter().copied().zip(1..).collect();
        places.sort_unstable();
        let both = |(row, depth): (&u32, u32)| {
            let at = places.binary_search_by_key(row, |&(row, _)| row).ok()?;
            Some(depth.max(places[at].1))
        };
        let mut depths: Vec<u32> = other.iter().zip(1..).filter_map(both).collect();
        depths.sort_unstable();
        Self { depths, length: one.len() }
    }

    /// The agreement of the lists among their first `depth`, or as many as half of a set of `n`.
    fn agreement(&self, depth: usize, n: usize) -> f64 {
        let depth = depth.min(n / 2).min(self.length);
        let both = self.depths.partition_point(|&from| from as usize <= depth);
        let by_chance = (depth * depth) as f64 / n as f64;
        (both as f64 - by_chance) / (depth as f64 + DOUBT)
    }
}

/// The rows of regions, in ascending order.
pub(crate) fn rows_of_regions(regions: impl IntoIterator<Item = Vec<(f32, u32)>>) -> Vec<u32> {
    let mut rows: Vec<u32> = regions.into_iter().flatten().map(|(_, row)| row).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// The `count` of some rows that are nearest to row `centre`, with their cosines, in no order.
pub(crate) fn nearest_to(
    embeddings: &Embeddings,
    centre: u32,
    rows: Range<usize>,
    count: usize,
) -> Vec<(f32, u32)> {
    let centre = embeddings.row(centre as usize);
    keep_nearest(rows.into_par_iter().map(|i| (dot(centre, embeddings.row(i)), i as u32)).collect(), count)
}

/// The nearest of rows with their cosines.
pub(crate) fn keep_nearest(mut rows: Vec<(f32, u32)>, count: usize) -> Vec<(f32, u32)> {
    if count < rows.len() {
        rows.select_nth_unstable_by(count, nearer);
        rows.truncate(count);
    }
    rows
}

/// Random rows as each half of the coordinates sees them, for which the nearest rows are sought.
pub(crate) struct ViewSample {
    /// The rows.
    pub(crate) ids: Vec<u32>,
    rotation: Rotation,
    /// Two vectors of each row, one for each half.
    halves: Cohort,
}

impl ViewSample {
    /// The rows.
    pub(crate) fn sample(n: usize, seed: u64) -> Vec<u32> {
        Stream::new(seed, Purpose::Views, 0, 0).sample(n, SAMPLE)
    }

    pub(crate) fn of(embeddings: &Embeddings, ids: Vec<u32>, seed: u64) -> Self {
        let rotation = Rotation::new(seed, embeddings.dim());
        let mut halves = Vec::with_capacity(2 * ids.len() * embeddings.dim());
        for &id in &ids {
            let row = embeddings.row(id as usize);
            let one = rotation.half(row);
            halves.extend_from_slice(&one);
            halves.extend(row.iter().zip(&one).map(|(v, one)| v - one));
        }
        Self { ids, rotation, halves: Cohort::of_vectors(&halves, embeddings.dim()) }
    }

    /// No row so far, for each half of each row.
    pub(crate) fn no_lists(&self) -> Vec<Nearest> {
        vec![Nearest::default(); 2 * self.ids.len()]
    }

    /// Adds a few consecutive rows to the nearest so far; `products` is a buffer. A row is not near itself.
    pub(crate) fn look(
        &self,
        embeddings: &Embeddings,
        rows: Range<usize>,
        lists: &mut [Nearest],
        products: &mut Vec<f32>,
    ) {
        self.halves.rough_cosines(embeddings, rows.start, rows.len(), products);
        for (row, products) in (rows.start as u32..).zip(products.chunks_exact(lists.len())) {
            for (at, (list, &product)) in lists.iter_mut().zip(products).enumerate() {
                if product >= list.least && self.ids[at / 2] != row {
                    list.add(product, row);
                }
            }
        }
    }

    /// The views, from the nearest of all `n` rows.
    pub(crate) fn into_views(self, lists: Vec<Nearest>, n: usize) -> HalfViews {
        let sizes = pairs_of_lists(lists).par_iter().map(|views| size(views, n)).collect();
        HalfViews { sizes: Sizes::of(sizes), ids: self.ids, rotation: self.rotation }
    }
}

/// The nearest of two parts of the rows.
pub(crate) fn joined(mut one: Vec<Nearest>, other: Vec<Nearest>) -> Vec<Nearest> {
    for (one, other) in one.iter_mut().zip(other) {
        other.found.into_iter().for_each(|(product, row)| one.add(product, row));
    }
    one
}

/// The nearest rows by both halves, for each row of a sample.
fn pairs_of_lists(lists: Vec<Nearest>) -> Vec<[Vec<u32>; 2]> {
    let lists: Vec<Vec<u32>> = lists.into_par_iter().map(Nearest::sorted).collect();
    lists.as_chunks::<2>().0.to_vec()
}

/// The nearest rows so far, and perhaps as many more.
#[derive(Clone)]
pub(crate) struct Nearest {
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

    /// The nearest rows and their products, in no order.
    pub(crate) fn into_rows(self) -> Vec<(f32, u32)> {
        keep_nearest(self.found, LAST)
    }

    /// From rows and their products.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = (f32, u32)>) -> Self {
        let mut nearest = Self::default();
        rows.into_iter().for_each(|(product, row)| nearest.add(product, row));
        nearest
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
    use crate::testing::embeddings_and_graph;
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
    fn sizes_are_those_of_identities() {
        for (count, size) in [(300, 5), (160, 12), (40, 40), (10, 160), (5, 600)] {
            let truth = (size as f32).log2();
            let found = HalfViews::of(&identities(&vec![size; count]), 0).sizes.0;
            assert!(found.iter().all(|found| (found - truth).abs() < 0.6), "{size}: {found:?}");
        }
    }

    #[test]
    fn sizes_may_vary() {
        let sizes = [[1].repeat(600), [16].repeat(30), [120].repeat(6)].concat();
        let [few, some, many] = HalfViews::of(&identities(&sizes), 0).sizes.0;
        assert!(few < 1.5 && (3.0..5.0).contains(&some) && many > 6.0, "{few} {some} {many}");
        assert_eq!(Sizes([0.0, 4.0, 6.9]).to_string(), "1, 16, 119");
        assert_eq!(Sizes::of_labels(&[0, 1, 1, 1, 1]), Sizes([2.0; 3]));
    }

    #[test]
    fn rows_without_relatives_are_alone() {
        for rows in [1, 2, 1500] {
            assert_eq!(HalfViews::of(&identities(&vec![1; rows]), 0).sizes, Sizes([0.0; 3]));
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
        fn lists_are_those_of_either_half_in_whichever_parts_they_are_found((embeddings, _) in embeddings_and_graph()) {
            let ids: Vec<u32> = (0..embeddings.len() as u32).collect();
            let rotation = Rotation::new(3, embeddings.dim());
            let sample = ViewSample::of(&embeddings, ids.clone(), 3);
            // By two parts of the rows, in whichever order.
            let part = |rows: Range<usize>| {
                let mut lists = sample.no_lists();
                sample.look(&embeddings, rows, &mut lists, &mut Vec::new());
                lists
            };
            let [one, other] = [part(0..ids.len() / 2), part(ids.len() / 2..ids.len())];
            let views = pairs_of_lists(joined(one.clone(), other.clone()));
            prop_assert_eq!(&views, &pairs_of_lists(joined(other, one)));
            for (i, views) in views.iter().enumerate() {
                let row = embeddings.row(i);
                let one = rotation.half(row);
                let other = row.iter().zip(&one).map(|(v, one)| v - one).collect();
                for (half, list) in [one, other].iter().zip(views) {
                    let product = |j: u32| dot(half, embeddings.row(j as usize));
                    let mut all = list.clone();
                    all.sort_unstable();
                    // All other rows, each once: there are fewer than a list can hold.
                    prop_assert_eq!(all, ids.iter().copied().filter(|&j| j != i as u32).collect::<Vec<_>>());
                    // Products are rounded, so rows that are nearly equally near may be exchanged.
                    prop_assert!(list.windows(2).all(|pair| product(pair[0]) > product(pair[1]) - 0.05));
                }
            }
        }

        #[test]
        fn agreement_is_what_the_definition_says(order in Just((0..60u32).collect::<Vec<_>>()).prop_shuffle(), length in 1usize..60) {
            let views = [order[..length].to_vec(), (0..length as u32).collect()];
            let shared = Shared::of(&views);
            for depth in DEPTHS {
                let within = depth.min(45).min(length);
                let both = views[0][..within].iter().filter(|row| views[1][..within].contains(row)).count();
                let slow = (both as f64 - (within * within) as f64 / 90.0) / (within as f64 + 4.0);
                prop_assert_eq!(shared.agreement(depth, 90), slow);
            }
        }
    }
}
