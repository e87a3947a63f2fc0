//! `kinfolk cluster`: from a file of embeddings to a directory of clusters.

use super::{Features, Neighbours, eval, knn, make_directory, write_text};
use crate::bars::Bars;
use crate::failure::Failure;
use crate::{machine, table};
use clap::{Args, ValueEnum};
use kinfolk::io::{AtomicFile, check_label_count, read_graph, read_labels, write_npy_i64};
use kinfolk::metrics::evaluate;
use kinfolk::{
    ClusterParams, Clustering, Confidence, DEFAULT_RADIUS, Embeddings, Error, KnnGraph, Links, Progress,
    cluster,
};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Group rows of the same identity
#[derive(Args)]
#[command(after_help = "Example:  kinfolk cluster faces.npy -o album
          writes album/labels.npy, album/clusters.csv and album/run.json")]
pub struct Arguments {
    #[command(flatten)]
    features: Features,
    /// Directory to write to [default: the name of FEATURES, then -clusters]
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How to cluster
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Method::Density)]
    method: Method,
    #[command(flatten)]
    neighbours: Neighbours,
    /// Neighbours found before (`kinfolk knn`, or the published layout), instead of a search
    #[arg(long, value_name = "GRAPH", conflicts_with_all = ["exact", "recall"])]
    graph: Option<PathBuf>,
    /// Cut links of at most this similarity; read off the set if not given
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    tau: Option<f32>,
    /// Links of each row to rows of higher confidence: 1 makes trees, more makes directed acyclic graphs
    #[arg(short, value_name = "M", default_value_t = 1)]
    m: usize,
    /// What makes a row confident; those that begin with s need --labels and show what is possible at best
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Design::UWeight)]
    confidence: Design,
    /// Cosine distance within which u-num and u-weight count neighbours
    #[arg(long, value_name = "R", default_value_t = DEFAULT_RADIUS)]
    radius: f32,
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

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let bars = Bars::default();
    bars.begin("read", 1);
    let embeddings = arguments.features.read()?;
    let reading = start.elapsed();
    let truth = read_truth(&arguments, &embeddings)?;
    let graph = read_neighbours(&arguments, &embeddings)?;
    let params = ClusterParams {
        knn: match graph {
            Some(_) => Default::default(),
            None => arguments.neighbours.params(embeddings.len()),
        },
        confidence: arguments.confidence.confidence(arguments.radius, truth.as_deref())?,
        m: arguments.m,
        tau: arguments.tau,
    };
    let found = cluster(&embeddings, graph.as_ref(), &params, &bars)?;
    drop(bars);

    let directory =
        arguments.output.clone().unwrap_or_else(|| default_directory(&arguments.features.features));
    let scores = truth.map(|truth| evaluate(&truth, &found.labels)).transpose()?;
    let mut run = describe(&arguments, &embeddings, &found, reading);
    if let Some(scores) = &scores {
        run["scores"] = eval::as_json(scores);
    }
    write_results(&directory, &found, &run)?;

    if arguments.json {
        println!("{run:#}");
        return Ok(());
    }
    println!(
        "{} rows -> {} clusters ({} of one row, largest {}), tau {:.3}, {:.2} s -> {}",
        embeddings.len(),
        run["clusters"]["count"],
        run["clusters"]["singletons"],
        run["clusters"]["largest"],
        found.tau,
        start.elapsed().as_secs_f64(),
        directory.display()
    );
    if let Some(scores) = &scores {
        let mut headings = vec!["scores"];
        headings.extend(table::SCORE_HEADINGS);
        table::print(&headings, &[table::scores("density", scores)]);
    }
    Ok(())
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
fn describe(arguments: &Arguments, embeddings: &Embeddings, found: &Clustering, reading: Duration) -> Value {
    let mut timings = Map::new();
    timings.insert("read".to_owned(), json!(reading.as_secs_f64()));
    for (stage, time) in &found.timings {
        timings.insert((*stage).to_owned(), json!(time.as_secs_f64()));
    }
    let mut sizes = vec![0u64; found.labels.iter().max().map_or(0, |&l| l as usize + 1)];
    found.labels.iter().for_each(|&l| sizes[l as usize] += 1);
    let name =
        |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| value().map(|v| v.get_name().to_owned());
    let graph = match (&arguments.graph, &found.knn) {
        (Some(path), _) => json!({ "file": path, "k": found.k }),
        (None, Some(report)) => knn::as_json(embeddings.len(), found.k, report),
        (None, None) => json!({ "k": found.k }),
    };
    json!({
        "kinfolk": env!("CARGO_PKG_VERSION"),
        "features": {
            "file": arguments.features.features,
            "rows": embeddings.len(),
            "dim": embeddings.dim(),
            "mapped": embeddings.is_mapped(),
        },
        "parameters": {
            "method": name(&|| arguments.method.to_possible_value()),
            "confidence": name(&|| arguments.confidence.to_possible_value()),
            "radius": arguments.radius,
            "m": arguments.m,
            "tau": found.tau,
            "tau_given": arguments.tau.is_some(),
            "seed": arguments.neighbours.seed,
            "threads": rayon::current_num_threads(),
        },
        "graph": graph,
        "clusters": {
            "count": sizes.len(),
            "singletons": sizes.iter().filter(|&&s| s == 1).count(),
            "largest": sizes.iter().max(),
        },
        "seconds": timings,
        "cpu_seconds": machine::cpu_time().as_secs_f64(),
        "peak_memory_bytes": machine::peak_memory(),
    })
}

/// Writes the files of a run; `run.json` last, so that a directory with it is whole.
fn write_results(directory: &Path, found: &Clustering, run: &Value) -> Result<(), Failure> {
    make_directory(directory)?;
    let summary = directory.join("run.json");
    if summary.exists() {
        std::fs::remove_file(&summary).map_err(|e| Error::io(&summary, e))?;
    }
    write_npy_i64(&directory.join("labels.npy"), &found.labels)?;
    write_clusters(&directory.join("clusters.csv"), &found.labels, &found.links)?;
    write_text(&summary, &format!("{run:#}\n"))
}

/// One line for each row. A row of highest confidence has no parent; a parent of at most tau was cut off.
fn write_clusters(path: &Path, labels: &[i64], links: &Links) -> Result<(), Failure> {
    let mut file = AtomicFile::create(path)?;
    let mut write = || {
        writeln!(file, "row,cluster,confidence,parent,similarity")?;
        for (row, label) in labels.iter().enumerate() {
            let confidence = links.confidence()[row];
            match links.parent(row) {
                Some((parent, similarity)) => {
                    writeln!(file, "{row},{label},{confidence},{parent},{similarity}")?
                }
                None => writeln!(file, "{row},{label},{confidence},,")?,
            }
        }
        Ok(())
    };
    write().map_err(|e| Error::io(path, e))?;
    Ok(file.commit()?)
}
