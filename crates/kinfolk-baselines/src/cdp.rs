//! Consensus-driven propagation with a single model.
//!
//! Zhan et al., "Consensus-driven propagation in massive unlabeled data for face recognition" (2018). Without a committee the
//! votes for a pair are its similarity alone: pairs are the edges of the kNN graph of at least `th`. Clusters are the connected
//! components, split at higher thresholds while they have more than `max_size` rows ([`kinfolk::stages::limited_components`]).
//!
//! Cost: O(N K) for the first round; later rounds visit only edges within clusters that are too large.

use crate::clusters::Clusters;
use kinfolk::stages::{SizeLimit, limited_components};
use kinfolk::{
    Clustering, Context, Input, KnnGraph, Method, MethodInfo, Parameters, Problem, Progress, Result,
};
use rayon::prelude::*;

kinfolk::parameters! {
    /// Consensus-driven propagation: joins neighbours, and splits clusters that are too large at increasing thresholds.
    ///
    /// Use it when the maximum cluster size is known: this bound prevents connected components from merging into one. No
    /// number of clusters is needed.
    ///
    /// Cost: O(N K) time for each round, O(N K) memory.
    ///
    /// ```
    /// use kinfolk::{Clusterer, KnnGraph, Problem};
    /// use kinfolk_baselines::Cdp;
    /// let graph = KnnGraph::from_parts(4, 1, vec![1, 0, 3, 2], vec![0.9, 0.9, 0.8, 0.8], "example")?;
    /// let found = Clusterer::with(Cdp::default()).run(&Problem::of_graph(&graph))?;
    /// assert_eq!(found.labels, [0, 0, 1, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Cdp {
        /// Edges of less than this similarity are left out.
        pub th: f32 = 0.7, "a similarity from -1 to 1", |th| (-1.0..=1.0).contains(th);
        /// Maximum number of rows of a cluster.
        pub max_size: usize = 300, "at least 1", |max_size| *max_size >= 1;
        /// Each round raises the threshold by this share of its difference to 1.
        pub step: f32 = 0.05, "a share above 0, at most 1", |step| *step > 0.0 && *step <= 1.0;
        /// Maximum number of rounds.
        pub rounds: usize = 100, "at least 1", |rounds| *rounds >= 1;
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "cdp",
    "Consensus-driven propagation",
    "Joins neighbours, and splits clusters that are too large at higher thresholds",
)
.when("when the size of the largest cluster is known")
.cost("N K log N")
.input(Input::Graph)
.in_paper()
.color("#8f9a0f");

impl Method for Cdp {
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

impl Cdp {
    fn partition(&self, graph: &KnnGraph, progress: &dyn Progress) -> Result<Clusters> {
        let limit = SizeLimit { max_size: self.max_size, step: self.step, rounds: self.rounds };
        let n = graph.len();
        let edges: Vec<(u32, u32, f32)> = (0..n)
            .into_par_iter()
            .flat_map_iter(|i| {
                let (ids, similarities) = graph.neighbours(i);
                let near = similarities.partition_point(|&similarity| similarity >= self.th);
                ids[..near].iter().zip(similarities).map(move |(&j, &similarity)| (i as u32, j, similarity))
            })
            .collect();
        let names = limited_components(n, edges, &limit, progress)?;
        Ok(Clusters::from_names(&names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graphs, knn, on_graph, on_one_and_three_threads, refusal, same_groups, synthetic};
    use proptest::prelude::*;

    /// The same by depth-first search, repeated on clusters that are too large.
    fn slow(graph: &KnnGraph, params: &Cdp) -> Vec<i64> {
        let n = graph.len();
        let mut similarity = vec![f64::NEG_INFINITY; n * n];
        let mut th = 1.0f64;
        for i in 0..n {
            let (ids, similarities) = graph.neighbours(i);
            for (&j, &s) in ids.iter().zip(similarities).filter(|edge| *edge.1 >= params.th) {
                similarity[i * n + j as usize] = s.into();
                similarity[j as usize * n + i] = s.into();
                th = th.min(s.into());
            }
        }
        let mut labels = vec![-1; n];
        let mut next = 0;
        let mut left: Vec<usize> = (0..n).collect();
        for round in 0..=params.rounds {
            let mut remain = Vec::new();
            let mut seen = vec![false; n];
            for &first in &left {
                if seen[first] {
                    continue;
                }
                seen[first] = true;
                let mut group = vec![first];
                let mut at = 0;
                while at < group.len() {
                    for &j in &left {
                        if !seen[j] && similarity[group[at] * n + j] >= th {
                            seen[j] = true;
                            group.push(j);
                        }
                    }
                    at += 1;
                }
                if group.len() <= params.max_size || round == params.rounds {
                    group.iter().for_each(|&i| labels[i] = next);
                    next += 1;
                } else {
                    remain.extend(group);
                }
            }
            left = remain;
            th += (1.0 - th) * f64::from(params.step);
        }
        labels
    }

    proptest! {
        #[test]
        fn clusters_equal_those_of_the_reference(
            graph in graphs(), th in -1i8..2, max_size in 1usize..9, step in 0.05f32..1.0, rounds in 1usize..30,
        ) {
            let params = Cdp { th: f32::from(th) * 0.4, max_size, step, rounds };
            let found = on_graph(&params, &graph).unwrap().labels;
            prop_assert!(same_groups(&found, &slow(&graph, &params)));
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
        let message = |params: Cdp| refusal(on_graph(&params, &graph));
        let default = Cdp::default();
        assert!(message(Cdp { th: 7.0, ..default.clone() }).starts_with("th"));
        assert!(message(Cdp { max_size: 0, ..default.clone() }).starts_with("max_size"));
        assert!(message(Cdp { rounds: 0, ..default.clone() }).starts_with("rounds"));
        assert_eq!(
            message(Cdp { step: 0.0, ..default }),
            "step: expected a share above 0, at most 1, found 0"
        );
    }

    #[test]
    fn copies_of_one_row_stay_together() {
        let rows = kinfolk::Embeddings::from_rows(vec![1.0; 9], 1, "test").unwrap();
        let found = on_graph(&Cdp { max_size: 3, ..Default::default() }, &knn(&rows, 8)).unwrap();
        assert_eq!(found.labels, [0; 9]);
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(40);
        let graph = knn(&rows, 30);
        let [one, three] = on_one_and_three_threads(|| on_graph(&Cdp::default(), &graph).unwrap().labels);
        assert_eq!(one, three);
        let scores = kinfolk::metrics::evaluate(&truth, &one).unwrap();
        assert!(scores.bcubed.f > 0.3, "{scores:?}");
    }
}
