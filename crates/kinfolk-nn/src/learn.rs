//! What `train` needs to know of a method that learns: its parameters, and how to train it.

use crate::training::{
    Choices, Compute, FitParams, FittedNetwork, GcnEParams, GcnVParams, LgcnTraining, Loss, LtcTraining,
    SamplingKind, Target, TrainParams, Unfinished, train, train_lgcn, train_ltc,
};
use crate::{Candidates, Gcn, LearnedMethod, ModelFile};
use kinfolk::{
    Context, Error, Kin, KinTraining, MethodInfo, ParamValue, Parameters, Problem, Result, train_kin,
};
use std::path::Path;

/// Trains one method.
pub trait Learn: Send + Sync {
    /// The method.
    fn info(&self) -> &'static MethodInfo;

    /// The parameters of training by name.
    fn parameters(&self) -> &dyn Parameters;

    /// The parameters of training by name, to change them.
    fn parameters_mut(&mut self) -> &mut dyn Parameters;

    /// Whether interrupted training can be resumed.
    fn resumes(&self) -> bool {
        false
    }

    /// Roughly how many operations training on rows of `dim` columns takes at least, besides the search for neighbours; 0 if
    /// that is not known.
    fn operations(&self, _rows: usize, _dim: usize) -> f64 {
        0.0
    }

    /// Trains on the labelled rows of a problem.
    fn train(&self, problem: &Problem, checkpoints: Checkpoints<'_>, context: &Context) -> Result<Trained>;
}

/// What is done with the state of training after an epoch.
pub type Save<'a> = dyn FnMut(&Unfinished) -> Result<()> + 'a;

/// Where interrupted training goes on from, and what is done after every epoch; only for methods that resume.
#[derive(Default)]
pub struct Checkpoints<'a> {
    /// The file of the interrupted training.
    pub resume: Option<ModelFile>,
    /// Called after every epoch.
    pub save: Option<&'a mut Save<'a>>,
}

/// What training made, and how.
pub struct Trained {
    /// The method, ready to run or to be written to a file.
    pub method: Box<dyn LearnedMethod>,
    /// Every network that was fitted, by name.
    pub networks: Vec<(&'static str, FittedNetwork)>,
    /// Settings that were tried on held-out identities.
    pub trials: Vec<Trial>,
    /// Other figures, by name.
    pub figures: Vec<(&'static str, f64)>,
}

/// A setting that was tried on held-out identities.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What distinguishes it from the others.
    pub settings: Vec<(&'static str, String)>,
    /// Mean of pairwise and BCubed F of the held-out rows, from 0 to 1.
    pub f: f64,
}

/// Trains the built-in edge model of `kin` further, with a whitening of the embeddings where that helps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KinLearner(pub KinTraining);

impl Learn for KinLearner {
    fn info(&self) -> &'static MethodInfo {
        use kinfolk::Method;
        Kin::default().info()
    }

    fn parameters(&self) -> &dyn Parameters {
        &self.0
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        &mut self.0
    }

    fn train(&self, problem: &Problem, _: Checkpoints<'_>, context: &Context) -> Result<Trained> {
        let found = train_kin(problem, &self.0, context)?;
        let trial = |trial: &kinfolk::KinTrial| Trial {
            settings: vec![
                ("shrink", trial.shrink.to_string()),
                ("adapted", trial.adapted.to_string()),
                ("probability", trial.probability.to_string()),
            ],
            f: trial.f,
        };
        Ok(Trained {
            networks: Vec::new(),
            trials: found.trials.iter().map(trial).collect(),
            figures: vec![("loss_built_in", found.losses[0]), ("loss_adapted", found.losses[1])],
            method: Box::new(Kin::trained(found.model)),
        })
    }
}

/// Which of its choices training makes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recipe {
    /// Whatever does best on held-out identities; what does not help is left out.
    #[default]
    Tuned,
    /// Sections 3 and 4.1 of the paper, to the letter.
    Paper,
}

kinfolk::word_values!(Recipe: "tuned or paper", "tuned" => Recipe::Tuned, "paper" => Recipe::Paper);

/// Epochs of GCN-E in the published code.
const PAPER_EPOCHS_E: usize = 40;

kinfolk::parameters! {
    /// Trains GCN-V.
    #[derive(Debug, Clone, PartialEq)]
    pub struct GcnVTraining {
        /// tuned: whatever does best on held-out identities. paper: sections 3 and 4.1 of the paper, without rotations or
        /// density, always with the rebuilt graph, and with GCN-E where it is trained.
        pub recipe: Recipe = Recipe::Tuned;
        /// Passes over the rows.
        pub epochs: usize = 20, "at least 1", |epochs| *epochs >= 1;
        /// Rows in one step of training; auto is 64, up to 256 where there are many rows.
        pub batch: Option<usize> = None, "at least 1", |batch| *batch != Some(0);
        /// Learning rate at the start.
        pub learning_rate: f32 = 0.1, "above 0", |rate| *rate > 0.0 && rate.is_finite();
        /// Share of the identities that is not trained on; the best epoch and the settings are chosen by them.
        pub validation: f32 = 0.1, "at least 0, below 1", |share| (0.0..1.0).contains(share);
        /// Graph convolutions.
        pub layers: usize = 1, "at least 1", |layers| *layers >= 1;
        /// What a batch aggregates over in each convolution after the first: neighbours of each row (GraphSAGE), or
        /// vertices for all its rows (FastGCN); auto is neighbours.
        pub sampling: Option<SamplingKind> = None;
        /// How many neighbours or vertices are sampled; auto is 10 or 1,024.
        pub sampled: Option<usize> = None, "at least 1", |sampled| *sampled != Some(0);
        /// The confidence that GCN-V learns.
        pub target: Target = Target::Neighbours;
        /// Neighbours in the graph that is rebuilt from the embeddings of GCN-V; auto is as many as in the graph itself.
        pub k_rebuild: Option<usize> = None, "at least 1", |k| *k != Some(0);
        /// Share of density in the confidence; auto is the best on held-out identities, for recipe paper 0.
        pub density: Option<f32> = None, "a share from 0 to 1",
            |density| density.is_none_or(|density| (0.0..=1.0).contains(&density));
        /// Whether every batch is rotated at random; auto is the better on held-out identities, for recipe paper false.
        pub rotate: Option<bool> = None;
        /// Whether the graph is rebuilt from the embeddings of GCN-V; auto is the better on held-out identities, for recipe
        /// paper true.
        pub rebuild: Option<bool> = None;
        /// Similarity at which links are cut; auto is the best on held-out identities.
        pub tau: Option<f32> = None, "-1 to 1", |tau| tau.is_none_or(|tau| (-1.0..=1.0).contains(&tau));
        /// Where to train.
        pub device: Compute = Compute::Cpu;
    }
}

kinfolk::parameters! {
    /// Trains GCN-V, then GCN-E.
    #[derive(Debug, Clone, PartialEq)]
    pub struct GcnVeTraining {
        /// tuned: whatever does best on held-out identities. paper: sections 3 and 4.1 of the paper, without rotations or
        /// density, always with the rebuilt graph, and with GCN-E where it is trained.
        pub recipe: Recipe = Recipe::Tuned;
        /// Passes of GCN-V over the rows.
        pub epochs: usize = 20, "at least 1", |epochs| *epochs >= 1;
        /// Rows or candidate sets in one step of training; auto is 64, of rows up to 256 where there are many.
        pub batch: Option<usize> = None, "at least 1", |batch| *batch != Some(0);
        /// Learning rate at the start.
        pub learning_rate: f32 = 0.1, "above 0", |rate| *rate > 0.0 && rate.is_finite();
        /// Share of the identities that is not trained on; the best epoch and the settings are chosen by them.
        pub validation: f32 = 0.1, "at least 0, below 1", |share| (0.0..1.0).contains(share);
        /// Graph convolutions of GCN-V.
        pub layers: usize = 1, "at least 1", |layers| *layers >= 1;
        /// What a batch aggregates over in each convolution after the first: neighbours of each row (GraphSAGE), or
        /// vertices for all its rows (FastGCN); auto is neighbours.
        pub sampling: Option<SamplingKind> = None;
        /// How many neighbours or vertices are sampled; auto is 10 or 1,024.
        pub sampled: Option<usize> = None, "at least 1", |sampled| *sampled != Some(0);
        /// The confidence that GCN-V learns.
        pub target: Target = Target::Neighbours;
        /// Neighbours in the graph that is rebuilt from the embeddings of GCN-V; auto is as many as in the graph itself.
        pub k_rebuild: Option<usize> = None, "at least 1", |k| *k != Some(0);
        /// The loss of GCN-E.
        pub loss: Loss = Loss::Squares;
        /// 1: GCN-E chooses from the neighbours of higher confidence; -1: from all neighbours.
        pub m: i64 = 1, "1 or -1", |m| *m == 1 || *m == -1;
        /// Share of density in the confidence; auto is the best on held-out identities, for recipe paper 0.
        pub density: Option<f32> = None, "a share from 0 to 1",
            |density| density.is_none_or(|density| (0.0..=1.0).contains(&density));
        /// Whether every batch is rotated at random; auto is the better on held-out identities, for recipe paper false.
        pub rotate: Option<bool> = None;
        /// Whether the graph is rebuilt from the embeddings of GCN-V; auto is the better on held-out identities, for recipe
        /// paper true.
        pub rebuild: Option<bool> = None;
        /// Similarity at which links are cut; auto is the best on held-out identities.
        pub tau: Option<f32> = None, "-1 to 1", |tau| tau.is_none_or(|tau| (-1.0..=1.0).contains(&tau));
        /// Share of the rows, the most confident ones, whose parents GCN-E chooses; auto is the best on held-out identities,
        /// or 0 if GCN-E does not help there, for recipe paper 0.2.
        pub rho: Option<f32> = None, "a share from 0 to 1", |rho| rho.is_none_or(|rho| (0.0..=1.0).contains(&rho));
        /// Passes of GCN-E over its candidate sets; auto is 4, for recipe paper 40.
        pub epochs_e: Option<usize> = None, "at least 1", |epochs| *epochs != Some(0);
        /// Where to train.
        pub device: Compute = Compute::Cpu;
    }
}

impl GcnVTraining {
    /// What [`train`] does for this many rows.
    pub fn params(&self, rows: usize, seed: u64) -> TrainParams {
        let default = GcnVParams::default();
        let by_recipe = match self.recipe {
            Recipe::Tuned => Choices::default(),
            Recipe::Paper => Choices::PAPER,
        };
        TrainParams {
            choices: Choices {
                rotate: self.rotate.or(by_recipe.rotate),
                rebuild: self.rebuild.or(by_recipe.rebuild),
                density: self.density.or(by_recipe.density),
                rho: by_recipe.rho,
                tau: self.tau,
                tau_fixed: by_recipe.tau_fixed,
            },
            gcn_v: GcnVParams {
                target: self.target,
                convolutions: vec![default.convolutions[0]; self.layers],
                sampling: self.sampling.unwrap_or_default().of(self.sampled),
                fit: FitParams {
                    epochs: self.epochs,
                    // Many steps for a small set; for a large one fewer, whose products are faster.
                    batch: self.batch.unwrap_or((rows / 800).next_power_of_two().clamp(64, 256)),
                    learning_rate: self.learning_rate,
                    validation: self.validation,
                    compute: self.device,
                    seed,
                    ..default.fit.clone()
                },
                ..default
            },
            gcn_e: None,
            k_rebuild: self.k_rebuild,
        }
    }
}

impl GcnVeTraining {
    /// What [`train`] does for this many rows.
    pub fn params(&self, rows: usize, seed: u64) -> TrainParams {
        let vertices = GcnVTraining {
            recipe: self.recipe,
            epochs: self.epochs,
            batch: self.batch,
            learning_rate: self.learning_rate,
            validation: self.validation,
            layers: self.layers,
            sampling: self.sampling,
            sampled: self.sampled,
            target: self.target,
            k_rebuild: self.k_rebuild,
            density: self.density,
            rotate: self.rotate,
            rebuild: self.rebuild,
            tau: self.tau,
            device: self.device,
        };
        let params = vertices.params(rows, seed);
        let by_recipe = (self.recipe == Recipe::Paper).then_some(PAPER_EPOCHS_E);
        let default = GcnEParams::default();
        let gcn_e = GcnEParams {
            candidates: if self.m == -1 { Candidates::AllNeighbours } else { Candidates::MoreConfident },
            loss: self.loss,
            fit: FitParams {
                epochs: self.epochs_e.or(by_recipe).unwrap_or(default.fit.epochs),
                batch: self.batch.unwrap_or(default.fit.batch),
                learning_rate: self.learning_rate,
                validation: self.validation,
                compute: self.device,
                seed,
                ..default.fit.clone()
            },
            ..default
        };
        let choices = Choices { rho: self.rho.or(params.choices.rho), ..params.choices };
        TrainParams { gcn_e: Some(gcn_e), choices, ..params }
    }
}

/// Refuses parameters of sampling where nothing is sampled.
fn check_sampling(layers: usize, sampling: Option<SamplingKind>, sampled: Option<usize>) -> Result<()> {
    let expected = "auto with layers 1, because the first convolution samples nothing";
    for (field, given, found) in [
        ("sampling", sampling.is_some(), sampling.format()),
        ("sampled", sampled.is_some(), sampled.format()),
    ] {
        if layers == 1 && given {
            return Err(Error::Parameter { field, expected, found });
        }
    }
    Ok(())
}

fn train_gcn(
    params: &TrainParams,
    problem: &Problem,
    checkpoints: Checkpoints<'_>,
    context: &Context,
) -> Result<Trained> {
    let resumed = checkpoints.resume.map(Unfinished::from_file).transpose()?;
    let mut ignore = |_: &Unfinished| Ok(());
    let save = checkpoints.save.unwrap_or(&mut ignore);
    let found = train(problem, params, resumed, save, context)?;
    let trial = |c: &crate::Choice| Trial {
        settings: vec![
            ("rotate", c.rotate.to_string()),
            ("rebuild", c.rebuild.to_string()),
            ("density", c.density.to_string()),
            ("rho", c.rho.to_string()),
            ("tau", format!("{:.2}", c.tau)),
        ],
        f: c.f,
    };
    let mut networks = vec![("gcn_v", found.gcn_v)];
    networks.extend(found.gcn_e.map(|gcn_e| ("gcn_e", gcn_e)));
    Ok(Trained {
        trials: found.choices.iter().map(trial).collect(),
        networks,
        figures: Vec::new(),
        method: Box::new(Gcn::new(found.model)),
    })
}

/// How many operations in products of matrices take as long as another one.
const PRODUCTS: f64 = 4.0;

macro_rules! gcn_learner {
    ($name:ident, $info:expr) => {
        impl Learn for $name {
            fn info(&self) -> &'static MethodInfo {
                $info
            }

            fn parameters(&self) -> &dyn Parameters {
                self
            }

            fn parameters_mut(&mut self) -> &mut dyn Parameters {
                self
            }

            fn resumes(&self) -> bool {
                true
            }

            /// Those of GCN-V: products of matrices, forwards and twice backwards.
            fn operations(&self, rows: usize, dim: usize) -> f64 {
                let hidden = GcnVParams::default().hidden as f64;
                let products = 3.0 * 2.0 * (2.0 * dim as f64 * hidden + hidden * hidden);
                (self.epochs * rows) as f64 * products / PRODUCTS
            }

            fn train(
                &self,
                problem: &Problem,
                checkpoints: Checkpoints<'_>,
                context: &Context,
            ) -> Result<Trained> {
                self.check()?;
                check_sampling(self.layers, self.sampling, self.sampled)?;
                let params = self.params(problem.len(), context.seed());
                train_gcn(&params, problem, checkpoints, context)
            }
        }
    };
}

gcn_learner!(GcnVTraining, crate::methods::gcn::infos()[0]);
gcn_learner!(GcnVeTraining, crate::methods::gcn::infos()[1]);

kinfolk::parameters! {
    /// Trains L-GCN.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LgcnLearner {
        /// Passes over pivots.
        pub epochs: usize = 4, "at least 1", |epochs| *epochs >= 1;
        /// Pivots in one step of training.
        pub batch: usize = 16, "at least 1", |batch| *batch >= 1;
        /// Learning rate at the start.
        pub learning_rate: f32 = 0.01, "above 0", |rate| *rate > 0.0 && rate.is_finite();
        /// Share of the identities that is not trained on; the settings are chosen by them.
        pub validation: f32 = 0.1, "above 0, below 1", |share| *share > 0.0 && *share < 1.0;
        /// Where to train.
        pub device: Compute = Compute::Cpu;
    }
}

impl Learn for LgcnLearner {
    fn info(&self) -> &'static MethodInfo {
        crate::methods::lgcn::info()
    }

    fn parameters(&self) -> &dyn Parameters {
        self
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        self
    }

    fn train(&self, problem: &Problem, _: Checkpoints<'_>, context: &Context) -> Result<Trained> {
        self.check()?;
        let (embeddings, labels) = (problem.embeddings()?, problem.labels()?);
        let found = problem.neighbours(80, context)?;
        let default = LgcnTraining::for_neighbours(found.graph.k());
        let fit = FitParams {
            epochs: self.epochs,
            batch: self.batch,
            learning_rate: self.learning_rate,
            validation: self.validation,
            compute: self.device,
            seed: context.seed(),
            ..default.fit.clone()
        };
        let params = LgcnTraining { fit, ..default };
        let found = train_lgcn(embeddings, labels, &found.graph, &params, context.progress())?;
        let trial = |c: &crate::LinkChoice| Trial {
            settings: vec![
                ("rotate", c.rotate.to_string()),
                ("max_size", c.max_size.to_string()),
                ("th", c.th.to_string()),
            ],
            f: c.f,
        };
        Ok(Trained {
            trials: found.choices.iter().map(trial).collect(),
            networks: vec![("lgcn", found.trained)],
            figures: Vec::new(),
            method: Box::new(found.model),
        })
    }
}

kinfolk::parameters! {
    /// Trains GCN-D and GCN-S of LTC.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LtcLearner {
        /// Passes over proposals.
        pub epochs: usize = 10, "at least 1", |epochs| *epochs >= 1;
        /// Proposals in one step of training.
        pub batch: usize = 32, "at least 1", |batch| *batch >= 1;
        /// Learning rate at the start; auto is 0.01 for GCN-D and 0.1 for GCN-S.
        pub learning_rate: Option<f32> = None, "above 0", |rate| rate.is_none_or(|rate| rate > 0.0 && rate.is_finite());
        /// Share of the identities that is not trained on; the settings are chosen by them.
        pub validation: f32 = 0.1, "above 0, below 1", |share| *share > 0.0 && *share < 1.0;
        /// Where to train.
        pub device: Compute = Compute::Cpu;
    }
}

impl Learn for LtcLearner {
    fn info(&self) -> &'static MethodInfo {
        crate::methods::ltc::info()
    }

    fn parameters(&self) -> &dyn Parameters {
        self
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        self
    }

    fn train(&self, problem: &Problem, _: Checkpoints<'_>, context: &Context) -> Result<Trained> {
        self.check()?;
        let (embeddings, labels) = (problem.embeddings()?, problem.labels()?);
        let found = problem.neighbours(80, context)?;
        let default = LtcTraining::default();
        let fit = FitParams {
            epochs: self.epochs,
            batch: self.batch,
            learning_rate: self.learning_rate.unwrap_or(default.fit.learning_rate),
            validation: self.validation,
            compute: self.device,
            seed: context.seed(),
            ..default.fit.clone()
        };
        let segment_rate = self.learning_rate.unwrap_or(default.segment_rate);
        let params = LtcTraining { fit, segment_rate, ..default };
        let found = train_ltc(embeddings, labels, &found.graph, &params, context.progress())?;
        let trial = |c: &crate::ProposalChoice| Trial {
            settings: vec![
                (
                    "thresholds",
                    c.thresholds.iter().map(|th| format!("{th:.2}")).collect::<Vec<_>>().join(" "),
                ),
                ("segment", c.segment.to_string()),
                ("least", c.least.to_string()),
            ],
            f: c.f,
        };
        Ok(Trained {
            trials: found.choices.iter().map(trial).collect(),
            networks: vec![("gcn_d", found.gcn_d), ("gcn_s", found.gcn_s)],
            figures: Vec::new(),
            method: Box::new(found.model),
        })
    }
}

impl Trained {
    /// Writes the model file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.model().map_or(Ok(()), |model| model.write(path))
    }

    /// The model file.
    pub fn model(&self) -> Option<ModelFile> {
        self.method.to_model()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::Sampling;

    #[test]
    fn recipes_differ_in_what_they_leave_open() {
        let tuned = GcnVeTraining::default().params(1000, 3);
        assert_eq!(tuned.choices, Choices::default());
        assert_eq!(tuned.gcn_v.fit.seed, 3);

        let paper = GcnVeTraining { recipe: Recipe::Paper, ..GcnVeTraining::default() };
        let params = paper.params(1000, 0);
        assert_eq!(params.choices, Choices::PAPER);
        let gcn_e = params.gcn_e.unwrap();
        assert_eq!((params.gcn_v.convolutions.len(), gcn_e.convolutions.len()), (1, 4));
        assert_eq!(gcn_e.fit.epochs, PAPER_EPOCHS_E);

        // Each can be set by itself.
        let other = GcnVeTraining {
            density: Some(0.5),
            rotate: Some(true),
            rebuild: Some(false),
            rho: Some(0.7),
            tau: Some(0.6),
            epochs_e: Some(2),
            ..paper
        };
        let params = other.params(1000, 0);
        let given = Choices {
            rotate: Some(true),
            rebuild: Some(false),
            density: Some(0.5),
            rho: Some(0.7),
            tau: Some(0.6),
            tau_fixed: true,
        };
        assert_eq!(params.choices, given);
        assert_eq!(params.gcn_e.unwrap().fit.epochs, 2);
    }

    #[test]
    fn parameters_of_sampling_need_a_second_convolution() {
        let kind = Some(SamplingKind::Vertices);
        let message = |sampling, sampled| check_sampling(1, sampling, sampled).unwrap_err().to_string();
        let expected = "expected auto with layers 1, because the first convolution samples nothing";
        assert_eq!(message(kind, None), format!("sampling: {expected}, found vertices"));
        assert_eq!(message(None, Some(7)), format!("sampled: {expected}, found 7"));
        check_sampling(1, None, None).unwrap();
        check_sampling(2, kind, Some(7)).unwrap();

        let sampling = |sampling, sampled| {
            let training = GcnVeTraining { layers: 2, sampling, sampled, ..GcnVeTraining::default() };
            training.params(1000, 0).gcn_v.sampling
        };
        assert_eq!(sampling(None, None), Sampling::Neighbours(10));
        assert_eq!(sampling(None, Some(3)), Sampling::Neighbours(3));
        assert_eq!(sampling(kind, None), Sampling::Vertices(1024));
        assert_eq!(sampling(kind, Some(3)), Sampling::Vertices(3));
    }
}
