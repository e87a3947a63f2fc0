//! How probable it is that two rows of a cluster are of one identity.
//!
//! The mean probability of the edges inside a cluster is not the answer. Edges join the nearest rows, the clusters were
//! chosen by the same probabilities, and the probabilities of one cluster err together: a cluster of look-alikes is wrong
//! as a whole. Two figures of a cluster c tell the two cases apart,
//!
//! - e, the mean probability of all listed edges inside, weak ones included,
//! - s, the share of the probability of all its rows' edges that stays inside,
//!
//! and two rows of c are of one identity with the probability
//!
//! ```text
//! logit p = -2.3 + 1.8 logit e + 0.35 logit s
//! ```
//!
//! The three numbers are a logistic regression on the clusters of six labelled sets and two synthetic ones, each set with
//! the same weight. `docs/experiments/pseudo-labels.md` compares expected and true precision, also on other sets.
//!
//! Cost: O(N K), each cluster on one thread; 24 bytes for each cluster.

use super::spanning::members;
use crate::KnnGraph;
use rayon::prelude::*;

/// The intercept and the weights of logit e and logit s.
const REGRESSION: [f64; 3] = [-2.3, 1.8, 0.35];

/// Means and shares are kept this far from 0 and 1, whose logits are infinite.
const MARGIN: f64 = 1e-3;

/// The edges of the rows of a cluster, summed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cohesion {
    /// The number of listed edges between rows of the cluster; an edge that both rows list counts twice.
    pub edges: u64,
    /// The sum of their probabilities.
    pub inside: f64,
    /// The sum of the probabilities of the edges to rows of other clusters.
    pub leaving: f64,
}

impl Cohesion {
    /// Those of all clusters.
    pub(super) fn of_clusters(graph: &KnnGraph, probabilities: &[f32], labels: &[i64]) -> Vec<Self> {
        let clusters = members(labels);
        let rows: Vec<&[u32]> = clusters.rows().collect();
        rows.into_par_iter().map(|rows| Self::of(graph, probabilities, labels, rows)).collect()
    }

    fn of(graph: &KnnGraph, probabilities: &[f32], labels: &[i64], rows: &[u32]) -> Self {
        let mut sums = Cohesion::default();
        for row in rows.iter().map(|&row| row as usize) {
            for (&other, &p) in graph.neighbours(row).0.iter().zip(&probabilities[row * graph.k()..]) {
                if labels[other as usize] == labels[row] {
                    sums.edges += 1;
                    sums.inside += f64::from(p);
                } else {
                    sums.leaving += f64::from(p);
                }
            }
        }
        sums
    }

    /// The probability that two rows of the cluster are of one identity. A cluster of one row has no pair that could be
    /// wrong: 1.
    pub fn probability(&self) -> f32 {
        if self.edges == 0 {
            return 1.0;
        }
        let logit = |share: f64| {
            let share = share.clamp(MARGIN, 1.0 - MARGIN);
            (share / (1.0 - share)).ln()
        };
        // Edges without any probability stay nowhere.
        let all = (self.inside + self.leaving).max(f64::MIN_POSITIVE);
        let [intercept, of_mean, of_share] = REGRESSION;
        let logit = intercept
            + of_mean * logit(self.inside / self.edges as f64)
            + of_share * logit(self.inside / all);
        (1.0 / (1.0 + (-logit).exp())) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{large_graph, on_one_and_three_threads};

    #[test]
    fn edges_are_counted_where_they_are_listed() {
        // 0 lists 1 and 2, 1 lists 2 and 3, 2 lists 0 and 1, 3 lists 0 and 1.
        let ids = vec![1, 2, 2, 3, 0, 1, 0, 1];
        let graph = KnnGraph::from_parts(4, 2, ids, [0.9, 0.5].repeat(4), "test").unwrap();
        let probabilities = [0.5, 0.25, 0.5, 0.125, 0.25, 0.5, 0.25, 0.125];
        let found = Cohesion::of_clusters(&graph, &probabilities, &[0, 0, 0, 1]);
        let expected = [
            Cohesion { edges: 5, inside: 2.0, leaving: 0.125 },
            Cohesion { edges: 0, inside: 0.0, leaving: 0.375 },
        ];
        assert_eq!(found, expected);
        assert_eq!(found[1].probability(), 1.0);
    }

    #[test]
    fn more_probable_edges_and_fewer_that_leave_are_more_probable() {
        let probability = |inside, leaving| Cohesion { edges: 10, inside, leaving }.probability();
        let ordered =
            [probability(0.0, 0.0), probability(5.0, 5.0), probability(5.0, 0.0), probability(9.0, 0.0)];
        assert!(ordered.is_sorted() && ordered[0] > 0.0 && ordered[3] < 1.0, "{ordered:?}");
        assert!(probability(10.0, 0.0) > 0.99);
        // By hand: logit 0.9 = 2.1972, and once more for the share.
        assert!((probability(9.0, 1.0) - 1.0 / (1.0 + (2.3 - 2.15 * 2.1972f32).exp())).abs() < 1e-4);
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let graph = large_graph(4000, 10);
        let probabilities: Vec<f32> = (0..40_000).map(|i| (i * 7 % 50) as f32 / 50.0).collect();
        let labels: Vec<i64> = (0..4000).map(|i| i * i % 60).collect();
        let [one, three] =
            on_one_and_three_threads(|| Cohesion::of_clusters(&graph, &probabilities, &labels));
        assert_eq!(one, three);
    }
}
