//! `kinfolk eval`: compares labels with the truth.

use crate::failure::Failure;
use crate::table;
use clap::Args;
use kinfolk::io::read_labels;
use kinfolk::metrics::{Fscore, Scores, evaluate};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Compare predicted labels with true ones
#[derive(Args)]
#[command(after_help = "Example:  kinfolk eval labels.npy faces-clusters/labels.npy")]
pub struct Arguments {
    /// True labels: .npy of integers, or text with one integer per line
    truth: PathBuf,
    /// Predicted labels, in the same forms
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
        println!("{:#}", as_json(&scores));
    } else {
        let mut headings = vec!["rows", "identities"];
        headings.extend(table::SCORE_HEADINGS);
        let mut row = table::scores(&scores.rows.to_string(), &scores);
        row.insert(1, scores.identities.to_string());
        table::print(&headings, &[row]);
    }
    Ok(())
}

/// The scores as `--json` prints them; F and the rest from 0 to 1.
pub fn as_json(scores: &Scores) -> Value {
    let f = |f: Fscore| json!({ "precision": f.precision, "recall": f.recall, "f": f.f });
    json!({
        "rows": scores.rows,
        "identities": scores.identities,
        "clusters": scores.clusters,
        "singletons": scores.singletons,
        "largest": scores.largest,
        "pairwise": f(scores.pairwise),
        "bcubed": f(scores.bcubed),
        "nmi": scores.nmi,
        "pairs": {
            "both": scores.pairs_both,
            "true": scores.pairs_true,
            "predicted": scores.pairs_predicted,
        },
    })
}
