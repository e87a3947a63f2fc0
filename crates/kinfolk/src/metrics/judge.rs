//! Scores of a subset of the rows, for example those of held-out identities.
//!
//! The whole set is clustered, so that rows of different identities are as near as in use, but only some rows are scored, by
//! the mean of pairwise and BCubed F. BCubed is a mean over rows, so it can be restricted to some of them; of pairs, those
//! count whose first row is scored. Neither score is sufficient alone: BCubed hardly changes if a large identity is split in
//! two, and pairwise F hardly depends on small identities.
//!
//! Cost: O(N) for each clustering.

/// True labels, and the rows to score.
#[derive(Debug, Clone)]
pub struct Judge {
    /// The identity of every row, numbered from 0.
    identities: Vec<u32>,
    /// Rows of each identity.
    sizes: Vec<u32>,
    /// The rows that are scored.
    rows: Vec<u32>,
}

impl Judge {
    /// Rows to score, and the labels of all rows.
    pub fn new(labels: &[i64], rows: Vec<u32>) -> Self {
        let mut known = labels.to_vec();
        known.sort_unstable();
        known.dedup();
        let number = |label| known.binary_search(label).unwrap_or_default() as u32;
        let identities: Vec<u32> = labels.iter().map(number).collect();
        let mut sizes = vec![0; known.len()];
        identities.iter().for_each(|&identity| sizes[identity as usize] += 1);
        Judge { identities, sizes, rows }
    }

    /// The mean of pairwise and BCubed F of the scored rows, within the clusters and identities of all rows. A row with a
    /// negative label, which is noise, is a cluster of its own.
    ///
    /// # Panics
    /// When there is not one label for each row.
    pub fn score(&self, predicted: &[i64]) -> f64 {
        assert_eq!(predicted.len(), self.identities.len(), "one label for each row");
        let (predicted, clusters) = numbered(predicted);
        // Rows sorted by cluster: a cluster's rows of each identity are then counted one cluster at a time.
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
        // Pairs of rows: in both, in a cluster, in an identity.
        let mut pairs = [0u64; 3];
        for range in starts.windows(2) {
            let members = &members[range[0] as usize..range[1] as usize];
            let identity = |&row: &u32| self.identities[row as usize] as usize;
            members.iter().for_each(|row| together[identity(row)] += 1);
            for row in members.iter().filter(|&&row| judged[row as usize]) {
                let counts = [together[identity(row)], members.len() as u32, self.sizes[identity(row)]];
                precision += f64::from(counts[0]) / f64::from(counts[1]);
                recall += f64::from(counts[0]) / f64::from(counts[2]);
                pairs.iter_mut().zip(counts).for_each(|(pairs, count)| *pairs += u64::from(count) - 1);
            }
            members.iter().for_each(|row| together[identity(row)] = 0);
        }
        let rows = self.rows.len() as f64;
        let [both, cluster, identity] = pairs.map(|count| count as f64);
        // A ratio of 0/0 counts as 1, as in `metrics`.
        let share = |of: f64| if of == 0.0 { 1.0 } else { both / of };
        (harmonic(share(cluster), share(identity)) + harmonic(precision / rows, recall / rows)) / 2.0
    }
}

/// Clusters numbered from 0 in the order of their labels, then a number for each row of noise; and how many there are at most.
fn numbered(labels: &[i64]) -> (Vec<u32>, usize) {
    let most = labels.iter().max().map_or(0, |&last| if last < 0 { 0 } else { last as u64 + 1 });
    let (mut numbers, mut clusters): (Vec<u32>, u32) =
        if most <= (4 * labels.len() as u64 + 1024).min(1 << 31) {
            (labels.iter().map(|&label| label as u32).collect(), most as u32)
        } else {
            // A table of this size would be mostly empty.
            let mut known: Vec<i64> = labels.iter().copied().filter(|&label| label >= 0).collect();
            known.sort_unstable();
            known.dedup();
            let rank = |label: &i64| known.binary_search(label).unwrap_or_default() as u32;
            (labels.iter().map(rank).collect(), known.len() as u32)
        };
    for (number, _) in numbers.iter_mut().zip(labels).filter(|(_, label)| **label < 0) {
        *number = clusters;
        clusters += 1;
    }
    (numbers, clusters as usize)
}

fn harmonic(precision: f64, recall: f64) -> f64 {
    if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_all_rows_it_is_the_mean_of_the_metrics() {
        let truth = [0, 0, 0, 1, 1, 2, 2, 2, 2];
        let predicted = [0, 0, 1, 1, 1, 2, 2, 3, 3];
        let rows: Vec<u32> = (0..9).collect();
        let scores = crate::metrics::evaluate(&truth, &predicted).unwrap();
        let expected = (scores.pairwise.f + scores.bcubed.f) / 2.0;
        assert!((Judge::new(&truth, rows).score(&predicted) - expected).abs() < 1e-12);
    }

    #[test]
    fn noise_is_a_cluster_for_each_row() {
        let truth = [0, 0, 0, 1, 1, 2];
        let rows: Vec<u32> = (0..6).collect();
        let judge = Judge::new(&truth, rows);
        // Whatever the negative label is, and whichever rows share it.
        for noise in [[-1, -1, -1], [-1, -7, i64::MIN]] {
            let [a, b, c] = noise;
            assert_eq!(judge.score(&[0, 0, a, 1, b, c]), judge.score(&[0, 0, 2, 1, 3, 4]));
        }
        assert_eq!(judge.score(&[-1; 6]), judge.score(&[0, 1, 2, 3, 4, 5]));
    }

    #[test]
    fn labels_may_be_any_large_numbers() {
        let judge = Judge::new(&[0, 0, 1, 1], vec![0, 1, 2, 3]);
        assert_eq!(judge.score(&[i64::MAX, i64::MAX, 7, -3]), judge.score(&[1, 1, 0, 2]));
    }

    #[test]
    fn rows_that_are_not_judged_still_spoil_clusters() {
        // Row 0 is scored; its cluster also contains a row of another identity.
        assert!((Judge::new(&[7, 9], vec![0]).score(&[1, 1]) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(Judge::new(&[7, 9], vec![0]).score(&[0, 1]), 1.0);
    }
}
