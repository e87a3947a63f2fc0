//! Pseudo-labels improve a recogniser: the experiment of Section 4.2.2 of the paper.
//!
//! 1. A recogniser is trained on the labelled split.
//! 2. It embeds this split, and the clustering methods are trained, or their settings chosen, on these embeddings.
//! 3. It embeds the unlabelled splits, all together, and the methods give them pseudo-labels.
//! 4. The final recogniser is trained on both, with a head for the labels and one for the pseudo-labels. It begins with the
//!    weights of the first, and so does the one that all are compared with, which is trained on the labelled split again.
//!
//! Then identities that nobody has seen are identified among distractors. The upper bound has the true labels in step 4.
//!
//! | file | contents |
//! |---|---|
//! | `images` | reading images |
//! | `parts` | splits, probes and distractors |
//! | `layers`, `recogniser`, `margin` | the network and its loss, forwards and backwards |
//! | `distort`, `train` | training |
//! | `identify` | the hit rate |
//! | `report` | table, CSV and figure |

mod distort;
mod identify;
mod images;
mod layers;
mod margin;
mod parts;
mod recogniser;
mod report;
#[cfg(test)]
mod tests;
mod train;

use crate::labelled::Labelled;
use crate::measure::measure;
use crate::tables::{Comparison, Part, TableOptions};
use clap::Args;
use identify::hit_rate;
use images::Images;
use kinfolk::metrics::evaluate;
use kinfolk::{Context, Embeddings, Method, Problem, Progress};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::make_directory;
use kinfolk_nn::Checkpoints;
use parts::Parts;
use recogniser::{DIM, Recogniser};
use report::{Result as Measured, Setup, write};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use train::{Labels, Start, train};

/// Numbers of unlabelled splits.
const SIZES: [usize; 5] = [1, 3, 5, 7, 9];
const QUICK_SIZES: [usize; 3] = [1, 5, 9];
/// The methods that `kin` is compared with.
const RIVALS: [&str; 2] = ["cdp", "gcn-ve"];
const KIN: &str = "kin";
/// The upper bound.
const TRUTH: &str = "true labels";
/// Clusters of fewer rows are left out, because a class of one image teaches little.
const LEAST_SIZE: usize = 2;

/// Train a recogniser with pseudo-labels
#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench recognition omniglot.npz --rotations --quick
          writes bench-recognition/recognition.md, recognition.csv and recognition.svg")]
pub struct Arguments {
    /// Images: .npz with arrays image (n x side x side, 0 to 255), label and optionally split (0 to train, 1 to test on), or a
    /// folder with a folder of .png files for each identity
    images: PathBuf,
    /// Images turned by 90, 180 and 270 degrees are other identities, as usual with Omniglot
    #[arg(long)]
    rotations: bool,
    /// One seed and fewer sizes
    #[arg(long)]
    quick: bool,
    /// Repetitions with other splits and weights [default: 3, quick 1]
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Steps of each training of a recogniser
    #[arg(long, value_name = "N", default_value_t = 800)]
    steps: usize,
    /// Neighbours of each row; kin searches for its own
    #[arg(short, value_name = "K", default_value_t = 40)]
    k: usize,
    /// Directory to write to
    #[arg(short, value_name = "DIR", default_value = "bench-recognition")]
    output: PathBuf,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let quick = arguments.quick;
    let setup = Setup {
        seeds: arguments.seeds.unwrap_or(if quick { 1 } else { 3 }),
        steps: arguments.steps,
        sizes: if quick { QUICK_SIZES.to_vec() } else { SIZES.to_vec() },
        k: arguments.k,
    };
    for (option, value) in [("--seeds", setup.seeds), ("--steps", setup.steps as u64)] {
        if value == 0 {
            return Err(Failure::Usage(format!("{option}: expected at least 1, found 0")));
        }
    }
    make_directory(&arguments.output)?;
    let images = Images::read(&arguments.images)?;
    let images = if arguments.rotations { images.rotated() } else { images };
    let mut results = Vec::new();
    let mut set = String::new();
    for seed in 0..setup.seeds {
        let experiment = Experiment::new(&images, &setup, seed, &arguments.output)?;
        set = experiment.describe();
        results.extend(experiment.run()?);
    }
    write(&arguments.output, &set, &setup, &results)
}

/// One repetition.
struct Experiment<'a> {
    images: &'a Images,
    setup: &'a Setup,
    seed: u64,
    parts: Parts,
    first: Recogniser,
    /// CDP and GCN-V+E with what they learned from the labelled split.
    comparison: Comparison,
    /// `kin`, trained on it.
    kin: Box<dyn Method>,
}

impl<'a> Experiment<'a> {
    /// Steps 1 and 2.
    fn new(images: &'a Images, setup: &'a Setup, seed: u64, output: &Path) -> Result<Self, Failure> {
        let parts = Parts::new(images, seed)?;
        let (bars, steps) = (Bars::default(), setup.steps);
        bars.begin("labelled split", steps as u64);
        let start = Start::Random(images.side);
        let first = train(start, &[true_labels(images, &parts.labelled)], steps, seed, &bars)?;
        drop(bars);
        let labelled = embedded(images, &first, &parts.labelled, setup.k, seed)?;
        let kin = trained_kin(&labelled, seed)?;
        let methods = RIVALS.map(str::to_owned).to_vec();
        let options = TableOptions { methods, seed, ..TableOptions::of(false, output.to_owned()) };
        let comparison = Comparison::new("recognition", options, labelled)?;
        Ok(Self { images, setup, seed, parts, first, comparison, kin })
    }

    fn describe(&self) -> String {
        let Parts { labelled, unlabelled, probes, distractors } = &self.parts;
        let unlabelled = unlabelled.concat();
        let count = |rows: &[u32]| {
            let labels: Vec<i64> =
                rows.iter().map(|&row| i64::from(self.images.labels[row as usize])).collect();
            format!("{} images of {} identities", rows.len(), crate::labelled::identities(&labels))
        };
        format!(
            "Labelled: {}. Unlabelled, in nine splits: {}. Probes: {}. Distractors: {}.",
            count(labelled),
            count(&unlabelled),
            count(probes),
            count(distractors)
        )
    }

    /// Steps 3 and 4.
    fn run(&self) -> Result<Vec<Measured>, Failure> {
        let mut results = vec![self.learn("labelled split", 0, &[], &[], &[])?];
        results[0].say();
        for &size in &self.setup.sizes {
            let rows = self.parts.unlabelled[..size].concat();
            let part = embedded(self.images, &self.first, &rows, self.setup.k, self.seed)?;
            let rivals = self.comparison.candidates.iter().map(|rival| (rival.name(), Some(rival)));
            for (name, rival) in rivals.chain([(KIN, None)]) {
                let (labels, cost) = measure(|| match rival {
                    Some(rival) => self.comparison.labels(rival, &part),
                    None => self.kin_labels(&part),
                });
                let mut result = self.learn(name, size, &rows, &labels?, &part.labels)?;
                result.cluster_seconds = cost.seconds;
                result.say();
                results.push(result);
            }
            let result = self.learn(TRUTH, size, &rows, &part.labels, &part.labels)?;
            result.say();
            results.push(result);
        }
        Ok(results)
    }

    fn kin_labels(&self, part: &Part) -> Result<Vec<i64>, Failure> {
        let bars = Bars::default();
        let context = Context::new(&bars).with_seed(self.seed);
        Ok(self.kin.run(&Problem::new(&part.features), &context)?.labels)
    }

    /// Trains with pseudo-labels of the rows, and measures both.
    fn learn(
        &self,
        method: &'static str,
        size: usize,
        rows: &[u32],
        labels: &[i64],
        truth: &[i64],
    ) -> Result<Measured, Failure> {
        let pseudo = classes(self.images, rows, labels, LEAST_SIZE);
        let mut result = Measured { seed: self.seed, method, size, ..Measured::default() };
        if !rows.is_empty() {
            let scores = evaluate(truth, labels)?;
            result.kept = pseudo.rows.len() as f64 / rows.len() as f64;
            result.f = [scores.pairwise.f, scores.bcubed.f];
            result.clusters = scores.clusters as usize;
        }
        let mut sets = vec![true_labels(self.images, &self.parts.labelled)];
        if !pseudo.rows.is_empty() {
            sets.push(pseudo);
        }
        let (bars, steps) = (Bars::default(), self.setup.steps);
        bars.begin(&format!("{method}, {size}"), steps as u64);
        let start = Start::From(&self.first);
        let (recogniser, cost) = measure(|| train(start, &sets, steps, self.seed, &bars));
        drop(bars);
        result.hit_rate = self.hit_rate(&recogniser?);
        (result.train_seconds, result.train_cpu_seconds) = (cost.seconds, cost.cpu_seconds);
        Ok(result)
    }

    fn hit_rate(&self, recogniser: &Recogniser) -> f64 {
        let Parts { probes, distractors, .. } = &self.parts;
        let embed = |rows: &[u32]| recogniser.embed(&self.images.gather(rows));
        let identities: Vec<u32> = probes.iter().map(|&row| self.images.labels[row as usize]).collect();
        hit_rate(&embed(probes), &identities, &embed(distractors))
    }
}

/// `kin` with the model that `kinfolk train` makes, and the size of the labelled identities, which those of the other splits
/// share (the settings of CDP know it too). It searches for its own neighbours, like without a model.
fn trained_kin(labelled: &Part, seed: u64) -> Result<Box<dyn Method>, Failure> {
    let learner = kinfolk_methods::find(KIN)?.learner();
    let problem = Problem::new(&labelled.features).with_labels(&labelled.labels)?;
    let bars = Bars::default();
    let context = Context::new(&bars).with_seed(seed);
    let trained =
        learner.map(|learner| learner.train(&problem, Checkpoints::default(), &context)).transpose()?;
    let mut kin: Box<dyn Method> = match trained.and_then(|trained| trained.model()) {
        Some(model) => kinfolk_methods::load(model, Some(KIN))?,
        // Nothing was learned that helps.
        None => kinfolk_methods::new(KIN)?,
    };
    kin.parameters_mut().set("identity_size", &median_size(&labelled.labels).to_string())?;
    Ok(kin)
}

/// The median of the sizes of identities.
fn median_size(labels: &[i64]) -> usize {
    let mut counts: HashMap<i64, usize> = HashMap::new();
    labels.iter().for_each(|&label| *counts.entry(label).or_default() += 1);
    let mut sizes: Vec<usize> = counts.into_values().collect();
    sizes.sort_unstable();
    sizes[sizes.len() / 2]
}

/// Images embedded by a recogniser, with their true labels and their graph.
fn embedded(
    images: &Images,
    recogniser: &Recogniser,
    rows: &[u32],
    k: usize,
    seed: u64,
) -> Result<Part, Failure> {
    let features = Embeddings::from_rows(recogniser.embed(&images.gather(rows)), DIM, "embedded images")?;
    let labels = rows.iter().map(|&row| i64::from(images.labels[row as usize])).collect();
    Part::new(Labelled { features, labels }, k, seed)
}

/// The true labels of some images.
fn true_labels<'a>(images: &'a Images, rows: &[u32]) -> Labels<'a> {
    let labels: Vec<i64> = rows.iter().map(|&row| i64::from(images.labels[row as usize])).collect();
    classes(images, rows, &labels, 1)
}

/// Labels as classes from 0 on, without labels of fewer than `least` images, and without what is -1.
fn classes<'a>(images: &'a Images, rows: &[u32], labels: &[i64], least: usize) -> Labels<'a> {
    let mut sizes: HashMap<i64, usize> = HashMap::new();
    labels.iter().for_each(|&label| *sizes.entry(label).or_default() += 1);
    let mut numbers: HashMap<i64, u32> = HashMap::new();
    let mut kept = Labels { images, rows: Vec::new(), classes: Vec::new() };
    for (&row, &label) in rows.iter().zip(labels) {
        if label >= 0 && sizes[&label] >= least {
            let next = numbers.len() as u32;
            kept.rows.push(row);
            kept.classes.push(*numbers.entry(label).or_insert(next));
        }
    }
    kept
}
