//! How probable it is that two sides are one person: two people of the album, or the parts of one.
//!
//! The evidence is the edges between the sides, how similar the sides are on average, and how many items they have:
//!
//! ```text
//! logit P = c0 + c1 logit(e) + c2 s + c3 log2(smaller) + c4 log2(larger)
//! ```
//!
//! e is the mean, over the items of the side where it is larger, of each item's most probable edge to the other side: one strong
//! edge of a large side proves little, that of a single item everything. s is the mean similarity of items of different sides, in
//! units of that of items of one side. Two people who are still apart although their edges are probable are rarely one, because
//! the partition has weighed that already; so probabilities of edges alone are far too high, and those of people and of parts
//! are two regressions. Their coefficients are of 12,000 candidates of faces and 16,000 of a synthetic set with known identities.
//!
//! Answers shift the logits of either kind, by the logistic regression of the answers so far with a normal prior.
//!
//! Cost: the edges and the rows of both sides.

use crate::corrections::Corrections;
use crate::records::Records;
use kinfolk::Embeddings;
use kinfolk::incremental::similarity;
use std::collections::HashSet;

/// Edges of less probability say nothing.
pub(crate) const LEAST: f32 = 0.02;
/// Pairs of the whole album that count beside those of two sides.
const SHRINK: f64 = 20.0;
/// Clusters from which [`cohesion`] is measured, the largest.
const COHESIVE: i64 = 4096;

/// What two sides are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Asked {
    /// Two people of the album.
    People,
    /// Parts of one person.
    Parts,
}

impl Asked {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Asked::People => "people",
            Asked::Parts => "parts",
        }
    }

    /// The coefficients of edges, similarity, the smaller and the larger size, and the constant.
    fn coefficients(self) -> [f64; 5] {
        match self {
            Asked::People => [0.602, 4.943, -0.793, 0.304, -5.431],
            Asked::Parts => [0.991, 2.122, 0.0, 0.619, -3.418],
        }
    }
}

/// What is known of two sides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Evidence {
    pub asked: Asked,
    pub sizes: [usize; 2],
    /// The mean probability of their edges.
    pub edges: f64,
    /// That of the most probable one.
    pub best: f32,
    /// The mean similarity between the sides, in units of that within them.
    pub similarity: f64,
}

impl Evidence {
    /// The evidence of the items of two sides; `cohesion` is that of the album.
    pub(crate) fn of(
        asked: Asked,
        records: &Records,
        centred: &Embeddings,
        cohesion: f64,
        sides: [&[u32]; 2],
    ) -> Self {
        let (edges, best) = edges_between(records, sides);
        let [one, other] = sides.map(|side| sum(centred, side));
        let sizes = sides.map(<[u32]>::len);
        Self { asked, sizes, edges, best, similarity: between([&one, &other], sizes, cohesion) }
    }

    /// The probability that the sides are one person, with what answers added to its logit.
    pub(crate) fn probability(&self, shift: f64) -> f64 {
        logistic(self.logit(shift))
    }

    /// The logit of [`probability`](Self::probability).
    pub(crate) fn logit(&self, shift: f64) -> f64 {
        let [edges, similarity, smaller, larger, constant] = self.asked.coefficients();
        let [one, other] = self.sizes.map(|size| (size.max(1) as f64).log2());
        constant
            + edges * logit(self.edges.clamp(0.01, 0.99))
            + similarity * self.similarity.clamp(-1.0, 2.0)
            + smaller * one.min(other)
            + larger * one.max(other)
            + shift
    }
}

/// The mean probability of the edges between two sides, and that of the most probable one.
pub(crate) fn edges_between(records: &Records, sides: [&[u32]; 2]) -> (f64, f32) {
    let sets: [HashSet<u32>; 2] = sides.map(|side| side.iter().copied().collect());
    let mut ends = Vec::new();
    for (side, other) in [(0, 1), (1, 0)] {
        for &slot in sides[side] {
            let edges = records.edges(slot).filter(|(there, p)| *p > LEAST && sets[other].contains(there));
            edges.for_each(|(there, p)| ends.extend([(slot, p), (there, p)]));
        }
    }
    ends.sort_unstable_by(most_probable_last);
    of_ends(&ends, |slot| sets[1].contains(&slot), sides.map(<[u32]>::len))
}

/// The order of the ends of edges, each with its probability: by item.
pub(crate) fn most_probable_last(a: &(u32, f32), b: &(u32, f32)) -> std::cmp::Ordering {
    a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
}

/// What [`edges_between`] says, from both ends of all edges between the sides, in order.
pub(crate) fn of_ends(ends: &[(u32, f32)], is_second: impl Fn(u32) -> bool, sizes: [usize; 2]) -> (f64, f32) {
    let (mut sums, mut best) = ([0.0; 2], 0.0f32);
    for of_item in ends.chunk_by(|a, b| a.0 == b.0) {
        let (slot, p) = of_item[of_item.len() - 1];
        sums[usize::from(is_second(slot))] += f64::from(p);
        best = best.max(p);
    }
    let mean = |side: usize| sums[side] / sizes[side].max(1) as f64;
    (mean(0).max(mean(1)), best)
}

/// The sum of some rows.
pub(crate) fn sum(rows: &Embeddings, slots: &[u32]) -> Vec<f32> {
    let mut sum = vec![0.0; rows.dim()];
    for &slot in slots {
        sum.iter_mut().zip(rows.row(slot as usize)).for_each(|(sum, v)| *sum += v);
    }
    sum
}

/// The mean similarity of items of different sides with these sums, in units of that of items of one side.
pub(crate) fn between(sums: [&[f32]; 2], sizes: [usize; 2], cohesion: f64) -> f64 {
    let mean = dot(sums[0], sums[1]) / (sizes[0] * sizes[1]).max(1) as f64;
    let [one, other] = [0, 1].map(|side| within(sums[side], sizes[side]));
    // Few pairs say little.
    let together = one.0 + other.0 + SHRINK * cohesion;
    mean / (together / (one.1 + other.1 + SHRINK)).max(1e-3)
}

/// The mean similarity of two rows of one cluster, of the largest clusters; labels are ordered by size.
pub(crate) fn cohesion(rows: &Embeddings, labels: &[i64]) -> f64 {
    let mut members: Vec<Vec<u32>> = Vec::new();
    for (&label, row) in labels.iter().zip(0..) {
        if label < COHESIVE {
            members.resize(members.len().max(label as usize + 1), Vec::new());
            members[label as usize].push(row);
        }
    }
    let (mut together, mut pairs) = (0.0, 0.0);
    for rows_of in &members {
        let (sum, count) = within(&sum(rows, rows_of), rows_of.len());
        together += sum;
        pairs += count;
    }
    if pairs > 0.0 { (together / pairs).max(1e-3) } else { 1.0 }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    f64::from(similarity(a, b))
}

/// The sum of the similarities of the pairs of so many rows of unit length with this sum, and the number of pairs.
fn within(sum: &[f32], count: usize) -> (f64, f64) {
    let count = count as f64;
    (dot(sum, sum) - count, count * (count - 1.0))
}

fn logit(p: f64) -> f64 {
    let p = p.clamp(1e-4, 1.0 - 1e-4);
    (p / (1.0 - p)).ln()
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// What the answers so far add to the logits of this kind: the maximum of sum log P(answer) - shift^2 / 2, by Newton's method.
pub(crate) fn shift(corrections: &Corrections, asked: Asked) -> f64 {
    let of_kind = corrections.0.iter().filter(|correction| correction.asked.as_deref() == Some(asked.name()));
    let answers: Vec<(f64, f64)> = of_kind
        .filter_map(|correction| Some((logit(correction.expected?), f64::from(u8::from(correction.same)))))
        .collect();
    let mut shift = 0.0;
    for _ in 0..20 {
        let (mut slope, mut bend) = (-shift, 1.0);
        for &(expected, answer) in &answers {
            let p = logistic(expected + shift);
            slope += answer - p;
            bend += p * (1.0 - p);
        }
        shift += slope / bend;
    }
    shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_similarity_of_sides_is_the_mean_of_all_pairs() {
        let rows = crate::tests::faces(6, 3).0;
        let sides: [Vec<u32>; 2] = [(0..4).collect(), (4..11).collect()];
        let mean = |pairs: Vec<(u32, u32)>| {
            let sum: f64 = pairs.iter().map(|&(a, b)| dot(rows.row(a as usize), rows.row(b as usize))).sum();
            (sum, pairs.len() as f64)
        };
        let pairs = |one: &[u32], other: &[u32]| -> Vec<(u32, u32)> {
            one.iter().flat_map(|&a| other.iter().map(move |&b| (a, b))).filter(|(a, b)| a != b).collect()
        };
        let across = mean(pairs(&sides[0], &sides[1]));
        let inside = [0, 1].map(|side| mean(pairs(&sides[side], &sides[side])));
        let unit = (inside[0].0 + inside[1].0 + SHRINK * 0.5) / (inside[0].1 + inside[1].1 + SHRINK);
        let expected = across.0 / across.1 / unit.max(1e-3);
        let [one, other] = [0, 1].map(|side| sum(&rows, &sides[side]));
        assert!((between([&one, &other], [4, 7], 0.5) - expected).abs() < 1e-4);
    }

    #[test]
    fn cohesion_is_the_mean_of_all_pairs_in_one_cluster() {
        let (rows, labels) = crate::tests::faces(5, 4);
        let (mut sum, mut count) = (0.0, 0.0);
        for a in 0..rows.len() {
            for b in (0..rows.len()).filter(|&b| b != a && labels[a] == labels[b]) {
                sum += dot(rows.row(a), rows.row(b));
                count += 1.0;
            }
        }
        assert!((cohesion(&rows, &labels) - sum / count).abs() < 1e-4);
        assert_eq!(cohesion(&rows, &(0..rows.len() as i64).collect::<Vec<_>>()), 1.0);
    }

    #[test]
    fn stronger_evidence_is_more_probable() {
        let weak = Evidence { asked: Asked::People, sizes: [3, 9], edges: 0.1, best: 0.2, similarity: 0.3 };
        let edges = Evidence { edges: 0.6, ..weak.clone() };
        let similar = Evidence { similarity: 0.9, ..weak.clone() };
        for stronger in [edges, similar] {
            assert!(stronger.probability(0.0) > weak.probability(0.0));
        }
        assert!(weak.probability(1.0) > weak.probability(0.0));
    }
}
