//! How well some rows are clustered, those of identities that were not trained on, say.
//!
//! The whole set is clustered, so that strangers are as near as they will be, but only some rows are judged: by the mean of
//! pairwise and BCubed F. BCubed is a mean over rows and so can be taken over some of them; pairs are counted that a judged
//! row is the first of. One of the two alone is a poor judge: BCubed hardly sees a large identity in two halves, pairs
//! hardly see small identities.
//!
//! Cost: O(N) for each clustering.

/// Labels that some rows are judged by.
#[derive(Debug, Clone)]
pub struct Judge {
    /// The identity of every row, numbered from 0.
    identities: Vec<u32>,
    /// Rows of each identity.
    sizes: Vec<u32>,
    /// The rows that are judged.
    rows: Vec<u32>,
}

impl Judge {
    /// Rows to judge, by the labels of all.
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

    /// The mean of pairwise and BCubed F; the clusters and identities that rows are compared with are those of all rows.
    pub fn score(&self, predicted: &[i64]) -> f64 {
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
        // Where there are no pairs none was claimed or missed, as in `metrics`.
        let share = |of: f64| if of == 0.0 { 1.0 } else { both / of };
        (harmonic(share(cluster), share(identity)) + harmonic(precision / rows, recall / rows)) / 2.0
    }
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
    fn rows_that_are_not_judged_still_spoil_clusters() {
        // Row 0 is judged; its cluster also holds a stranger.
        assert!((Judge::new(&[7, 9], vec![0]).score(&[1, 1]) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(Judge::new(&[7, 9], vec![0]).score(&[0, 1]), 1.0);
    }
}
