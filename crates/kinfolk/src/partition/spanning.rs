//! The maximum spanning tree of the edges of each cluster.
//!
//! Of all paths between two rows of a cluster, the path in the maximum spanning tree has the strongest weakest edge. So it
//! explains why two rows are in one cluster, and shows where to cut first. The root is the row with the largest sum of edge
//! probabilities.
//!
//! Cost: O(E log E) for the E edges inside clusters, each cluster on one thread; 28 bytes for each row.

use super::Cohesion;
use crate::knn::dot;
use crate::{Embeddings, KnnGraph, Links};
use rayon::prelude::*;

/// An edge between two rows, with its statistics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// The row at its other end.
    pub row: u32,
    /// Cosine of the two.
    pub similarity: f32,
    /// Probability that they are of one identity.
    pub probability: f32,
    /// The rank of the other row among the neighbours of this row, from 1, and the other way round; 0 if it is not a neighbour.
    pub ranks: [u32; 2],
    /// The number of common neighbours.
    pub shared: u32,
}

/// The edges that explain a clustering.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EdgeEvidence {
    /// The probability that the edge of two rows without other edges must exceed for them to be one cluster.
    pub min_probability: f32,
    /// For each row its edge towards the root of its cluster's tree; `None` for the root.
    pub inside: Vec<Option<Edge>>,
    /// For each row its most probable edge to another cluster, if any was considered.
    pub outside: Vec<Option<Edge>>,
    /// For each cluster its edges, summed.
    pub clusters: Vec<Cohesion>,
}

impl EdgeEvidence {
    /// The trees of the edges that are more probable than `counted`; `probabilities` are those of the graph's edges, and `pair`
    /// is what a pair must exceed.
    pub(crate) fn of(
        graph: &KnnGraph,
        probabilities: &[f32],
        labels: &[i64],
        counted: f32,
        pair: f32,
    ) -> Self {
        let parents = spanning_forest(graph, probabilities, labels, counted);
        let k = graph.k();
        let outside = |i: usize| {
            let ids = graph.neighbours(i).0;
            let leaving =
                ids.iter().zip(&probabilities[i * k..]).filter(|&(&j, _)| labels[j as usize] != labels[i]);
            // The first of equals is the nearest.
            let best = leaving.fold(None, |best: Option<(u32, f32)>, (&j, &p)| match best {
                Some((_, most)) if most >= p => best,
                _ => Some((j, p)),
            });
            best.map(|(j, _)| j)
        };
        // Each thread marks the neighbours of a row, to count those it shares.
        let edges = |marks: &mut Vec<bool>, (v, &parent): (usize, &u32)| {
            let ids = graph.neighbours(v).0;
            ids.iter().for_each(|&id| marks[id as usize] = true);
            let edge = |other: u32| edge(graph, probabilities, marks, v as u32, other);
            let found = ((parent != Links::NONE).then(|| edge(parent)), outside(v).map(edge));
            ids.iter().for_each(|&id| marks[id as usize] = false);
            found
        };
        let edges = parents.par_iter().enumerate().map_init(|| vec![false; graph.len()], edges);
        let (inside, outside) = edges.unzip();
        let clusters = Cohesion::of_clusters(graph, probabilities, labels);
        EdgeEvidence { min_probability: pair, inside, outside, clusters }
    }

    /// With the cosines of these rows, instead of those of the graph, which may be one of centred or whitened rows.
    pub(crate) fn with_similarities(mut self, embeddings: &Embeddings) -> Self {
        for edges in [&mut self.inside, &mut self.outside] {
            edges.par_iter_mut().enumerate().for_each(|(row, edge)| {
                if let Some(edge) = edge {
                    edge.similarity = dot(embeddings.row(row), embeddings.row(edge.row as usize));
                }
            });
        }
        self
    }

    /// The confidence of each row: the probability of its most probable edge within the cluster, 0 for singletons.
    pub fn confidence(&self) -> Vec<f32> {
        let mut confidence = vec![0.0f32; self.inside.len()];
        for (v, edge) in self.inside.iter().enumerate() {
            if let Some(edge) = edge {
                for end in [v, edge.row as usize] {
                    confidence[end] = confidence[end].max(edge.probability);
                }
            }
        }
        confidence
    }
}

/// Everything about the edge of two rows, at least one of which lists the other; the neighbours of `v` are marked.
fn edge(graph: &KnnGraph, probabilities: &[f32], marks: &[bool], v: u32, other: u32) -> Edge {
    let slot = |of: u32, sought: u32| graph.neighbours(of as usize).0.iter().position(|&id| id == sought);
    let at = [slot(v, other).map(|slot| (v, slot)), slot(other, v).map(|slot| (other, slot))];
    let listed = || at.iter().flatten().map(|&(of, slot)| (of as usize, slot));
    let (_, similarities) = listed().next().map_or((&[][..], &[][..]), |(of, _)| graph.neighbours(of));
    let similarity = listed().next().map_or(0.0, |(_, slot)| similarities[slot]);
    let probability = listed().map(|(of, slot)| probabilities[of * graph.k() + slot]).fold(0.0, f32::max);
    let ranks = at.map(|listed| listed.map_or(0, |(_, slot)| slot as u32 + 1));
    let shared = graph.neighbours(other as usize).0.iter().filter(|&&id| marks[id as usize]).count() as u32;
    Edge { row: other, similarity, probability, ranks, shared }
}

/// The parent of every row in the maximum spanning tree of its cluster.
fn spanning_forest(graph: &KnnGraph, probabilities: &[f32], labels: &[i64], minimum: f32) -> Vec<u32> {
    let n = labels.len();
    let clusters = members(labels);
    // The place of each row in its cluster.
    let mut place = vec![0u32; n];
    for rows in clusters.rows() {
        rows.iter().zip(0..).for_each(|(&row, at)| place[row as usize] = at);
    }
    let k = graph.k();
    let trees: Vec<Vec<u32>> = clusters
        .rows()
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|rows| {
            let mut edges: Vec<(f32, u32, u32)> = Vec::new();
            let mut strength = vec![0.0f64; rows.len()];
            for (&i, a) in rows.iter().zip(0..) {
                let ids = graph.neighbours(i as usize).0;
                for (&j, &p) in ids.iter().zip(&probabilities[i as usize * k..]) {
                    if p > minimum && labels[j as usize] == labels[i as usize] {
                        let b = place[j as usize];
                        edges.push((p, a.min(b), a.max(b)));
                        strength[a as usize] += f64::from(p);
                        strength[b as usize] += f64::from(p);
                    }
                }
            }
            tree(rows, &edges, &strength)
        })
        .collect();
    let mut parents = vec![Links::NONE; n];
    for (rows, tree) in clusters.rows().zip(trees) {
        rows.iter().zip(tree).for_each(|(&row, parent)| parents[row as usize] = parent);
    }
    parents
}

/// Kruskal over edges by descending weight, equals in their order, then the parents of a walk from the strongest row of each
/// part.
fn tree(rows: &[u32], edges: &[(f32, u32, u32)], strength: &[f64]) -> Vec<u32> {
    let mut leader: Vec<u32> = (0..rows.len() as u32).collect();
    let find = |leader: &mut [u32], mut v: u32| {
        while leader[v as usize] != v {
            leader[v as usize] = leader[leader[v as usize] as usize];
            v = leader[v as usize];
        }
        v
    };
    // Of positive numbers the bits are in the order of the numbers; integers are sorted fastest.
    let key = |(&(weight, ..), at): (&(f32, u32, u32), u64)| u64::from(!weight.to_bits()) << 32 | at;
    assert!(u32::try_from(edges.len()).is_ok(), "a cluster of more edges than a key can count");
    let mut keys: Vec<u64> = edges.iter().zip(0..).map(key).collect();
    keys.sort_unstable();
    let mut beside: Vec<Vec<u32>> = vec![Vec::new(); rows.len()];
    for key in keys {
        let (_, a, b) = edges[key as u32 as usize];
        let (of_a, of_b) = (find(&mut leader, a), find(&mut leader, b));
        if of_a != of_b {
            leader[of_a as usize] = of_b;
            beside[a as usize].push(b);
            beside[b as usize].push(a);
        }
    }
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    order.sort_by(|&a, &b| strength[b as usize].total_cmp(&strength[a as usize]).then(a.cmp(&b)));
    let (mut parents, mut seen) = (vec![Links::NONE; rows.len()], vec![false; rows.len()]);
    let mut next = Vec::new();
    for root in order {
        if !std::mem::replace(&mut seen[root as usize], true) {
            next.push(root);
        }
        while let Some(v) = next.pop() {
            for &child in &beside[v as usize] {
                if !std::mem::replace(&mut seen[child as usize], true) {
                    parents[child as usize] = rows[v as usize];
                    next.push(child);
                }
            }
        }
    }
    parents
}

/// The rows of each cluster, ascending.
pub(crate) struct Members {
    starts: Vec<usize>,
    rows: Vec<u32>,
}

impl Members {
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self.starts.windows(2).map(|range| &self.rows[range[0]..range[1]])
    }
}

pub(crate) fn members(labels: &[i64]) -> Members {
    let clusters = labels.iter().max().map_or(0, |&last| last as usize + 1);
    let mut starts = vec![0; clusters + 1];
    labels.iter().for_each(|&label| starts[label as usize + 1] += 1);
    crate::graph::accumulate(&mut starts);
    let mut next = starts.clone();
    let mut rows = vec![0; labels.len()];
    for (row, &label) in labels.iter().enumerate() {
        let at = &mut next[label as usize];
        rows[*at] = row as u32;
        *at += 1;
    }
    Members { starts, rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_one_and_three_threads;
    use proptest::prelude::*;

    /// A graph in which every row lists `k` others, with probabilities and clusters.
    fn graphs() -> impl Strategy<Value = (KnnGraph, Vec<f32>, Vec<i64>)> {
        (3usize..24, 1usize..3).prop_flat_map(|(n, k)| {
            let steps = proptest::collection::vec(proptest::collection::btree_set(1..n, k), n);
            let probabilities = proptest::collection::vec(0u8..10, n * k);
            let labels = proptest::collection::vec(0i64..3, n);
            (steps, probabilities, labels).prop_map(move |(steps, probabilities, labels)| {
                let ids = steps
                    .iter()
                    .enumerate()
                    .flat_map(|(i, steps)| steps.iter().map(move |s| ((i + s) % n) as u32));
                let similarities = (0..n).flat_map(|_| (0..k).map(|slot| 0.9 - 0.1 * slot as f32)).collect();
                let graph = KnnGraph::from_parts(n, k, ids.collect(), similarities, "test").unwrap();
                (graph, probabilities.iter().map(|&p| f32::from(p) / 10.0).collect(), labels)
            })
        })
    }

    /// The strongest weakest edge of any path between two rows of a cluster, by trying all thresholds.
    fn bottleneck(
        graph: &KnnGraph,
        probabilities: &[f32],
        labels: &[i64],
        minimum: f32,
        [a, b]: [usize; 2],
    ) -> Option<f32> {
        let reached = |threshold: f32| {
            let mut seen = vec![false; graph.len()];
            seen[a] = true;
            for _ in 0..graph.len() {
                for i in 0..graph.len() {
                    for (slot, &j) in graph.neighbours(i).0.iter().enumerate() {
                        let (j, p) = (j as usize, probabilities[i * graph.k() + slot]);
                        if labels[i] == labels[j] && p > minimum && p >= threshold && (seen[i] || seen[j]) {
                            (seen[i], seen[j]) = (true, true);
                        }
                    }
                }
            }
            seen[b]
        };
        (0..10).rev().map(|p| p as f32 / 10.0).find(|&threshold| reached(threshold))
    }

    /// The rows from `v` to the root.
    fn upwards(evidence: &EdgeEvidence, v: usize) -> Vec<usize> {
        std::iter::successors(Some(v), |&v| evidence.inside[v].map(|edge| edge.row as usize)).collect()
    }

    proptest! {
        #[test]
        fn the_path_has_the_strongest_weakest_tie((graph, probabilities, labels) in graphs()) {
            let minimum = 0.25;
            let [evidence, again] =
                on_one_and_three_threads(|| EdgeEvidence::of(&graph, &probabilities, &labels, minimum, 0.5));
            prop_assert_eq!(&evidence, &again);
            for a in 0..graph.len() {
                for b in 0..a {
                    if labels[a] != labels[b] {
                        continue;
                    }
                    let (up_a, up_b) = (upwards(&evidence, a), upwards(&evidence, b));
                    let common = up_a.iter().find(|v| up_b.contains(v));
                    let weakest = common.map(|common| {
                        let path = up_a.iter().chain(&up_b).filter(|&v| {
                            // What lies below the meeting point, on either side.
                            v != common && !(up_a.contains(v) && up_b.contains(v))
                        });
                        path.map(|&v| evidence.inside[v].unwrap().probability).fold(1.0, f32::min)
                    });
                    prop_assert_eq!(weakest, bottleneck(&graph, &probabilities, &labels, minimum, [a, b]));
                }
            }
        }
    }

    #[test]
    fn ties_say_what_speaks_for_them() {
        // 0 lists 1 and 2, 1 lists 2 and 3, 2 lists 0 and 1, 3 lists 0 and 1.
        let ids = vec![1, 2, 2, 3, 0, 1, 0, 1];
        let graph = KnnGraph::from_parts(4, 2, ids, [0.9, 0.5].repeat(4), "test").unwrap();
        let probabilities = [0.8, 0.6, 0.7, 0.1, 0.6, 0.7, 0.2, 0.1];
        let evidence = EdgeEvidence::of(&graph, &probabilities, &[0, 0, 0, 1], 0.4, 0.5);
        // Row 2 has the most probability: 0.6 and 0.7 that it lists, and again from those who list it.
        assert_eq!(evidence.inside[2], None);
        let edge = Edge { row: 1, similarity: 0.9, probability: 0.8, ranks: [1, 0], shared: 1 };
        assert_eq!(evidence.inside[0], Some(edge));
        let edge = Edge { row: 2, similarity: 0.9, probability: 0.7, ranks: [1, 2], shared: 0 };
        assert_eq!(evidence.inside[1], Some(edge));
        assert_eq!(evidence.inside[3], None);
        let outside = |v: usize| evidence.outside[v].map(|edge| (edge.row, edge.probability));
        assert_eq!([0, 1, 2, 3].map(outside), [None, Some((3, 0.1)), None, Some((0, 0.2))]);
        assert_eq!(evidence.confidence(), [0.8, 0.8, 0.7, 0.0]);
    }
}
