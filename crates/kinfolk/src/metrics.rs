//! Scores that compare predicted clusters with true identities: pairwise F, BCubed F, NMI.
//!
//! With n_tp the rows of identity t in cluster p, a_t the rows of t, b_p the rows of p and N all rows:
//!
//! - Pairwise (Section 4.1): a pair is two rows. precision = sum n_tp (n_tp - 1) / sum b_p (b_p - 1), recall
//!   = the same over sum a_t (a_t - 1).
//! - BCubed (Amigo et al. 2009): precision = (1/N) sum n_tp^2 / b_p, recall = (1/N) sum n_tp^2 / a_t: the mean
//!   over rows of the share of a row's cluster that has its identity, and of its identity that is in its cluster.
//! - NMI: mutual information over the arithmetic mean of the two entropies, as scikit-learn does by default.
//!
//! F is the harmonic mean of precision and recall, 0 when both are 0.
//!
//! A ratio of 0/0 counts as 1, because no pair is wrong: pairwise precision if no two rows share a cluster, pairwise recall if
//! no two share an identity. NMI is 1 if both sides are a single group, 0 if they share no information.
//!
//! Pairs are counted exactly: rows are fewer than 2^32, so pairs and sums of squares are below 2^64.
//!
//! Cost: O(N) time; at most about 50 bytes per row.

mod judge;

pub use judge::Judge;

use crate::labels::densify;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Precision, recall and their harmonic mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fscore {
    /// The share of what is in one cluster that is of one identity.
    pub precision: f64,
    /// The share of what is of one identity that is in one cluster.
    pub recall: f64,
    /// Harmonic mean of the two.
    pub f: f64,
}

impl Fscore {
    fn new(precision: f64, recall: f64) -> Self {
        let sum = precision + recall;
        Self { precision, recall, f: if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 } }
    }
}

/// The result of [`evaluate`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Scores {
    /// Over pairs of rows; dominated by large clusters.
    pub pairwise: Fscore,
    /// Over rows; weighs clusters by their size.
    pub bcubed: Fscore,
    /// Normalised mutual information, arithmetic.
    pub nmi: f64,
    /// Rows compared.
    pub rows: u64,
    /// Different true labels.
    pub identities: u64,
    /// Different predicted labels.
    pub clusters: u64,
    /// Predicted clusters of one row.
    pub singletons: u64,
    /// Rows of the largest predicted cluster.
    pub largest: u64,
    /// Pairs of rows.
    pub pairs: PairCounts,
}

/// Pairs of rows, counted exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCounts {
    /// In one cluster and of one identity.
    pub both: u64,
    /// Of one identity.
    #[serde(rename = "true")]
    pub truth: u64,
    /// In one cluster.
    pub predicted: u64,
}

/// Compares predicted labels with true ones. Labels are arbitrary integers, of which only equality matters. This includes
/// negative ones: noise rows, which share the label -1, count as one cluster, as in scikit-learn.
///
/// Fails when the two do not have the same length, or are empty.
///
/// ```
/// let scores = kinfolk::metrics::evaluate(&[0, 0, 0, 1, 1], &[5, 5, 9, 9, 9])?;
/// assert_eq!(scores.pairs.both, 2);
/// assert_eq!(scores.pairwise.precision, 0.5);
/// assert_eq!(scores.pairwise.recall, 0.5);
/// assert_eq!((scores.identities, scores.clusters, scores.largest), (2, 2, 3));
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn evaluate(truth: &[i64], predicted: &[i64]) -> Result<Scores> {
    let length = |what: &str, expected, found| Error::Length {
        place: "predicted labels".to_owned(),
        what: what.to_owned(),
        expected,
        found,
    };
    if truth.len() != predicted.len() {
        return Err(length("labels (one per true label)", truth.len(), predicted.len()));
    }
    if truth.is_empty() {
        return Err(length("or more labels", 1, 0));
    }
    let (truth, predicted) = rayon::join(|| densify(truth), || densify(predicted));
    let rows = truth.labels.len() as u64;
    let n = rows as f64;

    let squares = |sizes: &[u32]| sizes.iter().map(|&s| s as u64 * s as u64).sum::<u64>();
    let entropy = |sizes: &[u32]| sizes.iter().map(|&s| s as f64 / n * (n / s as f64).ln()).sum::<f64>();

    // One identity at a time: count its rows in each cluster it touches, use the counts, clear them.
    let (members, ends) = truth.members();
    let mut counts = vec![0u32; predicted.sizes.len()];
    let mut squares_of_cluster = vec![0u64; predicted.sizes.len()];
    let mut touched = Vec::new();
    let mut both_squares = 0;
    let mut bcubed_recall = 0.0;
    let mut information = 0.0;
    let mut start = 0;
    for (&end, &size) in ends.iter().zip(&truth.sizes) {
        for &row in &members[start..end] {
            let cluster = predicted.labels[row as usize];
            let count = &mut counts[cluster as usize];
            if *count == 0 {
                touched.push(cluster);
            }
            *count += 1;
        }
        start = end;
        let mut squares_of_identity = 0;
        for cluster in touched.drain(..) {
            let count = std::mem::take(&mut counts[cluster as usize]);
            let square = count as u64 * count as u64;
            squares_of_identity += square;
            squares_of_cluster[cluster as usize] += square;
            let expected = size as f64 * predicted.sizes[cluster as usize] as f64 / n;
            information += count as f64 / n * (count as f64 / expected).ln();
        }
        both_squares += squares_of_identity;
        bcubed_recall += squares_of_identity as f64 / size as f64;
    }
    let bcubed_precision: f64 = squares_of_cluster
        .iter()
        .zip(&predicted.sizes)
        .map(|(&square, &size)| square as f64 / size as f64)
        .sum();

    // Squares count every pair twice and every row once with itself.
    let pairs = |squares: u64| (squares - rows) / 2;
    let (pairs_both, pairs_true, pairs_predicted) =
        (pairs(both_squares), pairs(squares(&truth.sizes)), pairs(squares(&predicted.sizes)));
    let share = |of: u64| if of == 0 { 1.0 } else { pairs_both as f64 / of as f64 };

    let mean_entropy = (entropy(&truth.sizes) + entropy(&predicted.sizes)) / 2.0;
    Ok(Scores {
        pairwise: Fscore::new(share(pairs_predicted), share(pairs_true)),
        bcubed: Fscore::new(bcubed_precision / n, bcubed_recall / n),
        nmi: if mean_entropy > 0.0 { (information / mean_entropy).clamp(0.0, 1.0) } else { 1.0 },
        rows,
        identities: truth.sizes.len() as u64,
        clusters: predicted.sizes.len() as u64,
        singletons: predicted.sizes.iter().filter(|&&size| size == 1).count() as u64,
        largest: predicted.sizes.iter().copied().max().unwrap_or(0) as u64,
        pairs: PairCounts { both: pairs_both, truth: pairs_true, predicted: pairs_predicted },
    })
}

#[cfg(test)]
mod tests;
