//! Checks that depend on the data. Checks of a parameter alone are part of its declaration.

use kinfolk::{Error, Result};

/// An error about the parameter `name`.
pub(crate) fn refuse<T>(name: &'static str, expected: &'static str, found: impl ToString) -> Result<T> {
    Err(Error::Parameter { field: name, expected, found: found.to_string() })
}

/// The number of clusters, which must be given: from 1 to the number of rows.
pub(crate) fn clusters(clusters: Option<usize>, rows: usize) -> Result<usize> {
    match clusters {
        None => refuse("clusters", "how many clusters to make", "none"),
        Some(clusters) if clusters == 0 || clusters > rows => {
            let found = format!("{clusters} for {rows} rows");
            refuse("clusters", "at least 1, at most the number of rows", found)
        }
        Some(clusters) => Ok(clusters),
    }
}
