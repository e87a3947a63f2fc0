//! `kinfolk import`: converts published checkpoints to a model file.

use crate::failure::Failure;
use clap::Args;
use kinfolk_nn::{GcnConfig, GcnModel, read_checkpoint};
use serde_json::json;
use std::path::PathBuf;

/// Convert published GCN-V and GCN-E checkpoints (.pth) to a model file
#[derive(Args)]
#[command(after_help = "Example:  kinfolk import gcn_v.pth gcn_e.pth -o model.safetensors
          kinfolk cluster faces.npy --model model.safetensors

The checkpoint's pickle is parsed, never executed: it can only create tensors.")]
pub struct Arguments {
    /// Checkpoint of GCN-V, written by torch.save
    gcn_v: PathBuf,
    /// Checkpoint of GCN-E; without it the model links rows to the nearest candidate
    gcn_e: Option<PathBuf>,
    /// File to write: .safetensors
    #[arg(short, value_name = "MODEL")]
    output: PathBuf,
    #[command(flatten)]
    settings: Settings,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

/// How a model is applied, where it differs from the defaults.
#[derive(Args, Clone)]
struct Settings {
    /// Neighbours of each row without the row itself, which the published code counts [default: 80]
    #[arg(short, value_name = "K")]
    k: Option<usize>,
    /// Neighbours in the graph that is rebuilt from the embeddings of GCN-V [default: 80]
    #[arg(long, value_name = "K")]
    k_rebuild: Option<usize>,
    /// Cut links of at most this similarity [default: 0.8]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    tau: Option<f32>,
    /// Share of the rows, the most confident ones, whose parents GCN-E chooses [default: 0.1]
    #[arg(long, value_name = "R")]
    rho: Option<f32>,
    /// Links of each row to rows of higher confidence: 1 builds trees, more builds directed acyclic graphs; -1 lets
    /// GCN-E choose one from all neighbours [default: 1]
    #[arg(short, value_name = "M", allow_negative_numbers = true)]
    m: Option<i64>,
    /// Do not rebuild the graph from the embeddings of GCN-V
    #[arg(long)]
    no_rebuild: bool,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let (settings, default) = (&arguments.settings, GcnConfig::default());
    let m = match settings.m {
        None | Some(-1) => 1,
        Some(m @ 1..) => m as usize,
        Some(m) => return Err(Failure::Usage(format!("-m: expected 1 or more, or -1, found {m}"))),
    };
    let config = GcnConfig {
        k: settings.k.unwrap_or(default.k),
        k_rebuild: settings.k_rebuild.unwrap_or(default.k_rebuild),
        tau: settings.tau.unwrap_or(default.tau),
        tau_v: settings.tau.unwrap_or(default.tau_v),
        rho: settings.rho.unwrap_or(default.rho),
        m,
        all_neighbours: settings.m == Some(-1),
        rebuild: !settings.no_rebuild,
        ..default
    };
    config.check()?;
    let gcn_v = read_checkpoint(&arguments.gcn_v)?;
    let gcn_e = arguments.gcn_e.as_deref().map(read_checkpoint).transpose()?;
    let model = GcnModel { gcn_v, gcn_e, config };
    model.write(&arguments.output)?;

    let layers = |network: &kinfolk_nn::GraphNetwork| network.convolutions.len();
    let (dim, v, e) = (model.dim(), layers(&model.gcn_v), model.gcn_e.as_ref().map(layers));
    if arguments.json {
        let all = json!({ "model": arguments.output, "dim": dim, "gcn_v_layers": v, "gcn_e_layers": e });
        println!("{all:#}");
        return Ok(());
    }
    let gcn_e = e.map_or("no GCN-E".to_owned(), |layers| format!("GCN-E of {layers}"));
    println!(
        "features of {dim} columns, GCN-V of {v} graph convolution{}, {gcn_e} -> {}",
        if v == 1 { "" } else { "s" },
        arguments.output.display()
    );
    Ok(())
}
