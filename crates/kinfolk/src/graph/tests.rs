use super::*;
use crate::testing::{embeddings_and_graph, graphs, large_graph, on_one_and_three_threads};
use proptest::prelude::*;

/// D^-1 (A + I) as a full matrix, by the definition.
fn slow_adjacency(graph: &KnnGraph, th_sim: f32) -> Vec<Vec<Option<f32>>> {
    let n = graph.len();
    let mut a = vec![vec![None::<f32>; n]; n];
    for i in 0..n {
        let (ids, similarities) = graph.neighbours(i);
        for (&j, &s) in ids.iter().zip(similarities).filter(|&(_, &s)| s >= th_sim) {
            for (r, c) in [(i, j as usize), (j as usize, i)] {
                a[r][c] = Some(a[r][c].map_or(s, |old| old.max(s)));
            }
        }
        a[i][i] = Some(1.0);
    }
    for row in &mut a {
        let sum: f64 = row.iter().flatten().map(|&v| v as f64).sum();
        row.iter_mut().flatten().for_each(|v| *v = (*v as f64 / sum) as f32);
    }
    a
}

fn full(adjacency: &Adjacency) -> Vec<Vec<Option<f32>>> {
    let row = |i| {
        let mut row = vec![None; adjacency.len()];
        let (columns, values) = adjacency.row(i);
        assert!(columns.is_sorted_by(|a, b| a < b), "columns ascend: {columns:?}");
        columns.iter().zip(values).for_each(|(&j, &v)| row[j as usize] = Some(v));
        row
    };
    (0..adjacency.len()).map(row).collect()
}

/// A~ F by the definition, in double precision.
fn slow_aggregate(adjacency: &Adjacency, dense: &[f32], dim: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for i in 0..adjacency.len() {
        let (columns, values) = adjacency.row(i);
        for c in 0..dim {
            let terms =
                columns.iter().zip(values).map(|(&j, &v)| v as f64 * dense[j as usize * dim + c] as f64);
            out.push(terms.sum::<f64>() as f32);
        }
    }
    out
}

fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (at, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= 1e-6 * (1.0 + e.abs()), "value {at}: expected {e}, found {f}");
    }
}

proptest! {
    #[test]
    fn adjacency_is_its_definition(
        graph in graphs(),
        th_sim in prop::sample::select(vec![0.0f32, 0.3, 1.0]),
    ) {
        let adjacency = Adjacency::from_knn(&graph, th_sim).unwrap();
        prop_assert_eq!(full(&adjacency), slow_adjacency(&graph, th_sim));
        prop_assert_eq!(adjacency.nnz(), full(&adjacency).iter().flatten().flatten().count());
    }

    #[test]
    fn order_is_a_permutation(graph in graphs()) {
        let mut order = Adjacency::from_knn(&graph, 0.0).unwrap().order;
        order.sort_unstable();
        prop_assert!(order.into_iter().eq(0..graph.len() as u32));
    }

    #[test]
    fn product_is_its_definition(graph in graphs(), dim in 0usize..300, scale in 0.1f32..10.0) {
        let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
        let value = |v: usize| scale * ((v * 37 % 101) as f32 / 50.0 - 1.0);
        let dense: Vec<f32> = (0..graph.len() * dim).map(value).collect();
        let mut out = vec![f32::NAN; dense.len()];
        adjacency.aggregate(&dense, dim, &mut out);
        assert_close(&out, &slow_aggregate(&adjacency, &dense, dim));

        // Some rows, in any order, are those of the whole.
        let rows: Vec<u32> = adjacency.visiting_order().iter().copied().step_by(2).collect();
        let mut some = vec![f32::NAN; rows.len() * dim];
        adjacency.aggregate_rows(&rows, &dense, dim, &mut some);
        let expected: Vec<f32> = rows.iter().flat_map(|&i| &out[i as usize * dim..][..dim]).copied().collect();
        prop_assert_eq!(some, expected);
    }

    #[test]
    fn all_versions_of_the_product_agree((embeddings, graph) in embeddings_and_graph()) {
        let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
        let (dense, dim) = (embeddings.as_slice(), embeddings.dim());
        let expected = slow_aggregate(&adjacency, dense, dim);
        for version in aggregate::versions::all() {
            for i in 0..graph.len() {
                let (columns, values) = adjacency.row(i);
                let mut out = vec![0.0; dim];
                version(columns, values, dense, dim, &mut out);
                assert_close(&out, &expected[i * dim..][..dim]);
            }
        }
    }
}

/// Widths around every block: of one, of a cache line, and of the vector versions.
#[test]
fn all_versions_agree_on_wide_rows() {
    let adjacency = Adjacency::from_knn(&large_graph(50, 7), 0.0).unwrap();
    for dim in [1, 15, 16, 17, 64, 127, 128, 129, 256, 275, 512] {
        let dense: Vec<f32> = (0..50 * dim).map(|v| (v * 31 % 97) as f32 / 48.0 - 1.0).collect();
        let expected = slow_aggregate(&adjacency, &dense, dim);
        for version in aggregate::versions::all() {
            for i in 0..50 {
                let (columns, values) = adjacency.row(i);
                let mut out = vec![0.0; dim];
                version(columns, values, &dense, dim, &mut out);
                assert_close(&out, &expected[i * dim..][..dim]);
            }
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let (n, dim) = (5000, 37);
    let graph = large_graph(n, 12);
    let dense: Vec<f32> = (0..n * dim).map(|v| (v * 31 % 97) as f32 / 48.0 - 1.0).collect();
    let [one, three] = on_one_and_three_threads(|| {
        let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
        let mut out = vec![0.0; n * dim];
        adjacency.aggregate(&dense, dim, &mut out);
        (adjacency, out)
    });
    assert!(one == three);
}

#[test]
fn one_vertex_is_its_own_mean() {
    let graph = KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap();
    let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
    assert_eq!(adjacency.row(0), (&[0][..], &[1.0][..]));
    let mut out = [0.0; 3];
    adjacency.aggregate(&[1.0, 2.0, 3.0], 3, &mut out);
    assert_eq!(out, [1.0, 2.0, 3.0]);
}

#[test]
fn no_vertex_is_no_row() {
    let graph = KnnGraph::from_parts(0, 0, vec![], vec![], "test").unwrap();
    let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
    assert_eq!((adjacency.len(), adjacency.nnz()), (0, 0));
    adjacency.aggregate(&[], 4, &mut []);
}

#[test]
fn two_vertices_share_one_edge() {
    let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5, 0.25], "test").unwrap();
    let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
    // The stronger of the two similarities counts for both directions.
    assert_eq!(adjacency.row(1), (&[0, 1][..], &[(0.5 / 1.5) as f32, (1.0 / 1.5) as f32][..]));
}

#[test]
fn negative_similarities_leave_only_self_loops() {
    let graph = KnnGraph::from_parts(3, 2, vec![1, 2, 0, 2, 0, 1], vec![-0.5; 6], "test").unwrap();
    let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
    assert_eq!(adjacency.nnz(), 3);
    assert_eq!(adjacency.row(2), (&[2][..], &[1.0][..]));
}

#[test]
fn equal_similarities_give_equal_weights() {
    let graph = KnnGraph::from_parts(3, 2, vec![1, 2, 0, 2, 0, 1], vec![1.0; 6], "test").unwrap();
    let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
    (0..3).for_each(|i| assert_eq!(adjacency.row(i), (&[0, 1, 2][..], &[1.0f32 / 3.0; 3][..])));
}

#[test]
fn minus_zero_is_zero() {
    let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![-0.0, 0.25], "test").unwrap();
    assert_eq!(Adjacency::from_knn(&graph, 0.0).unwrap().row(0).1, [0.8, 0.2]);
}

#[test]
fn thresholds_that_break_normalisation_are_refused() {
    let graph = large_graph(5, 2);
    for th_sim in [-0.1, 1.5, f32::NAN] {
        let error = Adjacency::from_knn(&graph, th_sim).unwrap_err().to_string();
        assert!(error.starts_with("th_sim: expected 0 to 1"), "{error}");
    }
}

#[test]
#[should_panic(expected = "dense: expected 5 rows of 3")]
fn a_matrix_of_another_size_is_refused() {
    Adjacency::from_knn(&large_graph(5, 2), 0.0).unwrap().aggregate(&[0.0; 12], 3, &mut [0.0; 15]);
}
