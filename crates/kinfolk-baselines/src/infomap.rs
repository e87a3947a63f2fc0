//! Infomap: the partition that gives a random walk on the graph the shortest description.
//!
//! Rosvall and Bergstrom (2008), with kinfolk's own implementation of the map equation. Edges are those of the kNN graph above
//! a cosine threshold, weighted by similarity, as in papers that follow "Learning to Cluster Faces via Confidence and
//! Connectivity Estimation".
//!
//! Cost: O(N K) memory and a few dozen passes over the edges.

use crate::clusters::Clusters;
use kinfolk::stages::{Flow, MapParams, WeightedGraph, map_equation};
use kinfolk::{Clustering, Context, Input, KnnGraph, Method, MethodInfo, Parameters, Problem, Result};
use rayon::prelude::*;

kinfolk::parameters! {
    /// Infomap: finds modules in which a random walk stays long.
    ///
    /// Use it when a threshold can be chosen on labelled data: with a good one it is the best of the methods here.
    ///
    /// Cost: a few dozen passes over N K edges, O(N K) memory.
    ///
    /// ```
    /// use kinfolk::{Clusterer, KnnGraph, Problem};
    /// use kinfolk_baselines::Infomap;
    /// let graph = KnnGraph::from_parts(4, 1, vec![1, 0, 3, 2], vec![0.9, 0.9, 0.8, 0.8], "example")?;
    /// let found = Clusterer::with(Infomap::default()).run(&Problem::of_graph(&graph))?;
    /// assert_eq!(found.labels, [0, 0, 1, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Infomap {
        /// Edges of at most this similarity are left out.
        pub th: f32 = 0.6, "a similarity from -1 to 1", |th| (-1.0..=1.0).contains(th);
        /// Whether a random walk follows edges in both directions or only from a row to its neighbours.
        pub flow: Flow = Flow::Undirected;
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "infomap",
    "Infomap",
    "Finds the partition in which a random walk on the kNN graph has the shortest description",
)
.when("when a similarity threshold can be chosen on labelled data; then it is the best of the baselines")
.cost("N K, dozens of times")
.input(Input::Graph)
.color("#393b79");

impl Method for Infomap {
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

impl Infomap {
    fn partition(&self, graph: &KnnGraph, context: &Context) -> Result<Clusters> {
        let weight = |&similarity: &f32| if similarity > self.th { similarity.max(0.0) } else { 0.0 };
        let weights: Vec<f32> = (0..graph.len())
            .into_par_iter()
            .flat_map_iter(|i| graph.neighbours(i).1.iter().map(weight))
            .collect();
        let edges = WeightedGraph::from_knn(graph, &weights)?;
        let params = MapParams { flow: self.flow, seed: context.seed(), ..MapParams::default() };
        let found = map_equation(&edges, &params, context.progress())?;
        Ok(Clusters { labels: found.labels, noise: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{knn, on_graph, on_one_and_three_threads, refusal, synthetic};

    #[test]
    fn impossible_parameters_are_refused() {
        let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
        let message = refusal(on_graph(&Infomap { th: f32::NAN, ..Default::default() }, &graph));
        assert_eq!(message, "th: expected a similarity from -1 to 1, found NaN");
    }

    #[test]
    fn only_edges_above_the_threshold_count() {
        let two = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
        let found = |th| on_graph(&Infomap { th, ..Default::default() }, &two).unwrap().labels;
        assert_eq!((found(0.4), found(0.5)), (vec![0, 0], vec![0, 1]));
        // Edges between opposite rows have no positive weight for a walk.
        let apart = KnnGraph::from_parts(2, 1, vec![1, 0], vec![-0.5; 2], "test").unwrap();
        let params = Infomap { th: -1.0, ..Default::default() };
        assert_eq!(on_graph(&params, &apart).unwrap().labels, [0, 1]);
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(40);
        let graph = knn(&rows, 30);
        let params = Infomap { th: 0.6, ..Default::default() };
        let [one, three] = on_one_and_three_threads(|| on_graph(&params, &graph).unwrap().labels);
        assert_eq!(one, three);
        let scores = kinfolk::metrics::evaluate(&truth, &one).unwrap();
        assert!(scores.bcubed.f > 0.5, "{scores:?}");
    }
}
