//! Every method on sets of increasing size: Table 1 of the paper.
//!
//! The identities of a synthetic set are divided into parts of about the same number of rows. The first part is for training.
//! The others are for testing, and each larger test set contains the smaller ones.

use super::TableOptions;
use super::comparison::{Candidate, Comparison};
use super::outcome::{FIELDS, Outcome};
use super::paper;
use super::part::Part;
use super::report::Report;
use crate::picture::{Line, LineChart, draw_lines};
use clap::Args;
use kinfolk::synth::{Synth, SynthParams};
use kinfolk_cli::failure::Failure;

/// The default number of rows of a part.
const ROWS: usize = 60_000;
const QUICK_ROWS: usize = 5_000;
const FULL_ROWS: usize = 584_000;

#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench table1 --quick
          writes bench-table1/table1.md, table1.csv and table1.svg

With all methods and parts of 60,000 rows it takes an hour with --limit 120, hours without.")]
pub struct Arguments {
    #[command(flatten)]
    options: TableOptions,
    /// Approximate number of rows of a part [default: 60000, quick 5000]
    #[arg(long, value_name = "N", conflicts_with = "full")]
    rows_per_part: Option<usize>,
    /// Parts of 584,000 rows, as in the paper
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Numbers of parts to test on, separated by commas
    #[arg(long, value_name = "P", value_delimiter = ',', default_values_t = [1, 3, 5, 7, 9], value_parser = clap::value_parser!(u32).range(1..))]
    parts: Vec<u32>,
    /// Neighbours of each row
    #[arg(short, value_name = "K", default_value_t = 80)]
    k: usize,
}

impl Arguments {
    pub fn of(options: TableOptions) -> Self {
        Arguments { options, rows_per_part: None, full: false, parts: vec![1, 3, 5, 7, 9], k: 80 }
    }
}

/// Parts of about the same number of rows: a training part, and test parts that can be combined.
pub struct Parts {
    synth: Synth,
    /// Identities of a part.
    each: usize,
}

impl Parts {
    pub fn new(rows: usize, most: usize, seed: u64) -> Result<Self, Failure> {
        let default = SynthParams::default();
        let each = (rows as f64 / default.mean_size).round() as usize;
        let synth = Synth::new(SynthParams { identities: each * (most + 1), seed, ..default })?;
        Ok(Parts { synth, each })
    }

    pub fn train(&self, k: usize) -> Result<Part, Failure> {
        let part = self.synth.part(0..self.each)?;
        Part::new(part.to_embeddings()?.into(), k, self.synth.params().seed)
    }

    pub fn test(&self, parts: usize, k: usize) -> Result<Part, Failure> {
        let part = self.synth.part(self.each..self.each * (parts + 1))?;
        Part::new(part.to_embeddings()?.into(), k, self.synth.params().seed)
    }
}

/// Rows of a part: as given, or the default.
pub fn rows_of(given: Option<usize>, quick: bool) -> usize {
    given.unwrap_or(if quick { QUICK_ROWS } else { ROWS })
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { options, rows_per_part, full, mut parts, k } = arguments;
    // Fails before the fitting, not after it.
    options.directory("table1")?;
    parts.sort_unstable();
    parts.dedup();
    let rows = if full { FULL_ROWS } else { rows_of(rows_per_part, options.quick) };
    let most = parts.iter().max().copied().unwrap_or(1) as usize;
    let set = Parts::new(rows, most, options.seed)?;
    let origin = format!("Synthetic, parts of about {rows} rows");
    let comparison = Comparison::new("table1", options, set.train(k)?)?;
    compare(comparison, &origin, &parts, |count| set.test(count as usize, k))
}

/// Every method on so many parts at a time, beside the figures of the paper.
pub fn compare(
    mut comparison: Comparison,
    origin: &str,
    parts: &[u32],
    test: impl Fn(u32) -> Result<Part, Failure>,
) -> Result<(), Failure> {
    let mut headings = vec!["method".to_owned()];
    let mut lines: Vec<Vec<String>> =
        comparison.candidates.iter().map(|candidate| vec![candidate.name().to_owned()]).collect();
    let mut csv = format!("method,parts,rows,identities,{FIELDS}\n");
    let mut columns: Vec<Vec<Outcome>> = Vec::new();
    let mut sizes = Vec::new();
    for &count in parts {
        let part = test(count)?;
        let (rows, identities) = (part.labels.len(), part.identities());
        let outcomes = comparison.compare(&part)?;
        headings.extend([format!("{rows} rows: F_P"), "F_B".to_owned(), "s".to_owned()]);
        let published = paper::PARTS.contains(&count);
        if published {
            headings.push(format!("paper, {} rows", paper::rows(count)));
        }
        for ((line, outcome), candidate) in lines.iter_mut().zip(&outcomes).zip(&comparison.candidates) {
            line.extend(outcome.cells(comparison.limit)[1..].iter().cloned());
            if published {
                line.push(paper::cell(paper::table1(candidate.name(), count)));
            }
            let fields = outcome.fields().join(",");
            csv += &format!("{},{count},{rows},{identities},{fields}\n", candidate.name());
        }
        columns.push(outcomes);
        sizes.push(rows);
    }
    let report = Report {
        title: "Table 1: sets of increasing size".to_owned(),
        set: format!(
            "{origin}: {} columns, {} to train on; F_P pairwise, F_B BCubed",
            comparison.train.features.dim(),
            comparison.train.describe()
        ),
        headings,
        lines,
        csv,
        picture: picture(&comparison, &sizes, &columns),
    };
    report.write(&comparison)
}

/// Both F's over the number of rows.
fn picture(comparison: &Comparison, sizes: &[usize], columns: &[Vec<Outcome>]) -> String {
    let chart = |title: &str, which: usize| {
        let line = |(at, candidate): (usize, &Candidate)| {
            let points: Vec<(f64, f64)> = sizes
                .iter()
                .zip(columns)
                .filter_map(|(&size, column)| Some((size as f64 / 1000.0, column[at].both_f()?[which])))
                .collect();
            let (name, colour) = (candidate.name().to_owned(), candidate.listed.colour);
            let dashed = candidate.listed.dashed;
            let ring = points.last().copied().filter(|_| points.len() < sizes.len());
            (!points.is_empty()).then_some(Line { name, colour, dashed, points, ring })
        };
        LineChart {
            title: title.to_owned(),
            axis: "thousand rows".to_owned(),
            lines: comparison.candidates.iter().enumerate().filter_map(line).collect(),
        }
    };
    let charts = [chart("Pairwise F, percent", 0), chart("BCubed F, percent", 1)];
    draw_lines(&charts, "too slow, or refused, beyond")
}
