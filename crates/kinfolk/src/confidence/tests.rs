use super::*;
use crate::testing::{embeddings_and_graph, graphs, knn, large_graph, on_one_and_three_threads};
use crate::{Embeddings, Error, KnnGraph};
use proptest::prelude::*;

fn cosine(embeddings: &Embeddings, i: usize, j: usize) -> f64 {
    embeddings.row(i).iter().zip(embeddings.row(j)).map(|(&a, &b)| a as f64 * b as f64).sum()
}

/// The mean over all others of the same label, pair by pair.
fn slow_s_avg(embeddings: &Embeddings, labels: &[i64]) -> Vec<f32> {
    let of = |i: usize| {
        let others: Vec<usize> = (0..labels.len()).filter(|&j| j != i && labels[j] == labels[i]).collect();
        let sum: f64 = others.iter().map(|&j| cosine(embeddings, i, j)).sum();
        if others.is_empty() { 0.0 } else { (sum / others.len() as f64) as f32 }
    };
    (0..labels.len()).map(of).collect()
}

/// The cosine with the mean: x . mean / |mean|, everything from scratch for every row.
fn slow_s_center(embeddings: &Embeddings, labels: &[i64]) -> Vec<f32> {
    let of = |i: usize| {
        let members: Vec<usize> = (0..labels.len()).filter(|&j| labels[j] == labels[i]).collect();
        let column = |c: usize| {
            members.iter().map(|&j| embeddings.row(j)[c] as f64).sum::<f64>() / members.len() as f64
        };
        let mean: Vec<f64> = (0..embeddings.dim()).map(column).collect();
        let norm = mean.iter().map(|v| v * v).sum::<f64>().sqrt();
        let dot: f64 = mean.iter().zip(embeddings.row(i)).map(|(m, &x)| m * x as f64).sum();
        if norm < 1e-6 { 0.0 } else { (dot / norm) as f32 }
    };
    (0..labels.len()).map(of).collect()
}

fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() < 1e-5, "vertex {i}: expected {e}, found {f}");
    }
}

proptest! {
    #[test]
    fn densities_are_their_definitions(graph in graphs(), r in 0.01f32..2.0) {
        let (num, weight) = (u_num(&graph, r).unwrap(), u_weight(&graph, r).unwrap());
        for i in 0..graph.len() {
            let within: Vec<f32> = graph.neighbours(i).1.iter().copied().filter(|&a| a > 1.0 - r).collect();
            prop_assert_eq!(num[i], within.len() as f32);
            prop_assert!((weight[i] - within.iter().sum::<f32>()).abs() < 1e-5);
        }
    }

    #[test]
    fn targets_are_their_definitions((embeddings, graph) in embeddings_and_graph(), identities in 1i64..8) {
        let n = embeddings.len();
        let labels: Vec<i64> = (0..n as i64).map(|i| i * i * 5 % 11 % identities - 3).collect();
        assert_close(&s_avg(&embeddings, &labels).unwrap(), &slow_s_avg(&embeddings, &labels));
        assert_close(&s_center(&embeddings, &labels).unwrap(), &slow_s_center(&embeddings, &labels));
        let nbr = s_nbr(&graph, &labels).unwrap();
        for i in 0..n {
            let (ids, similarities) = graph.neighbours(i);
            let (mut same, mut other) = (0.0, 0.0);
            for (&j, &a) in ids.iter().zip(similarities) {
                if labels[j as usize] == labels[i] { same += a } else { other += a }
            }
            let expected = if graph.k() == 0 { 0.0 } else { (same - other) / graph.k() as f32 };
            prop_assert!((nbr[i] - expected).abs() < 1e-5);
        }
    }
}

#[test]
fn the_radius_is_open() {
    let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5, 0.5], "test").unwrap();
    assert_eq!(u_num(&graph, 0.5).unwrap(), [0.0, 0.0]);
    assert_eq!(u_num(&graph, 0.51).unwrap(), [1.0, 1.0]);
}

#[test]
fn the_default_radius_takes_positive_similarities() {
    let graph =
        KnnGraph::from_parts(3, 2, vec![1, 2, 0, 2, 0, 1], vec![0.5, 0.0, 0.5, -0.5, 0.0, -0.5], "test")
            .unwrap();
    assert_eq!(u_weight(&graph, DEFAULT_RADIUS).unwrap(), [0.5, 0.5, 0.0]);
}

#[test]
fn radii_that_are_none_are_refused() {
    let graph = large_graph(5, 2);
    for r in [0.0, -1.0, 2.5, f32::NAN] {
        assert!(matches!(u_num(&graph, r), Err(Error::Parameter { field: "radius", .. })), "{r}");
    }
}

#[test]
fn one_vertex_has_no_support() {
    let one = Embeddings::from_rows(vec![3.0, 4.0], 2, "test").unwrap();
    let graph = knn(&one, 0);
    assert_eq!(u_num(&graph, 1.0).unwrap(), [0.0]);
    assert_eq!(s_nbr(&graph, &[5]).unwrap(), [0.0]);
    assert_eq!(s_avg(&one, &[5]).unwrap(), [0.0]);
    assert_close(&s_center(&one, &[5]).unwrap(), &[1.0]);
}

#[test]
fn duplicates_are_fully_confident() {
    let twins = Embeddings::from_rows([1.0, 2.0].repeat(4), 2, "test").unwrap();
    let labels = [1; 4];
    assert_close(&s_nbr(&knn(&twins, 3), &labels).unwrap(), &[1.0; 4]);
    assert_close(&s_avg(&twins, &labels).unwrap(), &[1.0; 4]);
    assert_close(&s_center(&twins, &labels).unwrap(), &[1.0; 4]);
}

#[test]
fn opposite_features_have_no_center() {
    let opposite = Embeddings::from_rows(vec![1.0, 0.0, -1.0, 0.0], 2, "test").unwrap();
    assert_eq!(s_center(&opposite, &[1, 1]).unwrap(), [0.0, 0.0]);
    assert_eq!(s_avg(&opposite, &[1, 1]).unwrap(), [-1.0, -1.0]);
}

#[test]
fn a_missing_label_is_an_error() {
    let two = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
    for result in [s_avg(&two, &[1]), s_center(&two, &[1]), s_nbr(&knn(&two, 1), &[1])] {
        assert_eq!(result.unwrap_err().to_string(), "labels: expected 2 labels (one per vertex), found 1");
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let (n, dim) = (4000, 8);
    let values = (0..n * dim).map(|v| (v * 31 % 97) as f32 - 48.0).collect();
    let embeddings = Embeddings::from_rows(values, dim, "test").unwrap();
    let graph = large_graph(n, 10);
    let labels: Vec<i64> = (0..n as i64).map(|i| i * i % 53).collect();
    let [one, three] = on_one_and_three_threads(|| {
        [
            u_weight(&graph, 0.6).unwrap(),
            s_nbr(&graph, &labels).unwrap(),
            s_avg(&embeddings, &labels).unwrap(),
            s_center(&embeddings, &labels).unwrap(),
        ]
    });
    assert!(one == three);
}

proptest! {
    #[test]
    fn an_ensemble_averages_ranks(
        values in prop::collection::vec((-3i8..3, -3i8..3), 1..30),
        weight in 0.0f32..2.0,
    ) {
        let split = |of: fn(&(i8, i8)) -> i8| values.iter().map(|v| of(v) as f32).collect::<Vec<f32>>();
        let (a, b) = (split(|v| v.0), split(|v| v.1));
        let found = average_ranks(&[(&a, 1.0), (&b, weight)]).unwrap();
        let rank = |all: &[f32], value: f32| {
            let below = all.iter().filter(|&&other| other < value).count() as f64;
            let equal = all.iter().filter(|&&other| other == value).count() as f64;
            (below + (equal - 1.0) / 2.0) / (all.len() as f64 - 1.0).max(1.0)
        };
        for i in 0..values.len() {
            let expected = (rank(&a, a[i]) + weight as f64 * rank(&b, b[i])) / (1.0 + weight as f64);
            prop_assert!((found[i] as f64 - expected).abs() < 1e-6);
        }
    }
}

#[test]
fn an_ensemble_of_nothing_is_refused() {
    let expected = "weights: expected non-negative weights, at least one of them above 0, found";
    assert_eq!(average_ranks(&[]).unwrap_err().to_string(), format!("{expected} "));
    assert_eq!(average_ranks(&[(&[1.0], 0.0)]).unwrap_err().to_string(), format!("{expected} 0"));
    let error = average_ranks(&[(&[1.0], 1.0), (&[1.0, 2.0], 1.0)]).unwrap_err().to_string();
    assert_eq!(error, "confidence: expected 1 confidences (one per vertex), found 2");
}
