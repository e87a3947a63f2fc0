//! Clarity: how certain the edge probabilities of a set are.
//!
//! Consider a classifier that decides for the most probable edge of each row whether it joins one identity. If the
//! probabilities are calibrated, its expected F is maximal at a threshold of half that F (Lipton, Elkan and Narayanaswamy,
//! "Optimal thresholding of classifiers to maximize F1 measure", 2014). This F is near 1 if probabilities are near 0 or 1, and
//! low if nothing is certain: either the embedding carries little information, or most rows are singletons. The rows without a
//! certain edge distinguish the two cases. A singleton has few probable edges; a row whose identity is hard to separate has
//! many that are nearly as probable as the best.

use rayon::prelude::*;

/// How certain the edge probabilities of a set are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clarity {
    /// The maximal expected F, from 0 to 1, of decisions about the most probable edge of each row.
    pub(crate) best_f: f32,
    /// For rows whose most probable edge has a probability below 0.5: the probability of the eighth edge divided by that of
    /// the first. 0 if there is no such row.
    pub(crate) company: f32,
}

/// The edge that is compared with the most probable one, from 0.
const EIGHTH: usize = 7;

impl Clarity {
    /// Of N x `k` probabilities. Cost: O(N K + N log N), and two numbers for each row.
    pub(super) fn of(probabilities: &[f32], k: usize) -> Self {
        let of_row = |row: &[f32]| {
            let mut row = row.to_vec();
            let place = EIGHTH.min(row.len() - 1);
            let (before, &mut eighth, _) = row.select_nth_unstable_by(place, |a, b| b.total_cmp(a));
            (before.iter().copied().fold(eighth, f32::max), eighth)
        };
        let mut most: Vec<(f32, f32)> = probabilities.par_chunks(k.max(1)).map(of_row).collect();
        most.par_sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
        let all: f64 = most.iter().map(|row| f64::from(row.0)).sum();
        let (mut said, mut best_f) = (0.0, 0.0f64);
        for (count, row) in (1u32..).zip(&most) {
            said += f64::from(row.0);
            best_f = best_f.max(2.0 * said / (f64::from(count) + all));
        }
        let unsure = &most[most.partition_point(|row| row.0 >= 0.5)..];
        let first: f64 = unsure.iter().map(|row| f64::from(row.0)).sum();
        let eighth: f64 = unsure.iter().map(|row| f64::from(row.1)).sum();
        let company = if first > 0.0 { eighth / first } else { 0.0 };
        Clarity { best_f: best_f as f32, company: company as f32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_sure_is_clear() {
        let f = |probabilities: &[f32], k| Clarity::of(probabilities, k).best_f;
        assert_eq!(f(&[], 3), 0.0);
        assert_eq!(f(&[1.0, 0.0, 0.0, 0.0], 2), 1.0);
        assert_eq!(f(&[0.5, 0.1, 0.2, 0.5], 2), 2.0 / 3.0);
    }

    #[test]
    fn only_rows_without_a_sure_tie_are_asked_for_company() {
        let alone = [0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.0, 0.0];
        let many = [0.4, 0.3, 0.3, 0.3, 0.4, 0.2, 0.1, 0.3, 0.2, 0.3];
        let sure = [0.9; 10];
        let company = |rows: &[[f32; 10]]| Clarity::of(rows.as_flattened(), 10).company;
        assert_eq!(company(&[sure]), 0.0);
        assert_eq!(company(&[alone, sure]), 0.25);
        assert_eq!(company(&[sure, many]), 0.5);
        assert_eq!(company(&[alone, many]), 0.375);
    }

    proptest! {
        /// Best of all thresholds, tried one by one, and reached by one that is half of it.
        #[test]
        fn half_of_it_is_the_best_threshold(most in proptest::collection::vec(0.001f32..1.0, 1..50)) {
            let all: f64 = most.iter().map(|&p| f64::from(p)).sum();
            let f = |least: f32| {
                let said: Vec<f64> = most.iter().filter(|&&p| p >= least).map(|&p| f64::from(p)).collect();
                2.0 * said.iter().sum::<f64>() / (said.len() as f64 + all)
            };
            let best = most.iter().map(|&p| f(p)).fold(0.0, f64::max);
            let found = Clarity::of(&most, 1).best_f;
            prop_assert!((f64::from(found) - best).abs() < 1e-6);
            prop_assert!((f(found / 2.0) - best).abs() < 1e-5);
        }
    }
}
