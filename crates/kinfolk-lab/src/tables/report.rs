//! Prints a table and writes it to files, with notes on how parameters were chosen.

use super::comparison::{Candidate, Comparison, OWN_SEARCH};
use super::grid::SETTINGS;
use super::part::Part;
use crate::scores::percent;
use kinfolk::laboratory::Kernel;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::{machine, table, write_text};

/// A table with its notes and its chart.
pub struct Report {
    pub title: String,
    pub set: String,
    pub headings: Vec<String>,
    pub lines: Vec<Vec<String>>,
    pub csv: String,
    pub picture: String,
}

impl Report {
    /// Prints the table, and writes it, its lines for a machine and the picture into the directory.
    pub fn write(&self, comparison: &Comparison) -> Result<(), Failure> {
        let Comparison { name, directory, .. } = comparison;
        let file = |extension: &str| directory.join(format!("{name}.{extension}"));
        let (choices, notes) = (choices(comparison), notes(comparison));
        let headings = ["method", "cost", "tried", "runs", "chosen", "F", "s"];
        let markdown = format!(
            "# {}\n\n{}\n\n{}\n![{}]({name}.svg)\n\n## How parameters were chosen\n\n{}\n{}",
            self.title,
            self.set,
            table::markdown(&self.headings, &self.lines),
            self.title,
            table::markdown(&headings, &choices),
            notes.iter().map(|note| format!("- {note}\n")).collect::<String>()
        );
        write_text(&file("csv"), &self.csv)?;
        write_text(&file("svg"), &self.picture)?;
        write_text(&file("md"), &markdown)?;
        println!("{}\n", self.set);
        table::print(&self.headings.iter().map(String::as_str).collect::<Vec<_>>(), &self.lines);
        println!();
        table::print(
            &["method", "chosen", "F of training", "s"],
            &choices
                .iter()
                .map(|line| [0, 4, 5, 6].map(|column| line[column].clone()).to_vec())
                .collect::<Vec<_>>(),
        );
        println!();
        for note in &notes {
            println!("{note}");
        }
        println!("{}, {}, {}", file("md").display(), file("csv").display(), file("svg").display());
        Ok(())
    }
}

/// What was trained and tested on, in words.
pub fn describe_both(origin: &str, train: &Part, test: &Part) -> String {
    format!(
        "{origin}: {} to train on, {} to test on, {} columns, K = {}",
        train.describe(),
        test.describe(),
        test.features.dim(),
        test.graph.k()
    )
}

/// Method, cost, what was tried, how often, what was chosen, its F and the seconds of choosing.
fn choices(comparison: &Comparison) -> Vec<Vec<String>> {
    let line = |candidate: &Candidate| {
        let some = |text: String| if candidate.runs > 0 { text } else { "-".to_owned() };
        vec![
            candidate.name().to_owned(),
            candidate.listed.info.cost.to_owned(),
            candidate.tried.to_owned(),
            some(candidate.runs.to_string()),
            comparison.chosen(candidate),
            some(percent(candidate.f)),
            some(format!("{:.1}", candidate.seconds)),
        ]
    };
    comparison.candidates.iter().map(line).collect()
}

fn notes(comparison: &Comparison) -> Vec<String> {
    let Comparison { limit, options, train, fitted, .. } = comparison;
    let (own, least_k) = OWN_SEARCH;
    let mut notes = vec![
        format!(
            "Chosen on {}: of up to {SETTINGS} settings of each method the one with the best mean of both F; the \
             similarities are evenly spaced between the 1 % and 99 % quantiles of the training graph's edges.",
            train.describe()
        ),
        format!(
            "F in percent. Seconds: one run from rows to labels, including the search for neighbours if the method needs \
             them. All methods use the same graph, except that {own} searches for its own if K is below {least_k}."
        ),
        format!(
            "> {limit}: a run took longer than {limit} s after the search for neighbours, or one on a smaller set did. \
             Settings are tried from the cheapest, up to the first that takes longer. Cost: beyond the search for \
             neighbours, of N rows of D columns, K neighbours, C clusters; with N^2 it is quadratic."
        ),
    ];
    notes.extend(fitted.iter().filter(|fitted| !fitted.note.is_empty()).map(|fitted| fitted.note.clone()));
    notes.push(format!(
        "kinfolk {}{}, seed {}, K = {}, {} kernel, {} threads of {}.",
        env!("CARGO_PKG_VERSION"),
        if cfg!(debug_assertions) { " (built without --release)" } else { "" },
        options.seed,
        train.graph.k(),
        Kernel::default().name(),
        rayon::current_num_threads(),
        machine::processor()
    ));
    notes
}
