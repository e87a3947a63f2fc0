//! Trains the methods that need a model on the training part. Their settings are chosen on identities that are held out from
//! it.

use super::methods::Listed;
use super::options::TableOptions;
use super::part::Part;
use crate::measure::measure;
use kinfolk::{Context, Error, Problem};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::machine;
use kinfolk_nn::training::{
    FitParams, GcnEParams, GcnVParams, LgcnTraining, LtcTraining, TrainParams, train, train_lgcn, train_ltc,
};
use kinfolk_nn::{Checkpoints, Gcn, GcnModel, GcnVeTraining, LearnedMethod, ModelFile, Recipe, Trial};

/// The number of held-out identities, if it is between a tenth and half of all.
const HELD_OUT: f32 = 20.0;
/// Candidate sets in an epoch of GCN-E in quick runs.
const QUICK_SETS: usize = 200;
/// Pivots in an epoch of L-GCN, and proposals in one of LTC, in quick runs.
const QUICK_PIVOTS: usize = 2_000;
const QUICK_PROPOSALS: usize = 2_000;

/// A method's model.
pub struct Fitted {
    pub name: &'static str,
    pub model: ModelFile,
    /// What was tried on held-out identities, in words.
    pub tried: &'static str,
    /// What was chosen, in words.
    pub chosen: String,
    /// A note about the training; empty if the note of another method covers it.
    pub note: String,
}

/// Trains every one of these methods that needs a model.
pub fn fit(methods: &[Listed], part: &Part, options: &TableOptions) -> Result<Vec<Fitted>, Failure> {
    let mut fitted = Vec::new();
    for listed in methods.iter().filter(|listed| listed.info.needs_model) {
        let training = Training { part, options };
        match listed.info.name {
            // Both methods share one model for each recipe.
            "gcn-v" | "gcn-ve" if fitted.iter().any(|known: &Fitted| known.name == listed.row) => {}
            "gcn-v" | "gcn-ve" => fitted.extend(training.gcn(listed.recipe)?),
            "lgcn" => fitted.push(training.lgcn()?),
            "ltc" => fitted.push(training.ltc()?),
            _ => fitted.push(training.by_default(listed)?),
        }
    }
    Ok(fitted)
}

struct Training<'a> {
    part: &'a Part,
    options: &'a TableOptions,
}

impl Training<'_> {
    fn problem(&self) -> kinfolk::Result<Problem<'_>> {
        let Part { features, labels, graph, .. } = self.part;
        Problem::new(features).with_graph(graph)?.with_labels(labels)
    }

    /// The share of the identities that are held out from fitting.
    fn held_out(&self) -> f32 {
        (HELD_OUT / self.part.identities() as f32).clamp(0.1, 0.5)
    }

    /// Parameters of fitting: the defaults, changed by the options, and never with more epochs.
    fn fit_params(&self, default: &FitParams, quick_examples: usize) -> FitParams {
        FitParams {
            epochs: self.options.epochs.unwrap_or(default.epochs).min(default.epochs),
            validation: self.held_out(),
            examples: if self.options.quick { quick_examples } else { default.examples },
            seed: self.options.seed,
            ..default.clone()
        }
    }

    fn gcn_params(&self, recipe: Recipe, gcn_e: bool) -> TrainParams {
        let rows = self.part.labels.len();
        let params = GcnVeTraining { recipe, ..GcnVeTraining::default() }.params(rows, self.options.seed);
        let v = params.gcn_v;
        let gcn_v = GcnVParams {
            fit: FitParams {
                epochs: self.options.epochs.unwrap_or(v.fit.epochs),
                validation: self.held_out(),
                ..v.fit.clone()
            },
            ..v
        };
        let gcn_e = params.gcn_e.filter(|_| gcn_e);
        let gcn_e = gcn_e.map(|e| GcnEParams { fit: self.fit_params(&e.fit, QUICK_SETS), ..e });
        TrainParams { gcn_v, gcn_e, k_rebuild: Some(self.part.graph.k()), ..params }
    }

    /// GCN-V and, if it is compared, GCN-E, by a recipe.
    fn gcn(&self, recipe: Recipe) -> Result<Vec<Fitted>, Failure> {
        machine::return_large_blocks();
        let [v, ve] = match recipe {
            Recipe::Tuned => ["gcn-v", "gcn-ve"],
            Recipe::Paper => ["gcn-v-paper", "gcn-ve-paper"],
        };
        let params = self.gcn_params(recipe, self.options.includes(ve));
        let (problem, bars) = (self.problem()?, Bars::default());
        let context = Context::new(&bars).with_seed(self.options.seed);
        let (trained, cost) = measure(|| train(&problem, &params, None, &mut |_| Ok(()), &context));
        let model = trained?.model;
        let networks = if model.gcn_e.is_some() { "GCN-V and GCN-E were" } else { "GCN-V was" };
        let unused = match model.gcn_e.is_some() && model.config.rho == 0.0 {
            true => "; GCN-E did not help on held-out identities and is not used",
            false => "",
        };
        let density_alone = match model.config.density == 1.0 && !model.config.rebuild {
            true => "; the confidence is density alone, without GCN-V",
            false => "",
        };
        let by = if recipe == Recipe::Paper { "by the recipe of the paper " } else { "" };
        let note = format!(
            "{networks} fitted {by}to the training part in {:.1} s, except for a tenth of the identities (up to half where these \
             are fewer than {HELD_OUT}), on which the rest was chosen{unused}{density_alone}.",
            cost.seconds
        );
        let fitted = |name, method: Gcn, note| -> Result<Fitted, Failure> {
            let tried = match recipe {
                Recipe::Tuned => {
                    "by `train`, on identities held out from fitting: rotation, graph, density, rho, tau"
                }
                Recipe::Paper => "by `train --recipe paper`, on identities held out from fitting: tau",
            };
            Ok(Fitted {
                name,
                chosen: describe_gcn(&method, name == ve),
                model: model_of(&method)?,
                tried,
                note,
            })
        };
        let mut all = Vec::new();
        if self.options.includes(v) {
            all.push(fitted(v, Gcn::vertex_only(model.clone()), note.clone())?);
        }
        if self.options.includes(ve) {
            let note = if all.is_empty() { note } else { String::new() };
            all.push(fitted(ve, Gcn::new(model), note)?);
        }
        Ok(all)
    }

    fn lgcn(&self) -> Result<Fitted, Failure> {
        let Part { features, labels, graph, .. } = self.part;
        let default = LgcnTraining::for_neighbours(graph.k());
        let params = LgcnTraining { fit: self.fit_params(&default.fit, QUICK_PIVOTS), ..default };
        let (trained, cost) = measure(|| train_lgcn(features, labels, graph, &params, &Bars::default()));
        let model = trained?.model;
        Ok(Fitted {
            name: "lgcn",
            model: model_of(&model)?,
            tried: "by `train`, on identities held out from fitting: rotation, least probability, largest size",
            chosen: format!("th {} max_size {}", model.settings.th, model.settings.max_size),
            note: note_of("L-GCN", cost.seconds),
        })
    }

    fn ltc(&self) -> Result<Fitted, Failure> {
        let Part { features, labels, graph, .. } = self.part;
        let default = LtcTraining::default();
        let params = LtcTraining { fit: self.fit_params(&default.fit, QUICK_PROPOSALS), ..default };
        let (trained, cost) = measure(|| train_ltc(features, labels, graph, &params, &Bars::default()));
        let model = trained?.model;
        let params = model.params();
        let segment = if params.segment.is_some() { "with" } else { "without" };
        let thresholds = params.proposals.settings.len();
        Ok(Fitted {
            name: "ltc",
            model: model_of(&model)?,
            tried: "by `train`, on identities held out from fitting: thresholds, least score, whether GCN-S is used",
            chosen: format!("thresholds {thresholds} least {} {segment} GCN-S", params.least),
            note: note_of("LTC", cost.seconds),
        })
    }

    /// Trains as `kinfolk train` does.
    fn by_default(&self, listed: &Listed) -> Result<Fitted, Failure> {
        let info = listed.info;
        let learner = listed.entry.learner().ok_or_else(no_model)?;
        let (problem, bars) = (self.problem()?, Bars::default());
        let context = Context::new(&bars).with_seed(self.options.seed);
        let (trained, cost) = measure(|| learner.train(&problem, Checkpoints::default(), &context));
        let trained = trained?;
        let better = |best: &&Trial, trial: &&Trial| best.f.total_cmp(&trial.f);
        let best = trained.trials.iter().max_by(better).map(|trial| super::grid::describe(&trial.settings));
        Ok(Fitted {
            name: info.name,
            model: trained.model().ok_or_else(no_model)?,
            tried: "by `train`, on identities held out from fitting",
            chosen: best.unwrap_or_else(|| "nothing".to_owned()),
            note: note_of(info.title, cost.seconds),
        })
    }
}

fn model_of(method: &dyn LearnedMethod) -> Result<ModelFile, Failure> {
    Ok(method.to_model().ok_or_else(no_model)?)
}

fn no_model() -> Error {
    let (expected, found) = ("methods that can be trained", "one that cannot".to_owned());
    Error::Parameter { field: "methods", expected, found }
}

fn note_of(title: &str, seconds: f64) -> String {
    format!("{title} was fitted to the training part, except for as many identities, in {seconds:.1} s.")
}

fn describe_gcn(gcn: &Gcn, gcn_e: bool) -> String {
    let GcnModel { config, .. } = gcn.model();
    let graph = if config.rebuild { "rebuilt graph" } else { "input graph" };
    let rho = if gcn_e { format!(" rho {:.1}", config.rho) } else { String::new() };
    format!("{graph} density {:.2}{rho} tau {:.2}", config.density, gcn.settings.tau)
}
