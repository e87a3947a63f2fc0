use super::*;
use crate::testing::graphs;
use crate::{KnnGraph, Links, nearest_candidates};
use proptest::prelude::*;

/// Numbers clusters by sorting them.
fn slow_numbers(components: &[i64]) -> Vec<i64> {
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    for (row, name) in components.iter().enumerate() {
        match clusters.iter_mut().find(|cluster| components[cluster[0]] == *name) {
            Some(cluster) => cluster.push(row),
            None => clusters.push(vec![row]),
        }
    }
    clusters.sort_by_key(|cluster| (std::cmp::Reverse(cluster.len()), cluster[0]));
    let number = |row: usize| clusters.iter().position(|cluster| cluster.contains(&row)).unwrap() as i64;
    (0..components.len()).map(number).collect()
}

/// Propagates the smallest id over the links above tau until nothing changes.
fn slow_cut(links: &Links, tau: f32) -> Vec<i64> {
    let mut names: Vec<i64> = (0..links.len() as i64).collect();
    loop {
        let before = names.clone();
        for i in 0..links.len() {
            let (parents, similarities) = links.of(i);
            for (&j, _) in parents.iter().zip(similarities).filter(|&(_, &a)| a > tau) {
                let name = names[i].min(names[j as usize]);
                (names[i], names[j as usize]) = (name, name);
            }
        }
        if names == before {
            return slow_numbers(&names);
        }
    }
}

proptest! {
    #[test]
    fn numbers_go_by_size_then_smallest_member(components in prop::collection::vec(-5i64..5, 0..50)) {
        prop_assert_eq!(number_by_size(&components), slow_numbers(&components));
    }

    #[test]
    fn cuts_are_connected_components(
        graph in graphs(),
        m in 1usize..4,
        coarse in prop::collection::vec(-1i8..3, 40),
        tau in -1.0f32..1.0,
    ) {
        let confidence: Vec<f32> = coarse[..graph.len()].iter().map(|&c| c as f32).collect();
        let links = nearest_candidates(&graph, &confidence, m).unwrap();
        prop_assert_eq!(links.cut(tau), slow_cut(&links, tau));
    }

    /// An estimator may link anything to anything, in circles too.
    #[test]
    fn cuts_survive_cycles(parents in prop::collection::vec(0u32..20, 40), tau in 0.0f32..1.0) {
        let similarities = (0..40).map(|at| at as f32 / 40.0).collect();
        let links = Links::from_parts(vec![0.0; 20], 2, parents, similarities).unwrap();
        prop_assert_eq!(links.cut(tau), slow_cut(&links, tau));
    }
}

#[test]
fn nothing_has_no_numbers() {
    assert!(number_by_size::<u32>(&[]).is_empty());
    assert!(Links::from_parts(vec![], 1, vec![], vec![]).unwrap().cut(0.5).is_empty());
}

#[test]
fn one_vertex_is_cluster_zero() {
    let graph = KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap();
    assert_eq!(nearest_candidates(&graph, &[0.0], 1).unwrap().cut(0.8), [0]);
}

#[test]
fn a_similarity_of_tau_is_cut() {
    let links = Links::from_parts(vec![1.0, 0.0], 1, vec![Links::NONE, 0], vec![0.0, 0.5]).unwrap();
    assert_eq!(links.cut(0.5), [0, 1]);
    assert_eq!(links.cut(0.49), [0, 0]);
}

#[test]
fn duplicates_fall_into_one_tree() {
    let graph =
        KnnGraph::from_parts(4, 3, vec![1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2], vec![1.0; 12], "test").unwrap();
    assert_eq!(nearest_candidates(&graph, &[0.5; 4], 1).unwrap().cut(0.8), [0; 4]);
}

#[test]
fn negative_similarities_make_clusters_of_one() {
    let graph = KnnGraph::from_parts(3, 2, vec![1, 2, 0, 2, 0, 1], vec![-0.5; 6], "test").unwrap();
    assert_eq!(nearest_candidates(&graph, &[0.5; 3], 2).unwrap().cut(0.0), [0, 1, 2]);
}
