//! Functions other than clustering: neighbours, scores, synthetic sets, explanations, the command.

use crate::arrays::{Matrix, labels};
use crate::errors::raise;
use crate::work::Job;
use kinfolk::io::AtomicFile;
use kinfolk::metrics::{Fscore, evaluate};
use kinfolk::stages::Edge;
use kinfolk::synth::{Profile, Synth, SynthParams};
use kinfolk::{Criterion, Error, Explainer, KnnParams, RowReason, Search};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

/// Rows of a synthetic set that are filled at a time, in values.
const BLOCK_VALUES: usize = 1 << 20;

/// What goes out.
type Table<'py, T> = Bound<'py, PyArray2<T>>;
type Labels<'py> = Bound<'py, PyArray1<i64>>;
type Three = (f64, f64, f64);

/// The nearest neighbours of every row: ids and similarities, N x K each.
#[pyfunction]
pub fn knn_graph<'py>(
    py: Python<'py>,
    x: Matrix,
    k: usize,
    recall: Option<f32>,
    seed: u64,
    job: Job,
) -> PyResult<(Table<'py, u32>, Table<'py, f32>)> {
    let search = match recall {
        None => Search::Auto,
        Some(1.0) => Search::Exact,
        Some(recall) => Search::Recall(recall),
    };
    let params = KnnParams { k, search, seed, ..KnnParams::default() };
    let found = job.run(py, move |progress| kinfolk::knn_graph(&x.embeddings()?, &params, progress))?.0;
    let shape = [found.len(), found.k()];
    let (ids, similarities) = found.into_parts();
    Ok((PyArray1::from_vec(py, ids).reshape(shape)?, PyArray1::from_vec(py, similarities).reshape(shape)?))
}

/// Every score of predicted labels.
#[pyfunction]
pub fn scores<'py>(
    py: Python<'py>,
    truth: PyReadonlyArray1<'py, i64>,
    predicted: PyReadonlyArray1<'py, i64>,
) -> PyResult<(Three, Three, f64)> {
    let (truth, predicted) = (labels(&truth), labels(&predicted));
    let scores = py.detach(|| evaluate(&truth, &predicted)).map_err(raise)?;
    let three = |score: Fscore| (score.precision, score.recall, score.f);
    Ok((three(scores.pairwise), three(scores.bcubed), scores.nmi))
}

/// Rows and labels of each part of a synthetic set.
#[pyfunction]
pub fn synth<'py>(
    py: Python<'py>,
    parameters: Bound<'py, PyDict>,
    split: Option<f64>,
    job: Job,
) -> PyResult<Vec<(Table<'py, f32>, Labels<'py>)>> {
    let profile = match parameters.get_item("profile")? {
        Some(name) => name.extract::<String>()?.parse::<Profile>().map_err(raise)?,
        None => Profile::default(),
    };
    let mut params = profile.params();
    for (name, value) in parameters {
        set(&mut params, &name.extract::<String>()?, &value)?;
    }
    let synth = Synth::new(params).map_err(raise)?;
    let parts = match split {
        None => vec![synth.whole()],
        Some(share) => {
            let (train, test) = synth.split(share).map_err(raise)?;
            vec![train, test]
        }
    };
    let made = parts.into_iter().map(|part| {
        let (rows, dim) = (part.rows(), part.dim());
        let labels = part.labels();
        let data = job.run(py, move |progress| {
            let mut data = vec![0f32; rows * dim];
            let at_once = (BLOCK_VALUES / dim).max(1);
            progress.begin("rows", rows as u64);
            for (block, values) in data.chunks_mut(at_once * dim).enumerate() {
                progress.check()?;
                let (first, count) = (block * at_once, values.len() / dim);
                part.fill(first..first + count, values);
                progress.advance(count as u64);
            }
            Ok(data)
        })?;
        Ok((PyArray1::from_vec(py, data).reshape([rows, dim])?, PyArray1::from_vec(py, labels)))
    });
    made.collect()
}

fn set(params: &mut SynthParams, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "profile" => {}
        "identities" => params.identities = value.extract()?,
        "dim" => params.dim = value.extract()?,
        "seed" => params.seed = value.extract()?,
        "intrinsic_dim" => params.intrinsic_dim = value.extract()?,
        "mean_size" => params.mean_size = value.extract()?,
        "size_spread" => params.size_spread = value.extract()?,
        "min_size" => params.min_size = value.extract()?,
        "max_size" => params.max_size = value.extract()?,
        "singletons" => params.singletons = value.extract()?,
        "group_size" => params.group_size = value.extract()?,
        "likeness" => params.likeness = value.extract()?,
        "max_modes" => params.max_modes = value.extract()?,
        "mode_size" => params.mode_size = value.extract()?,
        "mode_spread" => params.mode_spread = value.extract()?,
        "noise" => params.noise = value.extract()?,
        "noise_tail" => params.noise_tail = value.extract()?,
        "noise_dim" => params.noise_dim = value.extract()?,
        "noise_between" => params.noise_between = value.extract()?,
        "drift_directions" => params.drift_directions = value.extract()?,
        "drift_from" => params.drift_from = value.extract()?,
        "drift" => params.drift = value.extract()?,
        other => return Err(PyTypeError::new_err(format!("synth() has no parameter {other:?}"))),
    }
    Ok(())
}

/// The attributes of a fitted estimator that `explain` needs; see `cluster`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct FittedArrays<'py> {
    labels: PyReadonlyArray1<'py, i64>,
    confidence: PyReadonlyArray1<'py, f32>,
    parent: PyReadonlyArray1<'py, i64>,
    probability: PyReadonlyArray1<'py, f32>,
    edges: Bound<'py, PyDict>,
    k: Option<usize>,
    tau: Option<f32>,
    least: Option<f32>,
}

/// Why a row is in its cluster, or why two rows are in one cluster or not.
#[pyfunction]
pub fn explain(
    fitted: FittedArrays<'_>,
    x: Option<Matrix>,
    row: usize,
    other: Option<usize>,
) -> PyResult<String> {
    let criterion = match (fitted.least, fitted.tau) {
        (Some(least), _) => Criterion::Probability(least),
        (None, Some(tau)) => Criterion::Similarity(tau),
        (None, None) => {
            return Err(PyValueError::new_err(
                "explain: expected a result of a method that returns reasons (kin, density, gcn-v or gcn-ve), found another",
            ));
        }
    };
    let explainer =
        Explainer::of_rows(fitted.rows()?, fitted.k.unwrap_or(0), criterion, "result").map_err(raise)?;
    let explainer = match x.map(Matrix::embeddings).transpose().map_err(raise)? {
        Some(embeddings) => explainer.with_embeddings(embeddings),
        None => explainer,
    };
    explainer.explain(row, other).map_err(raise)
}

impl FittedArrays<'_> {
    fn rows(&self) -> PyResult<Vec<RowReason>> {
        let rows = self.labels.as_array().len();
        let column = |name: &str| -> PyResult<Option<PyReadonlyArray1<'_, f32>>> {
            self.edges.get_item(name)?.map(|column| column.extract()).transpose()
        };
        let count = |name: &str| -> PyResult<Option<PyReadonlyArray1<'_, u32>>> {
            self.edges.get_item(name)?.map(|column| column.extract()).transpose()
        };
        let (similarity, rank, back, shared) =
            (column("similarity")?, count("rank")?, count("rank_back")?, count("shared")?);
        let outside: Option<PyReadonlyArray1<'_, i64>> =
            self.edges.get_item("outside")?.map(|column| column.extract()).transpose()?;
        let (outside_similarity, outside_probability) =
            (column("outside_similarity")?, column("outside_probability")?);
        let line = |row: usize| -> Option<RowReason> {
            let parent = u32::try_from(*self.parent.get(row)?).ok();
            let parent = match parent {
                Some(parent) => Some((parent, *similarity.as_ref()?.get(row)?)),
                None => None,
            };
            let edge = match (parent, &rank, &back, &shared) {
                (Some((parent, similarity)), Some(rank), Some(back), Some(shared)) => Some(Edge {
                    row: parent,
                    similarity,
                    probability: *self.probability.get(row)?,
                    ranks: [*rank.get(row)?, *back.get(row)?],
                    shared: *shared.get(row)?,
                }),
                _ => None,
            };
            let outside = match (&outside, &outside_similarity, &outside_probability) {
                (Some(outside), Some(similarity), Some(probability)) => u32::try_from(*outside.get(row)?)
                    .ok()
                    .zip(similarity.get(row).copied().zip(probability.get(row).copied()))
                    .map(|(other, (similarity, probability))| (other, similarity, probability)),
                _ => None,
            };
            let (cluster, confidence) = (*self.labels.get(row)?, *self.confidence.get(row)?);
            Some(RowReason { cluster, confidence: Some(confidence), parent, edge, outside })
        };
        let lines: Option<Vec<RowReason>> = (0..rows).map(line).collect();
        lines.ok_or_else(|| {
            PyValueError::new_err(format!("result: expected arrays of {rows} rows, found shorter ones"))
        })
    }
}

/// Writes a file atomically.
#[pyfunction]
pub fn write(path: PathBuf, data: &[u8]) -> PyResult<()> {
    let mut file = AtomicFile::create(&path).map_err(raise)?;
    file.write_all(data).map_err(|e| raise(Error::io(&path, e)))?;
    file.commit().map_err(raise)
}

/// The command, with its own name as the first argument; returns the exit code.
#[pyfunction]
pub fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| kinfolk_cli::run(arguments))
}
