//! GCN-V and GCN-E, the method of the paper: confidence by GCN-V, the graph rebuilt from its embeddings F_L, and for the
//! most confident vertices the candidate that GCN-E connects them with.
//!
//! The model file has tensors `gcn_v.conv1.weight`, `gcn_e.classifier.0.bias` ... (see `tensors.rs`).

use super::check_columns;
use crate::apply::{
    Candidates, Connectivity, EdgeQuery, F_L, connected_candidates, edge_connectivity, mixed_confidence,
    vertex_confidence, vertex_confidence_and_rows, with_direction,
};
use crate::{GraphNetwork, LearnedMethod, Linear, ModelFile};
use kinfolk::laboratory::{ScatteredRows, search, with_super_vertices};
use kinfolk::stages::{Adjacency, DEFAULT_RADIUS, null_cosines};
use kinfolk::{
    Clustering, Context, Embeddings, Error, GraphReport, KnnParams, Method, MethodInfo, ParamSpec,
    Parameters, Problem, Reason, Report, Result, Tree,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;

/// The tag of the model file.
pub(crate) const TAG: &str = "gcn";

/// Edges of less similarity are left out of the adjacency.
const TH_SIM: f32 = 0.0;

/// How a model is applied by default. The defaults here are those of the paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GcnConfig {
    /// Neighbours of each vertex in the graph that GCN-V sees, itself excluded.
    pub k: usize,
    /// Neighbours of each vertex in the graph that is rebuilt from the embeddings F_L.
    pub k_rebuild: usize,
    /// Links of at most this similarity are cut.
    pub tau: f32,
    /// The same when GCN-V is applied without GCN-E; in files of version 1, tau.
    #[serde(default = "no_number")]
    pub tau_v: f32,
    /// The share of the density u_weight in the confidence of a vertex; that of GCN-V is the rest. Ranks are averaged.
    #[serde(default)]
    pub density: f32,
    /// The radius of that density.
    #[serde(default = "default_radius")]
    pub radius: f32,
    /// The share of vertices, by descending confidence, whose parents GCN-E chooses.
    pub rho: f32,
    /// Links of each vertex to candidates: 1 builds trees, more builds directed acyclic graphs.
    pub m: usize,
    /// Whether GCN-E chooses from all neighbours rather than from those of higher confidence.
    #[serde(default)]
    pub all_neighbours: bool,
    /// Whether candidates are neighbours by F_L instead of neighbours by the input.
    pub rebuild: bool,
    /// The set that tau was chosen on, if tau follows the size of the set it is applied to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tau_scale: Option<TauScale>,
}

/// The set that a tau was chosen on, so that it can follow the size of another.
///
/// Rows of different identities come nearer as sets grow: among N times as many, the nearest is that much further out in the
/// tail of the cosines of random pairs. If tau was z spreads above their median, a normal tail is exceeded by as many pairs
/// for each row of the new set at sqrt(z^2 + 2 ln N) spreads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TauScale {
    /// Its rows.
    pub rows: usize,
    /// The median of the cosines of random pairs, and their median absolute deviation.
    pub null: [f32; 2],
}

impl TauScale {
    /// Of rows, or of their embeddings F_L where the graph is rebuilt from these.
    pub fn of(features: &Embeddings, seed: u64) -> Self {
        TauScale { rows: features.len(), null: null_cosines(features, seed) }
    }

    /// The tau of another set that corresponds to `tau` here.
    pub fn follow(&self, tau: f32, other: &TauScale) -> f32 {
        /// The standard deviation of normal numbers whose median absolute deviation is 1.
        const SPREAD: f32 = 1.4826;
        let [from, to] = [self, other].map(|scale| (scale.null[0], SPREAD * scale.null[1]));
        let z = (tau - from.0) / from.1;
        if !(z > 0.0 && z.is_finite() && self.rows > 0 && other.rows > 0) {
            return tau;
        }
        let growth = (other.rows as f32 / self.rows as f32).ln();
        let z = (z * z + 2.0 * growth).max(0.0).sqrt();
        (to.0 + z * to.1).clamp(-1.0, 1.0)
    }
}

fn no_number() -> f32 {
    f32::NAN
}

fn default_radius() -> f32 {
    DEFAULT_RADIUS
}

impl Default for GcnConfig {
    fn default() -> Self {
        GcnConfig {
            k: 80,
            k_rebuild: 80,
            tau: 0.8,
            tau_v: 0.8,
            density: 0.0,
            radius: DEFAULT_RADIUS,
            rho: 0.1,
            m: 1,
            all_neighbours: false,
            rebuild: true,
            tau_scale: None,
        }
    }
}

impl GcnConfig {
    /// Refuses what is out of range.
    pub fn check(&self) -> Result<()> {
        if self.k == 0 || self.m == 0 {
            let field = if self.k == 0 { "k" } else { "m" };
            return Err(Error::Parameter { field, expected: "at least 1", found: "0".to_owned() });
        }
        GcnSettings::of(self, true).check()?;
        GcnSettings::of(self, false).check()
    }
}

/// GCN-V, GCN-E if there is one, and how to apply them.
#[derive(Debug, Clone, PartialEq)]
pub struct GcnModel {
    /// Estimates confidence: one output.
    pub gcn_v: GraphNetwork,
    /// Estimates connectivity: one output, or two that are logits.
    pub gcn_e: Option<GraphNetwork>,
    /// How to apply them.
    pub config: GcnConfig,
}

impl GcnModel {
    /// Columns of the embeddings it takes.
    pub fn dim(&self) -> usize {
        self.gcn_v.inputs()
    }

    /// Refuses networks that do not fit each other or what they are for; `place` names the model in errors.
    pub fn check(&self, place: &str) -> Result<()> {
        self.check_for(self.config.rebuild, place)
    }

    /// The same, for an application that rebuilds the graph or does not.
    fn check_for(&self, rebuild: bool, place: &str) -> Result<()> {
        let outputs = self.gcn_v.output.outputs;
        if outputs != 1 {
            return Err(Error::format(place, "GCN-V with 1 output, the confidence", outputs.to_string()));
        }
        let Some(gcn_e) = &self.gcn_e else { return Ok(()) };
        let (dim, width) = (self.dim(), self.gcn_v.width());
        let (expected, why) = match rebuild {
            true => (width, "the width of the embeddings of GCN-V"),
            false => (dim, "the columns of the features, which are not rebuilt"),
        };
        if gcn_e.inputs() != expected {
            let expected = format!("GCN-E for rows of {expected}, {why}");
            return Err(Error::format(place, expected, format!("for rows of {}", gcn_e.inputs())));
        }
        Ok(())
    }

    /// Reads a model from a file's contents, which may hold the state of unfinished training besides.
    pub fn from_file(file: ModelFile) -> Result<Self> {
        let mut file = file.without_training();
        let model = Self::take(&mut file)?;
        file.finish()?;
        Ok(model)
    }

    /// Takes the model out of a file, which may hold the state of training besides.
    pub(crate) fn take(file: &mut ModelFile) -> Result<Self> {
        file.expect(TAG)?;
        let mut config: GcnConfig = file.metadata()?;
        if config.tau_v.is_nan() {
            config.tau_v = config.tau;
        }
        config.check().map_err(|e| file.unusable(e))?;
        let gcn_v = file.take_network("gcn_v")?;
        let gcn_e = match file.has("gcn_e") {
            true => Some(file.take_network("gcn_e")?),
            false => None,
        };
        let model = GcnModel { gcn_v, gcn_e, config };
        model.check(file.place())?;
        Ok(model)
    }

    /// Reads a model file.
    pub fn read(path: &Path) -> Result<Self> {
        Self::from_file(ModelFile::read(path)?)
    }

    /// Writes a model file atomically.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.check(&path.display().to_string())?;
        self.to_file().write(path)
    }

    pub(crate) fn to_file(&self) -> ModelFile {
        let mut file = ModelFile::new(TAG, &self.config);
        file.insert_network("gcn_v", &self.gcn_v);
        if let Some(gcn_e) = &self.gcn_e {
            file.insert_network("gcn_e", gcn_e);
        }
        file
    }
}

kinfolk::parameters! {
    /// Parameters of the application of a model.
    #[derive(Debug, Clone, PartialEq)]
    pub struct GcnSettings {
        /// Links of at most this similarity are cut; the default is that of the model.
        pub tau: f32 = 0.8, "a similarity from -1 to 1", |tau| (-1.0..=1.0).contains(tau);
        /// Share of the rows, the most confident ones, whose parents GCN-E chooses.
        pub rho: f32 = 0.1, "a share from 0 to 1", |rho| (0.0..=1.0).contains(rho);
        /// Links of each row to rows of higher confidence: 1 builds trees, more builds directed acyclic graphs; -1 lets GCN-E
        /// choose one from all neighbours.
        pub m: i64 = 1, "1 or more, or -1", |m| *m >= 1 || *m == -1;
        /// Share of density in the confidence; that of GCN-V is the rest.
        pub density: f32 = 0.0, "a share from 0 to 1", |share| (0.0..=1.0).contains(share);
        /// Cosine distance within which density counts neighbours.
        pub radius: f32 = DEFAULT_RADIUS, "above 0, at most 2", |radius| *radius > 0.0 && *radius <= 2.0;
        /// Whether to rebuild the graph from the embeddings of GCN-V.
        pub rebuild: bool = true;
        /// Neighbours in the graph that is rebuilt.
        pub k_rebuild: usize = 80, "at least 1", |k| *k >= 1;
        /// Whether tau follows the size of the set; the default is that of the model, and false if tau is set.
        pub follow: bool = false;
        /// Rows of a cosine above this are contracted to one super vertex before the search and share its cluster; 1 contracts
        /// none.
        pub super_vertices: f32 = 1.0, "a similarity above 0, at most 1", |bound| *bound > 0.0 && *bound <= 1.0;
    }
}

impl GcnSettings {
    /// Those of a model, with or without its GCN-E.
    fn of(config: &GcnConfig, gcn_e: bool) -> Self {
        GcnSettings {
            tau: if gcn_e { config.tau } else { config.tau_v },
            rho: if gcn_e { config.rho } else { 0.0 },
            m: if gcn_e && config.all_neighbours { -1 } else { config.m as i64 },
            density: config.density,
            radius: config.radius,
            rebuild: config.rebuild,
            k_rebuild: config.k_rebuild,
            follow: config.tau_scale.is_some(),
            super_vertices: 1.0,
        }
    }
}

/// Clusters with GCN-V and, where rho is above 0, GCN-E.
#[derive(Debug, Clone, PartialEq)]
pub struct Gcn {
    model: GcnModel,
    /// How it is applied, by default as its model says.
    pub settings: GcnSettings,
    /// Whether GCN-E may be used.
    gcn_e: bool,
}

/// The result of [`Gcn::apply`].
#[derive(Debug, Clone)]
pub struct GcnResult {
    /// Labels, links and timings.
    pub clustering: Clustering,
    /// The estimates of GCN-E, if it was used.
    pub connectivity: Option<Connectivity>,
}

impl Gcn {
    /// Both networks, as far as the model has them.
    pub fn new(model: GcnModel) -> Self {
        let gcn_e = model.gcn_e.is_some();
        Gcn { settings: GcnSettings::of(&model.config, gcn_e), model, gcn_e }
    }

    /// GCN-V alone: each row takes its nearest neighbour of higher confidence.
    pub fn vertex_only(model: GcnModel) -> Self {
        Gcn { settings: GcnSettings::of(&model.config, false), model, gcn_e: false }
    }

    /// The model.
    pub fn model(&self) -> &GcnModel {
        &self.model
    }

    /// Whether GCN-E is used.
    fn uses_gcn_e(&self) -> bool {
        self.gcn_e && self.settings.rho > 0.0
    }

    /// Where links are cut. The tau of a model follows in the graph that it was chosen on.
    fn tau(&self, features: &Embeddings, context: &Context) -> Result<f32> {
        let GcnSettings { tau, follow, rebuild, .. } = self.settings;
        let GcnConfig { tau_scale, rebuild: chosen_on, .. } = self.model.config;
        match tau_scale {
            _ if !follow => Ok(tau),
            Some(scale) if rebuild == chosen_on => {
                Ok(scale.follow(tau, &TauScale::of(features, context.seed())))
            }
            Some(_) => Ok(tau),
            None => {
                let expected = "false for this model, whose tau is fixed";
                Err(Error::Parameter { field: "follow", expected, found: "true".to_owned() })
            }
        }
    }

    /// Clusters a problem. A given graph with more neighbours than the model was trained on is cut; one with fewer is
    /// refused, unless it is only one fewer: the published layout counts a row as its own first neighbour.
    pub fn apply(&self, problem: &Problem, context: &Context) -> Result<GcnResult> {
        let GcnModel { gcn_v, gcn_e, config } = &self.model;
        let settings = &self.settings;
        settings.check()?;
        let embeddings = problem.embeddings()?;
        check_columns(embeddings, self.model.dim())?;
        let gcn_e = gcn_e.as_ref().filter(|_| self.uses_gcn_e());
        if gcn_e.is_some() {
            self.model.check_for(settings.rebuild, "model")?;
        } else if settings.m == -1 {
            let expected = "1 or more without GCN-E";
            return Err(Error::Parameter { field: "m", expected, found: "-1".to_owned() });
        }
        let found = problem.nearest(problem.k().unwrap_or(config.k), context)?;
        let (graph, graph_report) = (found.graph, found.report);
        let progress = context.progress();
        let adjacency = context.timed("adjacency", || Adjacency::from_knn(&graph, TH_SIM))?;
        let (confidence, f_l) = context.timed("confidence", || {
            let (confidence, f_l) = match settings.rebuild {
                true => {
                    let (n, width) = (embeddings.len(), gcn_v.width());
                    let (mut f_l, mut copy) = (ScatteredRows::new(n, width, F_L, context)?, vec![0.0; width]);
                    let mut keep = |i: usize, row: &[f32]| {
                        copy.copy_from_slice(row);
                        with_direction(i, &mut copy);
                        f_l.put(i, &copy)
                    };
                    let confidence =
                        vertex_confidence_and_rows(gcn_v, embeddings, &adjacency, &mut keep, progress)?;
                    (confidence, Some(f_l.finish()?))
                }
                false => {
                    (vertex_confidence(gcn_v, embeddings, &adjacency, false, progress)?.confidence, None)
                }
            };
            Ok::<_, Error>((mixed_confidence(&confidence, &graph, settings.density, settings.radius)?, f_l))
        })?;
        let mut rebuilt: Option<GraphReport> = None;
        let (features, graph, adjacency) = match f_l {
            Some(features) => {
                drop((graph, adjacency));
                let knn = KnnParams { k: settings.k_rebuild, ..problem.knn_params(config.k, context) };
                let found = search(&features, &knn, "rebuild", context)?;
                rebuilt = Some(found.report);
                (Cow::Owned(features), found.graph, None)
            }
            None => (Cow::Borrowed(embeddings), graph, Some(adjacency)),
        };
        let adjacency = match (gcn_e, adjacency) {
            (Some(_), None) => {
                Some(context.timed("rebuilt adjacency", || Adjacency::from_knn(&graph, TH_SIM))?)
            }
            (_, known) => known,
        };
        let (links, connectivity) = context.timed("connectivity", || {
            let connectivity = match gcn_e.zip(adjacency) {
                Some((gcn_e, adjacency)) => {
                    let candidates = match settings.m {
                        -1 => Candidates::AllNeighbours,
                        _ => Candidates::MoreConfident,
                    };
                    let query = EdgeQuery { rho: settings.rho, candidates };
                    let (features, confidence) = (&features, &confidence);
                    Some(edge_connectivity(
                        gcn_e, features, &graph, &adjacency, confidence, &query, progress,
                    )?)
                }
                None => None,
            };
            let m = settings.m.max(1) as usize;
            let links = connected_candidates(&graph, &confidence, m, connectivity.as_ref())?;
            Ok::<_, Error>((links, connectivity))
        })?;
        let tau = self.tau(&features, context)?;
        let labels = context.timed("partition", || links.cut(tau));
        let mut report = Report::new(self, Some(graph_report), context);
        report.rebuilt_graph = rebuilt;
        if tau != settings.tau {
            report.notes.push(format!("tau {:.3} of the model, for the size of its set", settings.tau));
            report.set("tau", tau);
        }
        if self.gcn_e && !self.uses_gcn_e() {
            report.notes.push("GCN-E was not used: rho is 0".to_owned());
        }
        if settings.density == 1.0 && !settings.rebuild {
            report.notes.push("GCN-V was not used: the confidence is density alone".to_owned());
        }
        let clustering = Clustering::new(labels, Reason::Tree(Tree { links, tau }), report);
        Ok(GcnResult { clustering, connectivity })
    }
}

static GCN_V: MethodInfo = MethodInfo::new(
    "gcn-v",
    "GCN-V",
    "Estimates the confidence of every row by GCN-V and links it to its nearest neighbour of higher confidence",
)
.when("to reproduce the paper, with a model trained on at least about a thousand identities of the same domain")
.cost("N K D, and a second search")
.needs_model()
.in_paper()
.color("#3366cc");

static GCN_VE: MethodInfo = MethodInfo::new(
    "gcn-ve",
    "GCN-V + GCN-E",
    "Like gcn-v, but GCN-E chooses the neighbours that the most confident rows are linked to",
)
.when("to reproduce the best results of the paper")
.cost("N K D, and a second search")
.needs_model()
.in_paper()
.color("#17375e");

/// The parts of a model that are used.
impl Method for Gcn {
    fn info(&self) -> &'static MethodInfo {
        if self.uses_gcn_e() { &GCN_VE } else { &GCN_V }
    }

    fn parameters(&self) -> &dyn Parameters {
        self
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        self
    }

    /// While the adjacency is built: the graph, its edges by where they arrive, and about 1.3 entries for each. While GCN-E is
    /// applied: the graph, the adjacency, and two products of each row that uses it.
    fn memory(&self, rows: usize, _dim: usize, k: usize) -> u64 {
        let of_adjacency = 28 * k;
        let products = self.model.gcn_e.as_ref().filter(|_| self.uses_gcn_e()).map_or(0.0, |gcn_e| {
            8.0 * f64::from(self.settings.rho)
                * gcn_e.convolutions.first().map_or(0, |first| first.outputs) as f64
        });
        (rows * of_adjacency.max(19 * k + products as usize)) as u64
    }

    /// F_L.
    fn rewritten_rows(&self, rows: usize, _dim: usize) -> u64 {
        if self.settings.rebuild { (4 * rows * self.model.gcn_v.width()) as u64 } else { 0 }
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.settings.check()?;
        with_super_vertices(problem, self.settings.super_vertices, context, |problem| {
            Ok(self.apply(problem, context)?.clustering)
        })
    }
}

impl LearnedMethod for Gcn {
    fn to_model(&self) -> Option<ModelFile> {
        Some(self.model.to_file())
    }
}

/// The descriptions of both methods, for the registry.
pub(crate) fn infos() -> [&'static MethodInfo; 2] {
    [&GCN_V, &GCN_VE]
}

/// Without GCN-E there is no rho.
impl Parameters for Gcn {
    fn specs(&self) -> Vec<ParamSpec> {
        self.settings.specs().into_iter().filter(|spec| self.gcn_e || spec.name != "rho").collect()
    }

    fn get(&self, name: &str) -> Option<String> {
        self.settings.get(name).filter(|_| self.gcn_e || name != "rho")
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        if !self.gcn_e && name == "rho" {
            let known: Vec<&str> = self.specs().iter().map(|spec| spec.name).collect();
            return Err(kinfolk::unknown_parameter(name, &known));
        }
        self.settings.set(name, value)?;
        if name == "tau" {
            self.settings.follow = false;
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.settings.check()
    }
}

impl GraphNetwork {
    /// Columns of the rows it takes.
    pub fn inputs(&self) -> usize {
        self.convolutions.first().map_or(0, |first: &Linear| first.inputs / 2)
    }

    /// Columns of its last graph convolution: those of the embeddings F_L.
    pub fn width(&self) -> usize {
        self.hidden.inputs
    }
}

#[cfg(test)]
mod tests;
