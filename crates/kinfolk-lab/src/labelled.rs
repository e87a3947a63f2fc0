//! Rows with their true labels.

use kinfolk::io::{check_label_count, read_embeddings, read_labels};
use kinfolk::{Embeddings, Error};
use kinfolk_cli::failure::Failure;
use std::path::{Path, PathBuf};

/// Rows with their true labels.
pub struct Labelled {
    pub features: Embeddings,
    pub labels: Vec<i64>,
}

impl Labelled {
    /// Reads features and one label per row.
    pub fn read(features: &Path, labels: &Path) -> Result<Self, Failure> {
        let (rows, found) = (read_embeddings(features, &Default::default())?, read_labels(labels)?);
        check_label_count(&found, rows.len(), labels, features)?;
        Ok(Labelled { features: rows, labels: found })
    }
}

impl From<(Embeddings, Vec<i64>)> for Labelled {
    fn from((features, labels): (Embeddings, Vec<i64>)) -> Self {
        Labelled { features, labels }
    }
}

/// The number of different labels.
pub fn identities(labels: &[i64]) -> usize {
    let mut labels = labels.to_vec();
    labels.sort_unstable();
    labels.dedup();
    labels.len()
}

/// Reads features and labels of a training and a test part with the same number of columns.
pub fn read_both(train: &[PathBuf], test: &[PathBuf]) -> Result<[Labelled; 2], Failure> {
    let parts = [Labelled::read(&train[0], &train[1])?, Labelled::read(&test[0], &test[1])?];
    let [expected, found] = [&parts[0], &parts[1]].map(|part| part.features.dim());
    if expected != found {
        let expected = format!("{expected} columns, as {} has", train[0].display());
        return Err(Error::format(&test[0], expected, found.to_string()).into());
    }
    Ok(parts)
}
