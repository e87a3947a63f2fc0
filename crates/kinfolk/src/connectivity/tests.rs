use super::*;
use crate::testing::{graphs, large_graph, on_one_and_three_threads};
use proptest::prelude::*;

/// Position of each vertex in the total order, by sorting.
fn ranks(confidence: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..confidence.len()).collect();
    order.sort_by(|&a, &b| confidence[b].partial_cmp(&confidence[a]).unwrap().then(a.cmp(&b)));
    let mut ranks = vec![0; order.len()];
    order.iter().enumerate().for_each(|(rank, &i)| ranks[i] = rank);
    ranks
}

proptest! {
    #[test]
    fn links_are_the_nearest_of_higher_rank(
        graph in graphs(),
        m in 1usize..5,
        coarse in prop::collection::vec(-1i8..3, 40),
    ) {
        let confidence: Vec<f32> = coarse[..graph.len()].iter().map(|&c| c as f32 * 0.5).collect();
        let links = nearest_candidates(&graph, &confidence, m).unwrap();
        let ranks = ranks(&confidence);
        for i in 0..graph.len() {
            let (ids, similarities) = graph.neighbours(i);
            let mut all: Vec<(u32, f32)> = ids.iter().copied().zip(similarities.iter().copied()).collect();
            all.retain(|&(j, _)| ranks[j as usize] < ranks[i]);
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            all.truncate(m);
            let (parents, similarities) = links.of(i);
            prop_assert_eq!(all, parents.iter().copied().zip(similarities.iter().copied()).collect::<Vec<_>>());
        }
        prop_assert_eq!(links.confidence(), confidence);
    }
}

#[test]
fn equal_confidences_hang_on_the_smallest_id() {
    let graph = KnnGraph::from_parts(3, 2, vec![1, 2, 0, 2, 0, 1], vec![1.0; 6], "test").unwrap();
    // 0 and -0 are equal.
    let links = nearest_candidates(&graph, &[0.0, -0.0, 0.0], 1).unwrap();
    assert_eq!([0, 1, 2].map(|i| links.parent(i)), [None, Some((0, 1.0)), Some((0, 1.0))]);
}

#[test]
fn one_vertex_is_a_root() {
    let graph = KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap();
    let links = nearest_candidates(&graph, &[0.5], 3).unwrap();
    assert_eq!(links.parent(0), None);
}

#[test]
fn confidences_without_a_place_in_the_order_are_refused() {
    let graph = large_graph(3, 1);
    let error = nearest_candidates(&graph, &[0.0, f32::NAN, 0.0], 1).unwrap_err().to_string();
    assert_eq!(error, "confidence: row 1, column 0: expected a finite number, found NaN");
    let error = nearest_candidates(&graph, &[0.0], 1).unwrap_err().to_string();
    assert_eq!(error, "confidence: expected 3 confidences (one per vertex), found 1");
    let error = nearest_candidates(&graph, &[0.0; 3], 0).unwrap_err().to_string();
    assert_eq!(error, "m: expected 1 or more, found 0");
}

#[test]
fn links_that_lead_nowhere_are_refused() {
    let error =
        Links::from_parts(vec![0.0; 2], 1, vec![Links::NONE, 2], vec![0.0; 2]).unwrap_err().to_string();
    assert_eq!(error, "parents: expected ids of vertices, found 2 for vertex 1 of 2");
    let error = Links::from_parts(vec![0.0; 2], 1, vec![1], vec![0.0; 2]).unwrap_err().to_string();
    assert_eq!(error, "links: expected 2 parents (2 vertices of 1 links), found 1");
    let error =
        Links::from_parts(vec![0.0; 2], 1, vec![1, Links::NONE], vec![f32::NAN; 2]).unwrap_err().to_string();
    assert_eq!(error, "links: row 0, column 0: expected a finite number, found NaN");
}

#[test]
fn threads_do_not_change_a_link() {
    let graph = large_graph(4000, 10);
    let confidence: Vec<f32> = (0..4000).map(|i| (i * 7 % 50) as f32).collect();
    let [one, three] = on_one_and_three_threads(|| nearest_candidates(&graph, &confidence, 2).unwrap());
    assert!(one == three);
}
