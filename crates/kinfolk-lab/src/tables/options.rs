//! Options of the tables: methods, time limit, output directory.

use super::methods::{Listed, listed, names};
use clap::Args;
use clap::builder::PossibleValuesParser;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::make_directory;
use std::path::PathBuf;

/// The default time limit of a run, in seconds.
const LIMIT: f64 = 600.0;
const QUICK_LIMIT: f64 = 20.0;

/// Options of every table.
#[derive(Args, Clone)]
pub struct TableOptions {
    /// A small set, and little time for each method
    #[arg(long)]
    pub quick: bool,
    /// Methods to compare, separated by commas; all if not given
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    pub methods: Vec<String>,
    /// Time limit of one run in seconds; a method that exceeds it is not run on larger sets [default: 600, quick 20]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub limit: Option<f64>,
    /// Seed of the set and of all random numbers
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Epochs of GCN-V, and most epochs of the other networks [default: 20]
    #[arg(long, value_name = "E")]
    pub epochs: Option<usize>,
    /// Directory to write to [default: bench-, then the name]
    #[arg(short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

impl TableOptions {
    /// The defaults, or those of a quick run.
    pub fn of(quick: bool, output: PathBuf) -> Self {
        let (methods, limit, epochs) = (Vec::new(), None, None);
        TableOptions { quick, methods, limit, seed: 0, epochs, output: Some(output) }
    }

    /// The time limit of one run, in seconds.
    pub fn limit(&self) -> f64 {
        self.limit.unwrap_or(if self.quick { QUICK_LIMIT } else { LIMIT })
    }

    /// Whether a row is compared.
    pub fn includes(&self, name: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|method| method == name)
    }

    /// The methods to compare, in the order of the tables.
    pub fn selected(&self) -> Vec<Listed> {
        listed().into_iter().filter(|listed| self.includes(listed.row)).collect()
    }

    /// Creates the directory of the table of this name.
    pub fn directory(&self, name: &str) -> Result<PathBuf, Failure> {
        let directory = self.output.clone().unwrap_or_else(|| PathBuf::from(format!("bench-{name}")));
        make_directory(&directory)?;
        Ok(directory)
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds < 1e9 => Ok(seconds),
        _ => Err("expected a number of seconds above 0".to_owned()),
    }
}
