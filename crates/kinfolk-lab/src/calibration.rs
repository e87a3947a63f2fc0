//! Whether edge probabilities mean what they say: of all edges with probability p, a share of p should join one identity.
//!
//! - Relatives: the mean over rows of the number of neighbours of the same identity, expected (the sum of the probabilities of
//!   the row's edges) and true. Expected below true splits identities, above true mixes them.
//! - Reliability: edges in ten bins by probability, with the mean probability and the share of true edges of each.
//! - Calibration error: the mean over edges of the difference of the two within a bin (Naeini, Cooper and Hauskrecht, 2015).
//! - Loss: the mean cross-entropy, in nats.

use kinfolk::KnnGraph;

/// Bins of the reliability diagram.
pub const BINS: usize = 10;

/// Sums over edges.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calibration {
    edges: [f64; BINS],
    expected: [f64; BINS],
    same: [f64; BINS],
    loss: f64,
    rows: f64,
}

impl Calibration {
    /// Of the edges of a graph, whose probabilities are N x K.
    pub fn of<T: PartialEq>(graph: &KnnGraph, probabilities: &[f32], labels: &[T]) -> Self {
        let mut sums = Calibration { rows: graph.len() as f64, ..Calibration::default() };
        for (i, label) in labels.iter().enumerate() {
            let row = &probabilities[i * graph.k()..][..graph.k()];
            for (&j, &p) in graph.neighbours(i).0.iter().zip(row) {
                sums.add(f64::from(p), *label == labels[j as usize]);
            }
        }
        sums
    }

    /// Adds the edges of another set.
    pub fn merge(&mut self, other: &Self) {
        for (sums, others) in [
            (&mut self.edges, &other.edges),
            (&mut self.expected, &other.expected),
            (&mut self.same, &other.same),
        ] {
            sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
        }
        self.loss += other.loss;
        self.rows += other.rows;
    }

    fn add(&mut self, p: f64, same: bool) {
        let bin = ((p * BINS as f64) as usize).min(BINS - 1);
        self.edges[bin] += 1.0;
        self.expected[bin] += p;
        self.same[bin] += f64::from(u8::from(same));
        // A certain error would cost infinitely much; a probability has about seven digits.
        self.loss -= if same { p } else { 1.0 - p }.max(1e-7).ln();
    }

    fn count(&self) -> f64 {
        self.edges.iter().sum::<f64>().max(1.0)
    }

    /// Expected and true neighbours of the same identity, per row.
    pub fn relatives(&self) -> [f64; 2] {
        [&self.expected, &self.same].map(|sums| sums.iter().sum::<f64>() / self.rows.max(1.0))
    }

    /// The calibration error, from 0 to 1.
    pub fn error(&self) -> f64 {
        let differences =
            self.expected.iter().zip(&self.same).map(|(expected, same)| (expected - same).abs());
        differences.sum::<f64>() / self.count()
    }

    /// Mean cross-entropy in nats.
    pub fn loss(&self) -> f64 {
        self.loss / self.count()
    }

    /// For each bin with edges: the mean probability, the share of true edges, and the number of edges.
    pub fn reliability(&self) -> Vec<[f64; 3]> {
        let bins = (0..BINS).filter(|&bin| self.edges[bin] > 0.0);
        bins.map(|bin| {
            let edges = self.edges[bin];
            [self.expected[bin] / edges, self.same[bin] / edges, edges]
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_that_hold_have_no_error() {
        let graph = KnnGraph::from_parts(3, 2, vec![1, 2, 0, 2, 0, 1], vec![0.5; 6], "test").unwrap();
        let of = |probabilities: [f32; 6]| Calibration::of(&graph, &probabilities, &["a", "a", "b"]);
        let right = of([1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!((right.error(), right.relatives()), (0.0, [2.0 / 3.0; 2]));
        assert!(right.loss() < 1e-6);
        // Two of six edges join one identity.
        let even = of([1.0 / 3.0; 6]);
        assert!(even.error() < 1e-6 && even.loss() > 0.6);
        let reliability = even.reliability();
        assert_eq!((reliability.len(), reliability[0][2]), (1, 6.0));
        assert!((reliability[0][0] - reliability[0][1]).abs() < 1e-6);
        let wrong = of([0.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(wrong.error(), 1.0);
        assert!(wrong.loss() > 10.0);
        let mut both = right;
        both.merge(&wrong);
        assert_eq!((both.error(), both.relatives()), (0.5, [1.0, 2.0 / 3.0]));
    }
}
