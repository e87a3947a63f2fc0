//! Trains the weights of the network of `kin` from a seed. The default seed gives the built-in weights, which MODEL_CARD.md
//! in crates/kinfolk/src/connectivity/structural describes.

mod train;
pub mod worlds;

use crate::measure::measure;
use clap::Args;
use kinfolk::Error;
use kinfolk::io::AtomicFile;
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::table;
use std::io::Write;
use std::path::PathBuf;
use train::{PretrainParams, pretrain};

#[derive(Args)]
#[command(after_help = "To replace the weights that are built in:
          kinfolk bench pretrain -o crates/kinfolk/src/connectivity/structural/weights.bin, then build again")]
pub struct Arguments {
    /// File to write
    #[arg(short, value_name = "FILE", default_value = "weights.bin")]
    output: PathBuf,
    /// Few small sets, as a smoke test; the weights are useless
    #[arg(long)]
    quick: bool,
    /// Seed of the synthetic sets
    #[arg(long, value_name = "S", default_value_t = PretrainParams::default().seed)]
    seed: u64,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let all = PretrainParams { seed: arguments.seed, ..PretrainParams::default() };
    let params = match arguments.quick {
        true => PretrainParams { worlds: 10, rows: 2500, edges: 1000, epochs: 2, ..all },
        false => all,
    };
    let (made, cost) = measure(|| pretrain(&params, &Bars::default()));
    let made = made?;
    let path = &arguments.output;
    let mut file = AtomicFile::create(path)?;
    file.write_all(&made.weights).map_err(|e| Error::io(path, e))?;
    file.commit()?;
    let epochs = made.losses.iter().enumerate().map(|(epoch, (training, held_out))| {
        vec![(epoch + 1).to_string(), format!("{training:.4}"), format!("{held_out:.4}")]
    });
    table::print(&["epoch", "training loss", "held-out loss"], &epochs.collect::<Vec<_>>());
    println!(
        "\n{} sets, {:.0} s, {:.0} CPU-s -> {} ({} bytes)",
        params.worlds,
        cost.seconds,
        cost.cpu_seconds,
        path.display(),
        made.weights.len()
    );
    Ok(())
}
