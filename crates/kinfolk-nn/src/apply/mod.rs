//! Applying a model: from embeddings to labels.

mod dense;
mod edge;
mod lgcn;
mod links;
pub(crate) mod ltc;
pub(crate) mod pivots;
mod proposals;
pub(crate) mod subgraphs;
#[cfg(test)]
mod tests;
mod vertex;

pub use edge::{Among, Asked, Connectivity, edge_connectivity};
pub use lgcn::{LgcnParams, LinkProbabilities, lgcn, link_probabilities, propagate};
pub use links::connected_candidates;
pub use ltc::{LtcParams, de_overlapped, ltc, proposal_scores};
pub use pivots::PivotShape;
pub use proposals::{ProposalParams, ProposalSetting, Proposals, proposals};
pub use vertex::{VertexEstimate, vertex_confidence};

use crate::{Model, ModelConfig};
use kinfolk::{
    Adjacency, Clustering, Embeddings, Error, KnnGraph, KnnParams, KnnReport, Progress, Result,
    average_ranks, u_weight,
};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Edges of less similarity are no neighbours.
const TH_SIM: f32 = 0.0;

/// Parameters of [`cluster`].
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyParams {
    /// How to apply the model, usually [`Model::config`].
    pub config: ModelConfig,
    /// How to search for neighbours; its `k` is not used, those of `config` are.
    pub knn: KnnParams,
    /// Whether GCN-E chooses among candidates, where the model has one; otherwise the nearest is taken.
    pub connectivity: bool,
}

impl ApplyParams {
    /// To apply a model as it was meant to be.
    pub fn of(model: &Model) -> Self {
        ApplyParams {
            config: model.config.clone(),
            knn: KnnParams::default(),
            connectivity: model.gcn_e.is_some(),
        }
    }
}

/// What [`cluster`] found.
#[derive(Debug, Clone)]
pub struct NetworkClustering {
    /// Labels, links and timings. Its `k` and `knn` are those of the graph that GCN-V saw.
    pub clustering: Clustering,
    /// K of the graph of the embeddings F_L and how it was found, if it was rebuilt.
    pub rebuilt: Option<(usize, KnnReport)>,
    /// What GCN-E said, if it was asked.
    pub connectivity: Option<Connectivity>,
}

/// Clusters embeddings with a model, on `graph` if there is one.
///
/// A graph with more neighbours than the model wants is cut to what it wants; one with fewer is refused, unless it is
/// only one: the published layout counts a row as its own first neighbour.
pub fn cluster(
    embeddings: &Embeddings,
    graph: Option<&KnnGraph>,
    model: &Model,
    params: &ApplyParams,
    progress: &dyn Progress,
) -> Result<NetworkClustering> {
    let config = &params.config;
    config.check()?;
    if embeddings.dim() != model.dim() {
        let what = "columns of features (what the model was trained on)".to_owned();
        let place = "model".to_owned();
        return Err(Error::Length { place, what, expected: model.dim(), found: embeddings.dim() });
    }
    let gcn_e = model.gcn_e.as_ref().filter(|_| params.connectivity && config.rho > 0.0);
    if gcn_e.is_some() {
        model.check_for(config.rebuild, "model")?;
    }
    let mut timings = Timings::default();
    let mut report = None;
    let graph = match graph {
        Some(graph) => fit(graph, embeddings.len(), config.k)?,
        None => {
            let knn = KnnParams { k: config.k, ..params.knn.clone() };
            let (graph, how) = timings.time("knn", || kinfolk::knn_graph(embeddings, &knn, progress))?;
            report = Some(how);
            Cow::Owned(graph)
        }
    };
    let k = graph.k();
    let adjacency = timings.time("adjacency", || Adjacency::from_knn(&graph, TH_SIM))?;
    let (confidence, f_l) = timings.time("confidence", || {
        let VertexEstimate { confidence, embeddings: f_l } =
            vertex_confidence(&model.gcn_v, embeddings, &adjacency, config.rebuild, progress)?;
        Ok::<_, Error>((mixed_confidence(&confidence, &graph, config.density, config.radius)?, f_l))
    })?;
    let mut rebuilt = None;
    let (features, graph, adjacency) = match config.rebuild {
        true => {
            drop((graph, adjacency));
            let features = rebuilt_features(f_l, model.gcn_v.width())?;
            let knn = KnnParams { k: config.k_rebuild, ..params.knn.clone() };
            let (graph, how) = timings.time("rebuild", || kinfolk::knn_graph(&features, &knn, progress))?;
            rebuilt = Some((graph.k(), how));
            (Cow::Owned(features), Cow::Owned(graph), None)
        }
        false => (Cow::Borrowed(embeddings), graph, Some(adjacency)),
    };
    let adjacency = match (gcn_e, adjacency) {
        (Some(_), None) => Some(timings.time("rebuilt adjacency", || Adjacency::from_knn(&graph, TH_SIM))?),
        (_, known) => known,
    };
    let (links, connectivity) = timings.time("connectivity", || {
        let connectivity = match gcn_e.zip(adjacency) {
            Some((gcn_e, adjacency)) => {
                let asked = Asked { rho: config.rho, among: config.among };
                let (features, confidence) = (&features, &confidence);
                Some(edge_connectivity(gcn_e, features, &graph, &adjacency, confidence, &asked, progress)?)
            }
            None => None,
        };
        let links = connected_candidates(&graph, &confidence, config.m, connectivity.as_ref())?;
        Ok::<_, Error>((links, connectivity))
    })?;
    let tau = if params.connectivity { config.tau } else { config.tau_v };
    let labels = timings.time("partition", || links.cut(tau));
    let clustering = Clustering { labels, links, tau, evidence: None, knn: report, k, timings: timings.0 };
    Ok(NetworkClustering { clustering, rebuilt, connectivity })
}

/// The confidence of GCN-V with a share of density, by rank; as it is when the share is 0.
pub(crate) fn mixed_confidence(
    confidence: &[f32],
    graph: &KnnGraph,
    density: f32,
    radius: f32,
) -> Result<Vec<f32>> {
    if density == 0.0 {
        return Ok(confidence.to_vec());
    }
    average_ranks(&[(confidence, 1.0 - density), (&u_weight(graph, radius)?, density)])
}

/// F_L as the rows of a new graph. A row of zeros, which has no direction, is made unlike all others: none of F_L is
/// negative, so its similarity to them is at most 0.
pub fn rebuilt_features(mut f_l: Vec<f32>, width: usize) -> Result<Embeddings> {
    for (i, row) in f_l.chunks_exact_mut(width).enumerate() {
        if row.iter().all(|&value| value == 0.0) {
            row[i % width] = -1.0;
        }
    }
    Embeddings::from_rows(f_l, width, "embeddings by GCN-V (F_L)")
}

/// A given graph with the number of neighbours that the model wants.
fn fit(graph: &KnnGraph, n: usize, k: usize) -> Result<Cow<'_, KnnGraph>> {
    let k = k.min(n.saturating_sub(1));
    let length = |what: &str, expected, found| {
        Err(Error::Length { place: "graph".to_owned(), what: what.to_owned(), expected, found })
    };
    if graph.len() != n {
        return length("vertices (one per embedding)", n, graph.len());
    }
    match graph.k() {
        found if found + 1 < k => length("neighbours, as the model expects", k, found),
        found if found > k => Ok(Cow::Owned(graph.nearest(k)?)),
        _ => Ok(Cow::Borrowed(graph)),
    }
}

/// How long each stage took.
#[derive(Default)]
struct Timings(Vec<(&'static str, Duration)>);

impl Timings {
    fn time<T>(&mut self, stage: &'static str, run: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = run();
        self.0.push((stage, start.elapsed()));
        result
    }
}
