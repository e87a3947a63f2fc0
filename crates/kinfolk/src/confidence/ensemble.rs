//! Combines several confidences by the mean of their ranks.
//!
//! Only the order of confidences matters to the tree, and their scales differ (a density counts, a network's output
//! is trained to lie between -1 and 1), so ranks are averaged. Section 4.3.1 of the paper remarks that an
//! ensemble of confidences is better than each of them.
//!
//! Cost: O(N log N) for each confidence.

use crate::{Error, Result};
use rayon::prelude::*;

/// The weighted mean of the ranks of each vertex, from 0 (last in all) to 1 (first in all). Equal confidences share the
/// rank in their middle, so that duplicates stay equal.
///
/// ```
/// use kinfolk::stages::average_ranks;
/// let confidence = average_ranks(&[(&[0.1, 0.7, 0.4], 1.0), (&[30.0, 20.0, 10.0], 1.0)])?;
/// assert_eq!(confidence, [0.5, 0.75, 0.25]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn average_ranks(confidences: &[(&[f32], f32)]) -> Result<Vec<f32>> {
    let total: f32 = confidences.iter().map(|(_, weight)| weight).sum();
    if confidences.iter().any(|(_, weight)| !(*weight >= 0.0 && weight.is_finite())) || total <= 0.0 {
        let found: Vec<String> = confidences.iter().map(|(_, weight)| weight.to_string()).collect();
        let expected = "non-negative weights, at least one of them above 0";
        return Err(Error::Parameter { field: "weights", expected, found: found.join(", ") });
    }
    let n = confidences[0].0.len();
    let mut mean = vec![0.0f32; n];
    for &(confidence, weight) in confidences {
        crate::connectivity::check_confidence(n, confidence)?;
        let share = weight / total;
        for (mean, rank) in mean.iter_mut().zip(ranks(confidence)) {
            *mean += share * rank;
        }
    }
    Ok(mean)
}

/// The rank of each value, from 0 for the smallest to 1 for the largest; equal values share the middle of theirs.
fn ranks(values: &[f32]) -> Vec<f32> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    let value = |&i: &u32| values[i as usize] + 0.0;
    order.par_sort_unstable_by(|a, b| value(a).total_cmp(&value(b)).then(a.cmp(b)));
    let last = values.len().saturating_sub(1).max(1) as f64;
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| value(a) == value(b)) {
        let middle = (first as f64 + (equal.len() - 1) as f64 / 2.0) / last;
        equal.iter().for_each(|&i| ranks[i as usize] = middle as f32);
        first += equal.len();
    }
    ranks
}
