//! From embeddings to labels: the one place that knows all the stages.
//!
//! The density tree: kNN graph, confidence, nearest candidate of higher confidence, cut at tau. It needs no
//! labels and no training; it is what the networks of the paper are measured against.

use crate::{
    DEFAULT_RADIUS, Embeddings, Error, Evidence, KnnGraph, KnnParams, KnnReport, Links, Progress, Result,
    average_ranks, knn_graph, natural_tau, nearest_candidates, s_avg, s_center, s_nbr, u_num, u_weight,
};
use std::time::{Duration, Instant};

mod kin;
mod kin_training;

pub use kin::{KinParams, Prefer, kin};
pub use kin_training::{KinChoice, KinTraining, TrainedKin, train_kin};

/// What makes one vertex more confident than another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Confidence<'a> {
    /// Number of neighbours within a radius.
    UNum(f32),
    /// Sum of the similarities of the neighbours within a radius.
    UWeight(f32),
    /// Eq. 1 of the paper, from true labels: an oracle.
    SNbr(&'a [i64]),
    /// Mean similarity to the other rows of the same label: an oracle.
    SAvg(&'a [i64]),
    /// Similarity to the centre of the rows of the same label: an oracle.
    SCenter(&'a [i64]),
}

/// Parameters of [`cluster`].
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterParams<'a> {
    /// The graph, unless one is given.
    pub knn: KnnParams,
    /// The confidence of a vertex; several are averaged by rank, see [`average_ranks`].
    pub confidence: Vec<Confidence<'a>>,
    /// Links of each vertex to candidates: 1 makes trees, more make directed acyclic graphs.
    pub m: usize,
    /// Links of at most this similarity are cut; `None` reads it off the set, see [`natural_tau`].
    pub tau: Option<f32>,
}

impl Default for ClusterParams<'_> {
    fn default() -> Self {
        ClusterParams {
            knn: KnnParams::default(),
            confidence: vec![Confidence::UWeight(DEFAULT_RADIUS)],
            m: 1,
            tau: None,
        }
    }
}

/// What [`cluster`] found.
#[derive(Debug, Clone)]
pub struct Clustering {
    /// The cluster of every row: 0.. by descending size, ties by smallest member.
    pub labels: Vec<i64>,
    /// Every vertex with its parents, their similarities and its confidence; `links.cut(tau)` cuts elsewhere.
    pub links: Links,
    /// Where the links were cut.
    pub tau: f32,
    /// Why rows are where they are, from [`kin`]; other methods have their links.
    pub evidence: Option<Evidence>,
    /// How the graph was found; `None` if it was given.
    pub knn: Option<KnnReport>,
    /// K of the graph.
    pub k: usize,
    /// How long each stage took, all times that it was run.
    pub timings: Vec<(&'static str, Duration)>,
}

impl Clustering {
    /// The result of a method that makes labels and nothing else: no row has a parent.
    pub fn of_labels(
        labels: Vec<i64>,
        k: usize,
        knn: Option<KnnReport>,
        timings: Vec<(&'static str, Duration)>,
    ) -> Result<Self> {
        let rows = labels.len();
        let links = Links::from_parts(vec![0.0; rows], 1, vec![Links::NONE; rows], vec![0.0; rows])?;
        Ok(Self { labels, links, tau: -1.0, evidence: None, knn, k, timings })
    }
}

/// Clusters embeddings, on `graph` if there is one.
///
/// ```
/// use kinfolk::{ClusterParams, Embeddings, cluster};
///
/// // Three rows near one direction, two near another.
/// let rows = vec![1.0, 0.1, 1.0, 0.0, 0.9, 0.1, -0.1, 1.0, 0.0, 1.0];
/// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
/// let params = ClusterParams { tau: Some(0.8), ..ClusterParams::default() };
/// let found = cluster(&embeddings, None, &params, &())?;
/// assert_eq!(found.labels, [0, 0, 0, 1, 1]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn cluster(
    embeddings: &Embeddings,
    graph: Option<&KnnGraph>,
    params: &ClusterParams,
    progress: &dyn Progress,
) -> Result<Clustering> {
    if let Some(tau) = params.tau
        && !(-1.0..=1.0).contains(&tau)
    {
        return Err(Error::Parameter {
            field: "tau",
            expected: "a similarity from -1 to 1",
            found: tau.to_string(),
        });
    }
    let mut timings = Vec::new();
    let mut report = None;
    let found;
    let graph = match graph {
        Some(graph) => {
            check_length(embeddings, graph)?;
            graph
        }
        None => {
            let (graph, how) = timed("knn", &mut timings, || knn_graph(embeddings, &params.knn, progress))?;
            report = Some(how);
            found = graph;
            &found
        }
    };
    let confidence = timed("confidence", &mut timings, || confidence(embeddings, graph, &params.confidence))?;
    let links = timed("connectivity", &mut timings, || nearest_candidates(graph, &confidence, params.m))?;
    let (labels, tau) = timed("partition", &mut timings, || {
        let tau = params.tau.unwrap_or_else(|| natural_tau(embeddings, graph, params.knn.seed));
        (links.cut(tau), tau)
    });
    Ok(Clustering { labels, links, tau, evidence: None, knn: report, k: graph.k(), timings })
}

fn check_length(embeddings: &Embeddings, graph: &KnnGraph) -> Result<()> {
    if graph.len() == embeddings.len() {
        return Ok(());
    }
    let (place, what) = ("graph".to_owned(), "vertices (one per embedding)".to_owned());
    Err(Error::Length { place, what, expected: embeddings.len(), found: graph.len() })
}

fn confidence(embeddings: &Embeddings, graph: &KnnGraph, designs: &[Confidence]) -> Result<Vec<f32>> {
    let one = |design: &Confidence| match *design {
        Confidence::UNum(radius) => u_num(graph, radius),
        Confidence::UWeight(radius) => u_weight(graph, radius),
        Confidence::SNbr(labels) => s_nbr(graph, labels),
        Confidence::SAvg(labels) => s_avg(embeddings, labels),
        Confidence::SCenter(labels) => s_center(embeddings, labels),
    };
    match designs {
        [design] => one(design),
        several => {
            let all: Vec<Vec<f32>> = several.iter().map(one).collect::<Result<_>>()?;
            average_ranks(&all.iter().map(|confidence| (&confidence[..], 1.0)).collect::<Vec<_>>())
        }
    }
}

fn timed<T>(stage: &'static str, timings: &mut Vec<(&'static str, Duration)>, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    match timings.iter_mut().find(|timing| timing.0 == stage) {
        Some(timing) => timing.1 += start.elapsed(),
        None => timings.push((stage, start.elapsed())),
    }
    result
}
