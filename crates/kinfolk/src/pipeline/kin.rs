//! `kin`: no labels, no threshold. kNN graph, probability of every edge, modules by the map equation.
//!
//! 1. The background of the set and of each vertex, and what surrounds each edge: a probability p.
//! 2. A first partition by p tells who is a stranger of whom; how near strangers come corrects p (see
//!    `connectivity/structural`).
//! 3. The map equation on the edges that remain, weighted by p.
//! 4. Where most rows turn out to be in clusters of more than K rows, all of it again with twice as many neighbours: what an
//!    identity looks like from a few of its rows is not enough to tell it from its look-alikes.
//!
//! Cost beyond the graph: see the stages.

use super::timed;
use crate::connectivity::structural::{Background, Clarity, Strangers, Ties, ties};
use crate::partition::join_steady;
use crate::{
    Clustering, EdgeModel, Embeddings, Error, Evidence, KnnGraph, KnnParams, MapParams, Progress, Result,
    WeightedGraph, Whitening, knn_graph, map_equation,
};
use rayon::prelude::*;
use std::time::Duration;

/// Which mistake is worse. Edges that are less probable than this says are left out before the partition.
///
/// Balanced, an edge must be as probable as not. That is too much to ask, and down to 0.2 are enough, where relatives are so hard to
/// tell that rows have many likely ties and hardly a sure one (`connectivity/structural/clarity.rs`). It is less, too, where K has
/// been doubled: a row has more than a hundred relatives there, and weak ties to many of them agree. The others
/// are relative to it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Prefer {
    /// Rather split an identity than mix two: 1.3 times the probability.
    Precision,
    /// Neither: 0.5 where the set is clear.
    #[default]
    Balanced,
    /// Rather mix identities than split one: 0.6 times the probability.
    Recall,
    /// A probability of one's own, from 0 to 1, whatever the set.
    Probability(f32),
}

impl Prefer {
    fn check(self) -> Result<()> {
        match self {
            Prefer::Probability(p) if !(0.0..=1.0).contains(&p) => Err(Error::Parameter {
                field: "prefer",
                expected: "a probability from 0 to 1",
                found: p.to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// The probability that a tie must exceed in a set of this clarity, where K is what was asked for or has been doubled.
    fn least(self, clarity: Clarity, doubled: bool) -> f32 {
        let times = match self {
            Prefer::Precision => 1.3,
            Prefer::Balanced => 1.0,
            Prefer::Recall => 0.6,
            Prefer::Probability(p) => return p,
        };
        // From company 0.2 on, in full from 0.25 on.
        let hard_to_tell = ((clarity.company - 0.2) / 0.05).clamp(0.0, 1.0);
        let unclear = (0.92 - clarity.best_f).max(0.0) * hard_to_tell;
        times * (0.5 - 2.0 * unclear).max(0.2) * if doubled { 0.3 } else { 1.0 }
    }
}

/// Parameters of [`kin`].
#[derive(Debug, Clone)]
pub struct KinParams {
    /// The graph, unless one is given. Its seed is that of everything random here.
    pub knn: KnnParams,
    /// Which mistake is worse.
    pub prefer: Prefer,
    /// A map of the embeddings that has been learned from labels; everything is done on what it makes of them, so that no
    /// graph can be given.
    pub whitening: Option<Whitening>,
    /// What tells the probability of an edge.
    pub model: EdgeModel,
    /// Whether to look again with twice as many neighbours when half of the rows are in clusters larger than 5/4 K. Not
    /// where a graph is given.
    pub grow: bool,
    /// Whether clusters are joined that are one both with a little less and a little more asked of a tie
    /// (`partition/steady.rs`), which takes the partition three times as long.
    pub steady: bool,
}

impl Default for KinParams {
    fn default() -> Self {
        Self {
            knn: KnnParams::default(),
            prefer: Prefer::default(),
            whitening: None,
            model: EdgeModel::default(),
            grow: true,
            steady: false,
        }
    }
}

/// The least probability of an edge in the first partition, which tells strangers.
const FIRST: f32 = 0.3;

/// How much less and more is asked of a tie to see whether a partition is steady; training tries probabilities as far apart.
const STEP: f32 = 0.1;

/// Fewer rows do not tell how near strangers come.
const FEW_ROWS: usize = 200;

/// Clusters embeddings without labels or thresholds, on `graph` if there is one.
///
/// The links of the result are the tree of the most probable ties through each cluster, see [`Evidence`]; the confidence of a
/// row is the probability of its most probable tie there, 0 for a row alone. `tau` is -1: no link is cut.
///
/// ```
/// use kinfolk::synth::{Synth, SynthParams};
/// # fn main() -> kinfolk::Result<()> {
/// let params = SynthParams { identities: 40, dim: 64, ..SynthParams::default() };
/// let (embeddings, truth) = Synth::new(params)?.whole().to_embeddings()?;
/// let found = kinfolk::kin(&embeddings, None, &kinfolk::KinParams::default(), &())?;
/// assert!(kinfolk::metrics::evaluate(&truth, &found.labels)?.bcubed.f > 0.7);
/// # Ok(())
/// # }
/// ```
pub fn kin(
    embeddings: &Embeddings,
    graph: Option<&KnnGraph>,
    params: &KinParams,
    progress: &dyn Progress,
) -> Result<Clustering> {
    params.prefer.check()?;
    let seed = params.knn.seed;
    let mut timings = Vec::new();
    if let Some(graph) = graph {
        super::check_length(embeddings, graph)?;
    }
    let whitened = match &params.whitening {
        Some(_) if graph.is_some() => {
            let expected = "none with this model, which looks for neighbours among whitened embeddings";
            return Err(Error::Parameter { field: "graph", expected, found: "one".to_owned() });
        }
        Some(whitening) => Some(timed("whitening", &mut timings, || whitening.apply(embeddings))?),
        None => None,
    };
    let embeddings = whitened.as_ref().unwrap_or(embeddings);
    let mut knn = params.knn.clone();
    loop {
        let searched = match graph {
            Some(_) => None,
            None => Some(timed("knn", &mut timings, || knn_graph(embeddings, &knn, progress))?),
        };
        let Some(graph) = graph.or(searched.as_ref().map(|found| &found.0)) else {
            unreachable!("searched for where it was not given")
        };
        let ties = estimate(embeddings, graph, params, &mut timings, progress)?;
        let least = params.prefer.least(ties.clarity(graph.k()), knn.k != params.knn.k);
        let labels = timed("partition", &mut timings, || {
            let labels = modules(graph, &ties, least, seed, progress)?;
            if !params.steady {
                return Ok(labels);
            }
            let less = modules(graph, &ties, least - STEP, seed, progress)?;
            let more = modules(graph, &ties, least + STEP, seed, progress)?;
            Ok(join_steady(&labels, [&less, &more]))
        })?;
        let first = searched.is_some() && knn.k == params.knn.k;
        if params.grow && first && too_few(knn.k, &labels) {
            knn.k *= 2;
            continue;
        }
        let evidence =
            timed("evidence", &mut timings, || Evidence::of(graph, &ties.probabilities, &labels, least));
        let (links, k) = (evidence.links()?, graph.k());
        let (evidence, report) = (Some(evidence), searched.map(|found| found.1));
        return Ok(Clustering { labels, links, tau: -1.0, evidence, knn: report, k, timings });
    }
}

/// Whether K is small beside the clusters of most rows, and twice as many can be had.
pub(super) fn too_few(k: usize, labels: &[i64]) -> bool {
    2 * k < labels.len() && typical_size(labels) * 4 > 5 * k
}

/// The size of cluster that half of the rows exceed.
fn typical_size(labels: &[i64]) -> usize {
    let mut sizes = vec![0usize; labels.iter().max().map_or(0, |&last| last as usize + 1)];
    labels.iter().for_each(|&label| sizes[label as usize] += 1);
    // Clusters are numbered by descending size.
    let mut rows = 0;
    let half = sizes.iter().find(|&&size| {
        rows += size;
        2 * rows >= labels.len()
    });
    half.copied().unwrap_or(0)
}

/// The probability of every edge.
pub(super) fn estimate(
    embeddings: &Embeddings,
    graph: &KnnGraph,
    params: &KinParams,
    timings: &mut Vec<(&'static str, Duration)>,
    progress: &dyn Progress,
) -> Result<Ties> {
    let seed = params.knn.seed;
    let background = timed("background", timings, || Background::of(embeddings, seed));
    let mut ties = timed("connectivity", timings, || ties(graph, &background, &params.model, progress));
    timed("strangers", timings, || -> Result<()> {
        if embeddings.len() < FEW_ROWS {
            return Ok(());
        }
        // Whether all of it is settled does not matter here.
        let quick = MapParams { seed, rounds: 0, ..MapParams::default() };
        let first = partition(graph, &ties, FIRST, &quick, progress)?;
        let strangers = Strangers::of(embeddings, graph, &background, &ties, &first, seed);
        ties.doubt(graph, &strangers);
        Ok(())
    })?;
    Ok(ties)
}

/// Modules of the edges more probable than `least`.
pub(super) fn modules(
    graph: &KnnGraph,
    ties: &Ties,
    least: f32,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Vec<i64>> {
    partition(graph, ties, least, &MapParams { seed, ..MapParams::default() }, progress)
}

fn partition(
    graph: &KnnGraph,
    ties: &Ties,
    least: f32,
    params: &MapParams,
    progress: &dyn Progress,
) -> Result<Vec<i64>> {
    let weights: Vec<f32> = ties.probabilities.par_iter().map(|&p| if p > least { p } else { 0.0 }).collect();
    Ok(map_equation(&WeightedGraph::from_knn(graph, &weights)?, params, progress)?.labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::evaluate;
    use crate::synth::{Synth, SynthParams};
    use crate::testing::on_one_and_three_threads;

    fn labels(rows: Vec<f32>, dim: usize) -> Vec<i64> {
        let embeddings = Embeddings::from_rows(rows, dim, "test").unwrap();
        kin(&embeddings, None, &KinParams::default(), &()).unwrap().labels
    }

    #[test]
    fn the_smallest_sets_have_labels() {
        assert_eq!(labels(vec![1.0, 0.0], 2), [0]);
        assert_eq!(labels(vec![1.0, 0.0, -1.0, 0.0], 2).len(), 2);
    }

    #[test]
    fn copies_of_one_row_are_one_cluster() {
        assert_eq!(labels([0.6, 0.8].repeat(200), 2), [0; 200]);
    }

    #[test]
    fn half_of_the_rows_are_in_clusters_of_the_typical_size_or_more() {
        assert_eq!(typical_size(&[]), 0);
        assert_eq!(typical_size(&[0, 0, 0, 1, 1, 2]), 3);
        assert_eq!(typical_size(&[0, 0, 1, 1, 2, 3, 4]), 2);
    }

    #[test]
    fn large_identities_are_looked_at_with_more_neighbours() {
        let params = SynthParams {
            identities: 6,
            dim: 64,
            mean_size: 200.0,
            max_size: 300,
            max_modes: 1,
            noise: 0.6,
            ..SynthParams::default()
        };
        let (embeddings, _) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let found = |grow, prefer| {
            let found =
                kin(&embeddings, None, &KinParams { grow, prefer, ..KinParams::default() }, &()).unwrap();
            (found.k, found.evidence.unwrap().least)
        };
        let usual = Prefer::default();
        assert_eq!([found(true, usual).0, found(false, usual).0], [160, 80]);
        // There fewer doubts are enough, but a probability that was asked for is kept.
        assert!(found(true, usual).1 < found(false, usual).1);
        assert_eq!(found(true, Prefer::Probability(0.4)), (160, 0.4));
    }

    #[test]
    fn less_is_asked_where_relatives_are_hard_to_tell() {
        let least = |best_f, company| Prefer::Balanced.least(Clarity { best_f, company }, false);
        assert_eq!([least(0.97, 0.5), least(0.92, 0.5), least(0.5, 0.1)], [0.5; 3]);
        assert_eq!([least(0.795, 0.5), least(0.3, 0.5)], [0.25, 0.2]);
        let ordered = [Prefer::Recall, Prefer::Balanced, Prefer::Precision]
            .map(|prefer| prefer.least(Clarity { best_f: 0.8, company: 0.5 }, true));
        assert!(ordered.is_sorted() && ordered[0] < ordered[2], "{ordered:?}");
    }

    #[test]
    fn a_steady_partition_only_joins() {
        let params = SynthParams { identities: 60, dim: 64, seed: 9, ..SynthParams::default() };
        let (embeddings, _) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let [once, steady] = [false, true].map(|steady| {
            kin(&embeddings, None, &KinParams { steady, ..KinParams::default() }, &()).unwrap().labels
        });
        let pairs: std::collections::HashSet<_> = once.iter().zip(&steady).collect();
        assert_eq!(pairs.len() as i64, once.iter().max().unwrap() + 1);
    }

    #[test]
    fn strangers_stay_alone() {
        let mut stream = crate::random::Stream::new(5, crate::random::Purpose::Image, 0, 0);
        let rows = (0..1000 * 64).map(|_| stream.rough_normal()).collect();
        let labels = labels(rows, 64);
        let clusters = labels.iter().max().unwrap() + 1;
        assert!(clusters > 900, "{clusters}");
    }

    #[test]
    fn identities_are_found_the_same_on_any_number_of_threads() {
        let params = SynthParams { identities: 60, dim: 64, seed: 9, ..SynthParams::default() };
        let (embeddings, truth) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let [one, three] =
            on_one_and_three_threads(|| kin(&embeddings, None, &KinParams::default(), &()).unwrap());
        assert_eq!((&one.labels, &one.links), (&three.labels, &three.links));
        let scores = evaluate(&truth, &one.labels).unwrap();
        assert!(scores.bcubed.f > 0.8, "{scores:?}");
        for i in 0..embeddings.len() {
            if let Some((parent, _)) = one.links.parent(i) {
                assert_eq!(one.labels[i], one.labels[parent as usize]);
            }
        }
    }

    #[test]
    fn a_probability_out_of_range_is_an_error() {
        let embeddings = Embeddings::from_rows(vec![1.0, 0.0], 2, "test").unwrap();
        let params = KinParams { prefer: Prefer::Probability(1.5), ..KinParams::default() };
        let message = kin(&embeddings, None, &params, &()).unwrap_err().to_string();
        assert!(message.contains("1.5"), "{message}");
    }
}
