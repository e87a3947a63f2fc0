//! Clustering by any method of the registry, and the conversion of results to arrays.

use crate::arrays::{Matrix, Neighbours, column};
use crate::errors::raise;
use crate::work::Job;
use kinfolk::results::REVIEWED;
use kinfolk::{Clusterer, Clustering, Criterion, Error, Method, Problem, review};
use kinfolk_nn::ModelFile;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Clusters rows, on a graph if one is given, by a model if one is given. Without a method: that of the model, or the
/// default.
#[pyfunction]
#[pyo3(signature = (x, neighbours, method, parameters, k, model, seed, job, levels=false))]
#[allow(clippy::too_many_arguments, reason = "the Python side has names for them")]
pub fn cluster<'py>(
    py: Python<'py>,
    x: Option<Matrix>,
    neighbours: Option<Neighbours>,
    method: Option<String>,
    parameters: Vec<(String, String)>,
    k: Option<usize>,
    model: Option<Vec<u8>>,
    seed: u64,
    job: Job,
    levels: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let (found, mapped) = job.run(py, move |progress| {
        let method = configured(method.as_deref(), model, &parameters)?;
        let embeddings = x.map(Matrix::embeddings).transpose()?;
        let graph = neighbours.map(Neighbours::graph).transpose()?;
        let problem = match (&embeddings, &graph) {
            (Some(embeddings), Some(graph)) => Problem::new(embeddings).with_graph(graph)?,
            (Some(embeddings), None) => Problem::new(embeddings),
            (None, Some(graph)) => Problem::of_graph(graph),
            (None, None) => {
                let (expected, found) = ("embeddings or a graph", "neither".to_owned());
                return Err(Error::Parameter { field: "X", expected, found });
            }
        };
        let clusterer = Clusterer::with_boxed(method).seed(seed).levels(levels).progress(progress);
        let found = clusterer.run(&problem.with_k(k)?)?;
        Ok((found, embeddings.is_some_and(|embeddings| embeddings.is_mapped())))
    })?;
    arrays(py, &found, mapped)
}

fn configured(
    name: Option<&str>,
    model: Option<Vec<u8>>,
    parameters: &[(String, String)],
) -> kinfolk::Result<Box<dyn Method>> {
    let mut method: Box<dyn Method> = match model {
        Some(bytes) => kinfolk_methods::load(ModelFile::parse(&bytes, "model")?, name)?,
        None => kinfolk_methods::new(name.unwrap_or("kin"))?,
    };
    for (name, value) in parameters {
        method.parameters_mut().set(name, value)?;
    }
    Ok(method)
}

/// A result as a dictionary of arrays.
pub fn arrays<'py>(py: Python<'py>, found: &Clustering, mapped: bool) -> PyResult<Bound<'py, PyDict>> {
    let reasons: Vec<_> = found.rows().collect();
    let rows = reasons.len();
    let all = PyDict::new(py);
    all.set_item("labels", column(py, rows, |row| found.labels[row]))?;
    all.set_item("confidence", column(py, rows, |row| reasons[row].confidence.unwrap_or(0.0)))?;
    let parent = |row: usize| reasons[row].parent.map_or(-1, |parent| i64::from(parent.0));
    all.set_item("parent", column(py, rows, parent))?;
    all.set_item("probability", column(py, rows, |row| found.probability(row).unwrap_or(1.0)))?;
    let of_clusters = found.cluster_probabilities();
    let of_clusters = of_clusters.map(|known| column(py, rows, |row| known[found.labels[row] as usize]));
    all.set_item("cluster_probability", of_clusters)?;
    let edges = PyDict::new(py);
    let similarity = |row: usize| reasons[row].parent.map_or(f32::NAN, |parent| parent.1);
    edges.set_item("similarity", column(py, rows, similarity))?;
    if found.edges().is_some() {
        let edge = |row: usize| reasons[row].edge;
        let outside = |row: usize| reasons[row].outside;
        edges.set_item("rank", column(py, rows, |row| edge(row).map_or(0, |edge| edge.ranks[0])))?;
        edges.set_item("rank_back", column(py, rows, |row| edge(row).map_or(0, |edge| edge.ranks[1])))?;
        edges.set_item("shared", column(py, rows, |row| edge(row).map_or(0, |edge| edge.shared)))?;
        edges
            .set_item("outside", column(py, rows, |row| outside(row).map_or(-1, |edge| i64::from(edge.0))))?;
        let similarity = |row| outside(row).map_or(f32::NAN, |edge| edge.1);
        edges.set_item("outside_similarity", column(py, rows, similarity))?;
        let probability = |row| outside(row).map_or(f32::NAN, |edge| edge.2);
        edges.set_item("outside_probability", column(py, rows, probability))?;
    }
    all.set_item("edges", edges)?;
    all.set_item("doubts", doubts(py, found)?)?;
    all.set_item("levels", found.levels.as_ref().map(|levels| crate::levels::tree(py, levels)).transpose()?)?;
    all.set_item("k", found.report.k())?;
    let (tau, least) = match found.criterion() {
        Some(Criterion::Similarity(tau)) => (Some(tau), None),
        Some(Criterion::Probability(least)) => (None, Some(least)),
        None => (None, None),
    };
    all.set_item("tau", tau)?;
    all.set_item("least", least)?;
    all.set_item("method", found.report.method)?;
    all.set_item("notes", &found.report.notes)?;
    all.set_item("mapped", mapped)?;
    Ok(all)
}

fn doubts<'py>(py: Python<'py>, found: &Clustering) -> PyResult<Bound<'py, PyDict>> {
    let doubts = review(found, REVIEWED);
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

/// The method of a model file. Fails if the file is not a model.
#[pyfunction]
pub fn method_of(model: &[u8], place: &str) -> PyResult<&'static str> {
    let method = ModelFile::parse(model, place).and_then(|file| kinfolk_methods::load(file, None));
    Ok(method.map_err(raise)?.info().name)
}
