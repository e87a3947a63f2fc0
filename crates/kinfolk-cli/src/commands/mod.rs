//! One file for each subcommand.

pub mod album;
pub mod bench;
pub mod cluster;
pub mod demo;
pub mod eval;
pub mod explain;
pub mod import;
pub mod knn;
mod pseudo_labels;
pub mod synth;
pub mod train;

use crate::failure::Failure;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use kinfolk::{Embeddings, KnnParams, MethodInfo, Parameters, Search};
use std::path::{Path, PathBuf};

/// The names of the methods that `take` accepts, with their summaries for the help.
pub fn method_names(take: fn(&MethodInfo) -> bool) -> PossibleValuesParser {
    let infos = kinfolk_methods::METHODS.iter().map(|entry| entry.info()).filter(|info| take(info));
    PossibleValuesParser::new(infos.map(|info| PossibleValue::new(info.name).help(info.summary)))
}

/// Options that set parameters of a method.
#[derive(Default)]
pub struct MethodParameters<'a>(Vec<(&'static str, &'static str, &'a str)>);

impl<'a> MethodParameters<'a> {
    /// Adds an option, if it was given.
    pub fn add(&mut self, option: &'static str, name: &'static str, value: Option<&'a str>) {
        self.0.extend(value.map(|value| (option, name, value)));
    }

    /// Sets the parameters; refuses options that the method does not have.
    pub fn apply(&self, parameters: &mut dyn Parameters, method: &str) -> Result<(), Failure> {
        for (option, name, value) in &self.0 {
            if parameters.get(name).is_none() {
                let message = format!("{option}: expected a method that uses it, found --method {method}");
                return Err(Failure::Usage(message));
            }
            parameters.set(name, value)?;
        }
        Ok(())
    }
}

/// The file of the embeddings.
#[derive(Args, Clone)]
pub struct Features {
    /// Embeddings, one per row: .npy, .npz, .parquet or .bin. A .bin file needs --dim, except in the published layout
    /// DATA/features/NAME.bin with DATA/labels/NAME.meta
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
        kinfolk::io::read_embeddings(&self.features, &self.options())
    }

    /// The same; large ones that must be converted go to a file beside the output.
    pub fn read_beside(&self, output: &Path, memory: Option<u64>) -> kinfolk::Result<Embeddings> {
        match scratch(output) {
            Some(directory) => {
                kinfolk::io::read_embeddings_beside(&self.features, &self.options(), directory, memory)
            }
            None => self.read(),
        }
    }

    fn options(&self) -> kinfolk::io::ReadOptions {
        kinfolk::io::ReadOptions { dim: self.dim, array: self.array.clone() }
    }
}

/// The directory of an output, for large matrices, if it exists.
pub fn scratch(output: &Path) -> Option<&Path> {
    let parent = output.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    parent.is_dir().then_some(parent)
}

/// Options of the neighbour search.
#[derive(Args, Clone)]
pub struct Neighbours {
    /// Neighbours of each row, itself excluded [default: 80]
    #[arg(short, value_name = "K")]
    pub k: Option<usize>,
    /// Exact search [default up to 50,000 rows]
    #[arg(long, conflicts_with = "recall")]
    pub exact: bool,
    /// Approximate search with this recall, measured on a sample [default above 50,000 rows: 0.98]
    #[arg(long, value_name = "R")]
    pub recall: Option<f32>,
    /// Seed of all random numbers
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Memory to use, besides pages of mapped files, such as 8G or 500M; refused at once if the work needs more [default:
    /// what is free]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub memory: Option<u64>,
}

impl Neighbours {
    /// The kind of search.
    pub fn search(&self) -> Search {
        match self.recall {
            Some(recall) => Search::Recall(recall),
            None if self.exact => Search::Exact,
            None => Search::Auto,
        }
    }

    /// Parameters for a set of `rows` rows; warns when K is too large for it.
    pub fn params(&self, rows: usize) -> KnnParams {
        self.warn(rows);
        let default = KnnParams::default();
        KnnParams { k: self.k.unwrap_or(default.k), search: self.search(), seed: self.seed, ..default }
    }

    /// Warns when K is too large for a set of `rows` rows.
    pub fn warn(&self, rows: usize) {
        let k = self.k.unwrap_or(KnnParams::default().k);
        // A set of one row has no neighbours for any K.
        if k >= rows && rows > 1 {
            eprintln!("warning: -k {k}: expected less than the {rows} rows; using {}", rows - 1);
        }
    }
}

/// Creates the directory for results and its parents.
pub fn make_directory(directory: &Path) -> Result<(), Failure> {
    if directory.exists() && !directory.is_dir() {
        return Err(kinfolk::Error::format(directory, "a directory to write to", "a file").into());
    }
    std::fs::create_dir_all(directory).map_err(|e| kinfolk::Error::io(directory, e).into())
}

/// Fails before the work, not after it, if a file cannot be written there.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    kinfolk::io::AtomicFile::create(path)?;
    Ok(())
}

/// Writes a text file atomically.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut file = kinfolk::io::AtomicFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(|e| kinfolk::Error::io(path, e))?;
    Ok(file.commit()?)
}

/// Reads a number of bytes, with K, M, G or T for thousands, millions and so on.
fn bytes(text: &str) -> Result<u64, String> {
    let expected = || "expected a number of bytes above 0, such as 8G, 500M or 3000000000".to_owned();
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&text[..at], 1e3),
        Some((at, 'M' | 'm')) => (&text[..at], 1e6),
        Some((at, 'G' | 'g')) => (&text[..at], 1e9),
        Some((at, 'T' | 't')) => (&text[..at], 1e12),
        _ => (text, 1.0),
    };
    let bytes = number.parse::<f64>().map_err(|_| expected())? * unit;
    if (1.0..1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(expected()) }
}
