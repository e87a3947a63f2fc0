//! `kinfolk explain`: why a row is in its cluster, and why two rows are in one cluster or not.

use crate::failure::Failure;
use clap::Args;
use kinfolk::results::read_results;
use std::path::PathBuf;

/// Explain why a row is in its cluster, or why two rows are in one cluster or not
#[derive(Args)]
#[command(after_help = "Example:  kinfolk explain album 17 4031
          where album is what `kinfolk cluster faces.npy -o album` wrote; rows count from 0")]
pub struct Arguments {
    /// Directory that `kinfolk cluster` wrote
    directory: PathBuf,
    /// A row of the embeddings
    row: usize,
    /// Another row, to compare with
    other: Option<usize>,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let explainer = read_results(&arguments.directory)?;
    print!("{}", explainer.explain(arguments.row, arguments.other)?);
    Ok(())
}
