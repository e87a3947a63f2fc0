//! `kinfolk train`: trains a model on labelled embeddings.

use super::{Features, MethodParameters, Neighbours, check_writable, method_names};
use crate::bars::Bars;
use crate::failure::{Failure, Places};
use crate::{machine, table};
use clap::Args;
use kinfolk::io::{check_label_count, read_graph, read_labels};
use kinfolk::results::json_scalar;
use kinfolk::{Context, Problem, announce_training};
use kinfolk_nn::training::{FittedNetwork, Unfinished};
use kinfolk_nn::{Checkpoints, ModelFile, Trained, Trial};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Train a model on labelled rows, for clustering rows of other identities
#[derive(Args)]
#[command(after_help = "Example:  kinfolk train train_features.npy train_labels.npy -o model.safetensors
          kinfolk cluster test_features.npy --model model.safetensors

Options that a method does not use are refused. With gcn-v and gcn-ve, MODEL is written after every epoch: it is usable, and
--resume continues from it.")]
pub struct Arguments {
    #[command(flatten)]
    features: Features,
    /// Labels, one integer for each row: .npy or text
    labels: PathBuf,
    /// File to write: .safetensors
    #[arg(short, value_name = "MODEL")]
    output: PathBuf,
    /// The method to train
    #[arg(long, value_name = "NAME", default_value = "gcn-ve", value_parser = method_names(|info| info.learns))]
    method: String,
    #[command(flatten)]
    neighbours: Neighbours,
    /// Precomputed kNN graph, by `kinfolk knn` or in the published layout, instead of a search
    #[arg(long, value_name = "GRAPH", conflicts_with_all = ["exact", "recall"])]
    graph: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Continue the interrupted training of MODEL; gcn-v and gcn-ve only
    #[arg(long)]
    resume: bool,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

/// Parameters of training.
#[derive(Args)]
struct Settings {
    /// tuned: whatever does best on held-out identities; paper: the published recipe to the letter, with neither rotations
    /// nor density, and GCN-E always used; gcn-v and gcn-ve [default: tuned]
    #[arg(long, value_name = "NAME")]
    recipe: Option<String>,
    /// Epochs [default: 20 for GCN-V, 4 for L-GCN, 10 for LTC, 3 for kin]
    #[arg(long, value_name = "E")]
    epochs: Option<String>,
    /// Batch size [default: 64 rows, up to 256 on large sets; 16 pivots for L-GCN, 32 proposals for LTC]
    #[arg(long, value_name = "ROWS")]
    batch: Option<String>,
    /// Initial learning rate [default: 0.1; 0.01 for L-GCN and GCN-D]
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<String>,
    /// Share of the identities that are held out from training, to choose thresholds and the best epoch [default: 0.1,
    /// for kin 0.3]
    #[arg(long, value_name = "SHARE")]
    validation: Option<String>,
    /// Number of graph convolutions of GCN-V [default: 1]
    #[arg(long, value_name = "L")]
    layers: Option<String>,
    /// What GCN-V aggregates over in training, in each convolution after the first: neighbours of each row, or vertices for
    /// all rows of a batch [default: neighbours]
    #[arg(long, value_name = "NAME")]
    sampling: Option<String>,
    /// How many neighbours or vertices are sampled [default: 10 or 1,024]
    #[arg(long, value_name = "N")]
    sampled: Option<String>,
    /// The confidence that GCN-V learns: s-nbr, s-avg or s-center [default: s-nbr]
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Neighbours in the graph that is rebuilt from the embeddings of GCN-V [default: the value of -k]
    #[arg(long, value_name = "K")]
    k_rebuild: Option<String>,
    /// Share of density in the confidence [default: the best on held-out identities; recipe paper 0]
    #[arg(long, value_name = "SHARE")]
    density: Option<String>,
    /// Rotate every batch at random: true or false [default: true; recipe paper false]
    #[arg(long, value_name = "BOOL")]
    rotate: Option<String>,
    /// Rebuild the graph from the embeddings of GCN-V: true or false [default: the better on held-out identities; recipe
    /// paper true]
    #[arg(long, value_name = "BOOL")]
    rebuild: Option<String>,
    /// Similarity at which links are cut [default: the best on held-out identities]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    tau: Option<String>,
    /// Share of the rows, the most confident ones, whose parents GCN-E chooses [default: the best on held-out identities;
    /// recipe paper 0.2]
    #[arg(long, value_name = "SHARE")]
    rho: Option<String>,
    /// Epochs of GCN-E [default: 4; recipe paper 40]
    #[arg(long, value_name = "E")]
    epochs_e: Option<String>,
    /// Loss of GCN-E: squares, as in the paper, or cross-entropy, as in its published code [default: squares]
    #[arg(long, value_name = "NAME")]
    loss: Option<String>,
    /// Candidates of GCN-E: 1, the neighbours of higher confidence; -1, all neighbours [default: 1]
    #[arg(short, value_name = "M", allow_negative_numbers = true)]
    m: Option<String>,
    /// Device to train on: cpu, or wgpu and cuda if kinfolk was built with them [default: cpu]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
}

impl Settings {
    fn parameters(&self) -> MethodParameters<'_> {
        let mut given = MethodParameters::default();
        for (option, name, value) in [
            ("--recipe", "recipe", &self.recipe),
            ("--density", "density", &self.density),
            ("--rotate", "rotate", &self.rotate),
            ("--rebuild", "rebuild", &self.rebuild),
            ("--tau", "tau", &self.tau),
            ("--rho", "rho", &self.rho),
            ("--epochs-e", "epochs_e", &self.epochs_e),
            ("--epochs", "epochs", &self.epochs),
            ("--batch", "batch", &self.batch),
            ("--learning-rate", "learning_rate", &self.learning_rate),
            ("--validation", "validation", &self.validation),
            ("--layers", "layers", &self.layers),
            ("--sampling", "sampling", &self.sampling),
            ("--sampled", "sampled", &self.sampled),
            ("--target", "target", &self.target),
            ("--k-rebuild", "k_rebuild", &self.k_rebuild),
            ("--loss", "loss", &self.loss),
            ("-m", "m", &self.m),
            ("--device", "device", &self.device),
        ] {
            given.add(option, name, value.as_deref());
        }
        given
    }
}

/// The message to print when training is interrupted. Holding the lock delays the interruption.
#[derive(Clone, Default)]
struct Interruption(Arc<Mutex<Option<String>>>);

impl Interruption {
    /// Installs a handler for Ctrl-C, which ends the command as soon as the lock is free.
    fn listen(&self) -> Result<(), Failure> {
        let left = self.clone();
        let stop = move || {
            match &*left.lock() {
                Some(message) => eprintln!("\n{message}"),
                None => eprintln!("\ninterrupted before the end of the first epoch: nothing was written"),
            }
            std::process::exit(130);
        };
        ctrlc::set_handler(stop).map_err(|e| Failure::Usage(format!("Ctrl-C: {e}")))
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Writes the state of training, and prepares the message for an interruption.
    fn save(&self, unfinished: &Unfinished, path: &Path) -> kinfolk::Result<()> {
        let mut message = self.lock();
        unfinished.write(path)?;
        *message = Some(format!(
            "interrupted after epoch {} of {}; {} is usable, and --resume continues from it",
            unfinished.state.best.history.len(),
            unfinished.network(),
            path.display()
        ));
        Ok(())
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let places = Places {
        embeddings: Some(&arguments.features.features),
        graph: arguments.graph.as_deref(),
        labels: Some(&arguments.labels),
        model: None,
    };
    train(&arguments).map_err(|failure| failure.at(&places))
}

fn train(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    machine::return_large_blocks();
    let mut learner = kinfolk_methods::learner(&arguments.method)?;
    arguments.settings.parameters().apply(learner.parameters_mut(), &arguments.method)?;
    if arguments.resume && !learner.resumes() {
        let message = format!("--resume: expected --method gcn-v or gcn-ve, found {}", arguments.method);
        return Err(Failure::Usage(message));
    }
    let embeddings = arguments.features.read()?;
    let labels = read_labels(&arguments.labels)?;
    check_label_count(&labels, embeddings.len(), &arguments.labels, &arguments.features.features)?;
    check_writable(&arguments.output)?;
    let graph = arguments.graph.as_ref().map(|path| read_graph(path, Some(embeddings.len()))).transpose()?;
    let mut problem =
        Problem::new(&embeddings).with_search(arguments.neighbours.search()).with_labels(&labels)?;
    match &graph {
        Some(graph) => problem = problem.with_graph(graph)?,
        None => arguments.neighbours.warn(embeddings.len()),
    }
    let problem = problem.with_k(arguments.neighbours.k)?;
    let interruption = Interruption::default();
    interruption.listen()?;
    let mut save = |unfinished: &Unfinished| interruption.save(unfinished, &arguments.output);
    let resume = arguments.resume.then(|| ModelFile::read(&arguments.output)).transpose()?;
    let bars = Bars::default();
    let neighbours = &arguments.neighbours;
    let context = Context::new(&bars).with_seed(neighbours.seed).with_memory(neighbours.memory);
    let operations = learner.operations(embeddings.len(), embeddings.dim());
    announce_training(&arguments.method, operations, &problem, &context)?;
    let trained = learner.train(&problem, Checkpoints { resume, save: Some(&mut save) }, &context)?;
    drop(bars);
    let finished = interruption.lock();
    trained.write(&arguments.output)?;
    let seconds = start.elapsed().as_secs_f64();
    if arguments.json {
        println!("{:#}", as_json(arguments, &trained, seconds));
    } else {
        print_losses(&trained);
        print_trials(&trained.trials);
        let settings = config(&trained);
        let plain = settings.iter().filter(|(_, value)| !value.is_object());
        let settings: Vec<String> = plain.map(|(name, value)| format!("{name} {value}")).collect();
        println!("\n{}, {seconds:.1} s -> {}", settings.join(", "), arguments.output.display());
        for note in notes(&trained) {
            println!("{note}");
        }
    }
    drop(finished);
    Ok(())
}

/// The configuration in the model file.
fn config(trained: &Trained) -> Map<String, Value> {
    trained.model().map(|model| model.description().clone()).unwrap_or_default()
}

/// Networks that were trained and are not used.
fn notes(trained: &Trained) -> Vec<&'static str> {
    let config = config(trained);
    let is = |name: &str, value: Value| config.get(name) == Some(&value);
    let has = |name: &str| trained.networks.iter().any(|network| network.0 == name);
    let mut notes = Vec::new();
    if has("gcn_v") && is("density", 1.0.into()) && is("rebuild", false.into()) {
        notes.push("GCN-V is not used: density is 1");
    }
    if has("gcn_e") && is("rho", 0.0.into()) {
        notes.push("GCN-E is not used: rho is 0");
    }
    notes
}

/// The losses of the best and the last epochs.
fn print_losses(trained: &Trained) {
    let mut lines = Vec::new();
    for (name, network) in &trained.networks {
        let name = name.to_uppercase().replace('_', "-");
        let last = network.history.len().saturating_sub(1);
        let epochs = network.history.iter().enumerate();
        for (epoch, e) in epochs.filter(|(i, _)| *i == last || *i == network.best) {
            lines.push(vec![
                format!("{name}, epoch {}{}", epoch + 1, if epoch == network.best { " (used)" } else { "" }),
                format!("{:.5}", e.training_loss),
                e.validation_loss.map_or("-".to_owned(), |loss| format!("{loss:.5}")),
            ]);
        }
    }
    for (name, figure) in &trained.figures {
        lines.push(vec![name.replace('_', " "), "-".to_owned(), format!("{figure:.4}")]);
    }
    if !lines.is_empty() {
        table::print(&["loss", "training", "held-out identities"], &lines);
        println!();
    }
}

/// The best of each group of trials that differ in their last setting only.
fn print_trials(trials: &[Trial]) {
    let group = |trial: &Trial| trial.settings[..trial.settings.len().saturating_sub(1)].to_vec();
    let lines = trials.chunk_by(|a, b| group(a) == group(b)).map(|trials| {
        let best = trials.iter().fold(&trials[0], |best, trial| if trial.f > best.f { trial } else { best });
        let mut line: Vec<String> = best.settings.iter().map(|setting| setting.1.clone()).collect();
        line.push(format!("{:.2}", 100.0 * best.f));
        line
    });
    let lines: Vec<_> = lines.collect();
    if let Some(first) = trials.first() {
        let mut headings: Vec<&str> = first.settings.iter().map(|setting| setting.0).collect();
        headings.push("mean F of held-out identities");
        table::print(&headings, &lines);
    }
}

/// Every epoch of a network.
fn history(network: &FittedNetwork) -> Value {
    json!({ "best_epoch": network.best + 1, "epochs": network.history })
}

fn as_json(arguments: &Arguments, trained: &Trained, seconds: f64) -> Value {
    let trial = |trial: &Trial| {
        let mut all: Map<String, Value> =
            trial.settings.iter().map(|(name, value)| ((*name).to_owned(), json_scalar(value))).collect();
        all.insert("f".to_owned(), trial.f.into());
        all
    };
    let mut all = json!({
        "model": arguments.output,
        "method": arguments.method,
        "config": config(trained),
        "choices": trained.trials.iter().map(trial).collect::<Vec<_>>(),
        "notes": notes(trained),
        "seconds": seconds,
    });
    for (name, network) in &trained.networks {
        all[*name] = history(network);
    }
    for (name, figure) in &trained.figures {
        all[*name] = (*figure).into();
    }
    all
}
