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
//! Cost: O(K^2) for each row, by a table of the ranks of the neighbours of row i.

use super::Background;
use super::common::{Common, DEPTHS, ITSELF, Matches, Side, larger, smaller};
use crate::KnnGraph;
use crate::graph::by_locality;
use rayon::prelude::*;

/// Columns.
pub(super) const FEATURES: usize = 35;
/// A z that few pairs of different identities have.
const HIGH: f32 = 4.0;
/// The prefetch distance, in edges.
const AHEAD: usize = 3;

/// Data of the vertices for the features of all edges.
pub(super) struct Structure<'a> {
    graph: &'a KnnGraph,
    background: &'a Background,
    /// z of each edge, N x K.
    standard: Vec<f32>,
    /// p_i(m) of each edge, N x K.
    mass: Vec<f32>,
    ends: Vec<End>,
    /// Vertices in an order in which those that share neighbours follow each other, for the cache.
    order: Vec<u32>,
    /// The number of each vertex, its position in that order: tables by number are accessed locally.
    numbers: Vec<u32>,
    /// Numbers of the neighbours, N x K, rows as in the graph.
    neighbours: Vec<u32>,
    /// The in-degree of each vertex, by number.
    arrivals: Vec<u32>,
    /// log2(1 + r) of ranks r from 0 to K.
    logarithms: Vec<f32>,
}

/// Features of a vertex that are the same for all its edges.
#[derive(Clone, Copy)]
struct End {
    /// z of the nearest, K/4-th and last neighbours.
    marks: [f32; 3],
    /// Mean z of the nearest 5 and 20, z of the last.
    density: [f32; 3],
    high: f32,
    listed: f32,
    median: f32,
}

/// The ranks of the neighbours of a row, and the features of its edges.
pub(super) struct Scratch {
    /// By number: 0 for "not a neighbour", else the rank from 1; [`ITSELF`] for the row.
    places: Vec<u32>,
    matches: Matches,
    features: Vec<f32>,
    listings: Vec<Listing>,
}

/// The rank of another row at a row, and the other way round, if there is one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Listing {
    pub(super) place: usize,
    pub(super) other: usize,
    pub(super) back: Option<usize>,
}

impl<'a> Structure<'a> {
    pub(super) fn of(graph: &'a KnnGraph, background: &'a Background) -> Self {
        let (n, k) = (graph.len(), graph.k());
        let (mut standard, mut mass) = (vec![0.0; n * k], vec![0.0; n * k]);
        let row = k.max(1);
        standard.par_chunks_mut(row).zip(mass.par_chunks_mut(row)).enumerate().for_each(
            |(i, (standard, mass))| {
                let (ids, similarities) = graph.neighbours(i);
                for ((z, &j), &s) in standard.iter_mut().zip(ids).zip(similarities) {
                    *z = background.standard(i, j as usize, s);
                }
                let most = standard.iter().copied().fold(f32::MIN, f32::max);
                mass.iter_mut().zip(&*standard).for_each(|(p, &z)| *p = ((z - most) / 2.0).exp());
                let sum: f32 = mass.iter().sum();
                mass.iter_mut().for_each(|p| *p /= sum);
            },
        );
        let mut arrivals = vec![0u32; n];
        (0..n).for_each(|i| graph.neighbours(i).0.iter().for_each(|&j| arrivals[j as usize] += 1));
        let end = |i: usize| {
            let z = &standard[i * k..][..k];
            let mean = |count: usize| z[..count.min(k)].iter().sum::<f32>() / count.min(k) as f32;
            End {
                marks: [z[0], z[k / 4], z[k - 1]],
                density: [mean(5), mean(20), z[k - 1]],
                high: z.iter().filter(|&&z| z > HIGH).count() as f32 / k as f32,
                listed: ((1.0 + arrivals[i] as f32) / (1.0 + k as f32)).log2(),
                median: (background.medians[i] - background.median) / background.spread,
            }
        };
        let ends: Vec<End> = if k == 0 { Vec::new() } else { (0..n).into_par_iter().map(end).collect() };
        let density: Vec<f32> = ends.iter().map(|end| end.density[1]).collect();
        let order = by_locality(graph, &density);
        let mut numbers = vec![0; n];
        order.iter().zip(0..).for_each(|(&i, number)| numbers[i as usize] = number);
        let mut neighbours = vec![0; n * k];
        neighbours.par_chunks_mut(row).enumerate().for_each(|(i, neighbours)| {
            let ids = graph.neighbours(i).0;
            neighbours.iter_mut().zip(ids).for_each(|(number, &j)| *number = numbers[j as usize]);
        });
        let arrivals = order.iter().map(|&i| arrivals[i as usize]).collect();
        let logarithms = (0..=k).map(|rank| (1.0 + rank as f32).log2()).collect();
        Self { graph, background, standard, mass, ends, order, numbers, neighbours, arrivals, logarithms }
    }

    pub(super) fn scratch(&self) -> Scratch {
        Scratch {
            places: vec![0; self.graph.len()],
            matches: Matches::room_for(self.graph.k()),
            features: Vec::new(),
            listings: Vec::new(),
        }
    }

    /// The features of all edges from row `i`, one after the other.
    pub(super) fn of_row<'s>(&self, i: usize, scratch: &'s mut Scratch) -> &'s [f32] {
        self.of_edges(i, scratch, |_, _| true).0
    }

    /// The features of the edges of row `i` that are `wanted`, by their position and their other end, one after the other, and
    /// the ranks of each.
    pub(super) fn of_edges<'s>(
        &self,
        i: usize,
        scratch: &'s mut Scratch,
        wanted: impl Fn(usize, usize) -> bool,
    ) -> (&'s [f32], &'s [Listing]) {
        let Scratch { places, matches, features, listings } = scratch;
        let (ids, numbers) = (self.graph.neighbours(i).0, self.neighbours(i));
        numbers.iter().zip(1..).for_each(|(&j, place)| places[j as usize] = place);
        places[self.numbers[i] as usize] = ITSELF;
        features.clear();
        listings.clear();
        for (place, &j) in ids.iter().enumerate() {
            if let Some(&soon) = ids.get(place + AHEAD) {
                self.fetch(soon as usize);
            }
            let j = j as usize;
            if wanted(place, j) {
                let theirs = self.neighbours(j);
                matches.find(theirs, places);
                let common = Common::of(matches, self.side(i), self.side(j), theirs, &self.arrivals);
                features.extend_from_slice(&self.edge(i, place, &common));
                let back = (common.back < ids.len()).then_some(common.back);
                listings.push(Listing { place, other: j, back });
            }
        }
        numbers.iter().for_each(|&j| places[j as usize] = 0);
        places[self.numbers[i] as usize] = 0;
        (features, listings)
    }

    /// Prefetches the data of a row for [`Matches`] and [`Common`]: with 100,000 rows it is not in a near cache.
    fn fetch(&self, j: usize) {
        let k = self.graph.k();
        fetch(self.neighbours(j));
        fetch(&self.standard[j * k..][..k]);
        fetch(&self.mass[j * k..][..k]);
    }

    /// All vertices, in a cache-friendly order.
    pub(super) fn order(&self) -> &[u32] {
        &self.order
    }

    /// Numbers of the neighbours of a row.
    fn neighbours(&self, i: usize) -> &[u32] {
        let k = self.graph.k();
        &self.neighbours[i * k..][..k]
    }

    /// Whether `i` lists `j`.
    pub(super) fn lists(&self, i: usize, j: usize) -> bool {
        self.neighbours(i).contains(&self.numbers[j])
    }

    fn side(&self, i: usize) -> Side<'_> {
        let k = self.graph.k();
        Side { standard: &self.standard[i * k..][..k], mass: &self.mass[i * k..][..k] }
    }

    fn edge(&self, i: usize, place: usize, common: &Common) -> [f32; FEATURES] {
        let (k, background) = (self.graph.k(), self.background);
        let (ids, similarities) = self.graph.neighbours(i);
        let (j, s, z) = (ids[place] as usize, similarities[place], self.standard[i * k + place]);
        let (one, other) = (&self.ends[i], &self.ends[j]);
        let mut out = Columns { values: [0.0; FEATURES], at: 0 };
        out.push((s - background.median) / background.spread);
        out.push(z);
        out.push((background.of_vertex(i, s) - background.of_vertex(j, s)).abs());
        out.both(self.logarithms[place], self.logarithms[common.back]);
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
