//! From labelled embeddings to a model that needs no thresholds.
//!
//! GCN-V is trained, applied to the whole set, and the graph rebuilt from its embeddings; GCN-E is trained on the
//! candidate sets of that graph. What is left to choose (tau, rho, whether to rebuild) is chosen on the identities that
//! neither was trained on.

use super::choose::best_tau;
use super::division::divide;
use super::{GcnEParams, GcnVParams, Trained, train_gcn_e, train_gcn_v};
use crate::{Model, ModelConfig, connected_candidates, edge_connectivity, vertex_confidence};
use kinfolk::{
    Adjacency, Embeddings, Error, KnnGraph, KnnParams, Links, Progress, Result, knn_graph, nearest_candidates,
};

/// Shares of the vertices that GCN-E may choose the parents of.
const RHOS: [f32; 4] = [0.1, 0.2, 0.5, 0.8];

/// Parameters of [`train`].
#[derive(Debug, Clone, PartialEq)]
pub struct TrainParams {
    /// GCN-V, and the graph that it sees.
    pub gcn_v: GcnVParams,
    /// GCN-E; `None` leaves it out.
    pub gcn_e: Option<GcnEParams>,
    /// Neighbours in the graph of GCN-V's embeddings. Default 80.
    pub k_rebuild: usize,
}

impl Default for TrainParams {
    fn default() -> Self {
        TrainParams { gcn_v: GcnVParams::default(), gcn_e: Some(GcnEParams::default()), k_rebuild: 80 }
    }
}

/// One way to apply the networks, and how it did on held-out identities.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Whether the graph was rebuilt from GCN-V's embeddings.
    pub rebuild: bool,
    /// Share of the vertices whose parents GCN-E chose; 0 without it.
    pub rho: f32,
    /// The best tau.
    pub tau: f32,
    /// BCubed F of the held-out rows, from 0 to 1.
    pub bcubed_f: f64,
}

/// What [`train`] made.
#[derive(Debug, Clone)]
pub struct TrainedModel {
    /// The networks, and the best way to apply them. Without GCN-E if that is on the graph as it is.
    pub model: Model,
    /// How GCN-V was trained.
    pub gcn_v: Trained,
    /// How GCN-E was trained.
    pub gcn_e: Option<Trained>,
    /// Every way that was tried, in the order of trying; the model has the best.
    pub choices: Vec<Choice>,
}

/// Trains a model on labelled embeddings, on `graph` if there is one.
pub fn train(
    embeddings: &Embeddings,
    labels: &[i64],
    graph: Option<&KnnGraph>,
    params: &TrainParams,
    progress: &dyn Progress,
) -> Result<TrainedModel> {
    let found;
    let graph = match graph {
        Some(graph) => graph,
        None => {
            found = knn_graph(embeddings, &params.gcn_v.knn, progress)?.0;
            &found
        }
    };
    params.gcn_v.validate()?;
    let held_out = divide(labels, &params.gcn_v.fit).validation;
    if held_out.is_empty() {
        return Err(Error::Parameter {
            name: "--validation",
            expected: "a share of the identities that is at least one of them",
            found: params.gcn_v.fit.validation.to_string(),
        });
    }
    let gcn_v = train_gcn_v(embeddings, labels, Some(graph), &params.gcn_v, progress)?;
    let adjacency = Adjacency::from_knn(graph, params.gcn_v.th_sim)?;
    let estimate = vertex_confidence(&gcn_v.network, embeddings, &adjacency, true, progress)?;
    let confidence = estimate.confidence;
    let features =
        Embeddings::from_rows(estimate.embeddings, gcn_v.network.width(), "embeddings by GCN-V (F_L)")?;
    let knn = KnnParams { k: params.k_rebuild, ..params.gcn_v.knn.clone() };
    let (rebuilt, _) = knn_graph(&features, &knn, progress)?;

    let mut choices = Vec::new();
    let mut consider = |rebuild, rho, links: &Links| {
        let (tau, bcubed_f) = best_tau(links, labels, &held_out);
        choices.push(Choice { rebuild, rho, tau, bcubed_f });
    };
    consider(true, 0.0, &nearest_candidates(&rebuilt, &confidence, 1)?);
    let mut gcn_e = None;
    if let Some(params) = &params.gcn_e {
        let trained = train_gcn_e(&features, labels, &rebuilt, &confidence, params, progress)?;
        let adjacency = Adjacency::from_knn(&rebuilt, params.th_sim)?;
        for rho in RHOS {
            let connectivity = edge_connectivity(
                &trained.network,
                &features,
                &rebuilt,
                &adjacency,
                &confidence,
                rho,
                progress,
            )?;
            consider(true, rho, &connected_candidates(&rebuilt, &confidence, 1, Some(&connectivity))?);
        }
        gcn_e = Some(trained);
    }
    consider(false, 0.0, &nearest_candidates(graph, &confidence, 1)?);
    // The first of equals: what was tried first is the simplest.
    let best = choices.iter().fold(&choices[0], |best, c| if c.bcubed_f > best.bcubed_f { c } else { best });
    let config = ModelConfig {
        k: graph.k(),
        k_rebuild: rebuilt.k(),
        tau: best.tau,
        rho: best.rho,
        m: 1,
        rebuild: best.rebuild,
    };
    // GCN-E has learned the embeddings of rebuilt graphs and cannot be asked about others.
    let usable = gcn_e.as_ref().filter(|_| config.rebuild);
    let model = Model {
        gcn_v: gcn_v.network.clone(),
        gcn_e: usable.map(|trained: &Trained| trained.network.clone()),
        config,
    };
    Ok(TrainedModel { model, gcn_v, gcn_e, choices })
}
