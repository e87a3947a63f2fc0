//! The registry of methods, for the signatures and docstrings of the Python functions.

use kinfolk::{Input, ParamKind, ParamSpec};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Every method: name, summary, when to use it, cost, what it needs, its parameters and those of its training.
#[pyfunction]
pub fn methods(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let all = PyList::empty(py);
    for entry in kinfolk_methods::METHODS {
        let info = entry.info();
        let method = PyDict::new(py);
        for (name, text) in [
            ("name", info.name),
            ("title", info.title),
            ("summary", info.summary),
            ("when", info.when),
            ("cost", info.cost),
        ] {
            method.set_item(name, text)?;
        }
        method.set_item("needs_model", info.needs_model)?;
        method.set_item("learns", info.learns)?;
        method.set_item("needs_clusters", info.needs_clusters)?;
        method.set_item("takes_rows", info.input != Input::Graph)?;
        method.set_item("takes_graph", info.input != Input::Rows)?;
        let specs = entry.make().map(|method| method.parameters().specs()).unwrap_or_default();
        method.set_item("parameters", parameters(py, specs)?)?;
        let specs = entry.learner().map(|learner| learner.parameters().specs()).unwrap_or_default();
        method.set_item("training_parameters", parameters(py, specs)?)?;
        all.append(method)?;
    }
    Ok(all)
}

fn parameters(py: Python<'_>, specs: Vec<ParamSpec>) -> PyResult<Bound<'_, PyList>> {
    let all = PyList::empty(py);
    for spec in specs {
        let parameter = PyDict::new(py);
        let (kind, choices) = match spec.kind {
            ParamKind::Integer => ("int", None),
            ParamKind::Number => ("float", None),
            ParamKind::Boolean => ("bool", None),
            ParamKind::Choice(words) => ("str", Some(words)),
            ParamKind::Text => ("str", None),
        };
        parameter.set_item("name", spec.name)?;
        parameter.set_item("kind", kind)?;
        parameter.set_item("choices", choices)?;
        parameter.set_item("automatic", spec.automatic)?;
        parameter.set_item("default", spec.default)?;
        parameter.set_item("range", spec.range)?;
        parameter.set_item("help", spec.help.split_whitespace().collect::<Vec<_>>().join(" "))?;
        all.append(parameter)?;
    }
    Ok(all)
}
