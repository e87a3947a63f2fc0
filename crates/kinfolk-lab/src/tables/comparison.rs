//! Methods with the settings that were chosen on the training part, to be run on test parts.

use super::fit::{Fitted, fit};
use super::grid::{Grid, Scales, Setting, apply, describe, grid};
use super::limit::within;
use super::methods::Listed;
use super::options::TableOptions;
use super::outcome::Outcome;
use super::part::Part;
use crate::measure::measure;
use kinfolk::metrics::evaluate;
use kinfolk::{Context, Error, Method, Problem};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use std::path::PathBuf;
use std::time::Duration;

/// The method that searches for its own neighbours if the table's graph has fewer than its default K.
pub const OWN_SEARCH: (&str, usize) = ("kin", 80);

/// A method with its chosen setting.
pub struct Candidate {
    pub listed: Listed,
    /// The setting, or the reason why there is none.
    pub setting: Result<Setting, Outcome>,
    /// What was tried, in words.
    pub tried: &'static str,
    /// Settings that ran within the limit, and the mean of both F of the best.
    pub runs: usize,
    pub f: f64,
    /// The seconds of all runs together.
    pub seconds: f64,
    /// Whether it has been too slow already.
    stopped: bool,
}

impl Candidate {
    pub fn name(&self) -> &'static str {
        self.listed.row
    }
}

/// Methods that are ready for the test.
pub struct Comparison {
    pub(super) name: &'static str,
    pub(super) directory: PathBuf,
    pub(super) options: TableOptions,
    pub limit: f64,
    pub train: Part,
    pub candidates: Vec<Candidate>,
    pub(super) fitted: Vec<Fitted>,
}

impl Comparison {
    /// Creates the directory of the results, fits networks and chooses settings.
    pub fn new(name: &'static str, options: TableOptions, train: Part) -> Result<Self, Failure> {
        Self::with_grid(name, options, train, grid)
    }

    /// The same with other settings to choose from.
    pub fn with_grid(
        name: &'static str,
        options: TableOptions,
        train: Part,
        grid: impl Fn(&str, &Scales) -> Grid,
    ) -> Result<Self, Failure> {
        let directory = options.directory(name)?;
        let (limit, scales, selected) = (options.limit(), Scales::of(&train), options.selected());
        let fitted = fit(&selected, &train, &options)?;
        let candidates = Vec::new();
        let mut comparison = Comparison { name, directory, options, limit, train, candidates, fitted };
        for listed in selected {
            let candidate = comparison.choose(listed, grid(listed.info.name, &scales))?;
            comparison.candidates.push(candidate);
        }
        Ok(comparison)
    }

    /// Adds a method with a model that was not trained here.
    pub fn add(&mut self, listed: Listed, fitted: Fitted) {
        let tried = fitted.tried;
        self.fitted.push(fitted);
        let setting = Ok(Setting::new());
        let candidate = Candidate { listed, setting, tried, runs: 0, f: 0.0, seconds: 0.0, stopped: false };
        self.candidates.push(candidate);
    }

    /// The model of a method, if one was trained.
    pub fn fitted(&self, name: &str) -> Option<&Fitted> {
        self.fitted.iter().find(|fitted| fitted.name == name)
    }

    /// The setting that does best on the training part. The cheapest come first: after one that took too long no other is
    /// tried.
    fn choose(&self, listed: Listed, grid: Grid) -> Result<Candidate, Failure> {
        let Grid { settings, description } = grid;
        let tried = self.fitted(listed.row).map_or(description, |fitted| fitted.tried);
        let setting = Err(Outcome::NotRun);
        let mut candidate =
            Candidate { listed, setting, tried, runs: 0, f: 0.0, seconds: 0.0, stopped: false };
        if let [only] = &settings[..] {
            candidate.setting = Ok(only.clone());
            return Ok(candidate);
        }
        let run = || -> Result<(), Failure> {
            for setting in settings {
                match self.run_setting(&listed, &setting, &self.train)? {
                    Outcome::Done { scores, .. } => {
                        let f = (scores.pairwise.f + scores.bcubed.f) / 2.0;
                        if candidate.runs == 0 || f > candidate.f {
                            (candidate.setting, candidate.f) = (Ok(setting), f);
                        }
                        candidate.runs += 1;
                    }
                    // Some settings may be refused. The error is reported only if no setting works.
                    refused @ Outcome::Refused(_) if candidate.setting.is_err() => {
                        candidate.setting = Err(refused);
                    }
                    Outcome::Refused(_) => {}
                    Outcome::Stopped | Outcome::NotRun => break,
                }
            }
            Ok(())
        };
        let (result, cost) = measure(run);
        result?;
        candidate.seconds = cost.seconds;
        eprintln!(
            "{}: {} settings tried in {:.0} s, {}",
            candidate.name(),
            candidate.runs,
            cost.seconds,
            self.chosen(&candidate)
        );
        Ok(candidate)
    }

    /// A method with a setting, for a set of this many rows.
    pub fn method(
        &self,
        listed: &Listed,
        setting: &Setting,
        rows: usize,
    ) -> kinfolk::Result<Box<dyn Method>> {
        let name = listed.info.name;
        let mut method: Box<dyn Method> = match self.fitted(listed.row) {
            Some(fitted) => kinfolk_methods::load(fitted.model.clone(), Some(name))?,
            None => kinfolk_methods::new(name)?,
        };
        apply(setting, &mut *method, rows)?;
        Ok(method)
    }

    /// One run of a method with a setting.
    pub fn run_setting(&self, listed: &Listed, setting: &Setting, part: &Part) -> Result<Outcome, Failure> {
        match self.method(listed, setting, part.labels.len()) {
            Ok(method) => self.run(&*method, part),
            Err(error @ Error::Parameter { .. }) => Ok(Outcome::Refused(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// The labels that a method gives to the rows of a part with its chosen setting, however long it takes.
    pub fn labels(&self, candidate: &Candidate, part: &Part) -> Result<Vec<i64>, Failure> {
        let setting = candidate
            .setting
            .as_ref()
            .map_err(|_| Failure::Usage(format!("{}: {}", candidate.name(), self.chosen(candidate))))?;
        let method = self.method(&candidate.listed, setting, part.labels.len())?;
        let (bars, problem) = (Bars::default(), problem(&*method, part)?);
        Ok(method.run(&problem, &Context::new(&bars).with_seed(self.options.seed))?.labels)
    }

    /// One run. Seconds are from rows to labels, including the search for neighbours if the method needs them.
    pub fn run(&self, method: &dyn Method, part: &Part) -> Result<Outcome, Failure> {
        let problem = problem(method, part)?;
        let (limit, seed) = (Duration::from_secs_f64(self.limit), self.options.seed);
        match within(limit, |progress| method.run(&problem, &Context::new(progress).with_seed(seed))) {
            None => Ok(Outcome::Stopped),
            Some((Err(error @ Error::Parameter { .. }), _)) => Ok(Outcome::Refused(error.to_string())),
            Some((found, seconds)) => {
                let searching = match !searches(method, part) && method.uses_graph(part.labels.len()) {
                    true => part.searching,
                    false => 0.0,
                };
                let scores = Box::new(evaluate(&part.labels, &found?.labels)?);
                Ok(Outcome::Done { scores, seconds: seconds + searching })
            }
        }
    }

    /// Every method on a part, with its chosen setting; methods that were too slow before are skipped.
    pub fn compare(&mut self, part: &Part) -> Result<Vec<Outcome>, Failure> {
        let mut outcomes = Vec::new();
        for candidate in &self.candidates {
            let outcome = match &candidate.setting {
                Ok(_) if candidate.stopped => Outcome::NotRun,
                Ok(setting) => self.run_setting(&candidate.listed, setting, part)?,
                Err(outcome) => outcome.clone(),
            };
            eprintln!("{}, {} rows: {}", candidate.name(), part.labels.len(), outcome.describe(self.limit));
            outcomes.push(outcome);
        }
        for (candidate, outcome) in self.candidates.iter_mut().zip(&outcomes) {
            candidate.stopped |= matches!(outcome, Outcome::Stopped);
        }
        Ok(outcomes)
    }

    /// The chosen setting of a method, in words.
    pub fn chosen(&self, candidate: &Candidate) -> String {
        match (&candidate.setting, self.fitted(candidate.name())) {
            (Ok(_), Some(fitted)) => fitted.chosen.clone(),
            (Ok(setting), None) => describe(setting),
            (Err(Outcome::Refused(reason)), _) => format!("refused: {reason}"),
            (Err(_), _) => format!("the first setting took more than {} s", self.limit),
        }
    }
}

/// Whether a method searches for its own neighbours.
fn searches(method: &dyn Method, part: &Part) -> bool {
    let (own, least_k) = OWN_SEARCH;
    method.info().name == own && part.graph.k() < least_k
}

/// The rows, and their graph unless the method searches for its own.
fn problem<'a>(method: &dyn Method, part: &'a Part) -> kinfolk::Result<Problem<'a>> {
    let problem = Problem::new(&part.features);
    if searches(method, part) { Ok(problem) } else { problem.with_graph(&part.graph) }
}
