//! Where to cut, judged by identities that were not trained on.
//!
//! Cost: O(N) for each tau that is tried.

use kinfolk::metrics::Judge;
use kinfolk::stages::Links;
use rayon::prelude::*;

/// The number of taus that are tried.
const STEPS: usize = 64;

/// The tau of the best score, and that score; the middle of several that are equal. Of the taus that are tried each cuts as many
/// links more than the one before: similarities may lie anywhere, and those of F_L are often close to 1.
pub fn best_tau(judge: &Judge, links: &Links) -> (f32, f64) {
    let mut similarities: Vec<f32> = (0..links.len()).flat_map(|i| links.of(i).1).copied().collect();
    similarities.sort_unstable_by(f32::total_cmp);
    let mut taus = vec![0.0];
    if !similarities.is_empty() {
        taus.extend((0..STEPS).map(|step| similarities[step * similarities.len() / STEPS].max(0.0)));
    }
    taus.dedup();
    let score = |tau: f32| (tau, judge.score(&links.cut(tau)));
    let scores: Vec<(f32, f64)> = taus.into_par_iter().map(score).collect();
    let best = scores.iter().fold(0.0f64, |m, s| m.max(s.1));
    let equal: Vec<f32> = scores.iter().filter(|s| s.1 == best).map(|s| s.0).collect();
    (equal[equal.len() / 2], best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tau_separates_links_that_are_all_close_to_1() {
        // Pairs belong together; the links within and between them differ by less than a hundredth.
        let n = 400i32;
        let labels: Vec<i64> = (0..n).map(|i| i64::from(i) / 2).collect();
        let parent = |i: u32| if i == 0 { Links::NONE } else { i - 1 };
        let similarity = |i: u32| if i % 2 == 1 { 0.995 + i as f32 * 1e-6 } else { 0.99 + i as f32 * 1e-6 };
        let links = Links::from_parts(
            (0..n).map(|i| 1.0 - i as f32 / 1000.0).collect(),
            1,
            (0..n as u32).map(parent).collect(),
            (0..n as u32).map(similarity).collect(),
        );
        let (tau, f) = best_tau(&Judge::new(&labels, (0..n as u32).collect()), &links.unwrap());
        assert!(f > 0.97 && (0.99..0.9955).contains(&tau), "{tau} {f}");
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
        let (tau, f) = best_tau(&Judge::new(&[0, 0, 1, 1], vec![0, 1, 2, 3]), &links);
        assert_eq!(f, 1.0);
        assert!((0.5..0.8).contains(&tau), "{tau}");
    }
}
