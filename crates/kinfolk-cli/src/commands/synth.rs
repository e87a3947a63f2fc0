//! `kinfolk synth`: writes a synthetic labelled set that is as hard as MS-Celeb-1M.

use super::make_directory;
use crate::bars::Bars;
use crate::failure::Failure;
use clap::Args;
use kinfolk::io::write_npy_i64;
use kinfolk::synth::{Synth, SynthParams};
use std::path::PathBuf;

/// Write a synthetic labelled set that is as hard as MS-Celeb-1M
#[derive(Args)]
#[command(after_help = "Example:  kinfolk synth set --identities 1500 --seed 1
          writes set/features.npy and set/labels.npy
          kinfolk synth set --identities 4500 --split 0.667
          writes set/train_features.npy, train_labels.npy, test_features.npy and test_labels.npy")]
pub struct Arguments {
    /// Directory to write to
    directory: PathBuf,
    /// Number of identities, about 68 rows each
    #[arg(long, value_name = "N")]
    identities: usize,
    /// Number of columns
    #[arg(long, value_name = "D", default_value_t = 256)]
    dim: usize,
    /// Random seed; the same seed gives the same bytes
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Write a training and a test part with disjoint identities; this share of them is for training
    #[arg(long, value_name = "SHARE")]
    split: Option<f64>,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let params = SynthParams {
        identities: arguments.identities,
        dim: arguments.dim,
        seed: arguments.seed,
        ..SynthParams::default()
    };
    let synth = Synth::new(params)?;
    let parts = match arguments.split {
        None => vec![("", synth.whole())],
        Some(share) => {
            let (train, test) = synth.split(share)?;
            vec![("train_", train), ("test_", test)]
        }
    };
    make_directory(&arguments.directory)?;
    for (prefix, part) in parts {
        let file = |name: &str| arguments.directory.join(format!("{prefix}{name}"));
        part.write_features(&file("features.npy"), &Bars::default())?;
        write_npy_i64(&file("labels.npy"), &part.labels())?;
        println!(
            "{}: {} rows x {}, {} identities",
            file("features.npy").display(),
            part.rows(),
            part.dim(),
            part.identities()
        );
    }
    Ok(())
}
