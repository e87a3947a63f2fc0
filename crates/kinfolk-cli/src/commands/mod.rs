//! One file for each word of the command.

pub mod cluster;
pub mod demo;
pub mod eval;
pub mod explain;
pub mod import;
pub mod knn;
pub mod results;
pub mod synth;
pub mod train;

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use kinfolk::{Embeddings, KnnParams, Search};
use kinfolk_nn::Among;
use std::path::{Path, PathBuf};

/// Where the embeddings are.
#[derive(Args, Clone)]
pub struct Features {
    /// Embeddings, one row each: .npy, .npz, .parquet or .bin (with --dim, unless it is DATA/features/NAME.bin and there
    /// is DATA/labels/NAME.meta, the published layout)
    pub features: PathBuf,
    /// Columns of a .bin file; in the published layout they follow from the number of labels
    #[arg(long, value_name = "D")]
    pub dim: Option<usize>,
    /// Array of a .npz file or column of a .parquet file; the first if not given
    #[arg(long, value_name = "NAME")]
    pub array: Option<String>,
}

impl Features {
    /// Reads and normalises them.
    pub fn read(&self) -> kinfolk::Result<Embeddings> {
        let options = kinfolk::io::ReadOptions { dim: self.dim, array: self.array.clone() };
        kinfolk::io::read_embeddings(&self.features, &options)
    }
}

/// How to find neighbours.
#[derive(Args, Clone)]
pub struct Neighbours {
    /// Neighbours of each row, itself excluded [default: 80]
    #[arg(short, value_name = "K")]
    pub k: Option<usize>,
    /// Find every true neighbour [default up to 50,000 rows]
    #[arg(long, conflicts_with = "recall")]
    pub exact: bool,
    /// Find this share of the true neighbours, measured on a sample [default above 50,000 rows: 0.98]
    #[arg(long, value_name = "R")]
    pub recall: Option<f32>,
    /// Seed of everything random
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
}

impl Neighbours {
    /// Parameters for a set of `rows` rows; warns when K is too large for it.
    pub fn params(&self, rows: usize) -> KnnParams {
        let search = match self.recall {
            Some(recall) => Search::Recall(recall),
            None if self.exact => Search::Exact,
            None => Search::Auto,
        };
        let params = KnnParams { search, seed: self.seed, ..KnnParams::default() };
        let k = self.k.unwrap_or(params.k);
        // One row has no neighbours to be short of.
        if k >= rows && rows > 1 {
            eprintln!("warning: -k {k}: expected less than the {rows} rows; using {}", rows - 1);
        }
        KnnParams { k, ..params }
    }
}

/// How many links a row has, as the paper counts them.
#[derive(Args, Clone)]
pub struct LinkCount {
    /// Links of each row to rows of higher confidence: 1 makes trees, more makes directed acyclic graphs; -1 lets GCN-E
    /// choose one among all neighbours [default: 1]
    #[arg(short, value_name = "M", allow_negative_numbers = true)]
    m: Option<i64>,
}

impl LinkCount {
    /// Whether the user said.
    pub fn given(&self) -> bool {
        self.m.is_some()
    }

    /// Links of each row.
    pub fn m(&self, usual: usize) -> Result<usize, Failure> {
        match self.m {
            None => Ok(usual),
            Some(-1) => Ok(1),
            Some(m @ 1..) => Ok(m as usize),
            Some(m) => Err(Failure::Usage(format!("-m: expected 1 or more, or -1, found {m}"))),
        }
    }

    /// Where GCN-E chooses from.
    pub fn among(&self, usual: Among) -> Among {
        match self.m {
            None => usual,
            Some(-1) => Among::AllNeighbours,
            Some(_) => Among::MoreConfident,
        }
    }
}

/// A value as the command spells it.
pub fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Makes the directory that results go to, and those above it.
pub fn make_directory(directory: &Path) -> Result<(), Failure> {
    if directory.exists() && !directory.is_dir() {
        return Err(kinfolk::Error::format(directory, "a directory to write to", "a file").into());
    }
    std::fs::create_dir_all(directory).map_err(|e| kinfolk::Error::io(directory, e).into())
}

/// Fails now, not after an hour of work, if a file cannot be written there.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    kinfolk::io::AtomicFile::create(path)?;
    Ok(())
}

/// Writes a text file whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut file = kinfolk::io::AtomicFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(|e| kinfolk::Error::io(path, e))?;
    Ok(file.commit()?)
}
