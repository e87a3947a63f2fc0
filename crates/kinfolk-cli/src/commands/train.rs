//! `kinfolk train`: from labelled embeddings to a model.

use super::{Features, LinkCount, Neighbours, check_writable, name_of};
use crate::bars::Bars;
use crate::failure::Failure;
use crate::{machine, table};
use clap::{Args, ValueEnum};
use kinfolk::io::{check_label_count, read_graph, read_labels};
use kinfolk::{Embeddings, KinChoice, KinTraining, KnnGraph, TrainedKin, knn_graph, train_kin};
use kinfolk_nn::{
    Compute, FitParams, GcnEParams, GcnVParams, KinModel, LgcnTraining, Loss, LtcTraining, PivotShape,
    Target, TrainParams, Trained, TrainedModel, Unfinished, train, train_lgcn, train_ltc,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Train a model on labelled rows, to cluster rows of other identities
#[derive(Args)]
#[command(after_help = "Example:  kinfolk train train_features.npy train_labels.npy -o model.safetensors
          kinfolk cluster test_features.npy --model model.safetensors

After every epoch MODEL holds what there is so far: it can be used, and with --resume training goes on from there.")]
pub struct Arguments {
    #[command(flatten)]
    features: Features,
    /// Labels, one integer for each row: .npy or text
    labels: PathBuf,
    /// File to write: .safetensors
    #[arg(short, value_name = "MODEL")]
    output: PathBuf,
    /// What to train
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Method::GcnVe)]
    method: Method,
    #[command(flatten)]
    neighbours: Neighbours,
    /// Neighbours found before (`kinfolk knn`, or the published layout), instead of a search
    #[arg(long, value_name = "GRAPH", conflicts_with_all = ["exact", "recall"])]
    graph: Option<PathBuf>,
    /// Neighbours in the graph that is rebuilt from the embeddings of GCN-V [default: as -k]
    #[arg(long, value_name = "K")]
    k_rebuild: Option<usize>,
    /// Passes of GCN-V over the rows, of L-GCN over pivots, of LTC over proposals [default: 20, of L-GCN 4, of LTC 10]
    #[arg(long, value_name = "E")]
    epochs: Option<usize>,
    /// Rows, candidate sets, pivots or proposals in one step of training [default: 64; of rows up to 256 where there are
    /// many; 16 pivots, 32 proposals]
    #[arg(long, value_name = "ROWS")]
    batch: Option<usize>,
    /// Learning rate at the start [default: 0.1, of L-GCN and GCN-D 0.01]
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f32>,
    /// Graph convolutions of GCN-V
    #[arg(long, value_name = "L", default_value_t = 1)]
    layers: usize,
    /// The confidence that GCN-V learns
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Design::Neighbours)]
    target: Design,
    /// What GCN-E makes small
    #[arg(long, value_name = "NAME", value_enum, default_value_t = EdgeLoss::Squares)]
    loss: EdgeLoss,
    #[command(flatten)]
    links: LinkCount,
    /// Where to train
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Device::Cpu)]
    device: Device,
    /// Go on from an interrupted training whose result so far is MODEL
    #[arg(long)]
    resume: bool,
    /// Share of the identities that is not trained on; tau and the best epoch are chosen by them [default: 0.1, for kin 0.3]
    #[arg(long, value_name = "SHARE")]
    validation: Option<f32>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq)]
enum Method {
    /// Confidence of every row
    GcnV,
    /// That, and the connectivity of the most confident rows with their candidates
    GcnVe,
    /// A whitening of the embeddings, the probability of every edge and how probable it must be, as far as they help on
    /// held-out identities; of the options below only --validation and --json are for it
    Kin,
    /// The probability of the links of every row with its neighbours (L-GCN); of the options below only --epochs, --batch,
    /// --learning-rate, --device, --validation and --json are for it
    Lgcn,
    /// How good proposals of clusters are, and which of their rows are outliers (LTC); the same options are for it
    Ltc,
}

#[derive(ValueEnum, Clone, Copy, PartialEq)]
enum Design {
    /// Neighbours of the same identity less the others (Eq. 1 of the paper)
    #[value(name = "s-nbr")]
    Neighbours,
    /// Mean similarity to the same identity
    #[value(name = "s-avg")]
    Average,
    /// Similarity to the identity's centre
    #[value(name = "s-center")]
    Centre,
}

#[derive(ValueEnum, Clone, Copy, PartialEq)]
enum EdgeLoss {
    /// Squared error of one output, as in the paper
    Squares,
    /// Cross-entropy of two outputs, as in its published code
    CrossEntropy,
}

#[derive(ValueEnum, Clone, Copy, PartialEq)]
enum Device {
    /// The processor
    Cpu,
    /// A graphics card through WebGPU
    #[cfg(feature = "wgpu")]
    Wgpu,
    /// The first CUDA device
    #[cfg(feature = "cuda")]
    Cuda,
}

impl Device {
    fn compute(self) -> Compute {
        match self {
            Device::Cpu => Compute::Cpu,
            #[cfg(feature = "wgpu")]
            Device::Wgpu => Compute::Wgpu,
            #[cfg(feature = "cuda")]
            Device::Cuda => Compute::Cuda,
        }
    }
}

/// What an interruption leaves behind, and says so. Whoever holds the lock is not interrupted.
#[derive(Clone, Default)]
struct Interruption(Arc<Mutex<Option<String>>>);

impl Interruption {
    /// From now on Ctrl-C ends the command, but not while the lock is held.
    fn listen(&self) -> Result<(), Failure> {
        let left = self.clone();
        let stop = move || {
            match &*left.lock() {
                Some(message) => eprintln!("\n{message}"),
                None => eprintln!("\ninterrupted before the first epoch was over: nothing was written"),
            }
            std::process::exit(130);
        };
        ctrlc::set_handler(stop).map_err(|e| Failure::Usage(format!("Ctrl-C: {e}")))
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Writes the state of training, and what to say if it ends here.
    fn save(&self, unfinished: &Unfinished, path: &Path) -> kinfolk::Result<()> {
        let mut message = self.lock();
        unfinished.write(path)?;
        let network = if unfinished.gcn_v.is_some() { "GCN-E" } else { "GCN-V" };
        *message = Some(format!(
            "interrupted after epoch {} of {network}; {} can be used as it is, and --resume goes on from there",
            unfinished.state.best.history.len(),
            path.display()
        ));
        Ok(())
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    machine::return_large_blocks();
    let embeddings = arguments.features.read()?;
    let labels = read_labels(&arguments.labels)?;
    check_label_count(&labels, embeddings.len(), &arguments.labels, &arguments.features.features)?;
    check_writable(&arguments.output)?;
    let graph = arguments.graph.as_ref().map(|path| read_graph(path, Some(embeddings.len()))).transpose()?;
    if arguments.resume && !matches!(arguments.method, Method::GcnV | Method::GcnVe) {
        let name = name_of(&arguments.method);
        return Err(Failure::Usage(format!("--resume: expected --method gcn-v or gcn-ve, found {name}")));
    }
    match arguments.method {
        Method::Kin => return run_kin(&arguments, &embeddings, &labels, graph.as_ref(), start),
        Method::Lgcn => return run_lgcn(&arguments, &embeddings, &labels, graph, start),
        Method::Ltc => return run_ltc(&arguments, &embeddings, &labels, graph, start),
        Method::GcnV | Method::GcnVe => {}
    }
    let params = params(&arguments, embeddings.len(), graph.as_ref().map(|g| g.k()))?;
    let resumed = arguments.resume.then(|| Unfinished::read(&arguments.output)).transpose()?;
    let interruption = Interruption::default();
    interruption.listen()?;
    let mut save = |unfinished: &Unfinished| interruption.save(unfinished, &arguments.output);
    let bars = Bars::default();
    let trained = train(&embeddings, &labels, graph.as_ref(), &params, resumed, &mut save, &bars)?;
    drop(bars);
    let finished = interruption.lock();
    trained.model.write(&arguments.output)?;
    if arguments.json {
        println!("{:#}", as_json(&arguments, &trained, start.elapsed().as_secs_f64()));
    } else {
        print_tables(&trained);
        let config = &trained.model.config;
        println!(
            "\ntau {:.2}, rho {:.1}, density {:.2} (radius {:.1}), {}, {:.1} s -> {}",
            config.tau,
            config.rho,
            config.density,
            config.radius,
            if config.rebuild { "rebuilt graph" } else { "graph as it is" },
            start.elapsed().as_secs_f64(),
            arguments.output.display()
        );
    }
    drop(finished);
    Ok(())
}

/// Adapts the edge model of kin: a matter of seconds to a minute, so there is nothing to resume.
fn run_kin(
    arguments: &Arguments,
    embeddings: &Embeddings,
    labels: &[i64],
    graph: Option<&KnnGraph>,
    start: Instant,
) -> Result<(), Failure> {
    let usual = KinTraining::default();
    let params = KinTraining {
        knn: arguments.neighbours.params(embeddings.len()),
        // A K that was asked for is kept.
        grow: arguments.neighbours.k.is_none(),
        validation: arguments.validation.unwrap_or(usual.validation),
        ..usual
    };
    let mut trained = train_kin(embeddings, labels, graph, &params, &Bars::default())?;
    let choices = std::mem::take(&mut trained.choices);
    let TrainedKin { chosen, losses, k, .. } = trained;
    KinModel::from(trained).write(&arguments.output)?;
    let seconds = start.elapsed().as_secs_f64();
    if arguments.json {
        let way = |c: &KinChoice| json!({ "shrink": c.shrink, "adapted": c.adapted, "probability": c.probability, "f": c.f });
        let summary = json!({
            "model": arguments.output, "method": "kin", "k": k, "chosen": way(&chosen), "loss_built_in": losses[0],
            "loss_adapted": losses[1], "choices": choices.iter().map(way).collect::<Vec<_>>(), "seconds": seconds,
        });
        println!("{summary:#}");
    } else {
        let alike = |a: &KinChoice, b: &KinChoice| (a.shrink, a.adapted) == (b.shrink, b.adapted);
        let lines = choices.chunk_by(alike).map(|ways| {
            let best = ways.iter().fold(&ways[0], |best, way| if way.f > best.f { way } else { best });
            vec![
                if best.shrink < 1.0 {
                    format!("whitened ({})", best.shrink)
                } else {
                    "as they are".to_owned()
                },
                if best.adapted { "adapted" } else { "built in" }.to_owned(),
                format!("{:.1}", best.probability),
                format!("{:.2}", 100.0 * best.f),
                if alike(best, &chosen) {
                    format!("kept, at {:.1}", chosen.probability)
                } else {
                    String::new()
                },
            ]
        });
        let columns = ["embeddings", "edge model", "best probability", "mean F of held-out identities", ""];
        table::print(&columns, &lines.collect::<Vec<_>>());
        println!(
            "\nloss of held-out edges {:.4} built in, {:.4} adapted; {seconds:.1} s -> {}",
            losses[0],
            losses[1],
            arguments.output.display()
        );
    }
    Ok(())
}

/// A given graph, or one that is searched for.
fn neighbours(
    arguments: &Arguments,
    embeddings: &Embeddings,
    graph: Option<KnnGraph>,
) -> Result<KnnGraph, Failure> {
    Ok(match graph {
        Some(graph) => graph,
        None => knn_graph(embeddings, &arguments.neighbours.params(embeddings.len()), &Bars::default())?.0,
    })
}

/// Trains L-GCN.
fn run_lgcn(
    arguments: &Arguments,
    embeddings: &Embeddings,
    labels: &[i64],
    graph: Option<KnnGraph>,
    start: Instant,
) -> Result<(), Failure> {
    let graph = neighbours(arguments, embeddings, graph)?;
    let usual = LgcnTraining::default();
    let shape = PivotShape { k1: usual.shape.k1.min(graph.k()).max(1), ..usual.shape };
    let fit = FitParams {
        epochs: arguments.epochs.unwrap_or(usual.fit.epochs),
        ..arguments.fit(usual.fit.clone())
    };
    let params = LgcnTraining { shape, fit, ..usual };
    let found = train_lgcn(embeddings, labels, &graph, &params, &Bars::default())?;
    found.model.write(&arguments.output)?;
    let (seconds, params) = (start.elapsed().as_secs_f64(), &found.model.params);
    if arguments.json {
        let choices = found.choices.iter().map(|c| json!({ "th": c.th, "max_size": c.max_size, "f": c.f }));
        let summary = json!({
            "model": arguments.output, "method": "lgcn", "lgcn": history(&found.trained),
            "config": { "k1": params.shape.k1, "k2": params.shape.k2, "active": params.shape.active,
                "th": params.th, "max_size": params.limit.max_size, "step": params.limit.step },
            "choices": choices.collect::<Vec<_>>(), "seconds": seconds,
        });
        println!("{summary:#}");
        return Ok(());
    }
    print_losses(&[("L-GCN", &found.trained)]);
    let lines = found
        .choices
        .iter()
        .map(|c| vec![format!("{:.2}", c.th), c.max_size.to_string(), format!("{:.2}", 100.0 * c.f)]);
    table::print(
        &["least probability", "largest size", "mean F of held-out identities"],
        &lines.collect::<Vec<_>>(),
    );
    println!(
        "\nprobability {:.2}, largest size {}, {seconds:.1} s -> {}",
        params.th,
        params.limit.max_size,
        arguments.output.display()
    );
    Ok(())
}

/// Trains LTC.
fn run_ltc(
    arguments: &Arguments,
    embeddings: &Embeddings,
    labels: &[i64],
    graph: Option<KnnGraph>,
    start: Instant,
) -> Result<(), Failure> {
    let graph = neighbours(arguments, embeddings, graph)?;
    let usual = LtcTraining::default();
    let epochs = arguments.epochs.unwrap_or(usual.fit.epochs);
    let segment_rate = arguments.learning_rate.unwrap_or(usual.segment_rate);
    let fit = FitParams { epochs, ..arguments.fit(usual.fit.clone()) };
    let params = LtcTraining { fit, segment_rate, ..usual };
    let found = train_ltc(embeddings, labels, &graph, &params, &Bars::default())?;
    found.model.write(&arguments.output)?;
    let (seconds, params) = (start.elapsed().as_secs_f64(), &found.model.params);
    if arguments.json {
        let choices = found
            .choices
            .iter()
            .map(|c| json!({ "thresholds": c.thresholds, "segment": c.segment, "least": c.least, "f": c.f }));
        let settings = params.proposals.settings.iter().map(|s| json!({ "k": s.k, "th": s.th }));
        let summary = json!({
            "model": arguments.output, "method": "ltc",
            "gcn_d": history(&found.gcn_d), "gcn_s": history(&found.gcn_s),
            "config": { "settings": settings.collect::<Vec<_>>(), "max_size": params.proposals.limit.max_size,
                "step": params.proposals.limit.step, "least": params.least, "segment": params.segment },
            "choices": choices.collect::<Vec<_>>(), "seconds": seconds,
        });
        println!("{summary:#}");
        return Ok(());
    }
    print_losses(&[("GCN-D", &found.gcn_d), ("GCN-S", &found.gcn_s)]);
    // The best of each group of thresholds.
    let lines = found.choices.chunk_by(|a, b| a.thresholds == b.thresholds).map(|choices| {
        let best = choices.iter().fold(&choices[0], |best, c| if c.f > best.f { c } else { best });
        let thresholds: Vec<String> = best.thresholds.iter().map(|th| format!("{th:.2}")).collect();
        let asked = if best.segment { "asked" } else { "not asked" };
        vec![
            thresholds.join(" "),
            asked.to_owned(),
            format!("{:.1}", best.least),
            format!("{:.2}", 100.0 * best.f),
        ]
    });
    let headings = ["thresholds", "GCN-S", "least score", "mean F of held-out identities"];
    table::print(&headings, &lines.collect::<Vec<_>>());
    println!(
        "\nthresholds {}, least score {:.1}, GCN-S {}, {seconds:.1} s -> {}",
        params.proposals.settings.len(),
        params.least,
        if params.segment.is_some() { "asked" } else { "not asked" },
        arguments.output.display()
    );
    Ok(())
}

impl Arguments {
    /// How weights are fitted, where it is not as usual.
    fn fit(&self, usual: FitParams) -> FitParams {
        FitParams {
            batch: self.batch.unwrap_or(usual.batch),
            learning_rate: self.learning_rate.unwrap_or(usual.learning_rate),
            validation: self.validation.unwrap_or(usual.validation),
            compute: self.device.compute(),
            seed: self.neighbours.seed,
            ..usual
        }
    }
}

fn params(arguments: &Arguments, rows: usize, graph_k: Option<usize>) -> Result<TrainParams, Failure> {
    let mut knn = arguments.neighbours.params(rows);
    knn.k = graph_k.unwrap_or(knn.k);
    let fit = |usual| arguments.fit(usual);
    let k_rebuild = arguments.k_rebuild.unwrap_or(knn.k);
    let (v, e) = (GcnVParams::default(), GcnEParams::default());
    let gcn_v = GcnVParams {
        target: match arguments.target {
            Design::Neighbours => Target::Neighbours,
            Design::Average => Target::Average,
            Design::Centre => Target::Centre,
        },
        convolutions: vec![v.convolutions[0]; arguments.layers],
        // Many steps for a small set; for a large one fewer, whose products are faster.
        fit: FitParams {
            epochs: arguments.epochs.unwrap_or(v.fit.epochs),
            batch: arguments.batch.unwrap_or((rows / 800).next_power_of_two().clamp(64, 256)),
            ..fit(v.fit.clone())
        },
        ..v
    };
    if arguments.links.m(1)? != 1 {
        let message = "-m: expected 1, or -1, to train with; -m of cluster takes more".to_owned();
        return Err(Failure::Usage(message));
    }
    let gcn_e = (arguments.method == Method::GcnVe).then(|| GcnEParams {
        among: arguments.links.among(e.among),
        loss: match arguments.loss {
            EdgeLoss::Squares => Loss::Squares,
            EdgeLoss::CrossEntropy => Loss::CrossEntropy,
        },
        fit: fit(e.fit.clone()),
        ..e
    });
    Ok(TrainParams { knn, gcn_v, gcn_e, k_rebuild })
}

/// The losses of the epochs that matter.
fn print_losses(networks: &[(&str, &Trained)]) {
    let mut lines = Vec::new();
    for (name, network) in networks {
        let last = network.history.len().saturating_sub(1);
        for (epoch, e) in network.history.iter().enumerate().filter(|(i, _)| *i == last || *i == network.best)
        {
            lines.push(vec![
                format!("{name}, epoch {}{}", epoch + 1, if epoch == network.best { " (kept)" } else { "" }),
                format!("{:.5}", e.training_loss),
                e.validation_loss.map_or("-".to_owned(), |loss| format!("{loss:.5}")),
            ]);
        }
    }
    table::print(&["loss", "training", "held-out identities"], &lines);
    println!();
}

fn print_tables(trained: &TrainedModel) {
    let mut networks = vec![("GCN-V", &trained.gcn_v)];
    networks.extend(trained.gcn_e.as_ref().map(|gcn_e| ("GCN-E", gcn_e)));
    print_losses(&networks);
    let choices = trained.choices.iter().map(|c| {
        vec![
            (if c.rebuild { "rebuilt graph" } else { "graph as it is" }).to_owned(),
            format!("{:.2}", c.density),
            format!("{:.1}", c.rho),
            format!("{:.2}", c.tau),
            format!("{:.2}", 100.0 * c.f),
        ]
    });
    table::print(
        &["held-out identities", "density", "rho", "best tau", "mean F"],
        &choices.collect::<Vec<_>>(),
    );
}

/// Every epoch of a network.
fn history(network: &Trained) -> Value {
    let epochs = network.history.iter().map(|e| {
        json!({
            "training_loss": e.training_loss,
            "validation_loss": e.validation_loss,
            "validation_f": e.validation_f,
            "seconds": e.seconds,
        })
    });
    json!({ "best_epoch": network.best + 1, "epochs": epochs.collect::<Vec<_>>() })
}

fn as_json(arguments: &Arguments, trained: &TrainedModel, seconds: f64) -> Value {
    let config = &trained.model.config;
    json!({
        "model": arguments.output,
        "gcn_v": history(&trained.gcn_v),
        "gcn_e": trained.gcn_e.as_ref().map(history),
        "config": {
            "k": config.k, "k_rebuild": config.k_rebuild, "tau": config.tau, "tau_v": config.tau_v,
            "density": config.density, "radius": config.radius, "rho": config.rho, "m": config.m, "rebuild": config.rebuild,
        },
        "seconds": seconds,
    })
}
