//! Where to cut, judged by identities that were not trained on.
//!
//! Cost: O(N) for each tau that is tried.

use kinfolk::metrics::Judge;
use kinfolk::stages::Links;
use rayon::prelude::*;

/// The tau, from 0 to 0.98 by 0.02, of the best score, and that score. The middle of several that are equal.
pub fn best_tau(judge: &Judge, links: &Links) -> (f32, f64) {
    let score = |step| {
        let tau = step as f32 * 0.02;
        (tau, judge.score(&links.cut(tau)))
    };
    let scores: Vec<(f32, f64)> = (0..50).into_par_iter().map(score).collect();
    let best = scores.iter().fold(0.0f64, |m, s| m.max(s.1));
    let equal: Vec<f32> = scores.iter().filter(|s| s.1 == best).map(|s| s.0).collect();
    (equal[equal.len() / 2], best)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (tau, f) = best_tau(&Judge::new(&[0, 0, 1, 1], vec![0, 1, 2, 3]), &links);
        assert_eq!(f, 1.0);
        assert!((0.5..0.8).contains(&tau), "{tau}");
    }
}
