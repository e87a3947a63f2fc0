use super::*;
use proptest::prelude::*;

/// The pair counts, over all pairs.
fn slow_pairs(truth: &[i64], predicted: &[i64]) -> [u64; 3] {
    let mut counts = [0; 3];
    for i in 0..truth.len() {
        for j in 0..i {
            let (same, together) = (truth[i] == truth[j], predicted[i] == predicted[j]);
            counts[0] += (same && together) as u64;
            counts[1] += same as u64;
            counts[2] += together as u64;
        }
    }
    counts
}

/// BCubed precision row by row; recall is the same with the sides swapped.
fn slow_bcubed(truth: &[i64], predicted: &[i64]) -> f64 {
    let of = |i: usize| {
        let cluster: Vec<usize> = (0..truth.len()).filter(|&j| predicted[j] == predicted[i]).collect();
        cluster.iter().filter(|&&j| truth[j] == truth[i]).count() as f64 / cluster.len() as f64
    };
    (0..truth.len()).map(of).sum::<f64>() / truth.len() as f64
}

fn entropy<T: PartialEq>(values: &[T]) -> f64 {
    let share = |v: &T| values.iter().filter(|w| *w == v).count() as f64 / values.len() as f64;
    values.iter().map(|v| -share(v).ln() / values.len() as f64).sum()
}

proptest! {
    #[test]
    fn scores_are_their_definitions(
        rows in prop::collection::vec((-3i64..4, -2i64..6), 1..60),
        far in prop::bool::ANY,
    ) {
        let spread = |label: i64| if far { label * (i64::MAX / 8) } else { label };
        let (truth, predicted): (Vec<_>, Vec<_>) = rows.iter().map(|&(t, p)| (spread(t), spread(p))).unzip();
        let scores = evaluate(&truth, &predicted).unwrap();
        let pairs = [scores.pairs.both, scores.pairs.truth, scores.pairs.predicted];
        prop_assert_eq!(pairs, slow_pairs(&truth, &predicted));
        prop_assert!((scores.bcubed.precision - slow_bcubed(&truth, &predicted)).abs() < 1e-12);
        prop_assert!((scores.bcubed.recall - slow_bcubed(&predicted, &truth)).abs() < 1e-12);
        // I(T; P) = H(T) + H(P) - H(T, P)
        let (t, p, joint) = (entropy(&truth), entropy(&predicted), entropy(&rows));
        let nmi = if t + p > 1e-12 { 2.0 * (t + p - joint) / (t + p) } else { 1.0 };
        prop_assert!((scores.nmi - nmi).abs() < 1e-9, "{} {nmi}", scores.nmi);
    }
}

#[test]
fn one_row_is_perfect() {
    let scores = evaluate(&[7], &[-7]).unwrap();
    let perfect = Fscore { precision: 1.0, recall: 1.0, f: 1.0 };
    assert_eq!((scores.pairwise, scores.bcubed, scores.nmi), (perfect, perfect, 1.0));
    assert_eq!((scores.rows, scores.clusters, scores.singletons, scores.largest), (1, 1, 1, 1));
}

#[test]
fn noise_is_a_label_like_any_other() {
    let truth = [0, 0, 1, 1, 2];
    assert_eq!(evaluate(&truth, &[0, -1, -1, 1, -5]).unwrap(), evaluate(&truth, &[0, 2, 2, 1, 3]).unwrap());
}

#[test]
fn no_predicted_pair_is_no_wrong_pair() {
    let scores = evaluate(&[0, 0, 1], &[0, 1, 2]).unwrap();
    assert_eq!(scores.pairwise, Fscore { precision: 1.0, recall: 0.0, f: 0.0 });
    assert_eq!((scores.clusters, scores.singletons, scores.identities), (3, 3, 2));
}

#[test]
fn no_true_pair_is_no_missed_pair() {
    let scores = evaluate(&[0, 1, 2], &[0, 0, 1]).unwrap();
    assert_eq!(scores.pairwise, Fscore { precision: 0.0, recall: 1.0, f: 0.0 });
}

#[test]
fn nothing_in_common_scores_zero() {
    let scores = evaluate(&[0, 0, 1, 1], &[0, 1, 0, 1]).unwrap();
    assert_eq!(scores.pairwise, Fscore { precision: 0.0, recall: 0.0, f: 0.0 });
    assert_eq!(scores.nmi, 0.0);
}

#[test]
fn one_group_on_both_sides_is_perfect() {
    let scores = evaluate(&[3; 5], &[8; 5]).unwrap();
    assert_eq!((scores.pairwise.f, scores.bcubed.f, scores.nmi), (1.0, 1.0, 1.0));
}

#[test]
fn one_cluster_of_everything_tells_nothing() {
    let scores = evaluate(&[0, 0, 1, 1], &[0; 4]).unwrap();
    assert_eq!((scores.pairwise.recall, scores.pairwise.precision, scores.nmi), (1.0, 1.0 / 3.0, 0.0));
}

#[test]
fn the_ends_of_the_range_are_labels_too() {
    let labels = [i64::MIN, i64::MAX, 0, i64::MAX];
    assert_eq!(evaluate(&labels, &labels).unwrap().pairwise.f, 1.0);
}

#[test]
fn pairs_of_millions_of_rows_are_exact() {
    let rows = 5_200_000;
    let scores = evaluate(&vec![1; rows], &vec![2; rows]).unwrap();
    assert_eq!(scores.pairs.both, 13_519_997_400_000);
}

#[test]
fn unequal_lengths_are_an_error() {
    let error = evaluate(&[1, 2], &[1]).unwrap_err().to_string();
    assert_eq!(error, "predicted labels: expected 2 labels (one per true label), found 1");
    let error = evaluate(&[], &[]).unwrap_err().to_string();
    assert_eq!(error, "predicted labels: expected 1 or more labels, found 0");
}
