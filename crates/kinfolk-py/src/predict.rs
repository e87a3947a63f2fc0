//! The clusters of `fit` that new rows belong to: `kinfolk::Predictor`.

use crate::arrays::{Matrix, labels};
use crate::work::Job;
use kinfolk::{Assignment, Context, Kin, Method, Predictor};
use kinfolk_nn::{ModelFile, read_kin_model};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

/// The most probable clusters of each row, their probabilities, and the probability of none.
pub type Candidates<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<f32>>);

/// What is known of clustered rows.
#[pyclass(frozen, name = "Predictor", module = "kinfolk._kinfolk")]
pub struct FittedPredictor(Predictor);

#[pymethods]
impl FittedPredictor {
    /// For `kin`, with its parameters and, if there is one, its model.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "the Python side has names for them")]
    fn by_edges(
        py: Python<'_>,
        x: Matrix,
        of_rows: PyReadonlyArray1<'_, i64>,
        parameters: Vec<(String, String)>,
        k: usize,
        model: Option<Vec<u8>>,
        seed: u64,
        job: Job,
    ) -> PyResult<Self> {
        let of_rows = labels(&of_rows);
        let found = job.run(py, move |progress| {
            let model = model.map(|bytes| read_kin_model(ModelFile::parse(&bytes, "model")?)).transpose()?;
            let mut method = model.map_or_else(Kin::default, Kin::trained);
            for (name, value) in &parameters {
                method.parameters_mut().set(name, value)?;
            }
            let context = Context::new(progress).with_seed(seed);
            Predictor::by_edges(&x.embeddings()?, &of_rows, &method, k, &context)
        })?;
        Ok(Self(found))
    }

    /// For the labels of any method.
    #[staticmethod]
    fn by_nearest(
        py: Python<'_>,
        x: Matrix,
        of_rows: PyReadonlyArray1<'_, i64>,
        tau: Option<f32>,
        seed: u64,
        job: Job,
    ) -> PyResult<Self> {
        let of_rows = labels(&of_rows);
        let found = job.run(py, move |progress| {
            let context = Context::new(progress).with_seed(seed);
            Predictor::by_nearest(&x.embeddings()?, &of_rows, tau, &context)
        })?;
        Ok(Self(found))
    }

    /// The cluster of each row, -1 for none.
    fn predict<'py>(&self, py: Python<'py>, x: Matrix, job: Job) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let found = job.run(py, |progress| self.0.predict(&x.embeddings()?, progress))?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// The `top` most probable clusters of each row.
    fn candidates<'py>(&self, py: Python<'py>, x: Matrix, top: usize, job: Job) -> PyResult<Candidates<'py>> {
        let found = job.run(py, |progress| self.0.candidates(&x.embeddings()?, progress))?;
        table(py, &found, top)
    }
}

/// Assignments as arrays of `top` columns; where a row has fewer candidates, -1 and 0.
pub fn table<'py>(py: Python<'py>, found: &[Assignment<i64>], top: usize) -> PyResult<Candidates<'py>> {
    let mut clusters = vec![-1; found.len() * top];
    let mut probabilities = vec![0.0; found.len() * top];
    for (row, assignment) in found.iter().enumerate() {
        for (at, &(cluster, probability)) in assignment.candidates.iter().take(top).enumerate() {
            clusters[row * top + at] = cluster;
            probabilities[row * top + at] = probability as f32;
        }
    }
    let none: Vec<f32> = found.iter().map(|assignment| assignment.none as f32).collect();
    let shape = [found.len(), top];
    Ok((
        PyArray1::from_vec(py, clusters).reshape(shape)?,
        PyArray1::from_vec(py, probabilities).reshape(shape)?,
        PyArray1::from_vec(py, none),
    ))
}
