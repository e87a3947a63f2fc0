//! Chinese whispers: label propagation, in which every vertex takes the strongest label of its neighbours.
//!
//! Biemann, "Chinese whispers" (2006), as in dlib, which photo applications use: edges are the pairs above a threshold, each
//! vertex starts with a label of its own, and a visited vertex takes the label with the largest sum of weights among its
//! neighbours. Each round visits all vertices in a new random order. It ends when a round changes nothing, or after
//! `iterations` rounds.
//!
//! Cost: O(E) for each round, which is serial because each visit depends on those before it; O(E) memory.

use crate::clusters::Clusters;
use crate::random::stream;
use crate::sparse::Symmetric;
use kinfolk::{Clustering, Context, Input, KnnGraph, Method, MethodInfo, Parameters, Problem, Result};

kinfolk::parameters! {
    /// Chinese whispers: label propagation along the edges of a kNN graph.
    ///
    /// Use it for fast clustering when a good threshold is known; it needs no number of clusters. Other seeds give slightly
    /// different clusters.
    ///
    /// Cost: O(N K) for each of about ten rounds, on one thread; O(N K) memory.
    ///
    /// ```
    /// use kinfolk::{Clusterer, KnnGraph, Problem};
    /// use kinfolk_baselines::ChineseWhispers;
    /// let graph = KnnGraph::from_parts(4, 1, vec![1, 0, 3, 2], vec![0.9, 0.9, 0.8, 0.8], "example")?;
    /// let found = Clusterer::with(ChineseWhispers::default()).run(&Problem::of_graph(&graph))?;
    /// assert_eq!(found.labels, [0, 0, 1, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct ChineseWhispers {
        /// Edges of at least this similarity are used.
        pub th: f32 = 0.6, "a similarity from -1 to 1", |th| (-1.0..=1.0).contains(th);
        /// Maximum number of rounds.
        pub iterations: usize = 100, "at least 1", |iterations| *iterations >= 1;
        /// Whether edges are weighted by similarity; otherwise all have the same weight, as in dlib.
        pub weighted: bool = true;
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "chinese-whispers",
    "Chinese whispers",
    "Label propagation: every row takes the most common label of its neighbours, until nothing changes",
)
.when("for fast clustering at a known similarity threshold")
.cost("N K per round")
.input(Input::Graph)
.color("#8c564b");

impl Method for ChineseWhispers {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn parameters(&self) -> &dyn Parameters {
        self
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        self
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.check()?;
        let given = problem.neighbours(80, context)?;
        let found = context.timed("partition", || self.partition(&given.graph, context))?;
        Ok(found.into_clustering(self, Some(given.report), context))
    }
}

impl ChineseWhispers {
    fn partition(&self, graph: &KnnGraph, context: &Context) -> Result<Clusters> {
        let progress = context.progress();
        let edges = Symmetric::of(graph, |similarity| similarity >= self.th && similarity > 0.0);
        let n = edges.len();
        let mut labels: Vec<u32> = (0..n as u32).collect();
        let mut order: Vec<u32> = (0..n as u32).filter(|&i| !edges.row(i as usize).0.is_empty()).collect();
        let mut stream = stream(context.seed(), 0);
        let mut loudness = vec![0.0f32; n];
        let mut heard = Vec::new();
        progress.begin("rounds", self.iterations as u64);
        for _ in 0..self.iterations {
            progress.check()?;
            for left in (1..order.len()).rev() {
                order.swap(left, stream.below(left + 1));
            }
            let mut changes = 0usize;
            for &i in &order {
                let loudest = loudest(&edges, i, &labels, self.weighted, &mut loudness, &mut heard);
                changes += usize::from(labels[i as usize] != loudest);
                labels[i as usize] = loudest;
            }
            progress.advance(1);
            progress.note(&format!("{changes} changes"));
            if changes == 0 {
                break;
            }
        }
        Ok(Clusters::from_names(&labels))
    }
}

/// The label with the largest sum of weights among the neighbours of `i`; ties go to its own label, then to the smallest.
fn loudest(
    edges: &Symmetric,
    i: u32,
    labels: &[u32],
    weighted: bool,
    loudness: &mut [f32],
    heard: &mut Vec<u32>,
) -> u32 {
    let (ids, similarities) = edges.row(i as usize);
    for (&j, &similarity) in ids.iter().zip(similarities) {
        let label = labels[j as usize];
        if loudness[label as usize] == 0.0 {
            heard.push(label);
        }
        loudness[label as usize] += if weighted { similarity } else { 1.0 };
    }
    let own = labels[i as usize];
    let mut best = (own, loudness[own as usize]);
    for label in heard.drain(..) {
        let volume = std::mem::take(&mut loudness[label as usize]);
        if volume > best.1 || (volume == best.1 && best.0 != own && label < best.0) {
            best = (label, volume);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graphs, knn, on_graph, refusal, seeded, synthetic};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_strongest_label_has_the_largest_sum(graph in graphs(), weighted: bool, seed in 0u64..99) {
            let edges = Symmetric::of(&graph, |s| s > 0.0);
            let n = graph.len();
            let mut stream = stream(seed, 0);
            let labels: Vec<u32> = (0..n).map(|_| stream.below(n.min(4)) as u32).collect();
            let (mut loudness, mut heard) = (vec![0.0; n], Vec::new());
            for i in 0..n {
                let mut sums: BTreeMap<u32, f32> = BTreeMap::new();
                let (ids, similarities) = edges.row(i);
                for (&j, &s) in ids.iter().zip(similarities) {
                    *sums.entry(labels[j as usize]).or_default() += if weighted { s } else { 1.0 };
                }
                let most = sums.values().copied().fold(0.0, f32::max);
                let own = sums.get(&labels[i]) == Some(&most) || sums.is_empty();
                let first = sums.iter().find(|sum| *sum.1 == most).map(|sum| *sum.0);
                let expected = if own { labels[i] } else { first.unwrap() };
                let found = loudest(&edges, i as u32, &labels, weighted, &mut loudness, &mut heard);
                prop_assert_eq!(found, expected);
            }
            prop_assert!(heard.is_empty() && loudness.iter().all(|&l| l == 0.0));
        }

        /// Labels spread along edges only.
        #[test]
        fn clusters_are_connected(graph in graphs(), th in 0.0f32..1.0, seed in 0u64..9) {
            let params = ChineseWhispers { th, ..Default::default() };
            let found = seeded(&params, &Problem::of_graph(&graph), seed).unwrap().labels;
            let mut forest = kinfolk::stages::DisjointSets::new(graph.len());
            for i in 0..graph.len() {
                let (ids, similarities) = graph.neighbours(i);
                for (&j, _) in ids.iter().zip(similarities).filter(|edge| *edge.1 >= th && *edge.1 > 0.0) {
                    forest.join(i as u32, j);
                }
            }
            let components = forest.names();
            for i in 0..graph.len() {
                for j in 0..i {
                    prop_assert!(found[i] != found[j] || components[i] == components[j]);
                }
            }
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
        let message = |params: ChineseWhispers| refusal(on_graph(&params, &graph));
        assert_eq!(
            message(ChineseWhispers { th: 1.5, ..Default::default() }),
            "th: expected a similarity from -1 to 1, found 1.5"
        );
        assert!(message(ChineseWhispers { iterations: 0, ..Default::default() }).starts_with("iterations"));
    }

    #[test]
    fn one_vertex_two_vertices_and_identities() {
        let found = |graph: &KnnGraph, th| {
            on_graph(&ChineseWhispers { th, ..Default::default() }, graph).unwrap().labels
        };
        assert_eq!(found(&KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap(), 0.5), [0]);
        let two = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
        assert_eq!((found(&two, 0.5), found(&two, 0.6)), (vec![0, 0], vec![0, 1]));
        let (rows, truth) = synthetic(40);
        let scores = kinfolk::metrics::evaluate(&truth, &found(&knn(&rows, 30), 0.7)).unwrap();
        assert!(scores.bcubed.f > 0.5, "{scores:?}");
    }
}
