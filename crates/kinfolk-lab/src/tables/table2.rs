//! Every method on one set: Table 2 of the paper, on a synthetic set that is as hard as DeepFashion or on a given set.

use super::TableOptions;
use super::comparison::Comparison;
use super::outcome::FIELDS;
use super::paper;
use super::part::Part;
use super::report::{Report, describe_both};
use crate::labelled::{Labelled, read_both};
use crate::picture::{Bars, draw_bars};
use clap::Args;
use kinfolk::synth::{Profile, Synth, SynthParams};
use kinfolk_cli::failure::Failure;
use std::path::PathBuf;

/// Identities of a quick run to test on, and as many to train on.
const QUICK_IDENTITIES: usize = 300;

/// What a synthetic set is called.
pub const SYNTHETIC: &str = "Synthetic, as hard as DeepFashion";

#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench table2 --quick
          kinfolk bench table2 --train a.npy a_labels.npy --test b.npy b_labels.npy -k 80")]
pub struct Arguments {
    #[command(flatten)]
    options: TableOptions,
    /// Labelled embeddings to train on, instead of a synthetic set
    #[arg(long, num_args = 2, value_names = ["FEATURES", "LABELS"], requires = "test", conflicts_with = "identities")]
    train: Option<Vec<PathBuf>>,
    /// Labelled embeddings to test on, of other identities
    #[arg(long, num_args = 2, value_names = ["FEATURES", "LABELS"], requires = "train")]
    test: Option<Vec<PathBuf>>,
    /// Identities of the synthetic set to test on, and as many to train on, about 6.8 rows each [default: 3991, quick 300]
    #[arg(long, value_name = "N")]
    identities: Option<usize>,
    /// Neighbours of each row
    #[arg(short, value_name = "K", default_value_t = 5)]
    k: usize,
}

impl Arguments {
    pub fn of(options: TableOptions) -> Self {
        Arguments { options, train: None, test: None, identities: None, k: 5 }
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { options, train, test, identities, k } = arguments;
    options.directory("table2")?;
    let seed = options.seed;
    let (origin, [train, test]) = match (train, test) {
        (Some(train), Some(test)) => (train[0].display().to_string(), read_both(&train, &test)?),
        _ => (SYNTHETIC.to_owned(), fashion(identities, &options)?),
    };
    let synthetic = origin == SYNTHETIC;
    let comparison = Comparison::new("table2", options, Part::new(train, k, seed)?)?;
    compare(comparison, &origin, &Part::new(test, k, seed)?, synthetic)
}

/// Every method on one set, beside the figures of the paper if it is that of the paper or imitates it.
pub fn compare(
    mut comparison: Comparison,
    origin: &str,
    test: &Part,
    beside_paper: bool,
) -> Result<(), Failure> {
    let outcomes = comparison.compare(test)?;
    let mut csv = format!("method,rows,identities,{FIELDS}\n");
    let (mut lines, mut bars) = (Vec::new(), Vec::new());
    for (candidate, outcome) in comparison.candidates.iter().zip(&outcomes) {
        let mut line = vec![candidate.name().to_owned()];
        line.extend(outcome.cells(comparison.limit));
        if beside_paper {
            line.push(paper::cell(paper::table2(candidate.name()).map(|(_, f)| f)));
        }
        lines.push(line);
        csv += &format!(
            "{},{},{},{}\n",
            candidate.name(),
            test.labels.len(),
            test.identities(),
            outcome.fields().join(",")
        );
        if let Some(values) = outcome.both_f() {
            bars.push(Bars { name: candidate.name().to_owned(), colour: candidate.listed.colour, values });
        }
    }
    let mut headings = ["method", "clusters", "pairwise F", "BCubed F", "s"].map(str::to_owned).to_vec();
    if beside_paper {
        headings.push("paper, DeepFashion".to_owned());
    }
    let report = Report {
        title: "Table 2: many small identities".to_owned(),
        set: describe_both(origin, &comparison.train, test),
        headings,
        lines,
        csv,
        picture: draw_bars("F of each method, percent", ["pairwise F", "BCubed F"], &bars),
    };
    report.write(&comparison)
}

/// A training and a test part of the synthetic set, of as many identities each.
pub fn fashion(identities: Option<usize>, options: &TableOptions) -> Result<[Labelled; 2], Failure> {
    let default = Profile::Fashion.params();
    let each = identities.unwrap_or(if options.quick { QUICK_IDENTITIES } else { default.identities });
    let synth = Synth::new(SynthParams { identities: 2 * each, seed: options.seed, ..default })?;
    let part = |range| Ok::<_, Failure>(synth.part(range)?.to_embeddings()?.into());
    Ok([part(0..each)?, part(each..2 * each)?])
}
