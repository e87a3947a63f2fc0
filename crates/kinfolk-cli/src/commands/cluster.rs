//! `kinfolk cluster`: from a file of embeddings to a directory of clusters.

use super::pseudo_labels::{self, PseudoLabelOptions};
use super::{Features, MethodParameters, Neighbours, method_names, scratch};
use crate::bars::Bars;
use crate::failure::{Failure, Places};
use crate::picture::draw_levels;
use crate::watch::Watch;
use crate::{machine, table};
use clap::Args;
use kinfolk::io::{AtomicFile, check_label_count, read_graph, read_labels};
use kinfolk::metrics::evaluate;
use kinfolk::results::{ClustersFormat, LevelInfo, ResultOptions, Run, write_results};
use kinfolk::{Clusterer, Clustering, Error, KnnGraph, Method, Problem, Progress, Reason, Work};
use kinfolk_nn::ModelFile;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Cluster rows by identity
#[derive(Args)]
#[command(after_help = "Example:  kinfolk cluster faces.npy -o album
          writes album/labels.npy, album/clusters.csv, album/review.csv and album/run.json

          kinfolk cluster faces.npy -o album --levels
          also writes album/levels.npy, album/levels.csv and album/levels.svg: finer and coarser clusters

          kinfolk cluster faces.npy -o album --pseudo-labels classes.npy --least-size 5 --least-probability 0.9
          also writes classes.npy: the clusters that are worth training a network on, -1 for all other rows

          kinfolk cluster millions.npy -o album --work stages
          keeps the neighbours, the edge probabilities and the partition in stages/; type it again after an interruption

Options that a method does not use are refused. docs/methods.md describes all methods and their parameters.")]
pub struct Arguments {
    #[command(flatten)]
    features: Features,
    /// Directory to write to [default: the name of FEATURES with the suffix -clusters]
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Clustering method [default: the method of the model; without a model kin, or density if --tau, -m, --confidence
    /// or --radius is given]
    #[arg(long, value_name = "NAME", value_parser = method_names(|_| true))]
    method: Option<String>,
    /// Model file of `kinfolk train` or `import`; the options below override its settings
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    #[command(flatten)]
    neighbours: Neighbours,
    /// Precomputed kNN graph, by `kinfolk knn` or in the published layout, instead of a search
    #[arg(long, value_name = "GRAPH", conflicts_with_all = ["exact", "recall"])]
    graph: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Any parameter of the method, as NAME=VALUE; an unknown name lists the known ones
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = name_and_value)]
    parameters: Vec<(String, String)>,
    /// Also write nested partitions from fine to coarse, with the persistence of each and a picture of them; for kin
    #[arg(long)]
    levels: bool,
    /// Directory that keeps finished stages: after an interruption, the same command goes on from there
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Write clusters.parquet instead of clusters.csv: the same columns, smaller and faster to load
    #[arg(long)]
    parquet: bool,
    #[command(flatten)]
    pseudo_labels: PseudoLabelOptions,
    /// True labels, to score the result
    #[arg(long, value_name = "LABELS")]
    labels: Option<PathBuf>,
    /// Print run.json instead of a summary
    #[arg(long)]
    json: bool,
}

/// Parameters of methods that are options of the command.
#[derive(Args)]
struct Settings {
    /// Which error kin avoids: precision (avoids mixing identities), recall (avoids splitting them), balanced, or
    /// how probable an edge must be to join two rows, from 0 to 1 [default: balanced]
    #[arg(long, value_name = "WHAT")]
    prefer: Option<String>,
    /// Number of clusters, for methods that need it
    #[arg(long, value_name = "C")]
    clusters: Option<String>,
    /// Cut links of at most this similarity [default: that of the model, else derived from the data]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    tau: Option<String>,
    /// Links of each row to rows of higher confidence: 1 builds trees, more builds directed acyclic graphs; -1 lets
    /// GCN-E choose one from all neighbours [default: 1]
    #[arg(short, value_name = "M", allow_negative_numbers = true)]
    m: Option<String>,
    /// Confidence of the density tree: u-num, u-weight, s-nbr, s-avg or s-center. Several, separated by commas, are
    /// averaged by rank. s-nbr, s-avg and s-center need --labels [default: u-weight]
    #[arg(long, value_name = "NAME")]
    confidence: Option<String>,
    /// Cosine distance within which u-num and u-weight count neighbours [default: 1]
    #[arg(long, value_name = "R")]
    radius: Option<String>,
    /// Share of the rows, the most confident ones, whose parents GCN-E chooses
    #[arg(long, value_name = "R")]
    rho: Option<String>,
    /// Share of density in the confidence of GCN-V
    #[arg(long, value_name = "SHARE")]
    density: Option<String>,
    /// Neighbours in the graph that is rebuilt from the embeddings of GCN-V
    #[arg(long, value_name = "K")]
    k_rebuild: Option<String>,
    /// Do not rebuild the graph from the embeddings of GCN-V
    #[arg(long, conflicts_with = "k_rebuild")]
    no_rebuild: bool,
}

impl Settings {
    fn parameters(&self) -> MethodParameters<'_> {
        let mut given = MethodParameters::default();
        for (option, name, value) in [
            ("--prefer", "prefer", &self.prefer),
            ("--clusters", "clusters", &self.clusters),
            ("--tau", "tau", &self.tau),
            ("-m", "m", &self.m),
            ("--confidence", "confidence", &self.confidence),
            ("--radius", "radius", &self.radius),
            ("--rho", "rho", &self.rho),
            ("--density", "density", &self.density),
            ("--k-rebuild", "k_rebuild", &self.k_rebuild),
        ] {
            given.add(option, name, value.as_deref());
        }
        // --k-rebuild implies that the graph is rebuilt.
        given.add("--k-rebuild", "rebuild", self.k_rebuild.as_ref().map(|_| "true"));
        given.add("--no-rebuild", "rebuild", self.no_rebuild.then_some("false"));
        given
    }

    /// Whether an option is given that only the density tree has.
    fn of_trees(&self) -> bool {
        [&self.tau, &self.m, &self.confidence, &self.radius].iter().any(|option| option.is_some())
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let places = Places {
        embeddings: Some(&arguments.features.features),
        graph: arguments.graph.as_deref(),
        labels: arguments.labels.as_deref(),
        model: arguments.model.as_deref(),
    };
    cluster(&arguments).map_err(|failure| failure.at(&places))
}

fn cluster(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let bars = Watch::new(Bars::default());
    bars.begin("read", 1);
    let directory =
        arguments.output.clone().unwrap_or_else(|| default_directory(&arguments.features.features));
    let embeddings = arguments.features.read_beside(&directory, arguments.neighbours.memory)?;
    let reading = start.elapsed();
    if directory.exists() && !directory.is_dir() {
        return Err(Error::format(directory, "a directory to write to", "a file").into());
    }
    let truth = match &arguments.labels {
        Some(path) => {
            let labels = read_labels(path)?;
            check_label_count(&labels, embeddings.len(), path, &arguments.features.features)?;
            Some(labels)
        }
        None => None,
    };
    let graph = arguments.graph.as_ref().map(|path| read_graph(path, Some(embeddings.len()))).transpose()?;
    let method = method(arguments)?;
    arguments.pseudo_labels.check(&directory, method.info())?;
    let mut problem = Problem::new(&embeddings).with_search(arguments.neighbours.search());
    if let Some(graph) = &graph {
        check_neighbours(arguments, graph)?;
        problem = problem.with_graph(graph)?;
    } else if method.uses_graph(embeddings.len()) {
        arguments.neighbours.warn(embeddings.len());
    }
    if let Some(truth) = &truth {
        problem = problem.with_labels(truth)?;
    }
    let problem = problem.with_k(arguments.neighbours.k)?;
    let seed = arguments.neighbours.seed;
    if arguments.neighbours.memory.is_some() && !method.uses_graph(embeddings.len()) {
        let name = method.info().name;
        let message = format!("--memory: expected a method that uses neighbours, found --method {name}");
        return Err(Failure::Usage(message));
    }
    let work = open_work(arguments, &*method, embeddings.len())?;
    let mut clusterer = Clusterer::with_boxed(method).seed(seed).levels(arguments.levels).progress(&bars);
    if let Some(parent) = scratch(&directory) {
        clusterer = clusterer.scratch(parent);
    }
    if let Some(memory) = arguments.neighbours.memory {
        clusterer = clusterer.memory(memory);
    }
    if let Some(work) = &work {
        clusterer = clusterer.work(work);
    }
    let found = clusterer.run(&problem)?;
    drop(clusterer);
    let parts = bars.parts();
    drop(bars);

    let Features { features, array, .. } = &arguments.features;
    let mut run = Run::new(&embeddings, features, array.clone(), &found);
    run.parameters.insert("seed".to_owned(), seed.into());
    run.parameters.insert("threads".to_owned(), rayon::current_num_threads().into());
    if let Some(model) = &arguments.model {
        run.parameters.insert("model".to_owned(), model.display().to_string().into());
    }
    if let (Some(path), Some(graph)) = (&arguments.graph, &mut run.graph) {
        graph.file = Some(path.clone());
    }
    run.seconds.insert("read".to_owned(), reading.as_secs_f64().into());
    run.parts = parts;
    run.cost = machine::cost();
    run.scores = truth.as_ref().map(|truth| evaluate(truth, &found.labels)).transpose()?;
    let classes = arguments.pseudo_labels.start(&found, truth.as_deref(), &directory)?;
    let (classes, info) = classes.unzip();
    run.pseudo_labels = info;
    let picture = found.levels.as_ref().map(draw_levels);
    let clusters = if arguments.parquet { ClustersFormat::Parquet } else { ClustersFormat::Csv };
    let options = ResultOptions { clusters, levels_svg: picture.as_deref() };
    write_results(&directory, &found, &run, &options)?;
    // All that can fail for want of space has been written.
    classes.map(AtomicFile::commit).transpose()?;

    if arguments.json {
        print!("{}", run.to_json());
        return Ok(());
    }
    println!(
        "{} rows -> {} clusters ({} of one row, largest {}){}, {:.2} s -> {}",
        embeddings.len(),
        run.clusters.count,
        run.clusters.singletons,
        run.clusters.largest.unwrap_or(0),
        how(&found),
        start.elapsed().as_secs_f64(),
        directory.display()
    );
    if let Some(info) = &run.pseudo_labels {
        println!("{}", pseudo_labels::summary(info, embeddings.len()));
    }
    if !run.levels.is_empty() {
        print_levels(&run);
    }
    if let Some(scores) = &run.scores {
        let mut headings = vec!["scores"];
        headings.extend(table::SCORE_HEADINGS);
        table::print(&headings, &[table::scores(found.report.method, scores)]);
    }
    Ok(())
}

/// The directory of stages, refused where no stage would be kept.
fn open_work(arguments: &Arguments, method: &dyn Method, rows: usize) -> Result<Option<Work>, Failure> {
    let Some(directory) = &arguments.work else { return Ok(None) };
    let name = method.info().name;
    if !method.uses_graph(rows) {
        let message = format!("--work: expected a method that uses neighbours, found --method {name}");
        return Err(Failure::Usage(message));
    }
    if arguments.graph.is_some() && name != "kin" {
        let message =
            format!("--work: expected a search, or --method kin, found --graph and --method {name}");
        return Err(Failure::Usage(message));
    }
    Ok(Some(Work::open(directory)?))
}

/// The levels, one line each.
fn print_levels(run: &Run) {
    let line = |(at, level): (usize, &LevelInfo)| {
        let mark = if level.default { "default" } else { "" };
        let (persistence, height) = (format!("{:.2}", level.persistence), format!("{:+.2}", level.height));
        vec![at.to_string(), level.clusters.to_string(), persistence, height, mark.to_owned()]
    };
    let lines: Vec<Vec<String>> = run.levels.iter().enumerate().map(line).collect();
    table::print(&["level", "clusters", "persistence", "height", ""], &lines);
}

/// The method, with the parameters that were given.
fn method(arguments: &Arguments) -> Result<Box<dyn Method>, Failure> {
    let mut method: Box<dyn Method> = match &arguments.model {
        Some(path) => with_model(arguments, path)?,
        None => {
            let default = if arguments.settings.of_trees() { "density" } else { "kin" };
            let name = arguments.method.as_deref().unwrap_or(default);
            if kinfolk_methods::find(name)?.info().needs_model {
                let message = format!("--method {name}: expected a --model, found none");
                return Err(Failure::Usage(message));
            }
            kinfolk_methods::new(name)?
        }
    };
    let name = method.info().name;
    if arguments.levels && !method.info().levels {
        let message = format!("--levels: expected a method that uses it, found --method {name}");
        return Err(Failure::Usage(message));
    }
    arguments.settings.parameters().apply(method.parameters_mut(), name)?;
    for (name, value) in &arguments.parameters {
        method.parameters_mut().set(name, value)?;
    }
    if method.info().needs_clusters && method.parameters().get("clusters").is_none_or(|value| value == "auto")
    {
        let message = format!("--clusters: expected the number of clusters for --method {name}, found none");
        return Err(Failure::Usage(message));
    }
    let confidence = method.parameters().get("confidence").unwrap_or_default();
    if confidence.split(',').any(|name| name.starts_with('s')) && arguments.labels.is_none() {
        let message = "--confidence: expected --labels for s-nbr, s-avg and s-center, found none";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(method)
}

fn with_model(arguments: &Arguments, path: &Path) -> Result<Box<dyn Method>, Failure> {
    let file = ModelFile::read(path)?;
    let Some(name) = arguments.method.as_deref() else { return Ok(kinfolk_methods::load(file, None)?) };
    if !kinfolk_methods::find(name)?.info().learns {
        let message = format!("--model: expected a method that uses it, found --method {name}");
        return Err(Failure::Usage(message));
    }
    match kinfolk_methods::load(file.clone(), Some(name)) {
        Err(Error::Parameter { field: "method", .. }) => {
            let of = kinfolk_methods::load(file, None)?.info().name;
            Err(Failure::Usage(format!(
                "--method {name}: expected a model of this method, found one of {of}"
            )))
        }
        Err(Error::Parameter { field: "model", expected, .. }) => {
            let place = path.display();
            Err(Failure::Usage(format!("--method {name}: expected {expected}, found none in {place}")))
        }
        loaded => Ok(loaded?),
    }
}

/// Refuses a K that the graph does not have.
fn check_neighbours(arguments: &Arguments, graph: &KnnGraph) -> Result<(), Failure> {
    match (arguments.neighbours.k, &arguments.graph) {
        (Some(k), Some(path)) if k > graph.k() => {
            let (expected, found) = (format!("{k} neighbours (-k {k})"), graph.k().to_string());
            Err(Error::format(path, expected, found).into())
        }
        _ => Ok(()),
    }
}

/// The parameters that the method chose, for the summary.
fn how(found: &Clustering) -> String {
    let mut text = match &found.reason {
        Reason::Edges(_) => format!(", K {}", found.report.k().unwrap_or(0)),
        Reason::Tree(tree) => format!(", tau {:.3}", tree.tau),
        _ => String::new(),
    };
    for note in &found.report.notes {
        text += &format!(", {note}");
    }
    text
}

/// Reads `--param`.
fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn default_directory(features: &Path) -> PathBuf {
    let stem = features.file_stem().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!("{stem}-clusters"))
}
