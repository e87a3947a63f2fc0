//! Converts errors of the library to Python exceptions.

use kinfolk::Error;
use pyo3::exceptions::{
    PyFileNotFoundError, PyKeyError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

pyo3::create_exception!(_kinfolk, ZeroRow, PyValueError, "A row has no direction.");

/// The Python exception for an error of the library.
pub fn raise(error: Error) -> PyErr {
    match error {
        Error::Missing { path } => {
            // The system's number makes `errno` and `filename` what they are after `open`.
            const NO_SUCH_FILE: i32 = 2;
            PyFileNotFoundError::new_err((NO_SUCH_FILE, "No such file or directory", path))
        }
        Error::Io { path, source } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, source.to_string(), path)),
            None => PyOSError::new_err(format!("{}: {source}", path.display())),
        },
        // The rows are the argument X here.
        Error::Parameter { field: "embeddings", expected, found } => {
            PyValueError::new_err(format!("X: expected {expected}, found {found}"))
        }
        Error::Length { place, what, expected, found } if place == "embeddings" => {
            PyValueError::new_err(format!("X: expected {expected} {what}, found {found}"))
        }
        Error::Format { place, expected, found } if place == "embeddings" => {
            PyValueError::new_err(format!("X: expected {expected}, found {found}"))
        }
        unknown @ Error::Unknown { .. } => PyKeyError::new_err(unknown.to_string()),
        busy @ Error::Busy { .. } => PyRuntimeError::new_err(busy.to_string()),
        memory @ Error::Memory { .. } => PyMemoryError::new_err(memory.to_string()),
        zero @ Error::ZeroRow { .. } => ZeroRow::new_err(zero.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}
