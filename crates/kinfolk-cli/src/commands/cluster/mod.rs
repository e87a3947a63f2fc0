//! `kinfolk cluster`: from a file of embeddings to a directory of clusters.

mod trained;
mod without_training;

use super::{Features, LinkCount, Neighbours, eval, knn, name_of, results};
use crate::bars::Bars;
use crate::failure::Failure;
use crate::{machine, table};
use clap::{Args, ValueEnum};
use kinfolk::io::{check_label_count, read_graph, read_labels};
use kinfolk::metrics::evaluate;
use kinfolk::{Clustering, Embeddings, Error, KnnGraph, KnnParams, KnnReport, Prefer, Progress, knn_graph};
use kinfolk_nn::ModelFile;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trained::{by_lgcn, by_ltc, with_model};
use without_training::{by_baseline, by_density, by_kin};

/// Group rows of the same identity
#[derive(Args)]
#[command(after_help = "Example:  kinfolk cluster faces.npy -o album
          writes album/labels.npy, album/clusters.csv, album/review.csv and album/run.json")]
pub struct Arguments {
    #[command(flatten)]
    features: Features,
    /// Directory to write to [default: the name of FEATURES, then -clusters]
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How to cluster [default: what the model is for; without one kin, or density if --tau, -m, --confidence or --radius is
    /// given]
    #[arg(long, value_name = "NAME", value_enum)]
    method: Option<Method>,
    /// Trained networks (`kinfolk train` or `import`); the options below override what the model says
    #[arg(long, value_name = "FILE", conflicts_with_all = ["confidence", "radius"])]
    model: Option<PathBuf>,
    /// Neighbours in the graph that is rebuilt from the embeddings of GCN-V
    #[arg(long, value_name = "K", requires = "model")]
    k_rebuild: Option<usize>,
    /// Do not rebuild the graph from the embeddings of GCN-V
    #[arg(long, requires = "model", conflicts_with = "k_rebuild")]
    no_rebuild: bool,
    /// Share of rows, the most confident, whose parents GCN-E chooses
    #[arg(long, value_name = "R", requires = "model")]
    rho: Option<f32>,
    #[command(flatten)]
    neighbours: Neighbours,
    /// Neighbours found before (`kinfolk knn`, or the published layout), instead of a search
    #[arg(long, value_name = "GRAPH", conflicts_with_all = ["exact", "recall"])]
    graph: Option<PathBuf>,
    /// Cut links of at most this similarity; read off the set if neither given nor in the model
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    tau: Option<f32>,
    #[command(flatten)]
    links: LinkCount,
    /// Share of density in the confidence of GCN-V
    #[arg(long, value_name = "SHARE", requires = "model")]
    density: Option<f32>,
    /// Clusters to make, for methods that do not find their number themselves
    #[arg(long, value_name = "C")]
    clusters: Option<usize>,
    /// A parameter of a method beyond those here, as NAME=VALUE; a wrong name is answered with the right ones
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,
    /// Which mistake of kin is worse: precision (rather split an identity than mix two), balanced, recall, or the
    /// probability from 0 to 1 that a tie must have [default: balanced]
    #[arg(long, value_name = "WHAT", value_parser = prefer)]
    prefer: Option<Prefer>,
    /// What makes a row confident in density, several with commas are averaged by rank; those that begin with s need
    /// --labels and show what is possible at best [default: u-weight]
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    confidence: Vec<Design>,
    /// Cosine distance within which u-num and u-weight count neighbours [default: 1]
    #[arg(long, value_name = "R")]
    radius: Option<f32>,
    /// True labels: the result is compared with them
    #[arg(long, value_name = "LABELS")]
    labels: Option<PathBuf>,
    /// Print run.json instead of a summary
    #[arg(long)]
    json: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq)]
enum Method {
    /// Tree of nearest neighbours of higher density; no labels, no training, O(N K) after the neighbours
    Density,
    /// Probability of every edge from what surrounds it, then the map equation; no labels, no threshold
    Kin,
    /// Confidence by the model's GCN-V, then the nearest neighbour of higher confidence
    GcnV,
    /// The same, but the most confident rows take the neighbour that the model's GCN-E connects them with
    GcnVe,
    /// Links of every row with its neighbours by the model's L-GCN, then components of limited size; what links alone are
    /// worth, tens of times slower than gcn-v; O(N V), V the rows that two hops reach, some 100 to 400
    Lgcn,
    /// Proposals of clusters at several thresholds, the best by the model's networks (LTC); what choosing whole clusters is
    /// worth; O(N K) for each threshold
    Ltc,
    /// Lloyd's k-means with --clusters; when their number is known and they are round; O(N C D) an iteration
    Kmeans,
    /// k-means on mini-batches; the same for large N, somewhat worse; O(N C D) once
    MinibatchKmeans,
    /// Hierarchical clustering with --clusters or --param distance=; small sets, no noise; O(N^2 D) up to 30,000 rows,
    /// above on the neighbours
    Hac,
    /// DBSCAN with --param eps= and min=; clusters of like density among noise; O(N^2 D)
    Dbscan,
    /// The same on the neighbours, as published for faces; O(N K)
    DbscanKnn,
    /// Mean shift; few broad clusters in few dimensions; some dozen times O(N^2 D)
    Meanshift,
    /// Spectral clustering with --clusters; few clusters of any shape; O(N C (K + C))
    Spectral,
    /// Approximate rank-order; similarities that mean different things in different places; O(N K^2)
    Aro,
    /// Consensus-driven propagation; when the largest size is known; O(N K log N)
    Cdp,
    /// Chinese whispers with --param th=; a quick grouping at a known threshold; O(N K) a round
    ChineseWhispers,
    /// HDBSCAN; clusters of different density among noise; O(N^2 D) up to 100,000 rows, above on the neighbours
    Hdbscan,
    /// Infomap with --param th=; strong when the threshold is known; some dozen times O(N K)
    Infomap,
}

/// What a method found, and what `run.json` says of it alone.
struct Outcome {
    clustering: Clustering,
    method: Method,
    parameters: Value,
    rebuilt: Option<Value>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq)]
enum Design {
    /// Number of neighbours within --radius
    UNum,
    /// Sum of their similarities
    UWeight,
    /// From labels: neighbours of the same identity less the others (Eq. 1 of the paper)
    SNbr,
    /// From labels: mean similarity to the same identity
    SAvg,
    /// From labels: similarity to the identity's centre
    SCenter,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let bars = Bars::default();
    bars.begin("read", 1);
    let embeddings = arguments.features.read()?;
    drop(bars);
    let reading = start.elapsed();
    let directory =
        arguments.output.clone().unwrap_or_else(|| default_directory(&arguments.features.features));
    if directory.exists() && !directory.is_dir() {
        let place = directory.display().to_string();
        return Err(Error::format(place, "a directory to write to", "a file").into());
    }
    let truth = read_truth(&arguments, &embeddings)?;
    let graph = read_neighbours(&arguments, &embeddings)?;
    let model = arguments.model.as_ref().map(|path| ModelFile::read(path)).transpose()?;
    let of_trees = arguments.tau.is_some()
        || arguments.links.given()
        || !arguments.confidence.is_empty()
        || arguments.radius.is_some();
    let usual = if of_trees { Method::Density } else { Method::Kin };
    let method = arguments.method.unwrap_or(usual);
    let is_kin = model.as_ref().map_or(method == Method::Kin, |model| matches!(model, ModelFile::Kin(_)));
    if arguments.prefer.is_some() && !is_kin {
        return Err(Failure::Usage("--prefer: expected --method kin, found another".to_owned()));
    }
    let (baseline, graph) = (arguments.method.and_then(Method::baseline), graph.as_ref());
    let has_params = baseline.is_some() || matches!(model, Some(ModelFile::Lgcn(_) | ModelFile::Ltc(_)));
    if baseline.is_none() && arguments.clusters.is_some() {
        return Err(not_used("--clusters", method));
    }
    if !has_params && !arguments.parameters.is_empty() {
        return Err(not_used("--param", method));
    }
    let outcome = match (baseline, model) {
        (Some(baseline), _) => by_baseline(&arguments, baseline, &embeddings, graph)?,
        (None, Some(ModelFile::Kin(trained))) => by_kin(&arguments, &embeddings, graph, Some(trained))?,
        (None, Some(ModelFile::Lgcn(trained))) => by_lgcn(&arguments, &embeddings, graph, trained)?,
        (None, Some(ModelFile::Ltc(trained))) => by_ltc(&arguments, &embeddings, graph, trained)?,
        (None, Some(ModelFile::Networks(model))) => with_model(&arguments, model, &embeddings, graph)?,
        (None, None) if method == Method::Kin => by_kin(&arguments, &embeddings, graph, None)?,
        (None, None) => by_density(&arguments, &embeddings, graph, truth.as_deref())?,
    };
    let found = &outcome.clustering;

    let scores = truth.map(|truth| evaluate(&truth, &found.labels)).transpose()?;
    let mut run = describe(&arguments, &embeddings, &outcome, reading);
    if let Some(scores) = &scores {
        run["scores"] = eval::as_json(scores);
    }
    results::write(&directory, found, &run)?;

    if arguments.json {
        println!("{run:#}");
        return Ok(());
    }
    println!(
        "{} rows -> {} clusters ({} of one row, largest {}){}, {:.2} s -> {}",
        embeddings.len(),
        run["clusters"]["count"],
        run["clusters"]["singletons"],
        run["clusters"]["largest"],
        match outcome.method {
            Method::Kin => format!(", K {}", found.k),
            method if method.is_tree() => format!(", tau {:.3}", found.tau),
            _ => String::new(),
        },
        start.elapsed().as_secs_f64(),
        directory.display()
    );
    if let Some(scores) = &scores {
        let mut headings = vec!["scores"];
        headings.extend(table::SCORE_HEADINGS);
        table::print(&headings, &[table::scores(&outcome.method.name(), scores)]);
    }
    Ok(())
}

impl Method {
    fn name(self) -> String {
        name_of(&self)
    }

    /// Whether it cuts links at tau.
    fn is_tree(self) -> bool {
        matches!(self, Method::Density | Method::GcnV | Method::GcnVe)
    }

    /// The well-known method of this name, if it is none of ours.
    fn baseline(self) -> Option<kinfolk_baselines::Method> {
        kinfolk_baselines::Method::named(&self.name())
    }
}

/// Refuses a method that the model is not for.
fn check_method(arguments: &Arguments, of: Method) -> Result<(), Failure> {
    match arguments.method.filter(|&method| method != of) {
        Some(method) => Err(Failure::Usage(format!(
            "--method {}: expected a model of it, found one of {}",
            method.name(),
            of.name()
        ))),
        None => Ok(()),
    }
}

/// Refuses the options of trees.
fn refuse_tree_options(arguments: &Arguments, method: Method) -> Result<(), Failure> {
    let of_trees = [
        ("--tau", arguments.tau.is_some()),
        ("-m", arguments.links.given()),
        ("--confidence", !arguments.confidence.is_empty()),
        ("--radius", arguments.radius.is_some()),
    ];
    match of_trees.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(not_used(name, method)),
        None => Ok(()),
    }
}

/// Refuses the options of GCN-V and GCN-E.
fn refuse_network_options(arguments: &Arguments, method: Method) -> Result<(), Failure> {
    let of_networks = [
        ("--rho", arguments.rho.is_some()),
        ("--density", arguments.density.is_some()),
        ("--k-rebuild", arguments.k_rebuild.is_some()),
        ("--no-rebuild", arguments.no_rebuild),
    ];
    match of_networks.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(not_used(name, method)),
        None => Ok(()),
    }
}

fn not_used(option: &str, method: Method) -> Failure {
    Failure::Usage(format!("{option}: expected a method that uses it, found --method {}", method.name()))
}

/// Reads `--param`.
fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// How a graph was found, and how long it took.
type Search = (KnnReport, Duration);

/// The given graph, or one that is searched for.
fn neighbours<'a>(
    embeddings: &Embeddings,
    graph: Option<&'a KnnGraph>,
    params: &KnnParams,
) -> Result<(Cow<'a, KnnGraph>, Option<Search>), Failure> {
    let Some(graph) = graph else {
        let start = Instant::now();
        let (graph, report) = knn_graph(embeddings, params, &Bars::default())?;
        return Ok((Cow::Owned(graph), Some((report, start.elapsed()))));
    };
    Ok((Cow::Borrowed(graph), None))
}

/// The result of a method that only makes labels.
fn without_links(
    labels: Vec<i64>,
    search: Option<Search>,
    k: usize,
    taken: Duration,
) -> Result<Clustering, Failure> {
    let mut timings: Vec<_> = search.iter().map(|search| ("knn", search.1)).collect();
    timings.push(("partition", taken));
    Ok(Clustering::of_labels(labels, k, search.map(|search| search.0), timings)?)
}

/// Reads `--prefer`.
fn prefer(text: &str) -> Result<Prefer, String> {
    match text {
        "precision" => Ok(Prefer::Precision),
        "balanced" => Ok(Prefer::Balanced),
        "recall" => Ok(Prefer::Recall),
        number => match number.parse() {
            Ok(probability) if (0.0..=1.0).contains(&probability) => Ok(Prefer::Probability(probability)),
            _ => Err("expected precision, balanced, recall or a probability from 0 to 1".to_owned()),
        },
    }
}

fn read_truth(arguments: &Arguments, embeddings: &Embeddings) -> Result<Option<Vec<i64>>, Failure> {
    let Some(path) = &arguments.labels else { return Ok(None) };
    let labels = read_labels(path)?;
    check_label_count(&labels, embeddings.len(), path, &arguments.features.features)?;
    Ok(Some(labels))
}

fn read_neighbours(arguments: &Arguments, embeddings: &Embeddings) -> Result<Option<KnnGraph>, Failure> {
    let Some(path) = &arguments.graph else { return Ok(None) };
    let graph = read_graph(path, Some(embeddings.len()))?;
    match arguments.neighbours.k {
        Some(k) if k > graph.k() => {
            let (expected, found) = (format!("{k} neighbours (-k {k})"), format!("{}", graph.k()));
            Err(Error::format(path.display().to_string(), expected, found).into())
        }
        Some(k) if k < graph.k() => Ok(Some(graph.nearest(k)?)),
        _ => Ok(Some(graph)),
    }
}

fn default_directory(features: &Path) -> PathBuf {
    let stem = features.file_stem().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!("{stem}-clusters"))
}

/// Everything that `run.json` says, but for the scores.
fn describe(arguments: &Arguments, embeddings: &Embeddings, outcome: &Outcome, reading: Duration) -> Value {
    let found = &outcome.clustering;
    let mut timings = Map::new();
    timings.insert("read".to_owned(), json!(reading.as_secs_f64()));
    for (stage, time) in &found.timings {
        timings.insert((*stage).to_owned(), json!(time.as_secs_f64()));
    }
    // Noise that was asked to be kept, -1, is no cluster.
    let clustered = || found.labels.iter().filter_map(|&label| usize::try_from(label).ok());
    let mut sizes = vec![0u64; clustered().max().map_or(0, |last| last + 1)];
    clustered().for_each(|label| sizes[label] += 1);
    let graph = match (&arguments.graph, &found.knn) {
        (Some(path), _) => json!({ "file": path, "k": found.k }),
        (None, Some(report)) => knn::as_json(embeddings.len(), found.k, report),
        (None, None) => json!({ "k": found.k }),
    };
    let mut parameters = json!({
        "method": outcome.method.name(),
        "seed": arguments.neighbours.seed,
        "threads": rayon::current_num_threads(),
    });
    if outcome.method.is_tree() {
        parameters["tau"] = json!(found.tau);
        parameters["tau_given"] = json!(arguments.tau.is_some());
    }
    for (name, value) in outcome.parameters.as_object().into_iter().flatten() {
        parameters[name] = value.clone();
    }
    let mut run = json!({
        "kinfolk": env!("CARGO_PKG_VERSION"),
        "features": {
            "file": arguments.features.features,
            "rows": embeddings.len(),
            "dim": embeddings.dim(),
            "mapped": embeddings.is_mapped(),
        },
        "parameters": parameters,
        "graph": graph,
        "clusters": {
            "count": sizes.len(),
            "singletons": sizes.iter().filter(|&&s| s == 1).count(),
            "largest": sizes.iter().max(),
        },
        "seconds": timings,
        "cpu_seconds": machine::cpu_time().as_secs_f64(),
        "peak_memory_bytes": machine::peak_memory(),
    });
    if let Some(rebuilt) = &outcome.rebuilt {
        run["rebuilt_graph"] = rebuilt.clone();
    }
    run
}
