//! Compares `kinfolk cluster` without labels and thresholds with methods whose threshold is chosen on the test labels, which
//! favours those methods: the labels are not known in use. And with published methods that need neither.
//!
//! - kin, as the command runs it.
//! - If there are other identities to train on (see `sets`), kin trained on them, as by `kinfolk train --method kin`.
//! - Infomap: undirected flow on cosine edges of the 40 nearest above a threshold (`bench/map_infomap.py` compares our map
//!   equation with the package).
//! - The tree of nearest neighbours of higher density, u_weight, cut at tau.
//! - HDBSCAN, with its best minimum cluster size.
//! - FaceMap and FC-ES with their published parameters. Nothing is chosen.
//! - With `--python`, the PyPI packages `infomap`, for reference, and `evoc` with its defaults and the layer that
//!   it chooses itself. Rows that it calls noise are clusters of one row.
//!
//! A second table reports whether the edge probabilities of kin mean what they say (`edges`), on these sets and on new synthetic
//! worlds by kind: expected and true neighbours of the same identity per row, calibration error and loss. reliability.csv has
//! the ten bins of each.
//!
//! Cost: about twenty clusterings of each set, and as many by the packages.

mod edges;
mod programs;
mod sets;

use crate::labelled::Labelled;
use crate::measure::measure;
use crate::scores::both_f;
use clap::Args;
use edges::EdgeReport;
use kinfolk::metrics::{Scores, evaluate};
use kinfolk::synth::SynthParams;
use kinfolk::{Context, Density, Error, Kin, KinTraining, KnnParams, Method, Problem, knn_graph, train_kin};
use kinfolk_baselines::{FaceMap, FcEs, Hdbscan, Infomap};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::{machine, make_directory, table, write_text};
use programs::{Run, check_python, run_programs};
use sets::{Set, Source, drawn, in_directory};
use std::path::PathBuf;

/// Neighbours of Infomap's graph.
const INFOMAP_K: usize = 40;

/// The difference from which kin is reported to be worse than another method, in points of F.
const LOST: f64 = 0.5;

#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench default --data faces/
          where faces/ contains NAME_feat.npy and NAME_label.npy of each set. NAME_train is
          used for training and NAME_test for testing. Without NAME_test, each half of
          NAME_train is clustered by a model trained on the other half.")]
pub struct Arguments {
    /// Directory of sets, each NAME_feat.npy and NAME_label.npy
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Number of synthetic sets with random parameters
    #[arg(long, value_name = "N", default_value_t = 10)]
    random: usize,
    /// Number of synthetic worlds on which the edge probabilities are checked
    #[arg(long, value_name = "N", default_value_t = 60)]
    worlds: usize,
    /// Identities of the synthetic set with the default parameters
    #[arg(long, value_name = "N", default_value_t = 500)]
    identities: usize,
    /// Python interpreter with the packages infomap and evoc, to compare with them
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// Seed of the synthetic sets
    #[arg(long, value_name = "S", default_value_t = 100)]
    seed: u64,
    /// Directory for the table
    #[arg(short, value_name = "DIR", default_value = "bench-default")]
    output: PathBuf,
}

impl Arguments {
    /// Synthetic sets: the default ones, or few and small ones.
    pub fn of(quick: bool, output: PathBuf) -> Self {
        let (random, worlds, identities) = if quick { (2, 6, 75) } else { (10, 60, 500) };
        Arguments { data: None, random, worlds, identities, python: None, seed: 100, output }
    }
}

/// The result of a method at its best threshold.
struct Entry {
    method: String,
    chosen: String,
    scores: Scores,
    /// Of one run, with the search for neighbours.
    seconds: f64,
}

impl Entry {
    fn both(&self) -> [f64; 2] {
        both_f(&self.scores)
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    if let Some(python) = &arguments.python {
        check_python(python)?;
    }
    make_directory(&arguments.output)?;
    let headings =
        ["set", "rows", "identities", "method", "chosen on labels", "clusters", "pair F", "B³ F", "s"];
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut verdicts = Vec::new();
    let mut gains = Vec::new();
    let mut edges = EdgeReport::new();
    for source in sources(&arguments)? {
        let set = source.load()?;
        let kin = without_labels(&set.test)?;
        let trained = set.training.as_ref().map(|training| with_labels(training, &set.test)).transpose()?;
        let rivals = rivals(&set.test, &arguments)?;
        for entry in [&kin].into_iter().chain(&trained).chain(&rivals) {
            lines.push(line(&set, entry));
        }
        edges.add_set(&set.name, &set.test.features, &set.test.labels)?;
        verdicts.extend(rivals.iter().filter_map(|rival| verdict(&set.name, &kin, rival)));
        for rival in rivals.iter().filter(|rival| rival.method.to_lowercase().starts_with("infomap")) {
            gains.extend(trained.iter().map(|trained| gain(&set.name, trained, rival)));
        }
    }
    edges.add_worlds(arguments.worlds, arguments.seed, &Bars::default())?;
    let mut text = lines.iter().fold(headings.join(",") + "\n", |text, line| text + &line.join(",") + "\n");
    table::print(&headings, &lines);
    println!();
    edges.print();
    println!();
    let lost = match verdicts.is_empty() {
        true => format!("No method is better than kin by more than {LOST} points of either F."),
        false => format!("kin is worse by more than {LOST} points of either F:\n  {}", verdicts.join("\n  ")),
    };
    println!("{lost}");
    if !gains.is_empty() {
        println!(
            "Trained on other identities, compared with Infomap at its best threshold:\n  {}",
            gains.join("\n  ")
        );
    }
    println!(
        "F in percent. Seconds: one run from rows to labels, neighbours included. kinfolk {}, {} threads of {}",
        env!("CARGO_PKG_VERSION"),
        rayon::current_num_threads(),
        machine::processor()
    );
    let path = arguments.output.join("default.csv");
    text = text.replace("B³", "B3");
    write_text(&path, &text)?;
    let bins = arguments.output.join("reliability.csv");
    write_text(&bins, edges.reliability())?;
    println!("{}\n{}", path.display(), bins.display());
    Ok(())
}

fn line(set: &Set, entry: &Entry) -> Vec<String> {
    let [pairwise, bcubed] = entry.both();
    vec![
        set.name.clone(),
        set.test.labels.len().to_string(),
        entry.scores.identities.to_string(),
        entry.method.clone(),
        entry.chosen.clone(),
        entry.scores.clusters.to_string(),
        format!("{pairwise:.2}"),
        format!("{bcubed:.2}"),
        format!("{:.2}", entry.seconds),
    ]
}

/// The difference between a trained kin and another method.
fn gain(set: &str, trained: &Entry, rival: &Entry) -> String {
    let (ours, theirs) = (trained.both(), rival.both());
    format!("{set}: {:+.2} / {:+.2} against {}", ours[0] - theirs[0], ours[1] - theirs[1], rival.method)
}

/// The difference by which kin is worse than another method, if it is.
fn verdict(set: &str, kin: &Entry, rival: &Entry) -> Option<String> {
    let (ours, theirs) = (kin.both(), rival.both());
    let less = [theirs[0] - ours[0], theirs[1] - ours[1]];
    let lost = less.iter().any(|&points| points > LOST);
    lost.then(|| format!("{set}: {:.2} / {:.2} less than {}", less[0], less[1], rival.method))
}

fn sources(arguments: &Arguments) -> Result<Vec<Source>, Failure> {
    let mut sources = match &arguments.data {
        Some(directory) => in_directory(directory)?,
        None => Vec::new(),
    };
    if arguments.identities > 0 {
        let params =
            SynthParams { identities: arguments.identities, seed: arguments.seed, ..Default::default() };
        sources.push(Source::SyntheticSplit { name: "synth".to_owned(), params: Box::new(params) });
    }
    for number in 0..arguments.random {
        let params = Box::new(drawn(arguments.seed + number as u64));
        sources.push(Source::Synthetic { name: format!("synth drawn {number}"), params });
    }
    Ok(sources)
}

/// kin with its defaults.
fn without_labels(test: &Labelled) -> Result<Entry, Failure> {
    entry_of("kin", "nothing", &Kin::default(), test)
}

/// kin trained on other identities.
fn with_labels(training: &Labelled, test: &Labelled) -> Result<Entry, Failure> {
    let bars = Bars::default();
    let problem = Problem::new(&training.features).with_labels(&training.labels)?;
    let trained = train_kin(&problem, &KinTraining::default(), &Context::new(&bars))?;
    drop(bars);
    entry_of("kin trained", "nothing of these", &Kin::trained(trained.model), test)
}

/// A method with its own search for neighbours and nothing to choose.
fn entry_of(name: &str, chosen: &str, method: &dyn Method, test: &Labelled) -> Result<Entry, Failure> {
    let bars = Bars::default();
    let (found, cost) = measure(|| method.run(&Problem::new(&test.features), &Context::new(&bars)));
    let found = found?;
    let k = found.report.k().map_or_else(String::new, |k| format!(" (K = {k})"));
    let scores = evaluate(&test.labels, &found.labels)?;
    Ok(Entry { method: name.to_owned(), chosen: format!("{chosen}{k}"), scores, seconds: cost.seconds })
}

fn rivals(test: &Labelled, arguments: &Arguments) -> Result<Vec<Entry>, Failure> {
    let Labelled { features, labels } = test;
    let mut entries = Vec::new();
    let bars = Bars::default();
    let (graph, searching) = measure(|| knn_graph(features, &KnnParams::default(), &bars));
    let graph = graph?.0;
    drop(bars);
    let nearest = graph.nearest(INFOMAP_K.min(graph.k()))?;
    let thresholds: Vec<f32> = (0..18).map(|step| step as f32 * 0.05).collect();
    let context = Context::default();
    entries.push(best("Infomap", searching.seconds, &thresholds, labels, |&th| {
        let method = Infomap { th, ..Infomap::default() };
        Ok((format!("threshold {th:.2}"), method.run(&Problem::of_graph(&nearest), &context)?.labels))
    })?);
    let problem = Problem::new(features).with_graph(&graph)?;
    let density = Density { tau: Some(0.0), ..Density::default() };
    let (tree, growing) = measure(|| density.run(&problem, &context));
    let tree = tree?;
    let links = &tree.tree().ok_or_else(no_links)?.links;
    let taus: Vec<f32> = (0..50).map(|step| step as f32 * 0.02).collect();
    entries.push(best("density tree", searching.seconds + growing.seconds, &taus, labels, |&tau| {
        Ok((format!("tau {tau:.2}"), links.cut(tau)))
    })?);
    entries.push(best("HDBSCAN", searching.seconds, &[2, 3, 5, 10], labels, |&least| {
        let method = Hdbscan { min_cluster_size: least, ..Hdbscan::default() };
        Ok((format!("clusters from {least}"), method.run(&problem, &context)?.labels))
    })?);
    entries.push(entry_of("FaceMap", "nothing", &FaceMap::default(), test)?);
    entries.push(entry_of("FC-ES", "nothing", &FcEs::default(), test)?);
    if let Some(python) = &arguments.python {
        let runs = run_programs(python, features, &nearest, &arguments.output)?;
        for runs in runs.chunk_by(|a, b| a.program == b.program) {
            // The others take rows, not neighbours.
            let before = if runs[0].program == "infomap" { searching.seconds } else { 0.0 };
            entries.push(best_run(runs, before, labels)?);
        }
    }
    Ok(entries)
}

fn no_links() -> Error {
    Error::format("density", "a tree of links", "none")
}

/// The run of a program with the best mean of both F.
fn best_run(runs: &[Run], before: f64, truth: &[i64]) -> Result<Entry, Failure> {
    let entry = |run: &Run| -> kinfolk::Result<Entry> {
        let (method, chosen) = (format!("{} (PyPI)", run.program), run.setting.clone());
        Ok(Entry { method, chosen, scores: evaluate(truth, &run.labels)?, seconds: before + run.seconds })
    };
    best_entry("programs", runs.iter().map(entry).collect::<kinfolk::Result<_>>()?)
}

/// The threshold with the best mean of both F.
fn best<T>(
    method: &str,
    before: f64,
    thresholds: &[T],
    truth: &[i64],
    run: impl Fn(&T) -> kinfolk::Result<(String, Vec<i64>)>,
) -> Result<Entry, Failure> {
    let one = |threshold: &T| -> kinfolk::Result<Entry> {
        let (found, cost) = measure(|| run(threshold));
        let (chosen, labels) = found?;
        let (method, scores) = (method.to_owned(), evaluate(truth, &labels)?);
        Ok(Entry { method, chosen, scores, seconds: before + cost.seconds })
    };
    best_entry(method, thresholds.iter().map(one).collect::<kinfolk::Result<_>>()?)
}

fn best_entry(what: &str, entries: Vec<Entry>) -> Result<Entry, Failure> {
    let mean = |entry: &Entry| entry.both().iter().sum::<f64>();
    let best =
        entries.into_iter().reduce(|best, entry| if mean(&entry) > mean(&best) { entry } else { best });
    best.ok_or_else(|| Failure::Usage(format!("{what}: expected thresholds, found none")))
}
