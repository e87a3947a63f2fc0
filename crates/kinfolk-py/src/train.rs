//! Training on labelled rows, with the defaults of `kinfolk train`.

use crate::arrays::{Matrix, Neighbours, labels};
use crate::work::Job;
use kinfolk::{Context, Error, Problem};
use kinfolk_nn::Checkpoints;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Trains a model and returns its file.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the Python side has names for them")]
pub fn train<'py>(
    py: Python<'py>,
    x: Matrix,
    y: PyReadonlyArray1<'py, i64>,
    neighbours: Option<Neighbours>,
    method: String,
    k: Option<usize>,
    seed: u64,
    job: Job,
) -> PyResult<Bound<'py, PyBytes>> {
    let y = labels(&y);
    let model = job.run(py, move |progress| {
        let learner = kinfolk_methods::learner(&method)?;
        let embeddings = x.embeddings()?;
        let graph = neighbours.map(Neighbours::graph).transpose()?;
        let mut problem = Problem::new(&embeddings).with_labels(&y)?;
        if let Some(graph) = &graph {
            problem = problem.with_graph(graph)?;
        }
        let context = Context::new(progress).with_seed(seed);
        let trained = learner.train(&problem.with_k(k)?, Checkpoints::default(), &context)?;
        let model = trained.model().ok_or_else(|| Error::Parameter {
            field: "method",
            expected: "one that learns",
            found: method.clone(),
        })?;
        model.to_bytes()
    })?;
    Ok(PyBytes::new(py, &model))
}
