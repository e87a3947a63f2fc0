//! F against time, every method once, mini-batch k-means with batches of several sizes and LTC with proposals of several
//! thresholds: Figure 4 of the paper.

use super::contest::{Contest, Report, Rules, directory_of};
use super::grid::Setting;
use super::outcome::{FIELDS, Outcome};
use super::table1::{Parts, rows_of};
use crate::failure::Failure;
use crate::picture::{Dot, Scatter, draw_scatter, palette};
use clap::Args;

/// Rows of the batches of mini-batch k-means.
const BATCHES: [usize; 4] = [256, 1024, 4096, 16384];

/// Thresholds that LTC makes proposals at.
const THRESHOLDS: [usize; 4] = [1, 2, 4, 8];

#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench runtime --quick
          writes bench-runtime/runtime.md, runtime.csv and runtime.svg")]
pub struct Arguments {
    #[command(flatten)]
    rules: Rules,
    /// Rows to test on, and as many to train on, about [default: 60000, quick 5000]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Neighbours of each row
    #[arg(short, value_name = "K", default_value_t = 80)]
    k: usize,
}

impl Arguments {
    pub fn of(rules: Rules) -> Self {
        Arguments { rules, rows: None, k: 80 }
    }
}

/// A run.
struct Entry {
    method: &'static str,
    /// What the runs of one method differ in: the rows of a batch, or the number of thresholds.
    swept: Option<usize>,
    outcome: Outcome,
}

impl Entry {
    fn name(&self) -> String {
        match self.swept {
            Some(batch) if self.method == "minibatch-kmeans" => format!("mini-batch {batch}"),
            Some(thresholds) => format!("{} {thresholds}", self.method),
            None => self.method.to_owned(),
        }
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { rules, rows, k } = arguments;
    directory_of("runtime", &rules)?;
    let set = Parts::new(rows_of(rows, rules.quick), 1, rules.seed)?;
    let mut contest = Contest::new("runtime", rules, set.train(k)?)?;
    let test = set.test(1, k)?;
    let mut entries = Vec::new();
    for (outcome, entrant) in contest.compare(&test)?.into_iter().zip(&contest.entrants) {
        let method = entrant.name;
        let several: &[usize] = match method {
            "minibatch-kmeans" => &BATCHES,
            "ltc" => &THRESHOLDS,
            _ => &[],
        };
        match &entrant.setting {
            Ok(setting) if !several.is_empty() => {
                for &value in several {
                    let outcome = contest.run(&with(setting, value)?, &test)?;
                    entries.push(Entry { method, swept: Some(value), outcome });
                }
            }
            _ => entries.push(Entry { method, swept: None, outcome }),
        }
    }
    let mut csv = format!("method,swept,rows,{FIELDS}\n");
    let mut lines = Vec::new();
    for entry in &entries {
        let mut line = vec![entry.name()];
        line.extend(entry.outcome.cells(contest.limit));
        lines.push(line);
        let swept = entry.swept.map_or(String::new(), |value| value.to_string());
        let fields = entry.outcome.fields().join(",");
        csv += &format!("{},{swept},{},{fields}\n", entry.method, test.labels.len());
    }
    let charts = [scatter("Pairwise F, percent", 0, &entries), scatter("BCubed F, percent", 1, &entries)];
    let report = Report {
        title: "F against time".to_owned(),
        set: contest.describe_both("Synthetic", &test),
        headings: ["method", "clusters", "pairwise F", "BCubed F", "s"].map(str::to_owned).to_vec(),
        lines,
        csv,
        picture: draw_scatter(&charts),
    };
    contest.report(&report)
}

/// The setting with another batch, or other thresholds.
fn with(setting: &Setting, value: usize) -> kinfolk::Result<Setting> {
    let mut setting = setting.clone();
    match &mut setting {
        Setting::Baseline { method, .. } => method.set("batch", &value.to_string())?,
        Setting::Ltc { thresholds } => *thresholds = Some(value),
        _ => {}
    }
    Ok(setting)
}

fn scatter(title: &str, which: usize, entries: &[Entry]) -> Scatter {
    let (mut dots, mut joined): (Vec<Dot>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
    let mut before = "";
    for entry in entries {
        let Outcome::Done { seconds, .. } = entry.outcome else { continue };
        let Some(f) = entry.outcome.both_f() else { continue };
        if entry.swept.is_some() {
            if entry.method != before {
                joined.push(Vec::new());
            }
            joined.last_mut().into_iter().for_each(|line| line.push(dots.len()));
        }
        before = entry.method;
        let (colour, hollow) = palette::of_method(entry.method);
        dots.push(Dot { name: entry.name(), colour, hollow, x: seconds, y: f[which] });
    }
    Scatter {
        title: title.to_owned(),
        axis: "seconds from rows to labels, neighbours included".to_owned(),
        dots,
        joined,
    }
}
