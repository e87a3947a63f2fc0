//! Where to cut, judged by identities that were not trained on.
//!
//! The whole set is clustered, so that strangers are as near as they will be, but only held-out rows are judged: by
//! BCubed F, which is a mean over rows and so can be taken over some of them.
//!
//! Cost: O(N) for each tau that is tried.

use kinfolk::Links;
use rayon::prelude::*;

/// Labels that some rows are judged by.
pub(super) struct Judge {
    /// The identity of every row, numbered from 0.
    identities: Vec<u32>,
    /// Rows of each identity.
    sizes: Vec<u32>,
    /// The rows that are judged.
    rows: Vec<u32>,
}

impl Judge {
    pub(super) fn new(labels: &[i64], rows: Vec<u32>) -> Self {
        let mut known = labels.to_vec();
        known.sort_unstable();
        known.dedup();
        let number = |label| known.binary_search(label).unwrap_or_default() as u32;
        let identities: Vec<u32> = labels.iter().map(number).collect();
        let mut sizes = vec![0; known.len()];
        identities.iter().for_each(|&identity| sizes[identity as usize] += 1);
        Judge { identities, sizes, rows }
    }

    /// The tau, from 0 to 0.98 by 0.02, of the best BCubed F, and that F. The middle of several that are equal.
    pub(super) fn best_tau(&self, links: &Links) -> (f32, f64) {
        let score = |step| {
            let tau = step as f32 * 0.02;
            (tau, self.bcubed(&links.cut(tau)))
        };
        let scores: Vec<(f32, f64)> = (0..50).into_par_iter().map(score).collect();
        let best = scores.iter().fold(0.0f64, |m, s| m.max(s.1));
        let equal: Vec<f32> = scores.iter().filter(|s| s.1 == best).map(|s| s.0).collect();
        (equal[equal.len() / 2], best)
    }

    /// BCubed F; the clusters and identities that rows are compared with are those of all rows.
    fn bcubed(&self, predicted: &[i64]) -> f64 {
        // Rows sorted by cluster: a cluster's rows of each identity are then counted one cluster at a time.
        let clusters = predicted.iter().max().map_or(0, |&last| last as usize + 1);
        let mut starts = vec![0u32; clusters + 1];
        predicted.iter().for_each(|&p| starts[p as usize + 1] += 1);
        for p in 0..clusters {
            starts[p + 1] += starts[p];
        }
        let mut next = starts.clone();
        let mut members = vec![0u32; predicted.len()];
        for (row, &p) in predicted.iter().enumerate() {
            members[next[p as usize] as usize] = row as u32;
            next[p as usize] += 1;
        }
        let mut judged = vec![false; predicted.len()];
        self.rows.iter().for_each(|&row| judged[row as usize] = true);
        let mut together = vec![0u32; self.sizes.len()];
        let (mut precision, mut recall) = (0.0, 0.0);
        for range in starts.windows(2) {
            let members = &members[range[0] as usize..range[1] as usize];
            let identity = |&row: &u32| self.identities[row as usize] as usize;
            members.iter().for_each(|row| together[identity(row)] += 1);
            for row in members.iter().filter(|&&row| judged[row as usize]) {
                let count = together[identity(row)] as f64;
                precision += count / members.len() as f64;
                recall += count / self.sizes[identity(row)] as f64;
            }
            members.iter().for_each(|row| together[identity(row)] = 0);
        }
        // 2PR / (P + R), with both sums still to be divided by the number of rows.
        if precision + recall == 0.0 {
            return 0.0;
        }
        2.0 * precision * recall / (precision + recall) / self.rows.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_all_rows_it_is_the_metric() {
        let truth = [0, 0, 0, 1, 1, 2, 2, 2, 2];
        let predicted = [0, 0, 1, 1, 1, 2, 2, 3, 3];
        let rows: Vec<u32> = (0..9).collect();
        let expected = kinfolk::metrics::evaluate(&truth, &predicted).unwrap().bcubed.f;
        assert!((Judge::new(&truth, rows).bcubed(&predicted) - expected).abs() < 1e-12);
    }

    #[test]
    fn rows_that_are_not_judged_still_spoil_clusters() {
        // Row 0 is judged; its cluster also holds a stranger.
        assert!((Judge::new(&[7, 9], vec![0]).bcubed(&[1, 1]) - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(Judge::new(&[7, 9], vec![0]).bcubed(&[0, 1]), 1.0);
    }

    #[test]
    fn tau_separates_strong_links_from_weak() {
        // 0-1 and 2-3 belong together (0.8); 1-2 do not (0.5).
        let links = Links::from_parts(
            vec![1.0, 0.9, 0.8, 0.7],
            1,
            vec![Links::NONE, 0, 1, 2],
            vec![0.0, 0.8, 0.5, 0.8],
        )
        .unwrap();
        let (tau, f) = Judge::new(&[0, 0, 1, 1], vec![0, 1, 2, 3]).best_tau(&links);
        assert_eq!(f, 1.0);
        assert!((0.5..0.8).contains(&tau), "{tau}");
    }
}
