use super::*;
use crate::synth::{Synth, SynthParams};
use crate::testing::on_one_and_three_threads;
use crate::{Clusterer, Density};
use proptest::prelude::*;

/// A graph in which every row lists `k` others, with probabilities and clusters.
fn problems() -> impl Strategy<Value = (KnnGraph, Vec<f32>, Vec<i64>)> {
    (2usize..30, 1usize..5).prop_flat_map(|(n, k)| {
        let k = k.min(n - 1);
        let steps = prop::collection::vec(prop::collection::btree_set(1..n, k), n);
        let probabilities = prop::collection::vec(prop_oneof![Just(0.0f32), 0.0f32..=1.0], n * k);
        (steps, probabilities, prop::collection::vec(0i64..4, n)).prop_map(
            move |(steps, probabilities, labels)| {
                let ids = steps
                    .iter()
                    .enumerate()
                    .flat_map(|(i, steps)| steps.iter().map(move |s| ((i + s) % n) as u32));
                let similarities = (0..n).flat_map(|_| (0..k).map(|slot| 0.9 - 0.1 * slot as f32)).collect();
                let graph = KnnGraph::from_parts(n, k, ids.collect(), similarities, "test").unwrap();
                (graph, probabilities, labels)
            },
        )
    })
}

/// Whether every cluster of `fine` is part of one cluster of `coarse`.
fn refines(fine: &[i64], coarse: &[i64]) -> bool {
    let pairs: std::collections::HashSet<_> = fine.iter().zip(coarse).collect();
    pairs.len() as i64 == fine.iter().max().unwrap() + 1
}

/// The clusters of a cut, by joining rows one merge after the other.
fn slow_cut(tree: &MergeTree, height: f64) -> Vec<i64> {
    let mut rows: Vec<Vec<usize>> = (0..tree.rows()).map(|row| vec![row]).collect();
    let mut names: Vec<i64> = (0..tree.rows() as i64).collect();
    for (&[a, b], &at) in tree.merges().iter().zip(tree.heights()) {
        let both = [rows[a as usize].clone(), rows[b as usize].clone()].concat();
        if at <= height {
            both.iter().for_each(|&row| names[row] = (tree.rows() + rows.len()) as i64);
        }
        rows.push(both);
    }
    number_by_size(&names)
}

/// The persistence of a cut by its definition.
fn slow_persistence(levels: &Levels, height: f64) -> f64 {
    let (tree, sizes) = (levels.tree(), levels.tree().sizes());
    let top = tree.heights().last().copied().unwrap_or(0.0);
    let parent = |node: u32| tree.merges().iter().position(|parts| parts.contains(&node));
    let sibling =
        |node: u32, merge: usize| tree.merges()[merge].into_iter().find(|&part| part != node).unwrap();
    let tiny = |small: u32, large: u32| {
        sizes[small as usize] == 1 || sizes[small as usize] * 20 < sizes[large as usize]
    };
    let larger = |merge: usize| {
        let [a, b] = tree.merges()[merge];
        if sizes[a as usize] >= sizes[b as usize] { [a, b] } else { [b, a] }
    };
    let life = |row: u32| {
        // The cluster of the row at this height.
        let mut node = row;
        while let Some(merge) = parent(node).filter(|&merge| tree.heights()[merge] <= height) {
            node = (tree.rows() + merge) as u32;
        }
        if sizes[node as usize] == 1 {
            return 0.0;
        }
        // Down to where it began.
        let mut first = node;
        let birth = loop {
            let merge = first as usize - tree.rows();
            let [large, small] = larger(merge);
            if sizes[large as usize] == 1 || !tiny(small, large) {
                break tree.heights()[merge];
            }
            first = large;
        };
        // Up to where it ends.
        let death = loop {
            let Some(merge) = parent(node) else { break top };
            if larger(merge)[0] != node || !tiny(sibling(node, merge), node) {
                break tree.heights()[merge];
            }
            node = (tree.rows() + merge) as u32;
        };
        death - birth
    };
    (0..tree.rows() as u32).map(life).sum::<f64>() / tree.rows() as f64
}

proptest! {
    #[test]
    fn levels_are_nested_and_one_is_the_default((graph, probabilities, labels) in problems()) {
        let [levels, again] =
            on_one_and_three_threads(|| Levels::of(&graph, &probabilities, &labels, &()).unwrap());
        prop_assert_eq!(&levels, &again);
        prop_assert_eq!(levels.labels(levels.default_level()), number_by_size(&labels));
        prop_assert_eq!(levels.levels().iter().filter(|level| level.default).count(), 1);
        let partitions: Vec<Vec<i64>> = (0..levels.levels().len()).map(|level| levels.labels(level)).collect();
        for (at, level) in levels.levels().iter().enumerate() {
            prop_assert_eq!(level.clusters as i64, partitions[at].iter().max().unwrap() + 1);
            prop_assert!((level.persistence - slow_persistence(&levels, level.height)).abs() < 1e-9);
            if at > 0 {
                prop_assert!(levels.levels()[at - 1].height < level.height);
                prop_assert!(refines(&partitions[at - 1], &partitions[at]));
                prop_assert!(partitions[at - 1] != partitions[at]);
            }
        }
        let tree = levels.tree();
        let (merges, heights) = (tree.merges().to_vec(), tree.heights().to_vec());
        prop_assert_eq!(MergeTree::from_parts(tree.rows(), merges, heights), Some(tree.clone()));
    }

    #[test]
    fn cuts_and_persistence_are_those_of_the_definition((graph, probabilities, labels) in problems()) {
        let levels = Levels::of(&graph, &probabilities, &labels, &()).unwrap();
        for (height, persistence) in levels.curve() {
            for height in [height - 1e-9, height] {
                prop_assert_eq!(levels.cut(height), slow_cut(levels.tree(), height));
            }
            prop_assert!((persistence - slow_persistence(&levels, height)).abs() < 1e-9);
        }
    }
}

#[test]
fn the_smallest_sets_have_one_level() {
    let graph = KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap();
    let levels = Levels::of(&graph, &[], &[0], &()).unwrap();
    assert_eq!((levels.levels().len(), levels.labels(0), levels.cut(99.0)), (1, vec![0], vec![0]));
    // No edge has a probability: clusters are what they are, and never merge.
    let graph = KnnGraph::from_parts(3, 1, vec![1, 0, 1], vec![0.5; 3], "test").unwrap();
    let levels = Levels::of(&graph, &[0.0; 3], &[0, 1, 0], &()).unwrap();
    assert_eq!(levels.cut(99.0), [0, 1, 0]);
    assert_eq!(levels.cut(-1.0), [0, 1, 2]);
}

#[test]
fn what_does_not_fit_the_graph_is_refused() {
    let graph = KnnGraph::from_parts(3, 1, vec![1, 0, 1], vec![0.5; 3], "test").unwrap();
    let message = |probabilities: &[f32], labels: &[i64]| {
        Levels::of(&graph, probabilities, labels, &()).unwrap_err().to_string()
    };
    assert!(message(&[0.5; 2], &[0; 3]).contains("probabilities (one per edge)"));
    assert!(message(&[0.5; 3], &[0; 2]).contains("labels (one per vertex)"));
    assert!(message(&[0.5, f32::NAN, 0.5], &[0; 3]).contains("a probability from 0 to 1"));
    assert_eq!(MergeTree::from_parts(2, vec![[0, 3]], vec![0.0]), None);
    assert_eq!(MergeTree::from_parts(3, vec![[0, 1], [1, 2]], vec![0.0, 1.0]), None);
    assert_eq!(MergeTree::from_parts(3, vec![[0, 1], [2, 3]], vec![1.0, 0.0]), None);
}

/// Four groups of four pairs: within a pair 1, within a group 0.5, within two groups 0.05, and hardly anything beyond.
#[test]
fn a_planted_hierarchy_is_found() {
    let n = 32u32;
    let ids: Vec<u32> = (0..n).flat_map(|i| (0..n).filter(move |&j| j != i)).collect();
    let p = |i: u32, j: u32| match (i ^ j).checked_ilog2() {
        Some(0) => 1.0,
        Some(1 | 2) => 0.5,
        Some(3) => 0.05,
        _ => 0.001,
    };
    let probabilities: Vec<f32> = ids.iter().enumerate().map(|(at, &j)| p(at as u32 / (n - 1), j)).collect();
    let k = n as usize - 1;
    let graph = KnnGraph::from_parts(n as usize, k, ids, vec![0.5; n as usize * k], "test").unwrap();
    let groups: Vec<i64> = (0..n).map(|i| i64::from(i / 8)).collect();
    let levels = Levels::of(&graph, &probabilities, &groups, &()).unwrap();
    assert_eq!(levels.labels(levels.default_level()), groups);
    let last = levels.levels().len() - 1;
    assert_eq!(levels.labels(last), (0..n).map(|i| i64::from(i / 16)).collect::<Vec<_>>());
    assert_eq!(levels.cut(-1.5), (0..n).map(|i| i64::from(i / 2)).collect::<Vec<_>>());
}

#[test]
fn kin_has_levels_if_they_are_requested() {
    let params = SynthParams { identities: 60, dim: 64, seed: 9, ..SynthParams::default() };
    let (embeddings, _) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
    let [one, three] = on_one_and_three_threads(|| Clusterer::new().levels(true).fit(&embeddings).unwrap());
    assert_eq!(one.levels, three.levels);
    let levels = one.levels.unwrap();
    assert_eq!(levels.labels(levels.default_level()), one.labels);
    assert!(levels.levels().len() > 1, "{:?}", levels.levels());
    let without = Clusterer::new().fit(&embeddings).unwrap();
    assert_eq!((without.labels, without.levels), (one.labels, None));
    let message = Clusterer::with(Density::default()).levels(true).fit(&embeddings).unwrap_err().to_string();
    assert_eq!(
        message,
        "levels: expected a method that estimates edge probabilities, such as kin, found density"
    );
}
