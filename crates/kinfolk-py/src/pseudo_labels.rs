//! Pseudo-labels from the labels and probabilities of a result.

use crate::arrays::labels;
use crate::errors::raise;
use kinfolk::{PseudoLabelParams, PseudoLabels};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

/// The class of every row, the number of classes, the share of rows that have one, and the expected precision.
type Classes<'py> = (Bound<'py, PyArray1<i64>>, usize, f64, Option<f32>);

/// The classes worth training on; `probabilities` are those of the clusters, if the method estimates them.
#[pyfunction]
pub fn pseudo_labels<'py>(
    py: Python<'py>,
    of_rows: PyReadonlyArray1<'py, i64>,
    probabilities: Option<PyReadonlyArray1<'py, f32>>,
    least_size: usize,
    least_probability: Option<f32>,
) -> PyResult<Classes<'py>> {
    let probabilities: Option<Vec<f32>> =
        probabilities.map(|probabilities| probabilities.as_array().iter().copied().collect());
    let params = PseudoLabelParams { least_size, least_probability };
    let found = PseudoLabels::of(&labels(&of_rows), probabilities.as_deref(), &params).map_err(raise)?;
    let share = found.share();
    Ok((PyArray1::from_vec(py, found.labels), found.classes, share, found.expected_precision))
}
