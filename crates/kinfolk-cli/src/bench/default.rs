//! What `kinfolk cluster` does without labels or thresholds, beside rivals whose threshold is picked on the test labels,
//! which is more than anybody could know.
//!
//! - kin, as the command runs it.
//! - Infomap: directed flow on cosine edges of the 40 nearest above a threshold (`bench/map_infomap.py` sets our map equation
//!   beside the program).
//! - The tree of nearest neighbours of higher density, u_weight, cut at tau.
//! - HDBSCAN, with the smallest cluster it may have.
//! - With `--python`, the programs `infomap` and `hdbscan` of PyPI, which ours were written after.
//!
//! Cost: some twenty clusterings of each set, and as many by the programs, which take some ten times as long.

use super::measure;
use super::programs::{Run, run_programs};
use crate::bars::Bars;
use crate::commands::{make_directory, write_text};
use crate::failure::Failure;
use crate::{machine, table};
use clap::Args;
use kinfolk::io::{check_label_count, read_embeddings, read_labels};
use kinfolk::metrics::{Scores, evaluate};
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{ClusterParams, Embeddings, Error, KinParams, KnnParams, cluster, kin, knn_graph};
use kinfolk_baselines::{HDBSCAN_UP_TO, HdbscanParams, InfomapParams, hdbscan, hdbscan_knn, infomap};
use std::path::{Path, PathBuf};

/// Neighbours of Infomap's graph.
const INFOMAP_K: usize = 40;

/// By how much a rival may be better before it is said that kin lost, in points of F.
const LOST: f64 = 0.5;

#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench default --data faces/
          where faces/ holds NAME_feat.npy and NAME_label.npy of each set")]
pub struct Arguments {
    /// Directory of sets, each NAME_feat.npy and NAME_label.npy
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Synthetic sets of parameters drawn at random
    #[arg(long, value_name = "N", default_value_t = 10)]
    random: usize,
    /// Identities of the synthetic set with the usual parameters
    #[arg(long, value_name = "N", default_value_t = 500)]
    identities: usize,
    /// Python that has PyPI's infomap and hdbscan, to set these programs beside ours
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
    /// Synthetic sets: the usual ones, or few and small ones.
    pub fn of(quick: bool, output: PathBuf) -> Self {
        let (random, identities) = if quick { (2, 75) } else { (10, 500) };
        Arguments { data: None, random, identities, python: None, seed: 100, output }
    }
}

struct Set {
    name: String,
    features: Embeddings,
    labels: Vec<i64>,
}

/// What a method did, at the best of its thresholds.
struct Entry {
    method: String,
    chosen: String,
    scores: Scores,
    /// Of one run, with the search for neighbours.
    seconds: f64,
}

impl Entry {
    fn both(&self) -> [f64; 2] {
        [self.scores.pairwise.f, self.scores.bcubed.f].map(|f| 100.0 * f)
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    make_directory(&arguments.output)?;
    let headings =
        ["set", "rows", "identities", "method", "chosen on labels", "clusters", "pair F", "B³ F", "s"];
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut verdicts = Vec::new();
    for (name, source) in sources(&arguments)? {
        let set = source.load(name)?;
        let entries = compare(&set, &arguments)?;
        let [kin, rivals @ ..] = &entries[..] else { continue };
        for entry in &entries {
            let [pairwise, bcubed] = entry.both();
            lines.push(vec![
                set.name.clone(),
                set.labels.len().to_string(),
                entry.scores.identities.to_string(),
                entry.method.clone(),
                entry.chosen.clone(),
                entry.scores.clusters.to_string(),
                format!("{pairwise:.2}"),
                format!("{bcubed:.2}"),
                format!("{:.2}", entry.seconds),
            ]);
        }
        verdicts.extend(rivals.iter().filter_map(|rival| verdict(&set.name, kin, rival)));
    }
    let mut text = lines.iter().fold(headings.join(",") + "\n", |text, line| text + &line.join(",") + "\n");
    table::print(&headings, &lines);
    println!();
    let lost = match verdicts.is_empty() {
        true => format!("kin loses to nobody by more than {LOST} points of either F."),
        false => format!("kin loses by more than {LOST} points of either F:\n  {}", verdicts.join("\n  ")),
    };
    println!("{lost}");
    println!(
        "F in percent. Seconds: one run from rows to labels, neighbours included. kinfolk {}, {} threads of {}",
        env!("CARGO_PKG_VERSION"),
        rayon::current_num_threads(),
        machine::processor()
    );
    let path = arguments.output.join("default.csv");
    text = text.replace("B³", "B3");
    write_text(&path, &text)?;
    println!("{}", path.display());
    Ok(())
}

/// By how much kin loses to a rival, if it does.
fn verdict(set: &str, kin: &Entry, rival: &Entry) -> Option<String> {
    let (ours, theirs) = (kin.both(), rival.both());
    let less = [theirs[0] - ours[0], theirs[1] - ours[1]];
    let lost = less.iter().any(|&points| points > LOST);
    lost.then(|| format!("{set}: {:.2} / {:.2} less than {}", less[0], less[1], rival.method))
}

enum Source {
    Files([PathBuf; 2]),
    Synthetic(Box<SynthParams>),
}

impl Source {
    fn load(self, name: String) -> Result<Set, Failure> {
        let (features, labels) = match self {
            Source::Files([features, labels]) => {
                let (rows, of) = (read_embeddings(&features, &Default::default())?, read_labels(&labels)?);
                check_label_count(&of, rows.len(), &labels, &features)?;
                (rows, of)
            }
            Source::Synthetic(params) => Synth::new(*params)?.whole().to_embeddings()?,
        };
        Ok(Set { name, features, labels })
    }
}

fn sources(arguments: &Arguments) -> Result<Vec<(String, Source)>, Failure> {
    let mut sources = match &arguments.data {
        Some(directory) => in_directory(directory)?,
        None => Vec::new(),
    };
    if arguments.identities > 0 {
        let params =
            SynthParams { identities: arguments.identities, seed: arguments.seed, ..Default::default() };
        sources.push(("synth".to_owned(), Source::Synthetic(Box::new(params))));
    }
    for number in 0..arguments.random {
        let params = drawn(arguments.seed + number as u64);
        sources.push((format!("synth drawn {number}"), Source::Synthetic(Box::new(params))));
    }
    Ok(sources)
}

/// Pairs of NAME_feat.npy and NAME_label.npy, by name.
fn in_directory(directory: &Path) -> Result<Vec<(String, Source)>, Failure> {
    let entries = std::fs::read_dir(directory).map_err(|e| Error::io(directory, e))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| Error::io(directory, e))?;
        if let Some(name) = entry.file_name().to_string_lossy().strip_suffix("_feat.npy") {
            names.push(name.to_owned());
        }
    }
    names.sort();
    let pair = |name: String| {
        let [features, labels] = ["feat", "label"].map(|what| directory.join(format!("{name}_{what}.npy")));
        labels.exists().then_some((name, Source::Files([features, labels])))
    };
    let found: Vec<_> = names.into_iter().filter_map(pair).collect();
    match found.is_empty() {
        true => Err(Error::format(directory, "NAME_feat.npy beside NAME_label.npy", "none").into()),
        false => Ok(found),
    }
}

/// Parameters of a synthetic set, uniform within the ranges here.
fn drawn(seed: u64) -> SynthParams {
    // splitmix64 (Steele, Lea and Flood, 2014).
    let mut state = seed;
    let mut uniform = |from: f64, to: f64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        from + (to - from) * (z >> 11) as f64 / (1u64 << 53) as f64
    };
    let mean_of_others = uniform(4.0, 60.0);
    let singletons = uniform(0.0, 0.7);
    let rows = uniform(3000.0, 15000.0);
    let mean_size = singletons + (1.0 - singletons) * mean_of_others;
    SynthParams {
        identities: (rows / mean_size) as usize,
        dim: uniform(64.0, 512.0) as usize,
        seed,
        intrinsic_dim: uniform(32.0, 64.0),
        mean_size,
        size_spread: uniform(0.2, 1.0),
        max_size: 600,
        singletons,
        group_size: uniform(1.0, 20.0),
        likeness: uniform(0.0, 0.4),
        noise: uniform(0.7, 0.95),
        noise_tail: uniform(0.1, 0.3),
        drift: uniform(0.5, 1.5),
        ..SynthParams::default()
    }
}

/// kin first, then its rivals.
fn compare(set: &Set, arguments: &Arguments) -> Result<Vec<Entry>, Failure> {
    let Set { features, labels, .. } = set;
    let bars = Bars::default();
    let (found, cost) = measure(|| kin(features, None, &KinParams::default(), &bars));
    let found = found?;
    let chosen = format!("nothing (K = {})", found.k);
    let scores = evaluate(labels, &found.labels)?;
    let mut entries = vec![Entry { method: "kin".to_owned(), chosen, scores, seconds: cost.seconds }];
    drop(found);

    let (graph, searching) = measure(|| knn_graph(features, &KnnParams::default(), &bars));
    let graph = graph?.0;
    drop(bars);
    let nearest = graph.nearest(INFOMAP_K.min(graph.k()))?;
    let thresholds: Vec<f32> = (0..18).map(|step| step as f32 * 0.05).collect();
    entries.push(best("Infomap", searching.seconds, &thresholds, labels, |&th| {
        let params = InfomapParams { th, ..InfomapParams::default() };
        Ok((format!("threshold {th:.2}"), infomap(&nearest, &params, &())?.labels))
    })?);
    let params = ClusterParams { tau: Some(0.0), ..ClusterParams::default() };
    let (tree, growing) = measure(|| cluster(features, Some(&graph), &params, &()));
    let links = tree?.links;
    let taus: Vec<f32> = (0..50).map(|step| step as f32 * 0.02).collect();
    entries.push(best("density tree", searching.seconds + growing.seconds, &taus, labels, |&tau| {
        Ok((format!("tau {tau:.2}"), links.cut(tau)))
    })?);
    entries.push(best("HDBSCAN", searching.seconds, &[2, 3, 5, 10], labels, |&least| {
        let params = HdbscanParams { min_cluster_size: least, ..HdbscanParams::default() };
        let found = match features.len() <= HDBSCAN_UP_TO {
            true => hdbscan(features, &params, &())?,
            false => hdbscan_knn(&graph, &params, &())?,
        };
        Ok((format!("clusters from {least}"), found.labels))
    })?);
    if let Some(python) = &arguments.python {
        let runs = run_programs(python, features, &nearest, &arguments.output)?;
        for runs in runs.chunk_by(|a, b| a.program == b.program) {
            // hdbscan sees rows, not neighbours.
            let before = if runs[0].program == "infomap" { searching.seconds } else { 0.0 };
            entries.push(best_run(runs, before, labels)?);
        }
    }
    Ok(entries)
}

/// The run of a program with the best mean of both F.
fn best_run(runs: &[Run], before: f64, truth: &[i64]) -> Result<Entry, Failure> {
    let entry = |run: &Run| -> kinfolk::Result<Entry> {
        let (method, chosen) = (format!("{} (PyPI)", run.program), run.setting.clone());
        Ok(Entry { method, chosen, scores: evaluate(truth, &run.labels)?, seconds: before + run.seconds })
    };
    best_of("programs", runs.iter().map(entry).collect::<kinfolk::Result<_>>()?)
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
    best_of(method, thresholds.iter().map(one).collect::<kinfolk::Result<_>>()?)
}

fn best_of(what: &str, entries: Vec<Entry>) -> Result<Entry, Failure> {
    let mean = |entry: &Entry| entry.both().iter().sum::<f64>();
    let best =
        entries.into_iter().reduce(|best, entry| if mean(&entry) > mean(&best) { entry } else { best });
    best.ok_or_else(|| Failure::Usage(format!("{what}: expected thresholds, found none")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_set_can_be_made() {
        for seed in 0..200 {
            drawn(seed).validate().unwrap();
        }
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
    }
}
