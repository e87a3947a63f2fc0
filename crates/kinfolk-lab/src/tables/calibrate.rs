//! How hard the fashion profile of `synth` is for known methods, beside their figures on DeepFashion.
//!
//! The profile was fitted to these methods alone. Methods that take a number of clusters get that of the paper; the others
//! choose a threshold on the training part. GCN-V, GCN-E, L-GCN, LTC and `kin` had no part in it.
//!
//! Cost: that of mean shift and spectral clustering, minutes each.

use super::TableOptions;
use super::comparison::Comparison;
use super::grid::calibration_grid;
use super::outcome::FIELDS;
use super::paper;
use super::part::Part;
use super::report::{Report, describe_both};
use super::table2::{SYNTHETIC, fashion};
use crate::picture::{Bars, draw_bars};
use clap::Args;
use kinfolk::synth::Profile;
use kinfolk_cli::failure::Failure;

/// The methods that the profile is calibrated with.
const METHODS: [&str; 7] = ["kmeans", "hac", "dbscan", "meanshift", "spectral", "aro", "cdp"];

/// A method agrees with the paper if both F are within this many points.
const TOLERANCE: f64 = 3.0;

#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench calibrate --quick
          kinfolk bench calibrate --seed 1 --methods kmeans,dbscan,cdp")]
pub struct Arguments {
    #[command(flatten)]
    options: TableOptions,
}

impl Arguments {
    pub fn of(options: TableOptions) -> Self {
        Arguments { options }
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { mut options } = arguments;
    if let Some(other) = options.methods.iter().find(|name| !METHODS.contains(&name.as_str())) {
        let expected = METHODS.join(", ");
        return Err(Failure::Usage(format!("--methods: expected some of {expected}, found {other}")));
    }
    if options.epochs.is_some() {
        return Err(Failure::Usage("--epochs: no effect, because no network is trained here".to_owned()));
    }
    options.directory("calibrate")?;
    if options.methods.is_empty() {
        options.methods = METHODS.map(str::to_owned).to_vec();
    }
    let (k, seed) = (Profile::Fashion.k(), options.seed);
    let [train, test] = fashion(None, &options)?;
    let train = Part::new(train, k, seed)?;
    let mut comparison = Comparison::with_grid("calibrate", options, train, calibration_grid)?;
    let test = Part::new(test, k, seed)?;
    let outcomes = comparison.compare(&test)?;
    let mut csv = format!("method,rows,identities,{FIELDS},paper_clusters,paper_pairwise_f,paper_bcubed_f\n");
    let (mut lines, mut bars, mut near) = (Vec::new(), Vec::new(), 0);
    for (candidate, outcome) in comparison.candidates.iter().zip(&outcomes) {
        let Some((clusters, published)) = paper::table2(candidate.name()) else { continue };
        let mut line = vec![candidate.name().to_owned()];
        line.extend(outcome.cells(comparison.limit));
        line.extend([clusters.to_string(), paper::cell(Some(published))]);
        let fields =
            [test.labels.len().to_string(), test.identities().to_string(), outcome.fields().join(",")];
        csv += &format!(
            "{},{},{clusters},{},{}\n",
            candidate.name(),
            fields.join(","),
            published[0],
            published[1]
        );
        let apart = outcome.both_f().map(|found| [found[0] - published[0], found[1] - published[1]]);
        near += usize::from(apart.is_some_and(|apart| apart.iter().all(|apart| apart.abs() <= TOLERANCE)));
        line.push(apart.map_or_else(|| "-".to_owned(), |[p, b]| format!("{p:+.1} / {b:+.1}")));
        if let Some(found) = outcome.both_f() {
            let bar = |name, values| Bars { name, colour: candidate.listed.colour, values };
            bars.push(bar(candidate.name().to_owned(), found));
            bars.push(bar(format!("{}, paper", candidate.name()), published));
        }
        lines.push(line);
    }
    let headings =
        ["method", "clusters", "pairwise F", "BCubed F", "s", "paper: clusters", "F", "ours - paper"];
    let count = lines.len();
    let set = describe_both(SYNTHETIC, &comparison.train, &test);
    let report = Report {
        title: "Calibration of the fashion profile".to_owned(),
        set: format!("{set}\n{near} of {count} methods are within {TOLERANCE} points of the paper in both F"),
        headings: headings.map(str::to_owned).to_vec(),
        lines,
        csv,
        picture: draw_bars("F of each method, percent", ["pairwise F", "BCubed F"], &bars),
    };
    report.write(&comparison)
}
