//! Approximate rank-order clustering.
//!
//! Otto, Wang and Jain, "Clustering millions of faces by identity" (2016). With O_a(b) the rank of b among the neighbours of
//! a, from 1, and f_a(i) the neighbour of rank i, the distance of two rows that list each other is
//!
//! - d(a, b) = number of i in 1..O_a(b) for which f_a(i) is not in the list of b, b itself counting as in it,
//! - D(a, b) = (d(a, b) + d(b, a)) / min(O_a(b), O_b(a)).
//!
//! Rows with D of at most a threshold are joined. Clusters are the connected components.
//!
//! Cost: N K pairs of K log K steps at most; O(N K) memory.

use crate::clusters::Clusters;
use kinfolk::stages::DisjointSets;
use kinfolk::{
    Clustering, Context, Input, KnnGraph, Method, MethodInfo, Parameters, Problem, Progress, Result,
};
use rayon::prelude::*;

/// Vertices of one task.
const TASK: usize = 256;

kinfolk::parameters! {
    /// Approximate rank-order clustering: joins rows whose nearest neighbours are the same.
    ///
    /// Use it if the scale of similarities varies over the set: only ranks count. No number of clusters is needed.
    ///
    /// Cost: at most N K^2 steps, on all threads; O(N K) memory.
    ///
    /// ```
    /// use kinfolk::{Clusterer, KnnGraph, Problem};
    /// use kinfolk_baselines::Aro;
    /// let graph = KnnGraph::from_parts(4, 1, vec![1, 0, 3, 2], vec![0.9, 0.9, 0.8, 0.8], "example")?;
    /// let found = Clusterer::with(Aro::default()).run(&Problem::of_graph(&graph))?;
    /// assert_eq!(found.labels, [0, 0, 1, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Aro {
        /// Rows with at most this rank-order distance are joined.
        pub threshold: f32 = 0.3, "a finite number of 0 or more",
            |threshold| *threshold >= 0.0 && threshold.is_finite();
    }
}

static INFO: MethodInfo =
    MethodInfo::new("aro", "Approximate rank-order", "Joins rows whose lists of nearest neighbours agree")
        .when("when the scale of similarities varies over the set, because only ranks count")
        .cost("N K^2")
        .input(Input::Graph)
        .in_paper()
        .color("#0f9fb0");

impl Method for Aro {
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
        let found = context.timed("partition", || self.partition(&given.graph, context.progress()))?;
        Ok(found.into_clustering(self, Some(given.report), context))
    }
}

impl Aro {
    fn partition(&self, graph: &KnnGraph, progress: &dyn Progress) -> Result<Clusters> {
        let n = graph.len();
        progress.begin("rank-order distances", n as u64);
        let tasks: Vec<Vec<(u32, u32)>> = (0..n.div_ceil(TASK))
            .into_par_iter()
            .map_init(
                // The rank of each row in the list of the current vertex; the vertex itself has rank 0.
                || vec![u32::MAX; n],
                |ranks, task| {
                    if progress.cancelled() {
                        return Vec::new();
                    }
                    let vertices = task * TASK..((task + 1) * TASK).min(n);
                    progress.advance(vertices.len() as u64);
                    vertices.flat_map(|a| joined_to(graph, a, self.threshold, ranks)).collect()
                },
            )
            .collect();
        progress.check()?;
        let mut forest = DisjointSets::new(n);
        tasks.into_iter().flatten().for_each(|(a, b)| {
            forest.join(a, b);
        });
        Ok(Clusters::from_names(&forest.names()))
    }
}

/// The neighbours with a larger id than `a` that are near enough.
fn joined_to(graph: &KnnGraph, a: usize, threshold: f32, ranks: &mut [u32]) -> Vec<(u32, u32)> {
    let list_a = graph.neighbours(a).0;
    ranks[a] = 0;
    list_a.iter().zip(1..).for_each(|(&c, rank)| ranks[c as usize] = rank);
    let mut joined = Vec::new();
    for (&b, rank_of_b) in list_a.iter().zip(1u32..) {
        // Each pair is in both lists; it is computed once.
        if (b as usize) < a {
            continue;
        }
        let list_b = graph.neighbours(b as usize).0;
        let Some(before_a) = position(list_b, a as u32) else { continue };
        let rank_of_a = before_a as u32 + 1;
        // d(b, a): what b lists before a and a does not list. What b lists at all and a lists before b is not missing in d(a, b).
        let (mut only_b, mut shared) = (0, 0);
        for (at, &c) in list_b.iter().enumerate() {
            let in_a = ranks[c as usize];
            only_b += u32::from(in_a == u32::MAX && at < before_a);
            shared += u32::from(in_a != 0 && in_a < rank_of_b);
        }
        let only_a = rank_of_b - 1 - shared;
        let distance = (only_a + only_b) as f32 / rank_of_b.min(rank_of_a) as f32;
        if distance <= threshold {
            joined.push((a as u32, b));
        }
    }
    ranks[a] = u32::MAX;
    list_a.iter().for_each(|&c| ranks[c as usize] = u32::MAX);
    joined
}

/// The position of `id` in the list. Whole chunks are compared at once, because most lists do not contain it.
fn position(list: &[u32], id: u32) -> Option<usize> {
    let chunk = list.chunks(16).position(|chunk| chunk.iter().fold(false, |found, &c| found | (c == id)))?;
    list[chunk * 16..].iter().position(|&c| c == id).map(|at| chunk * 16 + at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graphs, knn, on_graph, on_one_and_three_threads, refusal, synthetic};
    use proptest::prelude::*;

    /// d(a, b) by the formula, b's rank in its own list being 0.
    fn one_way(graph: &KnnGraph, a: usize, b: usize) -> Option<(usize, usize)> {
        let (list_a, list_b) = (graph.neighbours(a).0, graph.neighbours(b).0);
        let rank = list_a.iter().position(|&c| c as usize == b)? + 1;
        let missing = (1..=rank).filter(|i| {
            let f = list_a[i - 1];
            f as usize != b && !list_b.contains(&f)
        });
        Some((missing.count(), rank))
    }

    proptest! {
        #[test]
        fn joined_are_those_of_the_formula(graph in graphs(), threshold in 0.0f32..3.0) {
            let n = graph.len();
            let mut ranks = vec![u32::MAX; n];
            for a in 0..n {
                let expected = |b: &usize| {
                    let (Some((d_ab, o_ab)), Some((d_ba, o_ba))) = (one_way(&graph, a, *b), one_way(&graph, *b, a))
                    else { return false };
                    (d_ab + d_ba) as f32 / o_ab.min(o_ba) as f32 <= threshold
                };
                let expected: Vec<u32> = (a + 1..n).filter(expected).map(|b| b as u32).collect();
                let mut found: Vec<u32> = joined_to(&graph, a, threshold, &mut ranks).iter().map(|j| j.1).collect();
                found.sort_unstable();
                prop_assert_eq!(found, expected);
                prop_assert!(ranks.iter().all(|&rank| rank == u32::MAX));
            }
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
        let message = refusal(on_graph(&Aro { threshold: -1.0 }, &graph));
        assert_eq!(message, "threshold: expected a finite number of 0 or more, found -1");
    }

    #[test]
    fn one_vertex_two_vertices_and_identities() {
        let labels = |graph: &KnnGraph| on_graph(&Aro::default(), graph).unwrap().labels;
        assert_eq!(labels(&KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap()), [0]);
        assert_eq!(labels(&KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.1; 2], "test").unwrap()), [0, 0]);
        let (rows, truth) = synthetic(40);
        let graph = knn(&rows, 30);
        let [one, three] = on_one_and_three_threads(|| labels(&graph));
        assert_eq!(one, three);
        let scores = kinfolk::metrics::evaluate(&truth, &one).unwrap();
        assert!(scores.bcubed.f > 0.2, "{scores:?}");
    }
}
