//! Errors. Messages name the file, row and column, what was expected and what was found.

use std::path::{Path, PathBuf};

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The error type of the library.
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
    /// A file does not exist.
    #[error("{}: no such file", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The content of a file does not match its name or header.
    #[error("{place}: expected {expected}, found {found}")]
    Format {
        /// The file, or the part of it: "faces.npz (array features)".
        place: String,
        /// What would have been right.
        expected: String,
        /// What was there.
        found: String,
    },
    /// A line of a text file is invalid.
    #[error("{place}: line {line}: expected {expected}, found {found}")]
    Line {
        /// The file.
        place: String,
        /// Line, from 1 as editors count.
        line: usize,
        /// What would have been right.
        expected: &'static str,
        /// What was there.
        found: String,
    },
    /// A row is invalid, for example empty or of another length than the others.
    #[error("{place}: row {row}: expected {expected}, found {found}")]
    Row {
        /// The file, or the name of the matrix.
        place: String,
        /// Row, from 0.
        row: usize,
        /// What would have been right.
        expected: String,
        /// What was there.
        found: String,
    },
    /// A value is out of range.
    #[error("{place}: row {row}, column {column}: expected {expected}, found {found}")]
    Value {
        /// The file, or the name of the matrix.
        place: String,
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// What would have been right.
        expected: String,
        /// What was there.
        found: String,
    },
    /// A value of a matrix is NaN or infinite.
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
    /// A row consists of zeros, so its cosine with other rows is undefined.
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
    /// A parameter is out of range.
    #[error("{field}: expected {expected}, found {found}")]
    Parameter {
        /// The name of the field. The command translates it to an option, the Python package to an argument.
        field: &'static str,
        /// Its range.
        expected: &'static str,
        /// The value given.
        found: String,
    },
    /// The work would need more memory than is free, or than its user allows.
    #[error("{what} needs {} of memory, {} may be used", gigabytes(*needed), gigabytes(*budget))]
    Memory {
        /// What would be in memory: "the search for 1024 neighbours of 5000000 rows".
        what: String,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that it may use.
        budget: u64,
    },
    /// Nothing is called so: a key, a name or an id.
    #[error("{place}: expected {expected}, found {found}")]
    Unknown {
        /// Where it was looked for.
        place: String,
        /// What would have been right.
        expected: String,
        /// What was asked for.
        found: String,
    },
    /// Another process is changing what the caller wants to change.
    #[error("{place}: expected {expected}, found {found}")]
    Busy {
        /// What both want to change.
        place: String,
        /// What would have been right.
        expected: String,
        /// Who is changing it.
        found: String,
    },
    /// The caller cancelled the call; see [`Progress::cancelled`](crate::Progress::cancelled).
    #[error("cancelled")]
    Cancelled,
}

/// Bytes as gigabytes, or megabytes where these are too large a unit.
pub(crate) fn gigabytes(bytes: u64) -> String {
    match bytes as f64 / 1e9 {
        few if few < 0.1 => format!("{:.1} MB", few * 1e3),
        few if few < 1.0 => format!("{:.0} MB", few * 1e3),
        many => format!("{many:.1} GB"),
    }
}

impl Error {
    /// An I/O failure on `path`.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        let path = path.as_ref().to_owned();
        match source.kind() {
            std::io::ErrorKind::NotFound => Error::Missing { path },
            _ => Error::Io { path, source },
        }
    }

    /// A file whose content is not what was expected.
    pub fn format(path: impl AsRef<Path>, expected: impl Into<String>, found: impl Into<String>) -> Self {
        let place = path.as_ref().display().to_string();
        Error::Format { place, expected: expected.into(), found: found.into() }
    }
}
