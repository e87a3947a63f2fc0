//! From labelled embeddings to a model that needs no thresholds.
//!
//! GCN-V is trained, with rotations and without where that is left open, and applied to the whole set. What [`Choices`]
//! leaves open is then chosen on the identities that it was not trained on: which of the two networks, whether candidates come
//! from the graph as it is or from one rebuilt from GCN-V's embeddings, how much density there is in the confidence, tau.
//! GCN-E is then trained on the candidate sets of the graph that was chosen, and rho chosen in the same way; unless rho is
//! given, GCN-E is left out where it does not help.
//!
//! After each epoch the model as it would be if training ended there goes to the caller, with all that is needed to
//! go on from there.

use super::choose::best_tau;
use super::division::divide;
use super::fit::{FitRun, FitState, FittedNetwork};
use super::gcn_e::fit_gcn_e;
use super::gcn_v::fit_gcn_v;
use super::params::{held_out, within};
use super::unfinished::{Conditions, Unfinished};
use super::{GcnEParams, GcnVParams};
use crate::apply::{mixed_confidence, rebuilt_features};
use crate::{
    Candidates, Connectivity, EdgeQuery, GcnConfig, GcnModel, GraphNetwork, TauScale, connected_candidates,
    edge_connectivity, vertex_confidence,
};
use kinfolk::metrics::Judge;
use kinfolk::stages::{Adjacency, DEFAULT_RADIUS, Links, nearest_candidates, u_weight};
use kinfolk::{Context, Embeddings, KnnGraph, KnnParams, Problem, Progress, Quiet, Result, knn_graph};

/// Shares of the vertices that GCN-E may choose the parents of.
const RHOS: [f32; 4] = [0.1, 0.2, 0.5, 0.8];

/// Shares of density that a confidence may have.
const DENSITIES: [f32; 5] = [1.0, 0.75, 0.5, 0.25, 0.0];

/// Radii that density may have.
const RADII: [f32; 9] = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// What a less simple choice must add to the F of held-out rows: less is noise.
const GAIN: f64 = 0.001;

/// Parameters of [`train`].
#[derive(Debug, Clone, PartialEq)]
pub struct TrainParams {
    /// GCN-V. Whether its batches are rotated is one of `choices`.
    pub gcn_v: GcnVParams,
    /// GCN-E; `None` leaves it out. Its batches are rotated if those of GCN-V are.
    pub gcn_e: Option<GcnEParams>,
    /// Neighbours in the graph of GCN-V's embeddings. Default: as in the graph that GCN-V sees.
    pub k_rebuild: Option<usize>,
    /// How the networks are applied, as far as it is not to be chosen on held-out identities. Default: all is chosen.
    pub choices: Choices,
}

/// How trained networks are applied; what is `None` is chosen on held-out identities.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Choices {
    /// Whether the features of each batch are rotated at random while GCN-V learns.
    pub rotate: Option<bool>,
    /// Whether the graph is rebuilt from GCN-V's embeddings.
    pub rebuild: Option<bool>,
    /// Share of density in the confidence, from 0 to 1.
    pub density: Option<f32>,
    /// Share of the vertices whose parents GCN-E chooses, from 0 to 1.
    pub rho: Option<f32>,
    /// The similarity at which links are cut.
    pub tau: Option<f32>,
    /// Whether the chosen tau is used as it is, instead of following the size of the set that the model is applied to.
    pub tau_fixed: bool,
}

impl Choices {
    /// Sections 3 and 4.1 of the paper: no rotations, the graph of F_L, the confidence of GCN-V alone, rho 0.2.
    pub const PAPER: Choices = Choices {
        rotate: Some(false),
        rebuild: Some(true),
        density: Some(0.0),
        rho: Some(0.2),
        tau: None,
        tau_fixed: true,
    };

    /// Whether features are rotated in each training of GCN-V; of equals the first is chosen.
    pub(super) fn rotations(&self) -> Vec<bool> {
        self.rotate.map_or(vec![true, false], |rotate| vec![rotate])
    }

    fn validate(&self) -> Result<()> {
        for (name, share) in [("density", self.density), ("rho", self.rho)] {
            within(name, share.unwrap_or(0.0), "a share from 0 to 1", |share| (0.0..=1.0).contains(&share))?;
        }
        within("tau", self.tau.unwrap_or(0.0), "-1 to 1", |tau| (-1.0..=1.0).contains(&tau))
    }
}

impl Default for TrainParams {
    fn default() -> Self {
        TrainParams {
            gcn_v: GcnVParams::default(),
            gcn_e: Some(GcnEParams::default()),
            k_rebuild: None,
            choices: Choices::default(),
        }
    }
}

/// One way to apply the networks, and how it did on held-out identities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// Whether GCN-V learned from rotated features.
    pub rotate: bool,
    /// Whether the graph was rebuilt from GCN-V's embeddings.
    pub rebuild: bool,
    /// Share of density in the confidence.
    pub density: f32,
    /// Share of the vertices whose parents GCN-E chose; 0 without it.
    pub rho: f32,
    /// The best tau.
    pub tau: f32,
    /// Mean of pairwise and BCubed F of the held-out rows, from 0 to 1.
    pub f: f64,
}

/// What [`train`] made.
#[derive(Debug, Clone)]
pub struct TrainedGcn {
    /// The networks, and the best way to apply them.
    pub model: GcnModel,
    /// How GCN-V was trained.
    pub gcn_v: FittedNetwork,
    /// How GCN-E was trained.
    pub gcn_e: Option<FittedNetwork>,
    /// Every way that was tried, in the order of trying; the model has the best.
    pub choices: Vec<Choice>,
}

/// Trains a model on the labelled rows of a problem.
///
/// `save` is called after every epoch; what it is given can be written to a file and, later, given as `resumed`. The
/// model is then the same as if training had not been interrupted.
pub fn train(
    problem: &Problem,
    params: &TrainParams,
    resumed: Option<Unfinished>,
    save: &mut dyn FnMut(&Unfinished) -> Result<()>,
    context: &Context,
) -> Result<TrainedGcn> {
    params.gcn_v.validate()?;
    params.choices.validate()?;
    if let Some(gcn_e) = &params.gcn_e {
        gcn_e.validate()?;
    }
    let (embeddings, labels) = (problem.embeddings()?, problem.labels()?);
    let held_out = held_out(divide(labels, &params.gcn_v.fit), &params.gcn_v.fit)?.validation;
    let found = problem.neighbours(80, context)?;
    let graph = &*found.graph;
    let k_rebuild = params.k_rebuild.unwrap_or(problem.k().unwrap_or(graph.k().max(1)));
    let conditions = Conditions::new(embeddings, labels, graph, params, k_rebuild);
    let (mut gcn_v, mut state) = match resumed {
        Some(unfinished) => {
            conditions.check(&unfinished.conditions)?;
            (unfinished.gcn_v, Some(unfinished.state))
        }
        None => (Vec::new(), None),
    };
    let adjacency = Adjacency::from_knn(graph, params.gcn_v.th_sim)?;
    let training = Training {
        embeddings,
        labels,
        graph,
        adjacency,
        judge: Judge::new(labels, held_out),
        params,
        rebuild: KnnParams { k: k_rebuild, ..problem.knn_params(80, context) },
        progress: context.progress(),
    };
    let rotations = params.choices.rotations();
    for &rotate in rotations.iter().skip(gcn_v.len()) {
        let trained = training.gcn_v(rotate, state.take(), &mut |model, state| {
            let (state, conditions) = (state.clone(), conditions.clone());
            save(&Unfinished { model, gcn_v: gcn_v.clone(), state, conditions })
        })?;
        gcn_v.push(trained);
    }
    let (mut stage, chosen) = training.choose_graph(&rotations, &gcn_v)?;
    let mut gcn_e = None;
    if let Some(params) = &params.gcn_e {
        let mut params = params.clone();
        params.fit.rotate &= rotations[chosen];
        let adjacency = Adjacency::from_knn(&stage.graph, params.th_sim)?;
        let model = stage.model(&gcn_v[chosen].network, None);
        let trained = training.gcn_e(&params, &stage, &adjacency, state, &mut |state| {
            let (state, conditions) = (state.clone(), conditions.clone());
            save(&Unfinished { model: model.clone(), gcn_v: gcn_v.clone(), state, conditions })
        })?;
        training.choose_rho(&trained.network, params.candidates, &mut stage, &adjacency)?;
        gcn_e = Some(trained);
    }
    let gcn_v = gcn_v.swap_remove(chosen);
    let model = stage.model(&gcn_v.network, gcn_e.as_ref().map(|trained| &trained.network));
    Ok(TrainedGcn { model, gcn_v, gcn_e, choices: stage.choices })
}

/// What all steps of training share.
struct Training<'a> {
    embeddings: &'a Embeddings,
    labels: &'a [i64],
    graph: &'a KnnGraph,
    adjacency: Adjacency,
    judge: Judge,
    params: &'a TrainParams,
    /// The search for neighbours by F_L.
    rebuild: KnnParams,
    progress: &'a dyn Progress,
}

/// What was chosen once GCN-V was trained, and later the share of GCN-E.
struct Stage {
    /// The rows that `graph` was built from.
    features: Embeddings,
    graph: KnnGraph,
    confidence: Vec<f32>,
    /// Of density.
    radius: f32,
    candidates: Candidates,
    choices: Vec<Choice>,
    /// The best choice without GCN-E, and the best of all.
    best: [Choice; 2],
    /// K of the graph as it is and of the rebuilt one.
    k: [usize; 2],
    tau_scale: Option<TauScale>,
}

/// One GCN-V, applied to the whole set.
struct Applied {
    confidence: Vec<f32>,
    /// F_L, normalised, and its graph.
    rebuilt: Option<(Embeddings, KnnGraph)>,
    choices: Vec<Choice>,
    best: Choice,
}

impl Stage {
    fn model(&self, gcn_v: &GraphNetwork, gcn_e: Option<&GraphNetwork>) -> GcnModel {
        let [without, best] = self.best;
        let config = GcnConfig {
            k: self.k[0],
            k_rebuild: self.k[1],
            tau: best.tau,
            tau_v: without.tau,
            density: without.density,
            radius: self.radius,
            rho: best.rho,
            m: 1,
            all_neighbours: self.candidates == Candidates::AllNeighbours,
            rebuild: without.rebuild,
            tau_scale: self.tau_scale,
        };
        GcnModel { gcn_v: gcn_v.clone(), gcn_e: gcn_e.cloned(), config }
    }
}

impl Training<'_> {
    fn gcn_v(
        &self,
        rotate: bool,
        resumed: Option<FitState>,
        save: &mut dyn FnMut(GcnModel, &FitState) -> Result<()>,
    ) -> Result<FittedNetwork> {
        let mut after_epoch = |state: &mut FitState| {
            // On the graph as it is: rebuilding it takes longer than the epoch.
            let confidence = self.estimate(&state.best.network, false)?.0;
            let links = nearest_candidates(self.graph, &confidence, 1)?;
            let (tau, f) = best_tau(&self.judge, &links);
            if let Some(epoch) = state.best.history.last_mut() {
                epoch.validation_f = Some(f);
            }
            let (k, rho) = (self.graph.k(), 0.0);
            let default = GcnConfig::default();
            let config = GcnConfig { k, k_rebuild: k, tau, tau_v: tau, rho, rebuild: false, ..default };
            save(GcnModel { gcn_v: state.best.network.clone(), gcn_e: None, config }, state)
        };
        let run = FitRun { resumed, after_epoch: &mut after_epoch, progress: self.progress };
        let mut params = self.params.gcn_v.clone();
        params.fit.rotate = rotate;
        fit_gcn_v(self.embeddings, self.labels, self.graph, &self.adjacency, &params, run)
    }

    /// The confidence of every vertex, and F_L if it is wanted.
    fn estimate(&self, gcn_v: &GraphNetwork, keep: bool) -> Result<(Vec<f32>, Vec<f32>)> {
        let estimate =
            vertex_confidence(gcn_v, self.embeddings, &self.adjacency, keep, &Quiet(self.progress))?;
        Ok((estimate.confidence, estimate.embeddings))
    }

    /// Tries what there is to choose after GCN-V; also the number of the network that was chosen.
    fn choose_graph(&self, rotations: &[bool], networks: &[FittedNetwork]) -> Result<(Stage, usize)> {
        let given = self.params.choices;
        let densities = given.density.map_or(DENSITIES.to_vec(), |density| vec![density]);
        let radius = if densities == [0.0] { DEFAULT_RADIUS } else { self.choose_radius()? };
        let (mut choices, mut best, mut chosen) = (Vec::new(), None::<Applied>, 0);
        for (at, (&rotate, gcn_v)) in rotations.iter().zip(networks).enumerate() {
            let applied = self.apply(rotate, &gcn_v.network, &densities, radius)?;
            choices.extend(&applied.choices);
            if best.as_ref().is_none_or(|best| applied.best.f > best.best.f + GAIN) {
                (best, chosen) = (Some(applied), at);
            }
        }
        let Applied { best, confidence, rebuilt, .. } = best.expect("at least one way to learn");
        let k_rebuild = self.rebuild.k.min(self.embeddings.len().saturating_sub(1));
        let k = [self.graph.k(), k_rebuild];
        let (features, graph) = match rebuilt.filter(|_| best.rebuild) {
            Some(rebuilt) => rebuilt,
            None => (self.embeddings.clone(), self.graph.clone()),
        };
        let confidence = mixed_confidence(&confidence, self.graph, best.density, radius)?;
        let candidates = Candidates::default();
        let follows = given.tau.is_none() && !given.tau_fixed;
        let tau_scale = follows.then(|| TauScale::of(&features, self.params.gcn_v.fit.seed));
        let best = [best; 2];
        Ok((Stage { features, graph, confidence, radius, candidates, choices, best, k, tau_scale }, chosen))
    }

    /// Tries one GCN-V with every share of density on the graph as it is and on the rebuilt one.
    fn apply(&self, rotate: bool, gcn_v: &GraphNetwork, densities: &[f32], radius: f32) -> Result<Applied> {
        let (confidence, f_l) = self.estimate(gcn_v, true)?;
        let given = self.params.choices.rebuild;
        let rebuilt = if given == Some(false) {
            None
        } else {
            let features = rebuilt_features(f_l, gcn_v.width())?;
            let (graph, _) = knn_graph(&features, &self.rebuild, self.progress)?;
            Some((features, graph))
        };
        let mut choices = Vec::new();
        let as_it_is = (given != Some(true)).then_some((false, self.graph));
        let anew = rebuilt.as_ref().map(|(_, graph)| (true, graph));
        for (rebuild, graph) in as_it_is.into_iter().chain(anew) {
            for &density in densities {
                let mixed = mixed_confidence(&confidence, self.graph, density, radius)?;
                let (tau, f) = self.judged(&nearest_candidates(graph, &mixed, 1)?)?;
                choices.push(Choice { rotate, rebuild, density, rho: 0.0, tau, f });
            }
        }
        Ok(Applied { best: best_of(&choices), choices, confidence, rebuilt })
    }

    /// The radius of density. Nothing about density is fitted, so all rows can judge it, which are many more.
    fn choose_radius(&self) -> Result<f32> {
        let judge = Judge::new(self.labels, (0..self.labels.len() as u32).collect());
        let mut best = (DEFAULT_RADIUS, 0.0);
        for radius in RADII {
            self.progress.check()?;
            let links = nearest_candidates(self.graph, &u_weight(self.graph, radius)?, 1)?;
            let (_, f) = best_tau(&judge, &links);
            if f > best.1 {
                best = (radius, f);
            }
        }
        Ok(best.0)
    }

    fn gcn_e(
        &self,
        params: &GcnEParams,
        stage: &Stage,
        adjacency: &Adjacency,
        resumed: Option<FitState>,
        save: &mut dyn FnMut(&FitState) -> Result<()>,
    ) -> Result<FittedNetwork> {
        let (features, graph, confidence) = (&stage.features, &stage.graph, &stage.confidence);
        let mut after_epoch = |state: &mut FitState| {
            let network = &state.best.network;
            let rho = self.params.choices.rho.unwrap_or(RHOS[0]);
            let query = EdgeQuery { rho, candidates: params.candidates };
            let said = self.connectivity(network, stage, adjacency, &query, &Quiet(self.progress))?;
            let links = connected_candidates(graph, confidence, 1, Some(&said))?;
            if let Some(epoch) = state.best.history.last_mut() {
                epoch.validation_f = Some(best_tau(&self.judge, &links).1);
            }
            save(state)
        };
        let run = FitRun { resumed, after_epoch: &mut after_epoch, progress: self.progress };
        fit_gcn_e(features, self.labels, graph, adjacency, confidence, params, run)
    }

    fn connectivity(
        &self,
        gcn_e: &GraphNetwork,
        stage: &Stage,
        adjacency: &Adjacency,
        query: &EdgeQuery,
        progress: &dyn Progress,
    ) -> Result<Connectivity> {
        let (features, graph, confidence) = (&stage.features, &stage.graph, &stage.confidence);
        edge_connectivity(gcn_e, features, graph, adjacency, confidence, query, progress)
    }

    /// Tries for how many vertices GCN-E should choose.
    fn choose_rho(
        &self,
        gcn_e: &GraphNetwork,
        candidates: Candidates,
        stage: &mut Stage,
        adjacency: &Adjacency,
    ) -> Result<()> {
        let given = self.params.choices.rho;
        let rhos = given.map_or(RHOS.to_vec(), |rho| vec![rho]);
        let query = EdgeQuery { rho: rhos[rhos.len() - 1], candidates };
        let said = self.connectivity(gcn_e, stage, adjacency, &query, self.progress)?;
        let [without, _] = stage.best;
        let mut with = Vec::new();
        for rho in rhos {
            let said = said.up_to(rho, stage.graph.len());
            let links = connected_candidates(&stage.graph, &stage.confidence, 1, Some(&said))?;
            let (tau, f) = self.judged(&links)?;
            with.push(Choice { rho, tau, f, ..without });
        }
        let best = best_of(&with);
        if given.is_some() || best.f > without.f + GAIN {
            stage.best[1] = best;
        }
        stage.candidates = candidates;
        stage.choices.extend(with);
        Ok(())
    }

    /// The given tau or the best, and the F of the held-out rows.
    fn judged(&self, links: &Links) -> Result<(f32, f64)> {
        self.progress.check()?;
        Ok(match self.params.choices.tau {
            Some(tau) => (tau, self.judge.score(&links.cut(tau))),
            None => best_tau(&self.judge, links),
        })
    }
}

/// The first that is as good as the best, but for noise: what was tried first is the simplest, and density, of which nothing
/// is fitted, is simpler than a network.
fn best_of(choices: &[Choice]) -> Choice {
    let best = choices.iter().fold(0.0, |best: f64, choice| best.max(choice.f));
    *choices.iter().find(|choice| choice.f >= best - GAIN).unwrap_or(&choices[0])
}
