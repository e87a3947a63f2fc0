//! `kinfolk train`: from labelled embeddings to a model.

use super::{Features, Neighbours, check_writable};
use crate::bars::Bars;
use crate::failure::Failure;
use crate::table;
use clap::{Args, ValueEnum};
use kinfolk::io::{check_label_count, read_graph, read_labels};
use kinfolk_nn::{FitParams, GcnEParams, GcnVParams, TrainParams, Trained, TrainedModel, train};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

/// Train a model on labelled rows, to cluster rows of other identities
#[derive(Args)]
#[command(after_help = "Example:  kinfolk train train_features.npy train_labels.npy -o model.safetensors
          kinfolk cluster test_features.npy --model model.safetensors")]
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
    /// Passes of GCN-V over the rows
    #[arg(long, value_name = "E", default_value_t = FitParams::default().epochs)]
    epochs: usize,
    /// Share of the identities that is not trained on; tau and the best epoch are chosen by them
    #[arg(long, value_name = "SHARE", default_value_t = FitParams::default().validation)]
    validation: f32,
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
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let embeddings = arguments.features.read()?;
    let labels = read_labels(&arguments.labels)?;
    check_label_count(&labels, embeddings.len(), &arguments.labels, &arguments.features.features)?;
    check_writable(&arguments.output)?;
    let graph = arguments.graph.as_ref().map(|path| read_graph(path, Some(embeddings.len()))).transpose()?;
    let params = params(&arguments, embeddings.len(), graph.as_ref().map(|g| g.k()));
    let trained = train(&embeddings, &labels, graph.as_ref(), &params, &Bars::default())?;
    trained.model.write(&arguments.output)?;
    if arguments.json {
        println!("{:#}", as_json(&arguments, &trained, start.elapsed().as_secs_f64()));
    } else {
        print_tables(&trained);
        let config = &trained.model.config;
        println!(
            "\ntau {:.2}, rho {:.1}, {}, {:.1} s -> {}",
            config.tau,
            config.rho,
            if config.rebuild { "rebuilt graph" } else { "graph as it is" },
            start.elapsed().as_secs_f64(),
            arguments.output.display()
        );
    }
    Ok(())
}

fn params(arguments: &Arguments, rows: usize, graph_k: Option<usize>) -> TrainParams {
    let mut knn = arguments.neighbours.params(rows);
    knn.k = graph_k.unwrap_or(knn.k);
    let fit = |usual: FitParams| FitParams {
        validation: arguments.validation,
        seed: arguments.neighbours.seed,
        ..usual
    };
    let k_rebuild = arguments.k_rebuild.unwrap_or(knn.k);
    let (v, e) = (GcnVParams::default(), GcnEParams::default());
    let gcn_v = GcnVParams { knn, fit: FitParams { epochs: arguments.epochs, ..fit(v.fit.clone()) }, ..v };
    let gcn_e = (arguments.method == Method::GcnVe).then(|| GcnEParams { fit: fit(e.fit.clone()), ..e });
    TrainParams { gcn_v, gcn_e, k_rebuild }
}

fn print_tables(trained: &TrainedModel) {
    let mut lines = Vec::new();
    for (name, network) in [("GCN-V", Some(&trained.gcn_v)), ("GCN-E", trained.gcn_e.as_ref())] {
        let Some(network) = network else { continue };
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
    let choices = trained.choices.iter().map(|c| {
        vec![
            format!("{}, rho {}", if c.rebuild { "rebuilt graph" } else { "graph as it is" }, c.rho),
            format!("{:.2}", c.tau),
            format!("{:.2}", 100.0 * c.bcubed_f),
        ]
    });
    table::print(&["applied to the held-out identities", "best tau", "B³ F"], &choices.collect::<Vec<_>>());
}

fn as_json(arguments: &Arguments, trained: &TrainedModel, seconds: f64) -> Value {
    let history = |network: &Trained| {
        let epochs = network
            .history
            .iter()
            .map(|e| json!({ "training_loss": e.training_loss, "validation_loss": e.validation_loss }));
        json!({ "best_epoch": network.best + 1, "epochs": epochs.collect::<Vec<_>>() })
    };
    let config = &trained.model.config;
    json!({
        "model": arguments.output,
        "gcn_v": history(&trained.gcn_v),
        "gcn_e": trained.gcn_e.as_ref().map(history),
        "config": {
            "k": config.k, "k_rebuild": config.k_rebuild, "tau": config.tau, "rho": config.rho,
            "m": config.m, "rebuild": config.rebuild,
        },
        "seconds": seconds,
    })
}
