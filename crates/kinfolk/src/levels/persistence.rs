//! The lives of clusters, the persistence of cuts, and which of them are offered.
//!
//! Cost: O(N), in one pass over the merges.

use super::branches::lives;
use super::{Level, MergeTree};
use std::collections::VecDeque;

/// The largest number of levels.
const MOST: usize = 8;

/// A level is the best within this distance, in octaves.
const WINDOW: f64 = 1.0;

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

/// The default and the most persistent other levels, fine to coarse.
pub(super) fn levels(tree: &MergeTree) -> Vec<Level> {
    let curve = curve(tree);
    let clusters = |height: f64| tree.rows - tree.merges_up_to(height);
    let at_default =
        curve[..curve.partition_point(|point| point.0 <= 0.0)].last().map_or(0.0, |point| point.1);
    let default = Level { height: 0.0, clusters: clusters(0.0), persistence: at_default, default: true };
    let mut others: Vec<Level> = maxima(&curve)
        .into_iter()
        .map(|(height, persistence)| Level {
            height,
            clusters: clusters(height),
            persistence,
            default: false,
        })
        .filter(|level| {
            level.height.abs() >= WINDOW && level.persistence > 0.0 && level.clusters != default.clusters
        })
        .collect();
    others.sort_by(|a, b| b.persistence.total_cmp(&a.persistence).then(a.height.total_cmp(&b.height)));
    others.truncate(MOST - 1);
    others.push(default);
    others.sort_by(|a, b| a.height.total_cmp(&b.height));
    others
}

/// The points that no other within the window surpasses, of equals the first.
fn maxima(curve: &[(f64, f64)]) -> Vec<(f64, f64)> {
    // Points of the window that are greater than all before them and at least as great as all after them.
    let mut best: VecDeque<usize> = VecDeque::new();
    let mut next = 0;
    let mut found = Vec::new();
    for (at, &(height, _)) in curve.iter().enumerate() {
        while next < curve.len() && curve[next].0 <= height + WINDOW {
            while best.back().is_some_and(|&last| curve[last].1 < curve[next].1) {
                best.pop_back();
            }
            best.push_back(next);
            next += 1;
        }
        while best.front().is_some_and(|&first| curve[first].0 < height - WINDOW) {
            best.pop_front();
        }
        if best.front() == Some(&at) {
            found.push(curve[at]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_maximum_is_surpassed_by_nothing_near(steps in prop::collection::vec((1u8..20, 0u8..6), 0..30)) {
            let mut height = 0.0;
            let curve: Vec<(f64, f64)> = steps
                .iter()
                .map(|&(step, value)| {
                    height += f64::from(step) / 16.0;
                    (height, f64::from(value))
                })
                .collect();
            let slow = curve.iter().enumerate().filter(|&(at, point)| {
                curve.iter().enumerate().all(|(other, near)| {
                    (near.0 - point.0).abs() > WINDOW || near.1 < point.1 || near.1 == point.1 && other >= at
                })
            });
            prop_assert_eq!(maxima(&curve), slow.map(|(_, &point)| point).collect::<Vec<_>>());
        }
    }
}
