//! Where to cut, judged by identities that were not trained on.
//!
//! The whole set is clustered, so that strangers are as near as they will be, but only held-out rows are judged: by
//! BCubed F, which is a mean over rows and so can be taken over some of them.

use kinfolk::Links;
use std::collections::HashMap;

/// The tau, from 0 to 0.98 by 0.02, of the best BCubed F of `rows`, and that F. The middle of several that are equal.
pub(super) fn best_tau(links: &Links, labels: &[i64], rows: &[u32]) -> (f32, f64) {
    let scores: Vec<(f32, f64)> = (0..50)
        .map(|step| {
            let tau = step as f32 * 0.02;
            (tau, bcubed(labels, &links.cut(tau), rows))
        })
        .collect();
    let best = scores.iter().fold(0.0f64, |m, s| m.max(s.1));
    let equal: Vec<f32> = scores.iter().filter(|s| s.1 == best).map(|s| s.0).collect();
    (equal[equal.len() / 2], best)
}

/// BCubed F over some rows; the clusters and identities they are compared with are those of all rows.
fn bcubed(truth: &[i64], predicted: &[i64], rows: &[u32]) -> f64 {
    let (mut both, mut identity, mut cluster) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (&t, &p) in truth.iter().zip(predicted) {
        *both.entry((t, p)).or_insert(0u32) += 1;
        *identity.entry(t).or_insert(0u32) += 1;
        *cluster.entry(p).or_insert(0u32) += 1;
    }
    let (mut precision, mut recall) = (0.0, 0.0);
    for &row in rows {
        let (t, p) = (truth[row as usize], predicted[row as usize]);
        let together = both[&(t, p)] as f64;
        precision += together / cluster[&p] as f64;
        recall += together / identity[&t] as f64;
    }
    // 2PR / (P + R), with both sums still to be divided by the number of rows.
    if precision + recall == 0.0 {
        return 0.0;
    }
    2.0 * precision * recall / (precision + recall) / rows.len() as f64
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
        assert!((bcubed(&truth, &predicted, &rows) - expected).abs() < 1e-12);
    }

    #[test]
    fn rows_that_are_not_judged_still_spoil_clusters() {
        // Row 0 is judged; its cluster also holds a stranger.
        assert!((bcubed(&[0, 1], &[5, 5], &[0]) - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(bcubed(&[0, 1], &[5, 6], &[0]), 1.0);
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
        let (tau, f) = best_tau(&links, &[0, 0, 1, 1], &[0, 1, 2, 3]);
        assert_eq!(f, 1.0);
        assert!((0.5..0.8).contains(&tau), "{tau}");
    }
}
