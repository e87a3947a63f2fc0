//! Which cluster a new row belongs to, from its edges to rows that are clustered.
//!
//! For each cluster C that the row has edges to, m(C) is the mean probability of its three best edges there, or of as many as C has
//! rows. The row belongs to one cluster or to none, so
//!
//! ```text
//! P(C) = o(C) / (1 + sum o),   P(none) = 1 / (1 + sum o),   o = 0.06 (m / (1 - m))^2
//! ```
//!
//! A new row of an identity that is not there has probable edges, too, to whatever is nearest, so m itself is far too high. The two
//! numbers are a logistic regression on synthetic sets and faces with known identities, of which a third of the new rows had none in
//! the set (`bench/calibrate_predict.py`).
//!
//! Cost: O(K log K) for K edges.

use std::collections::BTreeMap;

/// The edges that count.
const BEST: usize = 3;
/// Odds are bounded: 1 - m is at least this.
const LEAST_DOUBT: f64 = 1e-6;
/// The odds of a cluster against none if m is a half.
const EVEN: f64 = 0.06;

/// Where a row may belong.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment<C> {
    /// The clusters that it has edges to and their probabilities, the most probable first, ties by smaller cluster.
    pub candidates: Vec<(C, f64)>,
    /// The probability that it belongs to none.
    pub none: f64,
}

/// Where a row with these edges may belong: each leads to a row of a cluster and has a probability. `size_of` is the number of rows
/// of a cluster.
///
/// ```
/// use kinfolk::assign;
/// // Three edges into cluster 7 and a weak one into cluster 9, of five rows each.
/// let found = assign([(7, 0.9), (7, 0.9), (9, 0.1), (7, 0.9)], |_| 5);
/// let odds = [0.06 * 9.0 * 9.0, 0.06 / (29.0 * 29.0)];
/// assert_eq!(found.candidates[0].0, 7);
/// assert!((found.candidates[0].1 - odds[0] / (1.0 + odds[0] + odds[1])).abs() < 1e-6);
/// ```
pub fn assign<C: Ord + Copy>(
    edges: impl IntoIterator<Item = (C, f32)>,
    size_of: impl Fn(C) -> usize,
) -> Assignment<C> {
    let mut of_cluster: BTreeMap<C, Vec<f32>> = BTreeMap::new();
    edges.into_iter().for_each(|(cluster, p)| of_cluster.entry(cluster).or_default().push(p));
    let odds = |(cluster, mut probabilities): (C, Vec<f32>)| {
        probabilities.sort_unstable_by(|a, b| b.total_cmp(a));
        // A row that is not among the neighbours has an edge of no probability.
        let count = BEST.min(size_of(cluster)).max(1);
        let mean = probabilities.iter().take(count).map(|&p| f64::from(p)).sum::<f64>() / count as f64;
        (cluster, EVEN * (mean / (1.0 - mean).max(LEAST_DOUBT)).powi(2))
    };
    let mut candidates: Vec<(C, f64)> = of_cluster.into_iter().map(odds).collect();
    candidates.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let all = 1.0 + candidates.iter().map(|candidate| candidate.1).sum::<f64>();
    candidates.iter_mut().for_each(|candidate| candidate.1 /= all);
    Assignment { candidates, none: 1.0 / all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_row_without_edges_belongs_to_none() {
        assert_eq!(assign([], |_: i64| 1), Assignment { candidates: Vec::new(), none: 1.0 });
    }

    #[test]
    fn one_edge_into_a_large_cluster_says_less_than_into_a_small_one() {
        let found = assign([(0, 0.9), (1, 0.9)], |cluster| if cluster == 0 { 30 } else { 1 });
        assert_eq!(found.candidates[0].0, 1);
        assert!(found.candidates[0].1 > found.none && found.candidates[1].1 < found.none);
    }

    proptest! {
        #[test]
        fn probabilities_add_up_and_descend(edges in prop::collection::vec((0i64..5, 0.0f32..=1.0), 0..40), size in 1usize..9) {
            let found = assign(edges.clone(), |_| size);
            let sum = found.none + found.candidates.iter().map(|candidate| candidate.1).sum::<f64>();
            prop_assert!((sum - 1.0).abs() < 1e-9);
            prop_assert!(found.candidates.windows(2).all(|pair| pair[0].1 >= pair[1].1));
            let mut backwards = edges;
            backwards.reverse();
            prop_assert_eq!(found, assign(backwards, |_| size));
        }
    }
}
