//! FaceMap: the map equation on the nearest neighbours of each row, up to where their similarities stop falling fast.
//!
//! Yu et al., "FaceMap: Towards Unsupervised Face Clustering via Map Equation" (2022), in the order of its published program.
//! For each row, with the similarities s_1..s_K of its neighbours in descending order and D_r = s_r - s_{r+1}:
//!
//! - z_j = |mean of D_j..D_{j+w-1} - mean of D_j..D_{K-1}| / standard deviation of D_j..D_{K-1}: how unusual a window of w
//!   differences is in its tail;
//! - of the window with the largest z, the first if several are equal, the middle q = j + ceil(w / 2) is where other identities
//!   begin. Neighbours 1..q are kept;
//! - p_r = s_r / sum of all s, negative ones as 0, is the weight of the edge to neighbour r. (The published D_r is p_r - p_{r+1},
//!   but z does not depend on the factor.)
//!
//! The map equation with undirected flow partitions the edges. Without a z above 0, which takes more than w differences, only
//! the nearest neighbour is kept.
//!
//! Cost: O(N K), because the deviation of a tail follows from that of the next; then a few dozen passes over the edges. O(N K)
//! memory.

use crate::clusters::Clusters;
use kinfolk::stages::{Flow, MapParams, WeightedGraph, map_equation};
use kinfolk::{Clustering, Context, Input, KnnGraph, Method, MethodInfo, Parameters, Problem, Result};
use rayon::prelude::*;

/// Neighbours if the user does not say, as published.
const K: usize = 256;

kinfolk::parameters! {
    /// FaceMap: the map equation on the nearest neighbours of each row, up to where their similarities stop falling fast.
    ///
    /// Use it for identities of dozens of rows: with the default window nearly every row keeps at least 11 neighbours, so hardly
    /// any is left alone.
    ///
    /// Cost: a few dozen passes over N K edges, O(N K) memory; K is 256 by default.
    ///
    /// ```
    /// use kinfolk::{Clusterer, KnnGraph, Problem};
    /// use kinfolk_baselines::FaceMap;
    /// let graph = KnnGraph::from_parts(4, 1, vec![1, 0, 3, 2], vec![0.9, 0.9, 0.8, 0.8], "example")?;
    /// let found = Clusterer::with(FaceMap::default()).run(&Problem::of_graph(&graph))?;
    /// assert_eq!(found.labels, [0, 0, 1, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct FaceMap {
        /// Differences of successive similarities in a window.
        pub window: usize = 20, "at least 1", |window| *window >= 1;
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "facemap",
    "FaceMap",
    "The map equation on the nearest neighbours of each row, up to where their similarities stop falling fast",
)
.when("to compare with a published method that needs neither labels nor a threshold; identities of dozens of rows")
.cost("N K, dozens of times; K is 256 by default")
.input(Input::Graph)
.color("#7a3b2e");

impl Method for FaceMap {
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
        let given = problem.neighbours(K, context)?;
        let found = context.timed("partition", || self.partition(&given.graph, context))?;
        Ok(found.into_clustering(self, Some(given.report), context))
    }
}

impl FaceMap {
    fn partition(&self, graph: &KnnGraph, context: &Context) -> Result<Clusters> {
        let edges = WeightedGraph::from_knn(graph, &self.kept(graph))?;
        let params = MapParams { flow: Flow::Undirected, seed: context.seed(), ..MapParams::default() };
        let found = map_equation(&edges, &params, context.progress())?;
        Ok(Clusters { labels: found.labels, noise: None })
    }

    /// The probabilities of the edges that are kept, in the order of the graph; 0 for the others.
    fn kept(&self, graph: &KnnGraph) -> Vec<f32> {
        let k = graph.k();
        let mut kept = vec![0.0; graph.len() * k];
        // Without neighbours there are no rows of `kept`.
        kept.par_chunks_mut(k.max(1)).enumerate().for_each(|(i, kept)| {
            let similarities = graph.neighbours(i).1;
            let positive = |&s: &f32| f64::from(s.max(0.0));
            let sum: f64 = similarities.iter().map(positive).sum();
            let count = before_others(similarities, self.window);
            for (kept, similarity) in kept.iter_mut().zip(&similarities[..count]) {
                *kept = if sum > 0.0 { (positive(similarity) / sum) as f32 } else { 0.0 };
            }
        });
        kept
    }
}

/// The number of neighbours before other identities begin, at least 1.
fn before_others(similarities: &[f32], window: usize) -> usize {
    let last = similarities.len() - 1;
    let fall = |from: usize, to: usize| f64::from(similarities[from]) - f64::from(similarities[to]);
    let (mut count, mut highest) = (1, 0.0);
    // Of the differences from j on, one more in each step: their mean, and the sum of squared deviations from it.
    let (mut mean, mut squares) = (0.0, 0.0);
    for j in (0..last).rev() {
        let differences = (last - j) as f64;
        let difference = fall(j, j + 1);
        let before = difference - mean;
        mean += before / differences;
        squares += before * (difference - mean);
        if j + window > last {
            continue;
        }
        let in_window = fall(j, j + window) / window as f64;
        let deviation = (squares / differences).sqrt();
        let z = if deviation > 0.0 { (in_window - mean).abs() / deviation } else { 0.0 };
        if z > 0.0 && z >= highest {
            (count, highest) = (j + window.div_ceil(2) + 1, z);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{knn, numbers, on_graph, on_one_and_three_threads, refusal, same_groups, synthetic};
    use proptest::prelude::*;

    /// z of each number of neighbours to keep, by the formula.
    fn scores(similarities: &[f32], window: usize) -> Vec<f64> {
        let differences: Vec<f64> =
            similarities.windows(2).map(|pair| f64::from(pair[0]) - f64::from(pair[1])).collect();
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let mut scores = vec![0.0; similarities.len() + 1];
        for (j, inside) in differences.windows(window).enumerate() {
            let tail = &differences[j..];
            let squares: Vec<f64> = tail.iter().map(|d| (d - mean(tail)).powi(2)).collect();
            let deviation = mean(&squares).sqrt();
            let z = (mean(inside) - mean(tail)).abs() / deviation;
            scores[j + 1 + window.div_ceil(2)] = if deviation > 0.0 { z } else { 0.0 };
        }
        scores
    }

    proptest! {
        #[test]
        fn neighbours_are_kept_up_to_the_highest_score(
            mut similarities in prop::collection::vec(-1.0f32..1.0, 1..60), window in 1usize..24,
        ) {
            similarities.sort_by(|a, b| b.total_cmp(a));
            let (count, scores) = (before_others(&similarities, window), scores(&similarities, window));
            let highest = scores.iter().copied().fold(0.0, f64::max);
            prop_assert!((1..=similarities.len()).contains(&count));
            prop_assert!((scores[count] - highest).abs() <= 1e-6 * highest.max(1.0), "{count}: {scores:?}");
        }
    }

    #[test]
    fn probabilities_and_clusters_are_those_of_numpy_and_infomap() {
        let mut lines = include_str!("../tests/data/facemap.txt").lines();
        let mut cases = 0;
        while let Some(header) = lines.next() {
            let header: Vec<usize> = numbers(header);
            let [n, k, window] = header[..] else { panic!("{header:?}") };
            let mut line = || lines.next().unwrap();
            let (ids, similarities) = (numbers(line()), numbers(line()));
            let graph = KnnGraph::from_parts(n, k, ids, similarities, "facemap.txt").unwrap();
            let method = FaceMap { window };
            let expected: Vec<f32> = numbers(line());
            for (at, (found, expected)) in method.kept(&graph).into_iter().zip(expected).enumerate() {
                assert!((found - expected).abs() < 1e-6, "edge {at}: {found}, not {expected}");
            }
            let labels = on_graph(&method, &graph).unwrap().labels;
            assert!(same_groups(&labels, &numbers::<i64>(line())), "{header:?}");
            cases += 1;
        }
        assert_eq!(cases, 2);
    }

    #[test]
    fn the_fall_of_similarities_ends_the_list() {
        // Ten neighbours that fall fast, then forty that hardly fall.
        let similarities: Vec<f32> =
            (0..50).map(|r| if r < 10 { 0.9 - 0.05 * r as f32 } else { 0.2 - 0.001 * r as f32 }).collect();
        let count = before_others(&similarities, 4);
        assert!((8..=12).contains(&count), "{count}");
        // Nothing falls, or there is no window: the nearest alone.
        let falling_nowhere = before_others(&[0.1; 50], 4);
        assert_eq!([falling_nowhere, before_others(&similarities, 50), before_others(&[1.0], 4)], [1; 3]);
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
        let message = refusal(on_graph(&FaceMap { window: 0 }, &graph));
        assert_eq!(message, "window: expected at least 1, found 0");
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(40);
        let graph = knn(&rows, 120);
        let [one, three] = on_one_and_three_threads(|| {
            let method = FaceMap::default();
            (method.kept(&graph), on_graph(&method, &graph).unwrap().labels)
        });
        assert_eq!(one, three);
        let scores = kinfolk::metrics::evaluate(&truth, &one.1).unwrap();
        assert!(scores.bcubed.f > 0.5, "{scores:?}");
    }
}
