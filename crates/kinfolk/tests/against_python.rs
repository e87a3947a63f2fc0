//! Compares kinfolk with SciPy and scikit-learn (`data/make_scipy.py`) on the same small inputs.

use kinfolk::stages::Adjacency;
use kinfolk::{KnnGraph, metrics};
use std::str::FromStr;

fn numbers<T: FromStr>(line: &str) -> Vec<T> {
    line.split(' ').map(|word| word.parse().ok().expect(word)).collect()
}

fn assert_close(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{what}: expected {expected}, found {found}");
}

#[test]
fn adjacency_and_product_are_those_of_scipy() {
    let mut lines = include_str!("data/adjacency.txt").lines();
    let header: Vec<f64> = numbers(lines.next().unwrap());
    let (n, k, dim, th_sim) = (header[0] as usize, header[1] as usize, header[2] as usize, header[3] as f32);
    let ids = lines.by_ref().take(n).flat_map(numbers).collect();
    let similarities = lines.by_ref().take(n).flat_map(numbers).collect();
    let features: Vec<f32> = lines.by_ref().take(n).flat_map(numbers).collect();
    let expected: Vec<Vec<f64>> = lines.by_ref().take(n).map(numbers).collect();
    let product: Vec<f64> = lines.by_ref().take(n).flat_map(numbers).collect();

    let graph = KnnGraph::from_parts(n, k, ids, similarities, "adjacency.txt").unwrap();
    let adjacency = Adjacency::from_knn(&graph, th_sim).unwrap();
    for (i, expected) in expected.iter().enumerate() {
        let (columns, values) = adjacency.row(i);
        let mut found = vec![0.0; n];
        columns.iter().zip(values).for_each(|(&j, &value)| found[j as usize] = value as f64);
        for j in 0..n {
            assert_close(&format!("adjacency {i}, {j}"), found[j], expected[j], 1e-7);
        }
    }
    let mut found = vec![0.0; n * dim];
    adjacency.aggregate(&features, dim, &mut found);
    for (at, (&found, &expected)) in found.iter().zip(&product).enumerate() {
        assert_close(&format!("product {}, {}", at / dim, at % dim), found as f64, expected, 1e-6);
    }
}

#[test]
fn scores_are_those_of_scikit_learn() {
    let lines: Vec<&str> = include_str!("data/metrics.txt").lines().collect();
    for (case, lines) in lines.chunks(3).enumerate() {
        let expected: Vec<f64> = numbers(lines[2]);
        let s = metrics::evaluate(&numbers(lines[0]), &numbers(lines[1])).unwrap();
        let found = [
            ("pairwise precision", s.pairwise.precision),
            ("pairwise recall", s.pairwise.recall),
            ("pairwise F", s.pairwise.f),
            ("BCubed precision", s.bcubed.precision),
            ("BCubed recall", s.bcubed.recall),
            ("BCubed F", s.bcubed.f),
            ("NMI", s.nmi),
            ("clusters", s.clusters as f64),
            ("singletons", s.singletons as f64),
            ("largest", s.largest as f64),
            ("identities", s.identities as f64),
        ];
        assert_eq!(found.len(), expected.len());
        for ((what, found), expected) in found.into_iter().zip(expected) {
            assert_close(&format!("case {case}, {what}"), found, expected, 1e-9);
        }
    }
}
