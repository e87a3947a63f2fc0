//! `kinfolk synth`: writes a labelled set as hard as MS-Celeb-1M.

use super::make_directory;
use crate::bars::Bars;
use crate::failure::Failure;
use clap::Args;
use kinfolk::Progress;
use kinfolk::io::{NpyF32Writer, write_npy_i64};
use kinfolk::synth::{Part, Synth, SynthParams};
use std::path::{Path, PathBuf};

/// Values generated, then written, at a time: 16 MB, so that memory does not grow with the set.
const BLOCK_VALUES: usize = 1 << 22;

/// Write a labelled set that is as hard as MS-Celeb-1M, of any size
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
    /// The same seed gives the same bytes
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Write a train and a test part of different identities; this share of them is for training
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
        write_part(&part, &file("features.npy"), &file("labels.npy"), &Bars::default())?;
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

/// Streams the rows of a part to a `.npy` file, and writes its labels.
pub fn write_part(
    part: &Part,
    features: &Path,
    labels: &Path,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let rows_at_once = (BLOCK_VALUES / part.dim()).max(1);
    let mut writer = NpyF32Writer::create(features, part.rows(), part.dim())?;
    let mut block = vec![0.0; rows_at_once.min(part.rows()) * part.dim()];
    progress.begin("rows", part.rows() as u64);
    for start in (0..part.rows()).step_by(rows_at_once) {
        let rows = start..(start + rows_at_once).min(part.rows());
        let block = &mut block[..rows.len() * part.dim()];
        part.fill(rows.clone(), block);
        writer.write_rows(block)?;
        progress.advance(rows.len() as u64);
    }
    writer.finish()?;
    Ok(write_npy_i64(labels, &part.labels())?)
}
