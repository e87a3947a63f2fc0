//! Clustering by the methods that keep their ties, and what is told of it.

use crate::arrays::{Matrix, Neighbours, column};
use crate::errors::raise;
use crate::work::Manner;
use kinfolk::{
    ClusterParams, Clustering, Embeddings, Error, KinParams, KnnGraph, KnnParams, Prefer, Progress, review,
};
use kinfolk_nn::{ApplyParams, KinModel, LgcnModel, LtcModel, Model, ModelFile};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Decisions that are listed: as many as the command does.
const REVIEWED: usize = 1000;

/// A word, or a probability of one's own.
#[derive(FromPyObject)]
pub enum Preference {
    Word(String),
    Probability(f32),
}

impl Preference {
    /// What was asked for; `None` for what is usual.
    fn read(self) -> PyResult<Option<Prefer>> {
        match self {
            Preference::Probability(probability) => Ok(Some(Prefer::Probability(probability))),
            Preference::Word(word) => match word.as_str() {
                "precision" => Ok(Some(Prefer::Precision)),
                "balanced" => Ok(None),
                "recall" => Ok(Some(Prefer::Recall)),
                other => Err(PyValueError::new_err(format!(
                    "prefer: expected precision, balanced, recall or a probability from 0 to 1, found {other:?}"
                ))),
            },
        }
    }
}

/// How to cluster.
struct Way {
    method: String,
    prefer: Option<Prefer>,
    k: Option<usize>,
    model: Option<Vec<u8>>,
    seed: u64,
}

/// What was found, and the probability that a tie of kin needed.
struct Found {
    clustering: Clustering,
    least: Option<f32>,
    mapped: bool,
}

impl Way {
    fn run(
        &self,
        embeddings: &Embeddings,
        graph: Option<&KnnGraph>,
        progress: &dyn Progress,
    ) -> kinfolk::Result<Found> {
        let model = self.model.as_deref().map(|bytes| ModelFile::parse(bytes, "model")).transpose()?;
        match (model, self.method.as_str()) {
            (Some(ModelFile::Kin(model)), "kin") => self.kin(embeddings, graph, Some(model), progress),
            // The method that is usual is whatever a model is for.
            (Some(ModelFile::Networks(model)), "kin" | "gcn-v" | "gcn-ve") => {
                self.networks(embeddings, graph, model, progress)
            }
            (Some(ModelFile::Lgcn(model)), "kin" | "lgcn") => self.lgcn(embeddings, graph, &model, progress),
            (Some(ModelFile::Ltc(model)), "kin" | "ltc") => self.ltc(embeddings, graph, &model, progress),
            (None, "kin") => self.kin(embeddings, graph, None, progress),
            (None, "density") => self.density(embeddings, graph, progress),
            (Some(_), _) => self.wrong("method", "what the model is for"),
            (None, "gcn-v" | "gcn-ve" | "lgcn" | "ltc") => {
                self.wrong("method", "a model of its networks, or labels to train them on")
            }
            (None, _) => self.wrong(
                "method",
                "kin, density, gcn-v, gcn-ve, lgcn or ltc (the others are functions of kinfolk.baselines)",
            ),
        }
    }

    fn wrong<T>(&self, name: &'static str, expected: &'static str) -> kinfolk::Result<T> {
        Err(Error::Parameter { field: name, expected, found: self.method.clone() })
    }

    fn knn(&self) -> KnnParams {
        let usual = KnnParams::default();
        KnnParams { k: self.k.unwrap_or(usual.k), seed: self.seed, ..usual }
    }

    fn kin(
        &self,
        embeddings: &Embeddings,
        graph: Option<&KnnGraph>,
        trained: Option<KinModel>,
        progress: &dyn Progress,
    ) -> kinfolk::Result<Found> {
        let mut params = match trained {
            Some(model) => model.params(),
            // A K that was asked for is kept.
            None => KinParams { grow: self.k.is_none(), ..KinParams::default() },
        };
        if let Some(whitening) = &params.whitening {
            check_columns(embeddings, whitening.dim())?;
        }
        params.prefer = self.prefer.unwrap_or(params.prefer);
        params.knn = KnnParams { k: self.k.unwrap_or(params.knn.k), ..self.knn() };
        let clustering = kinfolk::kin(embeddings, graph, &params, progress)?;
        let least = clustering.evidence.as_ref().map(|evidence| evidence.least);
        Ok(Found { clustering, least, mapped: embeddings.is_mapped() })
    }

    fn density(
        &self,
        embeddings: &Embeddings,
        graph: Option<&KnnGraph>,
        progress: &dyn Progress,
    ) -> kinfolk::Result<Found> {
        self.without_prefer()?;
        let params = ClusterParams { knn: self.knn(), ..ClusterParams::default() };
        let clustering = kinfolk::cluster(embeddings, graph, &params, progress)?;
        Ok(Found { clustering, least: None, mapped: embeddings.is_mapped() })
    }

    fn networks(
        &self,
        embeddings: &Embeddings,
        graph: Option<&KnnGraph>,
        model: Model,
        progress: &dyn Progress,
    ) -> kinfolk::Result<Found> {
        self.without_prefer()?;
        if self.method == "gcn-ve" && model.gcn_e.is_none() {
            return self.wrong("method", "gcn-v: the model has no GCN-E");
        }
        check_columns(embeddings, model.dim())?;
        let mut config = model.config.clone();
        config.k = self.k.unwrap_or(config.k);
        let connectivity = model.gcn_e.is_some() && self.method != "gcn-v";
        let params = ApplyParams { config, knn: self.knn(), connectivity };
        let clustering = kinfolk_nn::cluster(embeddings, graph, &model, &params, progress)?.clustering;
        Ok(Found { clustering, least: None, mapped: embeddings.is_mapped() })
    }

    fn lgcn(
        &self,
        embeddings: &Embeddings,
        graph: Option<&KnnGraph>,
        model: &LgcnModel,
        progress: &dyn Progress,
    ) -> kinfolk::Result<Found> {
        let mut params = model.params.clone();
        params.shape.k1 = self.k.unwrap_or(params.shape.k1);
        self.by_labels(embeddings, graph, [model.network.inputs(), params.shape.k1], progress, |graph| {
            kinfolk_nn::lgcn(embeddings, graph, &model.network, &params, progress)
        })
    }

    fn ltc(
        &self,
        embeddings: &Embeddings,
        graph: Option<&KnnGraph>,
        model: &LtcModel,
        progress: &dyn Progress,
    ) -> kinfolk::Result<Found> {
        let LtcModel { gcn_d, gcn_s, params } = model;
        let k = params.proposals.settings.iter().map(|setting| setting.k).max();
        let k = self.k.or(k).unwrap_or(KnnParams::default().k);
        self.by_labels(embeddings, graph, [model.dim(), k], progress, |graph| {
            kinfolk_nn::ltc(embeddings, graph, [gcn_d, gcn_s], params, progress)
        })
    }

    /// A trained method that makes only labels, for rows of `dim` columns on a graph of `k` neighbours.
    fn by_labels(
        &self,
        embeddings: &Embeddings,
        graph: Option<&KnnGraph>,
        [dim, k]: [usize; 2],
        progress: &dyn Progress,
        method: impl FnOnce(&KnnGraph) -> kinfolk::Result<Vec<i64>>,
    ) -> kinfolk::Result<Found> {
        self.without_prefer()?;
        check_columns(embeddings, dim)?;
        let found;
        let graph = match graph {
            Some(graph) => graph,
            None => {
                found = kinfolk::knn_graph(embeddings, &KnnParams { k, ..self.knn() }, progress)?.0;
                &found
            }
        };
        let clustering = Clustering::of_labels(method(graph)?, graph.k(), None, Vec::new())?;
        Ok(Found { clustering, least: None, mapped: embeddings.is_mapped() })
    }

    fn without_prefer(&self) -> kinfolk::Result<()> {
        match self.prefer {
            Some(_) => self.wrong("prefer", "balanced: only kin knows another"),
            None => Ok(()),
        }
    }
}

/// Refuses rows that are not like those a model was trained on.
fn check_columns(embeddings: &Embeddings, expected: usize) -> kinfolk::Result<()> {
    if embeddings.dim() == expected {
        return Ok(());
    }
    let expected = format!("{expected} columns, as the model was trained on");
    Err(Error::format("X", expected, embeddings.dim().to_string()))
}

/// Clusters rows, on a graph if one is given, by a model if one is given.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the Python side has names for them")]
pub fn cluster<'py>(
    py: Python<'py>,
    x: Matrix,
    neighbours: Option<Neighbours>,
    method: String,
    prefer: Preference,
    k: Option<usize>,
    model: Option<Vec<u8>>,
    seed: u64,
    manner: Manner,
) -> PyResult<Bound<'py, PyDict>> {
    let way = Way { method, prefer: prefer.read()?, k, model, seed };
    let found = manner.run(py, move |progress| {
        let embeddings = x.embeddings()?;
        let mut graph = neighbours.map(Neighbours::graph).transpose()?;
        if let (Some(k), Some(wider)) = (k, &graph)
            && k != wider.k()
        {
            graph = Some(wider.nearest(k)?);
        }
        way.run(&embeddings, graph.as_ref(), progress)
    })?;
    found.tell(py)
}

impl Found {
    fn tell<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = &self.clustering;
        let rows = found.labels.len();
        let all = PyDict::new(py);
        let link = |row: usize| found.links.parent(row);
        all.set_item("labels", column(py, rows, |row| found.labels[row]))?;
        all.set_item("confidence", column(py, rows, |row| found.links.confidence()[row]))?;
        all.set_item("parent", column(py, rows, |row| link(row).map_or(-1, |link| i64::from(link.0))))?;
        all.set_item("probability", column(py, rows, |row| found.probability(row).unwrap_or(1.0)))?;
        let ties = PyDict::new(py);
        ties.set_item("similarity", column(py, rows, |row| link(row).map_or(f32::NAN, |link| link.1)))?;
        if let Some(evidence) = &found.evidence {
            let inside = |row: usize| evidence.inside[row];
            let outside = |row: usize| evidence.outside[row];
            ties.set_item("rank", column(py, rows, |row| inside(row).map_or(0, |tie| tie.ranks[0])))?;
            ties.set_item("rank_back", column(py, rows, |row| inside(row).map_or(0, |tie| tie.ranks[1])))?;
            ties.set_item("shared", column(py, rows, |row| inside(row).map_or(0, |tie| tie.shared)))?;
            ties.set_item(
                "outside",
                column(py, rows, |row| outside(row).map_or(-1, |tie| i64::from(tie.row))),
            )?;
            let similarity = |row| outside(row).map_or(f32::NAN, |tie| tie.similarity);
            ties.set_item("outside_similarity", column(py, rows, similarity))?;
            let probability = |row| outside(row).map_or(f32::NAN, |tie| tie.probability);
            ties.set_item("outside_probability", column(py, rows, probability))?;
        }
        all.set_item("ties", ties)?;
        all.set_item("doubts", self.doubts(py)?)?;
        all.set_item("k", found.k)?;
        all.set_item("tau", self.least.is_none().then_some(found.tau))?;
        all.set_item("least", self.least)?;
        all.set_item("mapped", self.mapped)?;
        Ok(all)
    }

    fn doubts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let doubts = review(&self.clustering, REVIEWED);
        let n = doubts.len();
        let all = PyDict::new(py);
        all.set_item("together", column(py, n, |i| doubts[i].together))?;
        all.set_item("doubt", column(py, n, |i| doubts[i].doubt()))?;
        all.set_item("row", column(py, n, |i| i64::from(doubts[i].rows[0])))?;
        all.set_item("other", column(py, n, |i| i64::from(doubts[i].rows[1])))?;
        all.set_item("rows", column(py, n, |i| doubts[i].sizes[0]))?;
        all.set_item("others", column(py, n, |i| doubts[i].sizes[1]))?;
        all.set_item("similarity", column(py, n, |i| doubts[i].similarity))?;
        all.set_item("probability", column(py, n, |i| doubts[i].probability))?;
        Ok(all)
    }
}

/// The method that a model file is for. Fails when it is for none.
#[pyfunction]
pub fn method_of(model: &[u8], place: &str) -> PyResult<&'static str> {
    ModelFile::parse(model, place).map(|model| model.method()).map_err(raise)
}
