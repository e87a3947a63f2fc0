//! F against time: every method once, mini-batch k-means with several batch sizes, and LTC with proposals at several numbers of
//! thresholds. Figure 4 of the paper. Then what super vertices save and cost (`super_vertices`).

use super::TableOptions;
use super::comparison::{Candidate, Comparison};
use super::grid::Setting;
use super::methods::Listed;
use super::outcome::{FIELDS, Outcome};
use super::part::Part;
use super::report::{Report, describe_both};
use super::super_vertices;
use super::table1::{Parts, rows_of};
use crate::picture::{Dot, Scatter, draw_scatter};
use clap::Args;
use kinfolk_cli::failure::Failure;
use kinfolk_nn::Ltc;
use kinfolk_nn::training::proposal_settings;

/// Rows of the batches of mini-batch k-means.
const BATCHES: [usize; 4] = [256, 1024, 4096, 16384];

/// Thresholds that LTC makes proposals at.
const THRESHOLDS: [usize; 4] = [1, 2, 4, 8];

#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench runtime --quick
          writes bench-runtime/runtime.md, runtime.csv and runtime.svg, and super-vertices.md
          for the methods that have super vertices")]
pub struct Arguments {
    #[command(flatten)]
    options: TableOptions,
    /// Approximate number of rows to test on, and as many to train on [default: 60000, quick 5000]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Neighbours of each row
    #[arg(short, value_name = "K", default_value_t = 80)]
    k: usize,
}

impl Arguments {
    pub fn of(options: TableOptions) -> Self {
        Arguments { options, rows: None, k: 80 }
    }
}

/// A run.
struct Entry {
    listed: Listed,
    /// The parameter that varies between the runs of a method: the batch size, or the number of thresholds.
    swept: Option<usize>,
    outcome: Outcome,
}

impl Entry {
    fn method(&self) -> &'static str {
        self.listed.row
    }

    fn name(&self) -> String {
        match self.swept {
            Some(batch) if self.method() == "minibatch-kmeans" => format!("mini-batch {batch}"),
            Some(thresholds) => format!("{} {thresholds}", self.method()),
            None => self.method().to_owned(),
        }
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { options, rows, k } = arguments;
    options.directory("runtime")?;
    let set = Parts::new(rows_of(rows, options.quick), 1, options.seed)?;
    let mut comparison = Comparison::new("runtime", options, set.train(k)?)?;
    let test = set.test(1, k)?;
    let mut entries = Vec::new();
    for (outcome, candidate) in comparison.compare(&test)?.into_iter().zip(&comparison.candidates) {
        let listed = candidate.listed;
        let several: &[usize] = match candidate.name() {
            "minibatch-kmeans" => &BATCHES,
            "ltc" => &THRESHOLDS,
            _ => &[],
        };
        match &candidate.setting {
            Ok(setting) if !several.is_empty() => {
                for &value in several {
                    let outcome = run_with(&comparison, candidate, setting, value, &test)?;
                    entries.push(Entry { listed, swept: Some(value), outcome });
                }
            }
            _ => entries.push(Entry { listed, swept: None, outcome }),
        }
    }
    let mut csv = format!("method,swept,rows,{FIELDS}\n");
    let mut lines = Vec::new();
    for entry in &entries {
        let mut line = vec![entry.name()];
        line.extend(entry.outcome.cells(comparison.limit));
        lines.push(line);
        let swept = entry.swept.map_or(String::new(), |value| value.to_string());
        let fields = entry.outcome.fields().join(",");
        csv += &format!("{},{swept},{},{fields}\n", entry.method(), test.labels.len());
    }
    let charts = [scatter("Pairwise F, percent", 0, &entries), scatter("BCubed F, percent", 1, &entries)];
    let report = Report {
        title: "F against time".to_owned(),
        set: describe_both("Synthetic", &comparison.train, &test),
        headings: ["method", "clusters", "pairwise F", "BCubed F", "s"].map(str::to_owned).to_vec(),
        lines,
        csv,
        picture: draw_scatter(&charts),
    };
    report.write(&comparison)?;
    super_vertices::compare(&comparison, &test)
}

/// A run of mini-batch k-means with another batch, or of LTC with proposals at another number of thresholds.
fn run_with(
    comparison: &Comparison,
    candidate: &Candidate,
    setting: &Setting,
    value: usize,
    test: &Part,
) -> Result<Outcome, Failure> {
    let Some(fitted) = comparison.fitted(candidate.name()) else {
        let mut setting = setting.clone();
        setting.push(("batch", value.to_string()));
        return comparison.run_setting(&candidate.listed, &setting, test);
    };
    let ltc = Ltc::from_file(fitted.model.clone())?;
    let mut params = ltc.params();
    params.proposals.settings = proposal_settings(&comparison.train.graph, value);
    let [gcn_d, gcn_s] = ltc.networks().map(Clone::clone);
    comparison.run(&Ltc::new(gcn_d, gcn_s, params), test)
}

fn scatter(title: &str, which: usize, entries: &[Entry]) -> Scatter {
    let (mut dots, mut joined): (Vec<Dot>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
    let mut before = "";
    for entry in entries {
        let Outcome::Done { seconds, .. } = entry.outcome else { continue };
        let Some(f) = entry.outcome.both_f() else { continue };
        if entry.swept.is_some() {
            if entry.method() != before {
                joined.push(Vec::new());
            }
            joined.last_mut().into_iter().for_each(|line| line.push(dots.len()));
        }
        before = entry.method();
        let Listed { colour, dashed: hollow, .. } = entry.listed;
        dots.push(Dot { name: entry.name(), colour, hollow, x: seconds, y: f[which] });
    }
    Scatter {
        title: title.to_owned(),
        axis: "seconds from rows to labels, neighbours included".to_owned(),
        dots,
        joined,
    }
}
