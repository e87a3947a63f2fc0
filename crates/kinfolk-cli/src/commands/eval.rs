//! `kinfolk eval`: compares predicted labels with true ones.

use crate::failure::Failure;
use crate::table;
use clap::Args;
use kinfolk::io::read_labels;
use kinfolk::metrics::evaluate;
use std::path::PathBuf;

/// Compare predicted labels with true ones
#[derive(Args)]
#[command(after_help = "Example:  kinfolk eval labels.npy faces-clusters/labels.npy")]
pub struct Arguments {
    /// True labels: .npy of integers, or text with one integer per line
    truth: PathBuf,
    /// Predicted labels, in the same formats
    predicted: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let truth = read_labels(&arguments.truth)?;
    let predicted = read_labels(&arguments.predicted)?;
    kinfolk::io::check_label_count(&predicted, truth.len(), &arguments.predicted, &arguments.truth)?;
    let scores = evaluate(&truth, &predicted)?;
    if arguments.json {
        println!("{:#}", serde_json::json!(scores));
    } else {
        let mut headings = vec!["rows", "identities"];
        headings.extend(table::SCORE_HEADINGS);
        let mut row = table::scores(&scores.rows.to_string(), &scores);
        row.insert(1, scores.identities.to_string());
        table::print(&headings, &[row]);
    }
    Ok(())
}
