//! FC-ES: the map equation on edges weighted by the neighbours that their rows have in common.
//!
//! Liu, "Face Clustering via Early Stopping and Edge Recall" (2024), the part that needs no labels. N_i holds row i and its
//! neighbours. With the similarity s of two rows, cut to 0..1, as squared distance d = 2 - 2 s,
//!
//! - P_im = exp(-d_im / sigma) / sum over m' in N_i of exp(-d_im' / sigma), the share of m in N_i,
//! - p_ij = sum over m in both N_i and N_j of (P_im + P_jm) / 2, the probability of the edge from i to j.
//!
//! It is 1 if both rows have the same neighbours. Each row keeps its edges in order of similarity up to the first whose
//! probability is below a threshold ("early stopping"), although later ones may be above it. The map equation with directed
//! flow partitions the edges, weighted by p. A row that keeps no edge is a cluster of its own, even if others keep edges to it.
//! This is how the published program does it; its 80 neighbours count the row itself, as kinfolk's never do.
//!
//! Cost: N K^2 steps at most, and fewer the earlier rows stop; then a few dozen passes over the edges. O(N K) memory, and N
//! numbers for each thread.

use crate::clusters::Clusters;
use kinfolk::stages::{Flow, MapParams, WeightedGraph, map_equation};
use kinfolk::{
    Clustering, Context, Input, KnnGraph, Method, MethodInfo, Parameters, Problem, Progress, Result,
};
use rayon::prelude::*;

/// Rows of one task.
const TASK: usize = 256;

kinfolk::parameters! {
    /// FC-ES: the map equation on edges weighted by the neighbours that their rows have in common.
    ///
    /// Use it to compare with a published method that needs no labels. The default threshold is the published one, which was
    /// chosen for identities of about 70 faces; smaller identities are joined with others.
    ///
    /// Cost: at most N K^2 steps on all threads, and a few dozen passes over N K edges; O(N K) memory.
    ///
    /// ```
    /// use kinfolk::{Clusterer, KnnGraph, Problem};
    /// use kinfolk_baselines::FcEs;
    /// let graph = KnnGraph::from_parts(4, 1, vec![1, 0, 3, 2], vec![0.9, 0.9, 0.8, 0.8], "example")?;
    /// let found = Clusterer::with(FcEs::default()).run(&Problem::of_graph(&graph))?;
    /// assert_eq!(found.labels, [0, 0, 1, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct FcEs {
        /// Each row keeps its edges up to the first of less than this probability.
        pub th: f32 = 0.22, "a probability from 0 to 1", |th| (0.0..=1.0).contains(th);
        /// The squared distance over which the share of a neighbour falls by a factor of e.
        pub sigma: f32 = 0.5, "a number from 0.05 to 100", |sigma| (0.05..=100.0).contains(sigma);
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "fc-es",
    "FC-ES",
    "The map equation on edges weighted by common neighbours, of each row up to the first below a threshold",
)
.when("to compare with a published method that needs no labels; its threshold was chosen for MS-Celeb-1M")
.cost("N K^2, and N K dozens of times")
.input(Input::Graph)
.color("#2f7f6f");

impl Method for FcEs {
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
        let graph = &given.graph;
        let kept = context.timed("edge probabilities", || self.kept(graph, context.progress()))?;
        let found = context.timed("partition", || partition(graph, &kept, context))?;
        Ok(found.into_clustering(self, Some(given.report), context))
    }
}

impl FcEs {
    /// The probabilities of the edges that are kept, in the order of the graph; 0 for the others.
    fn kept(&self, graph: &KnnGraph, progress: &dyn Progress) -> Result<Vec<f32>> {
        let (n, k) = (graph.len(), graph.k());
        let mut kept = vec![0.0; n * k];
        if k == 0 {
            return Ok(kept);
        }
        let shares = Shares::of(graph, self.sigma);
        progress.begin("edge probabilities", n as u64);
        kept.par_chunks_mut(TASK * k).enumerate().for_each_init(
            || vec![0.0; n],
            |own, (task, kept)| {
                if progress.cancelled() {
                    return;
                }
                for (row, kept) in kept.chunks_mut(k).enumerate() {
                    shares.keep(graph, task * TASK + row, self.th, own, kept);
                }
                progress.advance((kept.len() / k) as u64);
            },
        );
        progress.check()?;
        Ok(kept)
    }
}

/// P_im for every row i and every m in N_i.
struct Shares {
    /// Of the row itself.
    own: Vec<f32>,
    /// Of its neighbours, in the order of the graph.
    others: Vec<f32>,
}

impl Shares {
    fn of(graph: &KnnGraph, sigma: f32) -> Self {
        let (n, k) = (graph.len(), graph.k());
        let (mut own, mut others) = (vec![0.0; n], vec![0.0; n * k]);
        own.par_iter_mut().zip(others.par_chunks_mut(k)).enumerate().for_each(|(i, (own, others))| {
            for (share, &similarity) in others.iter_mut().zip(graph.neighbours(i).1) {
                *share = (-(2.0 - 2.0 * similarity.clamp(0.0, 1.0)) / sigma).exp();
            }
            // A row has the distance 0 from itself.
            *own = 1.0 / (1.0 + others.iter().sum::<f32>());
            others.iter_mut().for_each(|share| *share *= *own);
        });
        Shares { own, others }
    }

    /// Writes p_ij for the edges of row i up to the first below `th`. `in_own` has a number for each row and is 0 before and
    /// after.
    fn keep(&self, graph: &KnnGraph, i: usize, th: f32, in_own: &mut [f32], kept: &mut [f32]) {
        let (ids, k) = (graph.neighbours(i).0, graph.k());
        in_own[i] = self.own[i];
        ids.iter().zip(&self.others[i * k..][..k]).for_each(|(&m, &share)| in_own[m as usize] = share);
        for (&j, kept) in ids.iter().zip(kept) {
            let j = j as usize;
            // j is in both sets.
            let mut twice = in_own[j] + self.own[j];
            for (&m, &in_other) in graph.neighbours(j).0.iter().zip(&self.others[j * k..][..k]) {
                let in_own = in_own[m as usize];
                twice += if in_own > 0.0 { in_own + in_other } else { 0.0 };
            }
            let probability = twice / 2.0;
            if probability < th {
                break;
            }
            *kept = probability;
        }
        in_own[i] = 0.0;
        ids.iter().for_each(|&m| in_own[m as usize] = 0.0);
    }
}

/// The modules of the kept edges, without the rows that keep none.
fn partition(graph: &KnnGraph, kept: &[f32], context: &Context) -> Result<Clusters> {
    let edges = WeightedGraph::from_knn(graph, kept)?;
    let params = MapParams { flow: Flow::Directed, seed: context.seed(), ..MapParams::default() };
    let mut names = map_equation(&edges, &params, context.progress())?.labels;
    let modules = names.len() as i64;
    for (i, name) in names.iter_mut().enumerate() {
        if kept.get(i * graph.k()).is_none_or(|&first| first == 0.0) {
            *name = modules + i as i64;
        }
    }
    Ok(Clusters::from_names(&names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        graphs, knn, numbers, on_graph, on_one_and_three_threads, refusal, same_groups, synthetic,
    };
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// P_i by the formula.
    fn shares(graph: &KnnGraph, i: usize, sigma: f64) -> BTreeMap<u32, f64> {
        let (ids, similarities) = graph.neighbours(i);
        let of = |s: f64| (-(2.0 - 2.0 * s.clamp(0.0, 1.0)) / sigma).exp();
        let mut shares: BTreeMap<u32, f64> =
            ids.iter().zip(similarities).map(|(&m, &s)| (m, of(s.into()))).collect();
        shares.insert(i as u32, of(1.0));
        let sum: f64 = shares.values().sum();
        shares.values_mut().for_each(|share| *share /= sum);
        shares
    }

    /// p_ij by the formula.
    fn probability(graph: &KnnGraph, i: usize, j: usize, sigma: f64) -> f64 {
        let (of_i, of_j) = (shares(graph, i, sigma), shares(graph, j, sigma));
        of_i.iter().filter_map(|(m, p)| Some((p + of_j.get(m)?) / 2.0)).sum()
    }

    proptest! {
        #[test]
        fn probabilities_are_those_of_the_formula_and_rows_stop_early(
            graph in graphs(), th in 0.0f32..1.0, sigma in 0.05f32..3.0,
        ) {
            let all = FcEs { th: 0.0, sigma }.kept(&graph, &()).unwrap();
            let kept = FcEs { th, sigma }.kept(&graph, &()).unwrap();
            let k = graph.k();
            for i in 0..graph.len() {
                for (&j, &found) in graph.neighbours(i).0.iter().zip(&all[i * k..]) {
                    let expected = probability(&graph, i, j as usize, sigma.into());
                    prop_assert!((f64::from(found) - expected).abs() < 1e-5, "{i} {j}: {found}, not {expected}");
                }
                let row = &all[i * k..][..k];
                let first = row.iter().position(|&p| p < th).unwrap_or(k);
                let expected: Vec<f32> = (0..k).map(|at| if at < first { row[at] } else { 0.0 }).collect();
                prop_assert_eq!(&kept[i * k..][..k], expected);
            }
        }
    }

    #[test]
    fn probabilities_and_clusters_are_those_of_numpy_and_infomap() {
        let mut lines = include_str!("../tests/data/fc_es.txt").lines();
        let mut cases = 0;
        while let Some(header) = lines.next() {
            let header: Vec<f32> = numbers(header);
            let [n, k, th, sigma] = header[..] else { panic!("{header:?}") };
            let mut line = || lines.next().unwrap();
            let (ids, similarities) = (numbers(line()), numbers(line()));
            let graph = KnnGraph::from_parts(n as usize, k as usize, ids, similarities, "fc_es.txt").unwrap();
            let method = FcEs { th, sigma };
            let found = method.kept(&graph, &()).unwrap();
            let expected: Vec<f32> = numbers(line());
            for (at, (found, expected)) in found.into_iter().zip(expected).enumerate() {
                assert!((found - expected).abs() < 1e-6, "edge {at}: {found}, not {expected}");
            }
            let labels = on_graph(&method, &graph).unwrap().labels;
            assert!(same_groups(&labels, &numbers::<i64>(line())), "{header:?}");
            cases += 1;
        }
        assert_eq!(cases, 3);
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
        let message = refusal(on_graph(&FcEs { th: 1.5, ..Default::default() }, &graph));
        assert_eq!(message, "th: expected a probability from 0 to 1, found 1.5");
        let message = refusal(on_graph(&FcEs { sigma: 0.0, ..Default::default() }, &graph));
        assert_eq!(message, "sigma: expected a number from 0.05 to 100, found 0");
    }

    #[test]
    fn a_row_that_keeps_no_edge_is_alone_although_another_keeps_an_edge_to_it() {
        // 0 and 1 are copies; 3 has one neighbour in common with 2, which lists 1 first.
        let ids = vec![1, 0, 1, 2];
        let graph = KnnGraph::from_parts(4, 1, ids, vec![1.0, 1.0, 0.0, 1.0], "test").unwrap();
        let method = FcEs { th: 0.6, ..Default::default() };
        let kept = method.kept(&graph, &()).unwrap();
        assert!(kept[2] == 0.0 && kept[3] > 0.6, "{kept:?}");
        assert_eq!(on_graph(&method, &graph).unwrap().labels, [0, 0, 1, 2]);
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(40);
        let graph = knn(&rows, 30);
        let [one, three] = on_one_and_three_threads(|| {
            let method = FcEs::default();
            (method.kept(&graph, &()).unwrap(), on_graph(&method, &graph).unwrap().labels)
        });
        assert_eq!(one, three);
        let scores = kinfolk::metrics::evaluate(&truth, &one.1).unwrap();
        assert!(scores.bcubed.f > 0.5, "{scores:?}");
    }
}
