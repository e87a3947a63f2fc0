//! Methods that need no training: the density tree, kin with the network that is built in, and every baseline.

use super::trained::check_columns;
use super::{
    Arguments, Design, Method, Outcome, check_method, neighbours, not_used, refuse_tree_options,
    without_links,
};
use crate::bars::Bars;
use crate::commands::name_of;
use crate::failure::Failure;
use kinfolk::{
    ClusterParams, Confidence, DEFAULT_RADIUS, Embeddings, KinParams, KnnGraph, KnnParams, cluster, kin,
};
use kinfolk_nn::{Among, KinModel};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::Instant;

pub(super) fn by_density(
    arguments: &Arguments,
    embeddings: &Embeddings,
    graph: Option<&KnnGraph>,
    truth: Option<&[i64]>,
) -> Result<Outcome, Failure> {
    if let Some(method @ (Method::GcnV | Method::GcnVe | Method::Lgcn | Method::Ltc)) = arguments.method {
        let message = format!("--method {}: expected --model with its networks, found none", method.name());
        return Err(Failure::Usage(message));
    }
    if arguments.links.among(Among::default()) == Among::AllNeighbours {
        return Err(Failure::Usage("-m -1: expected --model with GCN-E, found none".to_owned()));
    }
    let radius = arguments.radius.unwrap_or(DEFAULT_RADIUS);
    let designs = match &arguments.confidence[..] {
        [] => &[Design::UWeight],
        given => given,
    };
    let confidence = designs.iter().map(|design| design.confidence(radius, truth));
    let params = ClusterParams {
        knn: match graph {
            Some(_) => Default::default(),
            None => arguments.neighbours.params(embeddings.len()),
        },
        confidence: confidence.collect::<Result<_, _>>()?,
        m: arguments.links.m(1)?,
        tau: arguments.tau,
    };
    let clustering = cluster(embeddings, graph, &params, &Bars::default())?;
    let parameters = json!({
        "confidence": designs.iter().map(name_of).collect::<Vec<_>>().join(","),
        "radius": radius,
        "m": params.m,
    });
    Ok(Outcome { clustering, method: Method::Density, parameters, rebuilt: None })
}

pub(super) fn by_kin(
    arguments: &Arguments,
    embeddings: &Embeddings,
    graph: Option<&KnnGraph>,
    trained: Option<KinModel>,
) -> Result<Outcome, Failure> {
    check_method(arguments, Method::Kin)?;
    if arguments.tau.is_some() {
        let message =
            "--tau: expected no threshold with --method kin (--prefer says what matters), found one";
        return Err(Failure::Usage(message.to_owned()));
    }
    refuse_tree_options(arguments, Method::Kin)?;
    let neighbours = &arguments.neighbours;
    let mut params = match trained {
        Some(model) => model.params(),
        // A K that was asked for is kept.
        None => KinParams { grow: neighbours.k.is_none(), ..KinParams::default() },
    };
    if let Some(whitening) = &params.whitening {
        check_columns(arguments, embeddings, whitening.dim())?;
    }
    params.prefer = arguments.prefer.unwrap_or(params.prefer);
    let k = neighbours.k.unwrap_or(params.knn.k);
    params.knn = KnnParams { k, ..neighbours.params(embeddings.len()) };
    let clustering = kin(embeddings, graph, &params, &Bars::default())?;
    let parameters = json!({
        "model": arguments.model,
        "prefer": format!("{:?}", params.prefer).to_lowercase(),
        "least_probability": clustering.evidence.as_ref().map(|evidence| evidence.least),
        "whitened": params.whitening.is_some(),
    });
    Ok(Outcome { clustering, method: Method::Kin, parameters, rebuilt: None })
}

pub(super) fn by_baseline(
    arguments: &Arguments,
    mut baseline: kinfolk_baselines::Method,
    embeddings: &Embeddings,
    graph: Option<&KnnGraph>,
) -> Result<Outcome, Failure> {
    let method = arguments.method.unwrap_or(Method::Density);
    if arguments.model.is_some() {
        return Err(not_used("--model", method));
    }
    refuse_tree_options(arguments, method)?;
    let known: Vec<&str> = baseline.parameters().iter().map(|parameter| parameter.0).collect();
    if known.contains(&"seed") {
        baseline.set("seed", &arguments.neighbours.seed.to_string())?;
    }
    match arguments.clusters {
        Some(clusters) if known.contains(&"clusters") || method == Method::Hac => {
            baseline.set("clusters", &clusters.to_string())?;
        }
        Some(_) => return Err(not_used("--clusters", method)),
        None if known.contains(&"clusters")
            && !arguments.parameters.iter().any(|(name, _)| name == "clusters") =>
        {
            let message = format!("--clusters: expected how many for --method {}, found none", method.name());
            return Err(Failure::Usage(message));
        }
        None => {}
    }
    for (name, value) in &arguments.parameters {
        baseline.set(name, value)?;
    }
    let (graph, search) = match baseline.needs_graph(embeddings.len()) {
        true => {
            let params = arguments.neighbours.params(embeddings.len());
            let (graph, search) = neighbours(embeddings, graph, &params)?;
            (Some(graph), search)
        }
        false => (graph.map(Cow::Borrowed), None),
    };
    let start = Instant::now();
    let found = baseline.run(embeddings, graph.as_deref(), &Bars::default())?;
    let (k, taken) = (graph.map_or(0, |graph| graph.k()), start.elapsed());
    let clustering = without_links(found.labels, search, k, taken)?;
    let mut parameters = serde_json::Map::new();
    for (name, value) in baseline.parameters() {
        parameters.insert(name.to_owned(), json!(value));
    }
    if let Some(noise) = &found.noise {
        parameters.insert("rows_of_noise".to_owned(), json!(noise.iter().filter(|&&noise| noise).count()));
    }
    Ok(Outcome { clustering, method, parameters: Value::Object(parameters), rebuilt: None })
}

impl Design {
    fn confidence<'a>(self, radius: f32, labels: Option<&'a [i64]>) -> Result<Confidence<'a>, Failure> {
        let oracle = || {
            labels.ok_or_else(|| {
                let message = "--confidence: expected --labels for s-nbr, s-avg and s-center, found none";
                Failure::Usage(message.to_owned())
            })
        };
        Ok(match self {
            Design::UNum => Confidence::UNum(radius),
            Design::UWeight => Confidence::UWeight(radius),
            Design::SNbr => Confidence::SNbr(oracle()?),
            Design::SAvg => Confidence::SAvg(oracle()?),
            Design::SCenter => Confidence::SCenter(oracle()?),
        })
    }
}
