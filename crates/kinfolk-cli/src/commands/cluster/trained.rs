//! Methods with a model that was trained: GCN-V and GCN-E, L-GCN, LTC.

use super::{
    Arguments, Method, Outcome, check_method, neighbours, refuse_network_options, refuse_tree_options,
    without_links,
};
use crate::bars::Bars;
use crate::commands::knn;
use crate::failure::Failure;
use kinfolk::{Embeddings, Error, KnnGraph, KnnParams};
use kinfolk_nn::{Among, ApplyParams, LgcnModel, LtcModel, Model, ModelConfig, lgcn, ltc};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

pub(super) fn with_model(
    arguments: &Arguments,
    model: Model,
    embeddings: &Embeddings,
    graph: Option<&KnnGraph>,
) -> Result<Outcome, Failure> {
    let method = match (arguments.method, &model.gcn_e) {
        (Some(method @ (Method::Density | Method::Kin)), _) => {
            let message = format!("--method {}: expected no --model, found one", method.name());
            return Err(Failure::Usage(message));
        }
        (Some(Method::GcnVe), None) => {
            let place = arguments.model.as_deref().unwrap_or(Path::new("the model")).display();
            let message = format!("--method gcn-ve: expected a model with GCN-E, found none in {place}");
            return Err(Failure::Usage(message));
        }
        (Some(Method::Lgcn | Method::Ltc), _) => {
            check_method(arguments, Method::GcnV)?;
            Method::GcnV
        }
        (Some(method), _) => method,
        (None, Some(_)) => Method::GcnVe,
        (None, None) => Method::GcnV,
    };
    check_columns(arguments, embeddings, model.dim())?;
    let usual = &model.config;
    let config = ModelConfig {
        k: arguments.neighbours.k.unwrap_or(usual.k),
        k_rebuild: arguments.k_rebuild.unwrap_or(usual.k_rebuild),
        tau: arguments.tau.unwrap_or(usual.tau),
        tau_v: arguments.tau.unwrap_or(usual.tau_v),
        density: arguments.density.unwrap_or(usual.density),
        radius: usual.radius,
        rho: arguments.rho.unwrap_or(usual.rho),
        m: arguments.links.m(usual.m)?,
        among: arguments.links.among(usual.among),
        rebuild: (usual.rebuild || arguments.k_rebuild.is_some()) && !arguments.no_rebuild,
    };
    let knn = arguments.neighbours.params(embeddings.len());
    let params = ApplyParams { config, knn, connectivity: method == Method::GcnVe };
    let found = kinfolk_nn::cluster(embeddings, graph, &model, &params, &Bars::default())?;
    let config = &params.config;
    let mut parameters = json!({
        "model": arguments.model, "rebuild": config.rebuild, "density": config.density, "radius": config.radius, "m": config.m,
        "all_neighbours": config.among == Among::AllNeighbours,
    });
    if method == Method::GcnVe {
        parameters["rho"] = json!(config.rho);
    }
    let rebuilt = found.rebuilt.map(|(k, report)| knn::as_json(embeddings.len(), k, &report));
    Ok(Outcome { clustering: found.clustering, method, parameters, rebuilt })
}

pub(super) fn by_lgcn(
    arguments: &Arguments,
    embeddings: &Embeddings,
    graph: Option<&KnnGraph>,
    model: LgcnModel,
) -> Result<Outcome, Failure> {
    check_method(arguments, Method::Lgcn)?;
    refuse_tree_options(arguments, Method::Lgcn)?;
    refuse_network_options(arguments, Method::Lgcn)?;
    check_columns(arguments, embeddings, model.network.inputs())?;
    let mut params = model.params;
    params.shape.k1 = arguments.neighbours.k.unwrap_or(params.shape.k1);
    for (name, value) in &arguments.parameters {
        match name.as_str() {
            "th" => set(&mut params.th, name, value)?,
            "max_size" => set(&mut params.limit.max_size, name, value)?,
            "step" => set(&mut params.limit.step, name, value)?,
            "rounds" => set(&mut params.limit.rounds, name, value)?,
            _ => {
                let message = format!("--param: expected th, max_size, step or rounds, found {name}");
                return Err(Failure::Usage(message));
            }
        }
    }
    let knn = KnnParams { k: params.shape.k1, ..arguments.neighbours.params(embeddings.len()) };
    let (graph, search) = neighbours(embeddings, graph, &knn)?;
    let start = Instant::now();
    let labels = lgcn(embeddings, &graph, &model.network, &params, &Bars::default())?;
    let clustering = without_links(labels, search, graph.k(), start.elapsed())?;
    let parameters = json!({
        "model": arguments.model, "k1": params.shape.k1, "k2": params.shape.k2, "active": params.shape.active,
        "th": params.th, "max_size": params.limit.max_size, "step": params.limit.step,
    });
    Ok(Outcome { clustering, method: Method::Lgcn, parameters, rebuilt: None })
}

pub(super) fn by_ltc(
    arguments: &Arguments,
    embeddings: &Embeddings,
    graph: Option<&KnnGraph>,
    model: LtcModel,
) -> Result<Outcome, Failure> {
    check_method(arguments, Method::Ltc)?;
    refuse_tree_options(arguments, Method::Ltc)?;
    refuse_network_options(arguments, Method::Ltc)?;
    check_columns(arguments, embeddings, model.dim())?;
    let LtcModel { gcn_d, gcn_s, mut params } = model;
    for (name, value) in &arguments.parameters {
        match name.as_str() {
            "least" => set(&mut params.least, name, value)?,
            "max_size" => set(&mut params.proposals.limit.max_size, name, value)?,
            "step" => set(&mut params.proposals.limit.step, name, value)?,
            "levels" => set(&mut params.proposals.levels, name, value)?,
            _ => {
                let message = format!("--param: expected least, max_size, step or levels, found {name}");
                return Err(Failure::Usage(message));
            }
        }
    }
    let k = params.proposals.settings.iter().map(|setting| setting.k).max();
    let k = arguments.neighbours.k.or(k).unwrap_or(KnnParams::default().k);
    let knn = KnnParams { k, ..arguments.neighbours.params(embeddings.len()) };
    let (graph, search) = neighbours(embeddings, graph, &knn)?;
    let start = Instant::now();
    let labels = ltc(embeddings, &graph, [&gcn_d, &gcn_s], &params, &Bars::default())?;
    let clustering = without_links(labels, search, graph.k(), start.elapsed())?;
    let thresholds: Vec<f32> = params.proposals.settings.iter().map(|setting| setting.th).collect();
    let parameters = json!({
        "model": arguments.model, "thresholds": thresholds, "max_size": params.proposals.limit.max_size,
        "step": params.proposals.limit.step, "levels": params.proposals.levels, "least": params.least,
        "segment": params.segment,
    });
    Ok(Outcome { clustering, method: Method::Ltc, parameters, rebuilt: None })
}

/// Reads a `--param` of a trained method into its place.
fn set<T: std::str::FromStr>(place: &mut T, name: &str, value: &str) -> Result<(), Failure> {
    *place = value
        .parse()
        .map_err(|_| Failure::Usage(format!("--param {name}: expected a number, found {value}")))?;
    Ok(())
}

/// Refuses rows that are not like those the model was trained on.
pub(super) fn check_columns(
    arguments: &Arguments,
    embeddings: &Embeddings,
    expected: usize,
) -> Result<(), Failure> {
    if embeddings.dim() == expected {
        return Ok(());
    }
    let model = arguments.model.as_deref().unwrap_or(Path::new("the model")).display();
    let expected = format!("{expected} columns, as {model} was trained on");
    Err(Error::format(&arguments.features.features, expected, embeddings.dim().to_string()).into())
}
