//! `kinfolk import`: published checkpoints become one model file.

use crate::failure::Failure;
use clap::Args;
use kinfolk_nn::{Model, ModelConfig, read_checkpoint};
use serde_json::json;
use std::path::PathBuf;

/// Make a model of published GCN-V and GCN-E checkpoints (.pth)
#[derive(Args)]
#[command(after_help = "Example:  kinfolk import gcn_v.pth gcn_e.pth -o model.safetensors
          kinfolk cluster faces.npy --model model.safetensors

The checkpoint's pickle is interpreted, never run: it can make tensors and nothing else.")]
pub struct Arguments {
    /// Checkpoint of GCN-V, written by torch.save
    gcn_v: PathBuf,
    /// Checkpoint of GCN-E; without it the model takes the nearest candidate
    gcn_e: Option<PathBuf>,
    /// File to write: .safetensors
    #[arg(short, value_name = "MODEL")]
    output: PathBuf,
    #[command(flatten)]
    settings: Settings,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// How a model is applied, where it is to differ.
#[derive(Args, Clone)]
struct Settings {
    /// Neighbours of each row, itself excluded; the published code counts it [default: 80]
    #[arg(short, value_name = "K")]
    k: Option<usize>,
    /// Neighbours in the graph that is rebuilt from the embeddings of GCN-V [default: 80]
    #[arg(long, value_name = "K")]
    k_rebuild: Option<usize>,
    /// Cut links of at most this similarity [default: 0.8]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    tau: Option<f32>,
    /// Share of rows, the most confident, whose parents GCN-E chooses [default: 0.1]
    #[arg(long, value_name = "R")]
    rho: Option<f32>,
    #[command(flatten)]
    links: super::LinkCount,
    /// Do not rebuild the graph from the embeddings of GCN-V
    #[arg(long)]
    no_rebuild: bool,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let (settings, usual) = (&arguments.settings, ModelConfig::default());
    let config = ModelConfig {
        k: settings.k.unwrap_or(usual.k),
        k_rebuild: settings.k_rebuild.unwrap_or(usual.k_rebuild),
        tau: settings.tau.unwrap_or(usual.tau),
        tau_v: settings.tau.unwrap_or(usual.tau_v),
        rho: settings.rho.unwrap_or(usual.rho),
        m: settings.links.m(usual.m)?,
        among: settings.links.among(usual.among),
        rebuild: !settings.no_rebuild,
        ..usual
    };
    config.check()?;
    let gcn_v = read_checkpoint(&arguments.gcn_v)?;
    let gcn_e = arguments.gcn_e.as_deref().map(read_checkpoint).transpose()?;
    let model = Model { gcn_v, gcn_e, config };
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
