//! What the tables of methods share: parts of a set, choosing on training identities, runs within a time limit, the report.
//!
//! Every method has the same graph, the same number of settings to choose from (`grid`) and the same time for each. The
//! setting with the best mean of pairwise and BCubed F on the training part is the one that is used, whatever follows.
//! Networks are fitted to the training part. Labels of the test part give the scores that are printed and nothing else.
//!
//! Cost: for each method [`SETTINGS`] runs on the training part and one on each test part; the fitting of networks.

use super::ablation::percent;
use super::grid::{self, SETTINGS, Scales, Setting, names};
use super::limit::within;
use super::measure;
use super::outcome::Outcome;
use crate::bars::Bars;
use crate::commands::{make_directory, write_text};
use crate::failure::Failure;
use crate::{machine, table};
use clap::Args;
use clap::builder::PossibleValuesParser;
use kinfolk::metrics::evaluate;
use kinfolk::{
    ClusterParams, Embeddings, Error, Kernel, KinParams, KnnGraph, KnnParams, Progress, cluster, kin,
    knn_graph,
};
use kinfolk_nn::{
    ApplyParams, FitParams, GcnEParams, GcnVParams, LgcnModel, LgcnTraining, LtcModel, LtcTraining, Model,
    PivotShape, TrainParams, lgcn, ltc, proposal_settings, train, train_lgcn, train_ltc,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Seconds of a run, unless told otherwise.
const LIMIT: f64 = 600.0;
const QUICK_LIMIT: f64 = 20.0;
/// Identities that networks are not fitted to, if these are between a tenth and half of them.
const HELD_OUT: f32 = 20.0;
/// Candidate sets in a pass of GCN-E where it must be quick.
const QUICK_SETS: usize = 200;
/// Pivots in a pass of L-GCN, and proposals in one of LTC, where it must be quick.
const QUICK_PIVOTS: usize = 2_000;
const QUICK_PROPOSALS: usize = 2_000;

/// Which methods, how long, and where to.
#[derive(Args, Clone)]
pub struct Rules {
    /// A small set, and little time for each method
    #[arg(long)]
    pub quick: bool,
    /// Methods to compare, with commas; all if not given
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    pub methods: Vec<String>,
    /// Seconds that one run may take; a method that took longer is not run on larger sets [default: 600, quick 20]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub limit: Option<f64>,
    /// Seed of the set and of everything random
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Passes of GCN-V over the rows; GCN-E makes at most 4 [default: 20]
    #[arg(long, value_name = "E")]
    pub epochs: Option<usize>,
    /// Directory to write to [default: bench-, then the name]
    #[arg(short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

impl Rules {
    /// For a quick run of everything.
    pub fn of(quick: bool, output: PathBuf) -> Self {
        Rules { quick, methods: Vec::new(), limit: None, seed: 0, epochs: None, output: Some(output) }
    }

    fn train_params(&self, rows: usize, identities: usize, k: usize) -> TrainParams {
        let (v, e) = (GcnVParams::default(), GcnEParams::default());
        let epochs = self.epochs.unwrap_or(v.fit.epochs);
        let validation = held_out(identities);
        let gcn_v = GcnVParams {
            fit: FitParams {
                epochs,
                validation,
                batch: (rows / 800).next_power_of_two().clamp(64, 256),
                seed: self.seed,
                ..v.fit.clone()
            },
            ..v
        };
        let gcn_e = GcnEParams {
            fit: FitParams {
                epochs: epochs.min(e.fit.epochs),
                validation,
                examples: if self.quick { QUICK_SETS } else { e.fit.examples },
                seed: self.seed,
                ..e.fit.clone()
            },
            ..e
        };
        let with_e = self.takes("gcn-ve");
        TrainParams {
            knn: KnnParams { k, ..KnnParams::default() },
            gcn_v,
            gcn_e: with_e.then_some(gcn_e),
            k_rebuild: k,
        }
    }

    fn lgcn_training(&self, identities: usize, k: usize) -> LgcnTraining {
        let usual = LgcnTraining::default();
        let epochs = self.epochs.unwrap_or(usual.fit.epochs);
        LgcnTraining {
            shape: PivotShape { k1: usual.shape.k1.min(k), ..usual.shape },
            fit: FitParams {
                epochs: epochs.min(usual.fit.epochs),
                validation: held_out(identities),
                examples: if self.quick { QUICK_PIVOTS } else { usual.fit.examples },
                seed: self.seed,
                ..usual.fit.clone()
            },
            ..usual
        }
    }

    fn ltc_training(&self, identities: usize) -> LtcTraining {
        let usual = LtcTraining::default();
        let epochs = self.epochs.unwrap_or(usual.fit.epochs);
        let fit = FitParams {
            epochs: epochs.min(usual.fit.epochs),
            validation: held_out(identities),
            examples: if self.quick { QUICK_PROPOSALS } else { usual.fit.examples },
            seed: self.seed,
            ..usual.fit.clone()
        };
        LtcTraining { fit, ..usual }
    }

    fn takes(&self, name: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|method| method == name)
    }
}

/// The share of the identities that networks are not fitted to.
fn held_out(identities: usize) -> f32 {
    (HELD_OUT / identities as f32).clamp(0.1, 0.5)
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds < 1e9 => Ok(seconds),
        _ => Err("expected a number of seconds above 0".to_owned()),
    }
}

/// Labelled rows and their graph.
pub struct Part {
    pub features: Embeddings,
    pub labels: Vec<i64>,
    pub graph: KnnGraph,
    /// How long the search for neighbours took.
    searching: f64,
}

impl Part {
    pub fn new((features, labels): (Embeddings, Vec<i64>), k: usize, seed: u64) -> Result<Self, Failure> {
        let params = KnnParams { k, seed, ..KnnParams::default() };
        let (found, cost) = measure(|| knn_graph(&features, &params, &Bars::default()));
        Ok(Part { features, labels, graph: found?.0, searching: cost.seconds })
    }

    pub fn identities(&self) -> usize {
        let mut labels = self.labels.clone();
        labels.sort_unstable();
        labels.dedup();
        labels.len()
    }
}

/// A method, with what was chosen for it.
pub struct Entrant {
    pub name: &'static str,
    /// The setting, or why there is none.
    pub setting: Result<Setting, Outcome>,
    /// Settings that were tried within the limit, and the mean of both F of the best.
    tried: usize,
    f: f64,
    seconds: f64,
    /// Whether it has been too slow already.
    stopped: bool,
}

/// Methods that are ready for the test.
pub struct Contest {
    name: &'static str,
    directory: PathBuf,
    pub rules: Rules,
    pub limit: f64,
    pub train: Part,
    pub entrants: Vec<Entrant>,
    networks: Option<(Model, f64)>,
    lgcn: Option<(LgcnModel, f64)>,
    ltc: Option<(LtcModel, f64)>,
}

impl Contest {
    /// Sees to it that results can be written, fits networks and chooses settings.
    pub fn new(name: &'static str, rules: Rules, train: Part) -> Result<Self, Failure> {
        let directory = directory_of(name, &rules)?;
        let limit = rules.limit.unwrap_or(if rules.quick { QUICK_LIMIT } else { LIMIT });
        let scales = Scales::of(&train);
        let mut contest = Contest {
            name,
            directory,
            limit,
            train,
            entrants: Vec::new(),
            networks: None,
            lgcn: None,
            ltc: None,
            rules,
        };
        if contest.rules.takes("gcn-v") || contest.rules.takes("gcn-ve") {
            contest.networks = Some(contest.fit()?);
        }
        if contest.rules.takes("lgcn") {
            contest.lgcn = Some(contest.fit_lgcn()?);
        }
        if contest.rules.takes("ltc") {
            contest.ltc = Some(contest.fit_ltc()?);
        }
        for name in names().filter(|name| contest.rules.takes(name)) {
            let settings = grid::settings(name, &scales, contest.rules.seed)?;
            let entrant = contest.choose(name, settings)?;
            contest.entrants.push(entrant);
        }
        Ok(contest)
    }

    fn fit(&self) -> Result<(Model, f64), Failure> {
        machine::return_large_blocks();
        let Part { features, labels, graph, .. } = &self.train;
        let params = self.rules.train_params(features.len(), self.train.identities(), graph.k());
        let bars = Bars::default();
        let (trained, cost) =
            measure(|| train(features, labels, Some(graph), &params, None, &mut |_| Ok(()), &bars));
        Ok((trained?.model, cost.seconds))
    }

    fn fit_lgcn(&self) -> Result<(LgcnModel, f64), Failure> {
        let Part { features, labels, graph, .. } = &self.train;
        let params = self.rules.lgcn_training(self.train.identities(), graph.k());
        let (trained, cost) = measure(|| train_lgcn(features, labels, graph, &params, &Bars::default()));
        Ok((trained?.model, cost.seconds))
    }

    fn fit_ltc(&self) -> Result<(LtcModel, f64), Failure> {
        let Part { features, labels, graph, .. } = &self.train;
        let params = self.rules.ltc_training(self.train.identities());
        let (trained, cost) = measure(|| train_ltc(features, labels, graph, &params, &Bars::default()));
        Ok((trained?.model, cost.seconds))
    }

    /// The setting that does best on the training part. The cheapest come first: after one that took too long no other is
    /// tried.
    fn choose(&self, name: &'static str, settings: Vec<Setting>) -> Result<Entrant, Failure> {
        if let [only] = &settings[..] {
            let setting = Ok(only.clone());
            return Ok(Entrant { name, setting, tried: 0, f: 0.0, seconds: 0.0, stopped: false });
        }
        let mut entrant =
            Entrant { name, setting: Err(Outcome::NotRun), tried: 0, f: -1.0, seconds: 0.0, stopped: false };
        let run = || -> Result<(), Failure> {
            for setting in settings {
                match self.run(&setting, &self.train)? {
                    Outcome::Done { scores, .. } => {
                        entrant.tried += 1;
                        let f = (scores.pairwise.f + scores.bcubed.f) / 2.0;
                        if f > entrant.f {
                            (entrant.setting, entrant.f) = (Ok(setting), f);
                        }
                    }
                    // What is refused now and then is no reason to stop, and the reason if there is nothing else.
                    refused @ Outcome::Refused(_) if entrant.setting.is_err() => {
                        entrant.setting = Err(refused);
                    }
                    Outcome::Refused(_) => {}
                    Outcome::Stopped | Outcome::NotRun => break,
                }
            }
            Ok(())
        };
        let (result, cost) = measure(run);
        result?;
        entrant.seconds = cost.seconds;
        eprintln!(
            "{name}: {} settings tried in {:.0} s, {}",
            entrant.tried,
            cost.seconds,
            self.chosen(&entrant)
        );
        Ok(entrant)
    }

    /// One run. Seconds are those from rows to labels, with the search for neighbours where the method needs them.
    pub fn run(&self, setting: &Setting, part: &Part) -> Result<Outcome, Failure> {
        let limit = Duration::from_secs_f64(self.limit);
        match within(limit, |progress| self.labels(setting, part, progress)) {
            None => Ok(Outcome::Stopped),
            Some((Err(error @ Error::Parameter { .. }), _)) => Ok(Outcome::Refused(error.to_string())),
            Some((labels, seconds)) => {
                let searching = match setting {
                    Setting::Baseline { method, .. } if !method.needs_graph(part.labels.len()) => 0.0,
                    Setting::Kin if part.graph.k() < KinParams::default().knn.k => 0.0,
                    _ => part.searching,
                };
                let scores = Box::new(evaluate(&part.labels, &labels?)?);
                Ok(Outcome::Done { scores, seconds: seconds + searching })
            }
        }
    }

    fn labels(&self, setting: &Setting, part: &Part, progress: &dyn Progress) -> kinfolk::Result<Vec<i64>> {
        let Part { features, graph, .. } = part;
        let knn = KnnParams { k: graph.k(), seed: self.rules.seed, ..KnnParams::default() };
        match setting {
            Setting::Baseline { method, rows_per_cluster, .. } => {
                let mut method = method.clone();
                if let Some(rows) = rows_per_cluster {
                    let clusters = (features.len() as f64 / rows).round().max(1.0);
                    method.set("clusters", &clusters.to_string())?;
                }
                Ok(method.run(features, Some(graph), progress)?.labels)
            }
            Setting::Density(tau) => {
                let params = ClusterParams { knn, tau: Some(*tau), ..ClusterParams::default() };
                Ok(cluster(features, Some(graph), &params, progress)?.labels)
            }
            Setting::Kin => {
                let usual = KinParams::default();
                let knn = KnnParams { seed: self.rules.seed, ..usual.knn };
                let graph = Some(graph).filter(|graph| graph.k() >= knn.k);
                Ok(kin(features, graph, &KinParams { knn, ..usual }, progress)?.labels)
            }
            Setting::Lgcn => {
                let (model, _) = self.lgcn.as_ref().ok_or_else(not_fitted)?;
                lgcn(features, graph, &model.network, &model.params, progress)
            }
            Setting::Ltc { thresholds } => {
                let (LtcModel { gcn_d, gcn_s, params }, _) = self.ltc.as_ref().ok_or_else(not_fitted)?;
                let mut params = params.clone();
                if let Some(count) = thresholds {
                    params.proposals.settings = proposal_settings(&self.train.graph, *count);
                }
                ltc(features, graph, [gcn_d, gcn_s], &params, progress)
            }
            Setting::Networks { connectivity } => {
                let (model, _) = self.networks.as_ref().ok_or_else(not_fitted)?;
                let params = ApplyParams { knn, connectivity: *connectivity, ..ApplyParams::of(model) };
                Ok(kinfolk_nn::cluster(features, Some(graph), model, &params, progress)?.clustering.labels)
            }
        }
    }

    /// Every method on a part, with what was chosen for it; none that has been too slow before.
    pub fn compare(&mut self, part: &Part) -> Result<Vec<Outcome>, Failure> {
        let mut outcomes = Vec::new();
        for entrant in &self.entrants {
            let outcome = match &entrant.setting {
                Ok(_) if entrant.stopped => Outcome::NotRun,
                Ok(setting) => self.run(setting, part)?,
                Err(outcome) => outcome.clone(),
            };
            eprintln!("{}, {} rows: {}", entrant.name, part.labels.len(), outcome.describe(self.limit));
            outcomes.push(outcome);
        }
        for (entrant, outcome) in self.entrants.iter_mut().zip(&outcomes) {
            entrant.stopped |= matches!(outcome, Outcome::Stopped);
        }
        Ok(outcomes)
    }

    /// What a part is, in words.
    pub fn describe(&self, part: &Part) -> String {
        format!("{} rows of {} identities", part.labels.len(), part.identities())
    }

    /// What was trained and tested on, in words.
    pub fn describe_both(&self, origin: &str, test: &Part) -> String {
        format!(
            "{origin}: {} to train on, {} to test on, {} columns, K = {}",
            self.describe(&self.train),
            self.describe(test),
            test.features.dim(),
            test.graph.k()
        )
    }

    /// What was chosen for a method, in words.
    fn chosen(&self, entrant: &Entrant) -> String {
        match (&entrant.setting, &self.lgcn, &self.ltc) {
            (Ok(Setting::Lgcn), Some((model, _)), _) => {
                return format!("th {} max_size {}", model.params.th, model.params.limit.max_size);
            }
            (Ok(Setting::Ltc { .. }), _, Some((model, _))) => {
                let asked = if model.params.segment.is_some() { "with" } else { "without" };
                let thresholds = model.params.proposals.settings.len();
                return format!("thresholds {thresholds} least {} {asked} GCN-S", model.params.least);
            }
            _ => {}
        }
        match (&entrant.setting, &self.networks) {
            (Ok(Setting::Networks { connectivity }), Some((model, _))) => {
                let config = &model.config;
                let graph = if config.rebuild { "graph rebuilt" } else { "graph as it is" };
                let (tau, rho) = match connectivity {
                    true => (config.tau, format!(" rho {:.1}", config.rho)),
                    false => (config.tau_v, String::new()),
                };
                format!("{graph} density {:.2}{rho} tau {tau:.2}", config.density)
            }
            (Ok(setting), _) => setting.describe(),
            (Err(Outcome::Refused(why)), _) => format!("refused: {why}"),
            (Err(_), _) => format!("the first setting took more than {} s", self.limit),
        }
    }

    /// Prints the table, and writes it, its lines for a machine and the picture into the directory.
    pub fn report(&self, report: &Report) -> Result<(), Failure> {
        let file = |extension: &str| self.directory.join(format!("{}.{extension}", self.name));
        let choices: Vec<Vec<String>> = self
            .entrants
            .iter()
            .map(|entrant| {
                let some = |text: String| if entrant.tried > 0 { text } else { "-".to_owned() };
                vec![
                    entrant.name.to_owned(),
                    grid::cost(entrant.name).to_owned(),
                    grid::tried(entrant.name).to_owned(),
                    some(entrant.tried.to_string()),
                    self.chosen(entrant),
                    some(percent(entrant.f)),
                    some(format!("{:.1}", entrant.seconds)),
                ]
            })
            .collect();
        let headings = ["method", "cost", "tried", "runs", "chosen", "F", "s"];
        let notes = self.notes();
        let markdown = format!(
            "# {}\n\n{}\n\n{}\n![{}]({}.svg)\n\n## How parameters were chosen\n\n{}\n{}",
            report.title,
            report.set,
            table::markdown(&report.headings, &report.lines),
            report.title,
            self.name,
            table::markdown(&headings, &choices),
            notes.iter().map(|note| format!("- {note}\n")).collect::<String>()
        );
        write_text(&file("csv"), &report.csv)?;
        write_text(&file("svg"), &report.picture)?;
        write_text(&file("md"), &markdown)?;
        println!("{}\n", report.set);
        table::print(&report.headings.iter().map(String::as_str).collect::<Vec<_>>(), &report.lines);
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

    fn notes(&self) -> Vec<String> {
        let Contest { limit, rules, train, networks, lgcn, ltc, .. } = self;
        let mut notes = vec![
            format!(
                "Chosen on {}: of up to {SETTINGS} settings of each method the one with the best mean of both F; the \
                 similarities are evenly spaced between those that 1 % and 99 % of the training graph's edges stay below.",
                self.describe(train)
            ),
            format!(
                "F in percent. Seconds: one run from rows to labels, with the search for neighbours where the method needs \
                 them. All that need a graph have the same one, but kin finds its own if K is below {}.",
                KinParams::default().knn.k
            ),
            format!(
                "> {limit}: a run took longer than {limit} s after the search for neighbours, or one on a smaller set did. Settings \
                 are tried from the cheapest, up to the first that takes longer. Methods of quadratic cost are marked so; \
                 N rows of D columns, K neighbours, C clusters."
            ),
        ];
        if let Some((model, seconds)) = networks {
            let left_out = match model.gcn_e.is_some() && model.config.rho == 0.0 {
                true => "; GCN-E did not help on held-out identities and is not asked",
                false => "",
            };
            notes.push(format!("GCN-V and GCN-E were fitted to the training part in {seconds:.1} s, but for a tenth of the identities (up to half \
                 where these are fewer than {HELD_OUT}), on which the rest was chosen{left_out}."));
        }
        for (name, seconds) in
            [("L-GCN", lgcn.as_ref().map(|fitted| fitted.1)), ("LTC", ltc.as_ref().map(|fitted| fitted.1))]
        {
            if let Some(seconds) = seconds {
                notes.push(format!(
                    "{name} was fitted to the training part, but for as many identities, in {seconds:.1} s."
                ));
            }
        }
        notes.push(format!(
            "kinfolk {}{}, seed {}, K = {}, {} kernel, {} threads of {}.",
            env!("CARGO_PKG_VERSION"),
            if cfg!(debug_assertions) { " (built without --release)" } else { "" },
            rules.seed,
            train.graph.k(),
            Kernel::default().name(),
            rayon::current_num_threads(),
            machine::processor()
        ));
        notes
    }
}

fn not_fitted() -> Error {
    let (expected, found) = ("networks that were fitted", "none".to_owned());
    Error::Parameter { field: "methods", expected, found }
}

/// A table and what goes with it.
pub struct Report {
    pub title: String,
    pub set: String,
    pub headings: Vec<String>,
    pub lines: Vec<Vec<String>>,
    pub csv: String,
    pub picture: String,
}

/// Makes the directory that results go to.
pub fn directory_of(name: &str, rules: &Rules) -> Result<PathBuf, Failure> {
    let usual = || Path::new(&format!("bench-{name}")).to_owned();
    let directory = rules.output.clone().unwrap_or_else(usual);
    make_directory(&directory)?;
    Ok(directory)
}
