//! What can go wrong, said so that a person can act on it: which file, which row and column, what was
//! expected and what was found.

use std::path::{Path, PathBuf};

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Every failure of the library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to open, read, map or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what its name or its header says.
    #[error("{}: expected {expected}, found {found}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What would have been right.
        expected: String,
        /// What was there.
        found: String,
    },
    /// One value of a matrix cannot be used: NaN or infinity.
    #[error("{place}: row {row}, column {column}: expected a finite number, found {found}")]
    NotFinite {
        /// The file, or the name of the matrix.
        place: String,
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The value.
        found: f64,
    },
    /// A row has no direction, so it has no cosine with anything.
    #[error("{place}: row {row}: expected a row of non-zero length, found {columns} zeros")]
    ZeroRow {
        /// The file, or the name of the matrix.
        place: String,
        /// Row, from 0.
        row: usize,
        /// Number of columns.
        columns: usize,
    },
    /// Two inputs that must have one entry per row have different lengths.
    #[error("{place}: expected {expected} {what}, found {found}")]
    Length {
        /// The file, or the name of the input.
        place: String,
        /// What is counted: "labels (one per row of features.npy)".
        what: String,
        /// The count that would be right.
        expected: usize,
        /// The count that was there.
        found: usize,
    },
    /// A parameter is outside what it can be.
    #[error("{name}: expected {expected}, found {found}")]
    Parameter {
        /// The parameter, as the command spells it.
        name: &'static str,
        /// Its range.
        expected: &'static str,
        /// The value given.
        found: String,
    },
}

impl Error {
    /// An I/O failure on `path`.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Io { path: path.as_ref().to_owned(), source }
    }

    /// A file whose content is not what was expected.
    pub fn format(path: impl AsRef<Path>, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Error::Format { path: path.as_ref().to_owned(), expected: expected.into(), found: found.into() }
    }
}
