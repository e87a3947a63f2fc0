//! OPTICS: an order of the rows in which dense groups are valleys, and the clusters that follow from it.
//!
//! Ankerst, Breunig, Kriegel and Sander (1999). The distance of two rows is 1 - cos. The core distance of a row is the
//! smallest radius within which there are `min` rows, itself included; it is infinite above `max_eps`. The
//! reachability of q from p is max(core(p), d(p, q)). Starting anywhere, the next row is always the one of smallest
//! reachability from the rows before it, ties by smaller number. Plotted in this order, reachability has a valley for
//! each dense group. Clusters are extracted from the plot by the steepness of the slopes ([`xi_clusters`]), or by a
//! threshold: a new cluster begins where the reachability is above `eps`, which is nearly DBSCAN with that radius.
//!
//! Neighbours are those of the symmetric kNN graph, so a row is reached only along its edges: the result is that of
//! scikit-learn's OPTICS on the sparse matrix of these distances, and with K = N - 1 that on all pairs of rows. Parts
//! of the graph that no edge connects have infinite reachability between them.
//!
//! Cost: O(N K log N) time, for the queue of rows that are reached; O(N K) memory.

use crate::check;
use crate::clusters::{Clusters, Noise, nearest_in_lists};
use crate::sparse::Symmetric;
use crate::xi::{Steepness, xi_clusters};
use kinfolk::{
    Clustering, Context, Input, KnnGraph, Method, MethodInfo, ParamValue, Parameters, Problem, Progress,
    Result,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rows between two looks at whether the work is cancelled.
const ROWS_PER_CHECK: usize = 1024;

/// The defaults of parameters that only one extraction has.
const XI: f32 = 0.05;
const EPS: f32 = 0.3;

/// How clusters are extracted from the reachability plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extraction {
    /// By the steepness of its slopes: clusters may have different densities.
    #[default]
    Xi,
    /// By one threshold for all, as DBSCAN does.
    Threshold,
}

kinfolk::word_values!(Extraction: "xi or threshold", "xi" => Extraction::Xi, "threshold" => Extraction::Threshold);

kinfolk::parameters! {
    /// OPTICS: orders the rows by reachability and cuts the plot where it is steep, or at a threshold.
    ///
    /// Use it when clusters differ in density. Only the edges of the kNN graph are used.
    ///
    /// Cost: O(N K log N) time, O(N K) memory.
    ///
    /// ```
    /// use kinfolk::{Clusterer, KnnGraph, Problem};
    /// use kinfolk_baselines::{Noise, Optics};
    /// // Two groups of different density, and a row that is far from both.
    /// let ids = vec![1, 2, 0, 2, 0, 1, 4, 5, 3, 5, 3, 4, 5, 2];
    /// let similarities = vec![0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.2, 0.1];
    /// let graph = KnnGraph::from_parts(7, 2, ids, similarities, "example")?;
    /// let method = Optics { min: 3, noise: Noise::Keep, ..Optics::default() };
    /// let found = Clusterer::with(method).run(&Problem::of_graph(&graph))?;
    /// assert_eq!(found.labels, [0, 0, 0, 1, 1, 1, -1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Optics {
        /// The core distance is the smallest radius with this many rows within it, the row itself included.
        pub min: usize = 5, "at least 2", |min| *min >= 2;
        /// The largest distance, 1 - cos, between neighbours.
        pub max_eps: f32 = 2.0, "a distance 1 - cos from 0 to 2", |eps| (0.0..=2.0).contains(eps);
        /// How clusters are extracted: where the reachability plot is steep (xi), or where it exceeds eps (threshold).
        pub extraction: Extraction = Extraction::Xi;
        /// With extraction xi: the smallest relative change of the reachability that bounds a cluster.
        pub xi: f32 = XI, "above 0, below 1", |xi| *xi > 0.0 && *xi < 1.0;
        /// With extraction xi: the minimum number of rows of a cluster; auto takes min.
        pub min_cluster_size: Option<usize> = None, "at least 2", |size| size.is_none_or(|size| size >= 2);
        /// With extraction threshold: the largest reachability, 1 - cos, within a cluster.
        pub eps: f32 = EPS, "a distance 1 - cos from 0 to 2", |eps| (0.0..=2.0).contains(eps);
        /// How noise is labelled: clusters of one row (singletons), label -1 (keep), or the cluster of the most similar
        /// row (assigned).
        pub noise: Noise = Noise::Singletons;
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "optics",
    "OPTICS",
    "Orders rows by how they are reached in the kNN graph and cuts the order where it is steep",
)
.when("to compare with OPTICS as in scikit-learn; HDBSCAN is better where clusters have different densities")
.cost("N K log N")
.input(Input::Graph)
.color("#bc5090");

impl Method for Optics {
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
        let unused = self.check_extraction()?;
        let given = problem.neighbours(80, context)?;
        let found = context.timed("partition", || self.partition(&given.graph, context.progress()))?;
        let mut found = found.into_clustering(self, Some(given.report), context);
        found.report.parameters.retain(|parameter| !unused.contains(&parameter.0));
        Ok(found)
    }
}

impl Optics {
    /// Refuses parameters of the other extraction, and returns their names.
    fn check_extraction(&self) -> Result<&'static [&'static str]> {
        match self.extraction {
            Extraction::Xi if self.eps != EPS => check::refuse("eps", "no eps with extraction xi", self.eps),
            Extraction::Xi => Ok(&["eps"]),
            Extraction::Threshold if self.xi != XI => {
                check::refuse("xi", "no xi with extraction threshold", self.xi)
            }
            Extraction::Threshold if self.min_cluster_size.is_some() => {
                let found = self.min_cluster_size.format();
                check::refuse("min_cluster_size", "no min_cluster_size with extraction threshold", found)
            }
            Extraction::Threshold if self.eps > self.max_eps => {
                check::refuse("eps", "at most max_eps", format!("{} above {}", self.eps, self.max_eps))
            }
            Extraction::Threshold => Ok(&["xi", "min_cluster_size"]),
        }
    }

    fn partition(&self, graph: &KnnGraph, progress: &dyn Progress) -> Result<Clusters> {
        let n = graph.len();
        if n > 1 && self.min > graph.k() + 1 {
            let found = format!("{} with {} neighbours", self.min, graph.k());
            return check::refuse("min", "at most K + 1 (the neighbours and the row itself)", found);
        }
        let reached = Reachability::of(graph, self.min, self.max_eps.into(), progress)?;
        let names = match self.extraction {
            Extraction::Xi => {
                let min_cluster_size = self.min_cluster_size.unwrap_or(self.min);
                reached.steep(&Steepness { xi: self.xi.into(), min: self.min, min_cluster_size })
            }
            Extraction::Threshold => reached.below(self.eps.into()),
        };
        Ok(Clusters::with_noise(&names, self.noise, |noise| nearest_in_lists(graph, noise)))
    }
}

/// The distance of two rows; copies may have a similarity that is rounded to above 1.
fn distance(similarity: f32) -> f64 {
    (1.0 - f64::from(similarity)).max(0.0)
}

/// How every row is reached.
#[derive(Debug, Clone, PartialEq)]
struct Reachability {
    /// The rows, in the order in which they are reached.
    order: Vec<u32>,
    /// The core distance of each row.
    core: Vec<f64>,
    /// The smallest reachability of each row from the rows before it in the order.
    reachability: Vec<f64>,
    /// The row from which it is reached.
    predecessor: Vec<Option<u32>>,
}

impl Reachability {
    fn of(graph: &KnnGraph, min: usize, max_eps: f64, progress: &dyn Progress) -> Result<Self> {
        let n = graph.len();
        progress.check()?;
        let edges = Symmetric::of(graph, |similarity| distance(similarity) <= max_eps);
        let core = |row: usize| {
            let nearest = graph.neighbours(row).1.get(min - 2).map(|&similarity| distance(similarity));
            nearest.filter(|&core| core <= max_eps).unwrap_or(f64::INFINITY)
        };
        let mut found = Reachability {
            order: Vec::with_capacity(n),
            core: (0..n).map(core).collect(),
            reachability: vec![f64::INFINITY; n],
            predecessor: vec![None; n],
        };
        progress.begin("reachability", n as u64);
        let mut ordered = vec![false; n];
        // Rows that are reached, by the bits of their reachability, which sort as the numbers do, because none is negative.
        // A row that is reached anew is added again; its older entries are then skipped.
        let mut queue: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        for first in 0..n as u32 {
            queue.push(Reverse((f64::INFINITY.to_bits(), first)));
            while let Some(Reverse((_, row))) = queue.pop() {
                if std::mem::replace(&mut ordered[row as usize], true) {
                    continue;
                }
                if found.order.len().is_multiple_of(ROWS_PER_CHECK) {
                    progress.check()?;
                    progress.advance(ROWS_PER_CHECK.min(n - found.order.len()) as u64);
                }
                found.order.push(row);
                let core = found.core[row as usize];
                if core.is_infinite() {
                    continue;
                }
                let (ids, similarities) = edges.row(row as usize);
                for (&other, &similarity) in ids.iter().zip(similarities) {
                    let reached = core.max(distance(similarity));
                    let known = &mut found.reachability[other as usize];
                    if !ordered[other as usize] && reached < *known {
                        *known = reached;
                        found.predecessor[other as usize] = Some(row);
                        queue.push(Reverse((reached.to_bits(), other)));
                    }
                }
            }
        }
        Ok(found)
    }

    /// The cluster of each row by the slopes of the plot, -1 for noise.
    fn steep(&self, steepness: &Steepness) -> Vec<i64> {
        let mut places = vec![0u32; self.order.len()];
        (0..).zip(&self.order).for_each(|(place, &row)| places[row as usize] = place);
        let plot: Vec<f64> = self.order.iter().map(|&row| self.reachability[row as usize]).collect();
        let before = self.order.iter().map(|&row| self.predecessor[row as usize].map(|p| places[p as usize]));
        let labels = xi_clusters(&plot, &before.collect::<Vec<_>>(), steepness);
        places.into_iter().map(|place| labels[place as usize]).collect()
    }

    /// The cluster of each row at a threshold, -1 for noise.
    fn below(&self, eps: f64) -> Vec<i64> {
        let mut names = vec![-1; self.order.len()];
        let mut current = -1;
        for &row in &self.order {
            if self.reachability[row as usize] > eps {
                if self.core[row as usize] > eps {
                    continue;
                }
                current = i64::from(row);
            }
            names[row as usize] = current;
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        graphs, knn, numbers, on_graph, on_one_and_three_threads, refusal, same_groups, synthetic,
    };
    use kinfolk::Embeddings;
    use proptest::prelude::*;

    /// As in the paper: at every step all rows that are not ordered yet are compared.
    fn slow(graph: &KnnGraph, min: usize, max_eps: f64) -> Reachability {
        let n = graph.len();
        let mut distances = vec![vec![f64::INFINITY; n]; n];
        for (i, j, s) in edges(graph) {
            distances[i][j] = distance(s);
            distances[j][i] = distance(s);
        }
        let core = |i: usize| {
            let mut others: Vec<f64> = distances[i].clone();
            others[i] = 0.0;
            others.sort_by(f64::total_cmp);
            let core = others.get(min - 1).copied().unwrap_or(f64::INFINITY);
            if core <= max_eps { core } else { f64::INFINITY }
        };
        let core: Vec<f64> = (0..n).map(core).collect();
        let (mut order, mut left): (_, Vec<usize>) = (Vec::new(), (0..n).collect());
        let (mut reachability, mut predecessor) = (vec![f64::INFINITY; n], vec![None; n]);
        while !left.is_empty() {
            // The first of the smallest.
            let next =
                left.iter().copied().reduce(|a, b| if reachability[b] < reachability[a] { b } else { a });
            let i = next.unwrap();
            left.retain(|&j| j != i);
            order.push(i as u32);
            for &j in left.iter().filter(|&&j| distances[i][j] <= max_eps) {
                let reached = core[i].max(distances[i][j]);
                if reached < reachability[j] {
                    (reachability[j], predecessor[j]) = (reached, Some(i as u32));
                }
            }
        }
        Reachability { order, core, reachability, predecessor }
    }

    fn edges(graph: &KnnGraph) -> impl Iterator<Item = (usize, usize, f32)> {
        (0..graph.len()).flat_map(move |i| {
            let (ids, similarities) = graph.neighbours(i);
            ids.iter().zip(similarities).map(move |(&j, &s)| (i, j as usize, s))
        })
    }

    proptest! {
        #[test]
        fn rows_are_reached_as_by_looking_at_all(graph in graphs(), min in 2usize..7, max_eps in 0u8..21) {
            prop_assume!(min <= graph.k() + 1);
            // Cosines of small integers, cut where none of them is.
            let max_eps = f64::from(max_eps) * 0.1 + 0.003;
            let found = Reachability::of(&graph, min, max_eps, &()).unwrap();
            prop_assert_eq!(found, slow(&graph, min, max_eps));
        }

        /// At a threshold, core rows are those of DBSCAN, and rows with an edge within it that both are core are
        /// together.
        #[test]
        fn a_threshold_gives_the_core_rows_of_dbscan(graph in graphs(), min in 2usize..6, eps in 0u8..12) {
            prop_assume!(min <= graph.k() + 1);
            let eps = f64::from(eps) * 0.1 + 0.003;
            let found = Reachability::of(&graph, min, 2.0, &()).unwrap();
            let labels = found.below(eps);
            let core = |i: usize| found.core[i] <= eps;
            for i in (0..graph.len()).filter(|&i| core(i)) {
                prop_assert!(labels[i] >= 0);
            }
            for (i, j, s) in edges(&graph) {
                prop_assert!(!(core(i) && core(j) && distance(s) <= eps) || labels[i] == labels[j]);
            }
        }
    }

    /// `tests/data/make_optics.py` writes what scikit-learn finds.
    #[test]
    fn everything_is_as_in_scikit_learn() {
        let mut lines = include_str!("../tests/data/optics.txt").lines();
        let mut cases = 0;
        while let Some(header) = lines.next() {
            let header: Vec<usize> = numbers(header);
            let [n, k] = header[..] else { panic!("{header:?}") };
            let ids = lines.by_ref().take(n).flat_map(numbers).collect();
            let similarities = lines.by_ref().take(n).flat_map(numbers).collect();
            let graph = KnnGraph::from_parts(n, k, ids, similarities, "optics.txt").unwrap();
            while let Some(case) = lines.next().filter(|&line| line != "-") {
                let given: Vec<f64> = numbers(case);
                let [min, max_eps, xi, size, eps] = given[..] else { panic!("{case}") };
                let found = Reachability::of(&graph, min as usize, max_eps, &()).unwrap();
                let mut next = || lines.next().unwrap();
                assert_eq!(found.order, numbers::<u32>(next()), "{case}");
                for values in [&found.core, &found.reachability] {
                    let expected: Vec<f64> = numbers(next());
                    // scikit-learn rounds to 15 decimals.
                    let same = |(a, b): (&f64, &f64)| a == b || (a - b).abs() < 1e-14;
                    assert!(values.iter().zip(&expected).all(same), "{case}: {values:?} {expected:?}");
                }
                let predecessor: Vec<i64> =
                    found.predecessor.iter().map(|p| p.map_or(-1, i64::from)).collect();
                assert_eq!(predecessor, numbers::<i64>(next()), "{case}");
                let steepness = Steepness { xi, min: min as usize, min_cluster_size: size as usize };
                for names in [found.steep(&steepness), found.below(eps)] {
                    let expected: Vec<i64> = numbers(next());
                    let noise = |names: &[i64]| names.iter().map(|&name| name < 0).collect::<Vec<_>>();
                    assert_eq!(noise(&names), noise(&expected), "{case}");
                    assert!(same_groups(&names, &expected), "{case}: {names:?} {expected:?}");
                }
                cases += 1;
            }
        }
        assert_eq!(cases, 24);
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 2, "test").unwrap();
        let graph = knn(&rows, 1);
        let message = |params: Optics| refusal(on_graph(&params, &graph));
        let default = Optics { min: 2, ..Optics::default() };
        assert_eq!(message(Optics { min: 1, ..default.clone() }), "min: expected at least 2, found 1");
        assert!(message(Optics { min: 3, ..default.clone() }).contains("3 with 1 neighbours"));
        assert!(message(Optics { xi: 1.0, ..default.clone() }).starts_with("xi: expected above 0, below 1"));
        let unused = "eps: expected no eps with extraction xi, found 0.2";
        assert_eq!(message(Optics { eps: 0.2, ..default.clone() }), unused);
        let at = Optics { extraction: Extraction::Threshold, ..default };
        assert!(message(Optics { xi: 0.1, ..at.clone() }).starts_with("xi: expected no xi"));
        assert!(message(Optics { min_cluster_size: Some(4), ..at.clone() }).starts_with("min_cluster_size"));
        assert!(message(Optics { max_eps: 0.2, ..at }).contains("0.3 above 0.2"));
    }

    #[test]
    fn only_parameters_that_applied_are_reported() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 2, "test").unwrap();
        let names = |extraction| {
            let found =
                on_graph(&Optics { min: 2, extraction, ..Optics::default() }, &knn(&rows, 2)).unwrap();
            found.report.parameters.iter().map(|parameter| parameter.0).collect::<Vec<_>>()
        };
        assert_eq!(
            names(Extraction::Xi),
            ["min", "max_eps", "extraction", "xi", "min_cluster_size", "noise"]
        );
        assert_eq!(names(Extraction::Threshold), ["min", "max_eps", "extraction", "eps", "noise"]);
    }

    #[test]
    fn copies_and_opposite_rows() {
        let rows = Embeddings::from_rows(vec![1.0, 1.0, 1.0, -1.0, -1.0, -1.0], 1, "test").unwrap();
        let params = Optics { min: 2, noise: Noise::Keep, ..Optics::default() };
        assert_eq!(on_graph(&params, &knn(&rows, 5)).unwrap().labels, [0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(40);
        let graph = knn(&rows, 30);
        for extraction in [Extraction::Xi, Extraction::Threshold] {
            let params = Optics { extraction, noise: Noise::Assigned, ..Optics::default() };
            let [one, three] = on_one_and_three_threads(|| params.partition(&graph, &()).unwrap());
            assert_eq!(one, three);
            let scores = kinfolk::metrics::evaluate(&truth, &one.labels).unwrap();
            assert!(scores.bcubed.f > 0.3, "{extraction:?} {scores:?}");
        }
    }
}
