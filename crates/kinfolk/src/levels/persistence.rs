//! The lives of clusters, the persistence of cuts, and which of them are offered.
//!
//! A cut is offered if its persistence is a peak: whoever walks along the heights to a more persistent cut, or to the end, must
//! first descend by a part of it, the prominence. Noise makes peaks too, but low ones. Of peaks less than an octave apart the
//! more prominent one is offered. A cut that puts most of the rows into one cluster says nothing about them, and is not
//! offered.
//!
//! Cost: O(N), in one pass over the merges.

use super::branches::lives;
use super::{Level, MergeTree};

/// The largest number of levels.
const MOST: usize = 8;

/// The least distance of two levels, in octaves.
const APART: f64 = 1.0;

/// The least prominence of a peak, as a share of the greatest persistence.
const LEAST: f64 = 0.01;

/// The persistence after the last merge of every height.
pub(super) fn curve(tree: &MergeTree) -> Vec<(f64, f64)> {
    let lives = lives(tree);
    let mut sum = 0.0;
    let mut curve: Vec<(f64, f64)> = Vec::new();
    for (at, (&[a, b], &height)) in tree.merges.iter().zip(&tree.heights).enumerate() {
        sum += lives.of_rows(tree.rows + at) - lives.of_rows(a as usize) - lives.of_rows(b as usize);
        let persistence = (sum / tree.rows as f64).max(0.0);
        match curve.last_mut() {
            Some(last) if last.0 == height => last.1 = persistence,
            _ => curve.push((height, persistence)),
        }
    }
    curve
}

/// The default and the most prominent other levels, fine to coarse.
pub(super) fn levels(tree: &MergeTree) -> Vec<Level> {
    let curve = curve(tree);
    let clusters = |height: f64| tree.rows - tree.merges_up_to(height);
    let at_default =
        curve[..curve.partition_point(|point| point.0 <= 0.0)].last().map_or(0.0, |point| point.1);
    let default = Level { height: 0.0, clusters: clusters(0.0), persistence: at_default, default: true };
    // Sizes only grow, so that the first merge that makes a cluster too large ends all that can be offered.
    let too_large = tree.sizes().iter().skip(tree.rows).position(|&size| 2 * size as usize > tree.rows);
    let end = too_large.map_or(f64::INFINITY, |merge| tree.heights[merge]);
    let least = LEAST * curve.iter().map(|point| point.1).fold(0.0, f64::max);
    let mut peaks: Vec<(f64, Level)> = curve
        .iter()
        .zip(prominences(&curve))
        .filter(|((height, _), prominence)| *height < end && *prominence > 0.0 && *prominence >= least)
        .map(|(&(height, persistence), prominence)| {
            (prominence, Level { height, clusters: clusters(height), persistence, default: false })
        })
        .filter(|(_, level)| level.clusters != default.clusters)
        .collect();
    peaks.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.height.total_cmp(&b.1.height)));
    let mut levels = vec![default];
    for (_, level) in peaks {
        let is_apart = levels.iter().all(|other: &Level| (other.height - level.height).abs() >= APART);
        if is_apart && levels.len() < MOST {
            levels.push(level);
        }
    }
    levels.sort_by(|a, b| a.height.total_cmp(&b.height));
    levels
}

/// How far one must descend from each point to reach a greater one, of equals the first, or an end of the curve, where it is 0.
fn prominences(curve: &[(f64, f64)]) -> Vec<f64> {
    let left = bases(curve.iter().map(|point| point.1), |before, value| before >= value);
    let mut right = bases(curve.iter().rev().map(|point| point.1), |after, value| after > value);
    right.reverse();
    let bases = left.into_iter().zip(right).map(|(left, right)| left.max(right));
    curve.iter().zip(bases).map(|(point, base)| point.1 - base).collect()
}

/// The least value since the last one that surpasses it, for each value; 0 where none does.
fn bases(values: impl Iterator<Item = f64>, surpasses: impl Fn(f64, f64) -> bool) -> Vec<f64> {
    // Values that may surpass a later one, and the least since the one before in this list.
    let mut open: Vec<(f64, f64)> = Vec::new();
    let base = |value: f64| {
        let mut least = value;
        while let Some((_, since)) = open.pop_if(|before| !surpasses(before.0, value)) {
            least = least.min(since);
        }
        let base = if open.is_empty() { 0.0 } else { least };
        open.push((value, least));
        base
    };
    values.map(base).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By walking from each point in both directions.
    fn slow(values: &[f64]) -> Vec<f64> {
        let base = |at: usize, walk: &mut dyn Iterator<Item = usize>| {
            let mut least = values[at];
            for to in walk {
                if values[to] > values[at] || values[to] == values[at] && to < at {
                    return least;
                }
                least = least.min(values[to]);
            }
            0.0
        };
        let all = 0..values.len();
        all.map(|at| values[at] - base(at, &mut (0..at).rev()).max(base(at, &mut (at + 1..values.len()))))
            .collect()
    }

    proptest! {
        #[test]
        fn prominence_is_what_one_descends(values in prop::collection::vec((0u8..8).prop_map(f64::from), 0..30)) {
            let curve: Vec<(f64, f64)> = values.iter().enumerate().map(|(at, &value)| (at as f64, value)).collect();
            prop_assert_eq!(prominences(&curve), slow(&values));
        }
    }
}
