//! Features of an edge (i, j) of the kNN graph, which do not depend on the dimension and the scale of the embedding.
//!
//! z is the similarity in units of the background, see `background`; Z_i(r) that of i's r-th neighbour. If both ends have a
//! value, the features are the smaller and the larger, so that the direction of the edge does not matter.
//!
//! | columns | contents |
//! |---|---|
//! | 0-2 | similarity in units of the set's background; z; the difference of z between the two ends |
//! | 3-5 | log2 of the ranks, K if not a neighbour; 1 if both are neighbours of each other |
//! | 6-10 | share of common neighbours within the first 5, 10, 20, 40 and K |
//! | 11-13 | mass of the common neighbours: sum of p_i(m) and of p_j(m), p_i(m) = exp(Z_i(m)/2) over its row's sum; sum of the smaller |
//! | 14-19 | z minus that of the ends' nearest, K/4-th and last neighbours |
//! | 20-25 | mean z of the ends' nearest 5 and 20, and their last |
//! | 26-27 | the best and third best common neighbour m, by the smaller of z(i, m) and z(j, m), minus z |
//! | 28-29 | log2 of the in-degrees of the ends, relative to K |
//! | 30-31 | share of the ends' neighbours with z above 4 |
//! | 32 | log2 of the mean in-degree of the common neighbours, relative to K |
//! | 33-34 | medians of the ends in units of the set's background |
//!
//! No feature is told the number of rows: a network that learned from thousands of rows what N means was timid with 100,000.
//!
//! Shared-neighbour mass is from Ada-NETS and Pair-Cls; ranks in both directions are from the rank-order distance of Zhu et al.
//! (2011).
//!
//! What depends on one end alone is computed once for all rows ([`Profile`], 44 bytes each). Beyond that the numbers of a neighbour
//! are computed where both ends list it, and nothing of the others: most rows that a task meets are strangers, and looking up the
//! backgrounds of all their neighbours, which lie anywhere in memory, doubled the time of the stage at 584,120 rows.
//!
//! Cost: O(K^2) for each row, by a table of the ranks of the neighbours of row i.

use super::Background;
use super::common::{Common, DEPTHS, ITSELF, Matches, larger, smaller};
use crate::KnnGraph;
use crate::graph::{ROWS_PER_TASK, by_locality};
use crate::knn::NeighbourLists;
use crate::values::Values;
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use std::ops::Range;

/// Columns.
pub(super) const FEATURES: usize = 35;
/// A z that few pairs of different identities have.
const HIGH: f32 = 4.0;
/// The prefetch distance, in edges.
const AHEAD: usize = 3;

/// What the features of an edge depend on, for the whole graph.
pub(super) struct Whole<'a> {
    pub(super) graph: &'a dyn NeighbourLists,
    background: &'a Background,
    /// The in-degree of each vertex.
    arrivals: Values<u32>,
    /// Of each vertex, if they were computed.
    profiles: Option<Values<Profile>>,
    /// log2(1 + r) of ranks r from 0 to K.
    logarithms: Vec<f32>,
}

/// Some rows of the graph and all that they list, which are known here by local numbers: what one task needs, and small enough for
/// a near cache. The common neighbours of a row and one that it lists are among them.
pub(super) struct Structure<'a> {
    whole: &'a Whole<'a>,
    /// The row of each number; the rows that this is of come first.
    rows: Vec<u32>,
    /// z and p_i(m) of each edge from the rows that this is of.
    standard: Vec<f32>,
    mass: Vec<f32>,
    /// The numbers of the neighbours; [`Structure::elsewhere`] for rows that have none.
    neighbours: Vec<u32>,
    /// By number: the profile, the median and the spread of the background, the in-degree.
    profiles: Vec<Profile>,
    backgrounds: Vec<[f32; 2]>,
    arrivals: Vec<u32>,
}

/// Features of a vertex that are the same for all its edges.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Profile {
    /// z of the nearest, K/4-th and last neighbours.
    marks: [f32; 3],
    /// Mean z of the nearest 5 and 20, z of the last.
    density: [f32; 3],
    high: f32,
    listed: f32,
    median: f32,
    /// The largest z, and the sum of exp((z - most) / 2), by which p_i(m) is divided.
    most: f32,
    sum: f32,
}

impl Profile {
    /// p_i(m) of a neighbour.
    #[inline]
    fn mass(&self, z: f32) -> f32 {
        unnormalised_mass(z, self.most) / self.sum
    }
}

/// exp((z - most) / 2).
#[inline]
fn unnormalised_mass(z: f32, most: f32) -> f32 {
    ((z - most) / 2.0).exp()
}

/// The ranks of the neighbours of a row, and the features of its edges.
pub(super) struct Scratch {
    /// By number: 0 for "not a neighbour", else the rank from 1; [`ITSELF`] for the row. The last number is that of all others.
    places: Vec<u32>,
    matches: Matches,
    features: Vec<f32>,
    listings: Vec<Listing>,
}

impl Scratch {
    /// For graphs of `k` neighbours.
    pub(super) fn new(k: usize) -> Self {
        Self { places: Vec::new(), matches: Matches::room_for(k), features: Vec::new(), listings: Vec::new() }
    }
}

/// The rank of another row at a row, and the other way round, if there is one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Listing {
    pub(super) place: usize,
    pub(super) other: usize,
    pub(super) back: Option<usize>,
}

impl<'a> Whole<'a> {
    pub(super) fn of(graph: &'a KnnGraph, background: &'a Background) -> Self {
        let mut arrivals = vec![0u32; graph.len()];
        (0..graph.len()).for_each(|i| graph.neighbours(i).0.iter().for_each(|&j| arrivals[j as usize] += 1));
        let mut profiles = vec![Profile::zeroed(); graph.len()];
        profiles.par_chunks_mut(ROWS_PER_TASK).enumerate().for_each(|(task, profiles)| {
            let first = task * ROWS_PER_TASK;
            let found = Profile::of_rows(graph, background, &arrivals, first..first + profiles.len());
            profiles.copy_from_slice(&found);
        });
        Self::with_profiles(graph, background, arrivals.into(), Some(profiles.into()))
    }

    /// With in-degrees and, if they were computed before, profiles; those of the rows that are met are computed otherwise.
    pub(super) fn with_profiles(
        graph: &'a dyn NeighbourLists,
        background: &'a Background,
        arrivals: Values<u32>,
        profiles: Option<Values<Profile>>,
    ) -> Self {
        let logarithms = (0..=graph.k()).map(|rank| (1.0 + rank as f32).log2()).collect();
        Self { graph, background, arrivals, profiles, logarithms }
    }

    /// All vertices in an order in which those that share neighbours follow each other.
    pub(super) fn order(&self, graph: &KnnGraph) -> Vec<u32> {
        let density = |i: usize| standard(graph, self.background, i).take(20).sum();
        let density: Vec<f32> = (0..graph.len()).into_par_iter().map(density).collect();
        by_locality(graph, &density)
    }
}

impl Profile {
    /// Of some consecutive rows.
    pub(crate) fn of_rows(
        graph: &KnnGraph,
        background: &Background,
        arrivals: &[u32],
        rows: Range<usize>,
    ) -> Vec<Self> {
        let mut z = Vec::with_capacity(graph.k());
        rows.map(|i| Self::of_row(graph, background, arrivals, i, &mut z)).collect()
    }

    /// Of one row; `z` is a buffer.
    fn of_row(
        graph: &dyn NeighbourLists,
        background: &Background,
        arrivals: &[u32],
        i: usize,
        z: &mut Vec<f32>,
    ) -> Self {
        z.clear();
        z.extend(standard(graph, background, i));
        Self::of(z, arrivals[i], (background.medians[i] - background.median) / background.spread)
    }

    fn of(z: &[f32], arrivals: u32, median: f32) -> Self {
        let k = z.len();
        if k == 0 {
            return Self::zeroed();
        }
        let mean = |count: usize| z[..count.min(k)].iter().sum::<f32>() / count.min(k) as f32;
        let most = z.iter().copied().fold(f32::MIN, f32::max);
        Self {
            marks: [z[0], z[k / 4], z[k - 1]],
            density: [mean(5), mean(20), z[k - 1]],
            high: z.iter().filter(|&&z| z > HIGH).count() as f32 / k as f32,
            listed: ((1.0 + arrivals as f32) / (1.0 + k as f32)).log2(),
            median,
            most,
            sum: z.iter().map(|&z| unnormalised_mass(z, most)).sum(),
        }
    }
}

/// z of the edges of a row.
fn standard<'a>(
    graph: &'a dyn NeighbourLists,
    background: &'a Background,
    i: usize,
) -> impl Iterator<Item = f32> + 'a {
    let (medians, spreads) = (&*background.medians, &*background.spreads);
    let (ids, similarities) = graph.neighbours(i);
    let of_vertex = move |i: usize, s: f32| (s - medians[i]) / spreads[i];
    ids.iter().zip(similarities).map(move |(&j, &s)| 0.5 * (of_vertex(i, s) + of_vertex(j as usize, s)))
}

/// The local numbers of rows while a [`Structure`] is made: a table of all rows, which is emptied after use.
pub(super) struct Numbers(Vec<u32>);

impl Numbers {
    const NONE: u32 = u32::MAX;

    pub(super) fn for_rows(n: usize) -> Self {
        Self(vec![Self::NONE; n])
    }
}

impl<'a> Structure<'a> {
    /// Of some rows, each once.
    pub(super) fn of(whole: &'a Whole<'a>, of_rows: &[u32], Numbers(numbers): &mut Numbers) -> Self {
        let (graph, k) = (whole.graph, whole.graph.k());
        let mut rows = of_rows.to_vec();
        rows.iter().zip(0..).for_each(|(&row, number)| numbers[row as usize] = number);
        for &row in of_rows {
            for &j in graph.neighbours(row as usize).0 {
                if numbers[j as usize] == Numbers::NONE {
                    numbers[j as usize] = rows.len() as u32;
                    rows.push(j);
                }
            }
        }
        let elsewhere = rows.len() as u32;
        let mut neighbours = Vec::with_capacity(rows.len() * k);
        for &row in &rows {
            // A number that there is not becomes the largest.
            let ids = graph.neighbours(row as usize).0.iter();
            neighbours.extend(ids.map(|&j| numbers[j as usize].min(elsewhere)));
        }
        let in_degrees = &*whole.arrivals;
        let mut z = Vec::new();
        let profiles: Vec<Profile> = match whole.profiles.as_deref() {
            Some(known) => rows.iter().map(|&row| known[row as usize]).collect(),
            None => {
                let of_row =
                    |&row: &u32| Profile::of_row(graph, whole.background, in_degrees, row as usize, &mut z);
                rows.iter().map(of_row).collect()
            }
        };
        let (medians, spreads) = (&*whole.background.medians, &*whole.background.spreads);
        let backgrounds = rows.iter().map(|&row| [medians[row as usize], spreads[row as usize]]).collect();
        let mut z = Vec::with_capacity(of_rows.len() * k);
        of_rows.iter().for_each(|&row| z.extend(standard(graph, whole.background, row as usize)));
        let mass = z.chunks_exact(k.max(1)).zip(&profiles);
        let mass = mass.flat_map(|(z, profile)| z.iter().map(|&z| profile.mass(z))).collect();
        let arrivals = rows.iter().map(|&row| in_degrees[row as usize]).collect();
        rows.iter().for_each(|&row| numbers[row as usize] = Numbers::NONE);
        Self { whole, rows, standard: z, mass, neighbours, profiles, backgrounds, arrivals }
    }

    /// The number of all rows without one.
    fn elsewhere(&self) -> usize {
        self.rows.len()
    }

    /// The features of all edges from row number `i`, one after the other.
    pub(super) fn of_row<'s>(&self, i: usize, scratch: &'s mut Scratch) -> &'s [f32] {
        self.of_edges(i, scratch, |_, _| true).0
    }

    /// The features of the edges of row number `i` that are `wanted`, by their position and the number of their other end, one after
    /// the other, and the ranks of each.
    pub(super) fn of_edges<'s>(
        &self,
        i: usize,
        scratch: &'s mut Scratch,
        wanted: impl Fn(usize, usize) -> bool,
    ) -> (&'s [f32], &'s [Listing]) {
        let Scratch { places, matches, features, listings } = scratch;
        // Those of earlier structures were left empty, but may be fewer.
        places.resize(places.len().max(self.elsewhere() + 1), 0);
        let k = self.whole.graph.k();
        let numbers = self.neighbours(i);
        numbers.iter().zip(1..).for_each(|(&j, place)| places[j as usize] = place);
        places[i] = ITSELF;
        features.clear();
        listings.clear();
        for (place, &j) in numbers.iter().enumerate() {
            if let Some(&soon) = numbers.get(place + AHEAD) {
                self.fetch(soon as usize);
            }
            let j = j as usize;
            if wanted(place, j) {
                let theirs = self.neighbours(j);
                matches.find(theirs, places);
                let ours = |place: usize| (self.standard[i * k + place], self.mass[i * k + place]);
                let common = if j * k < self.standard.len() {
                    let known = |place: usize| (self.standard[j * k + place], self.mass[j * k + place]);
                    Common::of(matches, ours, known, theirs, &self.arrivals)
                } else {
                    let similarities = self.similarities(j);
                    let computed = |place: usize| self.of_stranger(j, theirs[place], similarities[place]);
                    Common::of(matches, ours, computed, theirs, &self.arrivals)
                };
                features.extend_from_slice(&self.edge(i, place, &common));
                let back = (common.back < k).then_some(common.back);
                listings.push(Listing { place, other: self.rows[j] as usize, back });
            }
        }
        numbers.iter().for_each(|&j| places[j as usize] = 0);
        places[i] = 0;
        (features, listings)
    }

    /// z and p_j(m) of neighbour number `m` of row number `j`.
    #[inline]
    fn of_stranger(&self, j: usize, m: u32, similarity: f32) -> (f32, f32) {
        let of_vertex = |[median, spread]: [f32; 2]| (similarity - median) / spread;
        let z = 0.5 * (of_vertex(self.backgrounds[j]) + of_vertex(self.backgrounds[m as usize]));
        (z, self.profiles[j].mass(z))
    }

    /// Prefetches the data of a row for [`Matches`] and [`Common`]: that of all rows here is not in the nearest cache.
    fn fetch(&self, j: usize) {
        let k = self.whole.graph.k();
        fetch(self.neighbours(j));
        if j * k < self.standard.len() {
            fetch(&self.standard[j * k..][..k]);
            fetch(&self.mass[j * k..][..k]);
        } else {
            fetch(self.similarities(j));
        }
    }

    /// The row of a number.
    pub(super) fn row(&self, i: usize) -> usize {
        self.rows[i] as usize
    }

    /// Numbers of the neighbours of a row.
    fn neighbours(&self, i: usize) -> &[u32] {
        let k = self.whole.graph.k();
        &self.neighbours[i * k..][..k]
    }

    /// Whether row number `i` lists row number `j`.
    pub(super) fn lists(&self, i: usize, j: usize) -> bool {
        self.neighbours(i).contains(&(j as u32))
    }

    /// Similarities of the neighbours of a row.
    fn similarities(&self, i: usize) -> &[f32] {
        self.whole.graph.neighbours(self.row(i)).1
    }

    fn edge(&self, i: usize, place: usize, common: &Common) -> [f32; FEATURES] {
        let Whole { graph, background, logarithms, .. } = self.whole;
        let k = graph.k();
        let s = self.similarities(i)[place];
        let (j, z) = (self.neighbours(i)[place] as usize, self.standard[i * k + place]);
        let (one, other) = (&self.profiles[i], &self.profiles[j]);
        let of_vertex = |[median, spread]: [f32; 2]| (s - median) / spread;
        let mut out = Columns { values: [0.0; FEATURES], at: 0 };
        out.push((s - background.median) / background.spread);
        out.push(z);
        out.push((of_vertex(self.backgrounds[i]) - of_vertex(self.backgrounds[j])).abs());
        out.both(logarithms[place], logarithms[common.back]);
        out.push(if common.back < k { 1.0 } else { 0.0 });
        for (count, depth) in common.shallow.into_iter().zip(DEPTHS) {
            out.push(count as f32 / depth.min(k as u32) as f32);
        }
        out.push(common.all as f32 / k as f32);
        out.both(common.mass[0], common.mass[1]);
        out.push(common.least_mass);
        for mark in 0..3 {
            out.both(z - one.marks[mark], z - other.marks[mark]);
        }
        for depth in 0..3 {
            out.both(one.density[depth], other.density[depth]);
        }
        let last = one.marks[2].min(other.marks[2]);
        out.push(common.best[0].max(last) - z);
        out.push(common.best[2].max(last) - z);
        out.both(one.listed, other.listed);
        out.both(one.high, other.high);
        out.push(((1.0 + common.listed as f32) / (1.0 + common.all as f32) / k as f32).log2());
        out.both(one.median, other.median);
        out.values
    }
}

/// Prefetches memory.
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "only x86-64 has a prefetch here"))]
fn fetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in values.chunks(64 / size_of::<T>()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, about memory that is there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

/// Features in the order of the table above.
struct Columns {
    values: [f32; FEATURES],
    at: usize,
}

impl Columns {
    fn push(&mut self, value: f32) {
        self.values[self.at] = value;
        self.at += 1;
    }

    /// The smaller, then the larger.
    fn both(&mut self, one: f32, other: f32) {
        self.push(smaller(one, other));
        self.push(larger(one, other));
    }
}
