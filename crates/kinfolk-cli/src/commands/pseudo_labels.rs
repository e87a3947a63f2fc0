//! `kinfolk cluster --pseudo-labels`: the clusters that are worth training on, in a file of their own.

use super::{check_writable, make_directory};
use crate::failure::Failure;
use clap::Args;
use kinfolk::io::{AtomicFile, start_npy_i64};
use kinfolk::results::PseudoLabelInfo;
use kinfolk::{Clustering, MethodInfo, PseudoLabelParams, pseudo_labels};
use std::path::{Path, PathBuf};

/// Files of the directory of results that pseudo-labels must not replace.
const RESULTS: [&str; 2] = ["labels.npy", "levels.npy"];

#[derive(Args)]
pub struct PseudoLabelOptions {
    /// Also write classes to train a network on (.npy, int64, one per row): the clusters without the small and doubtful
    /// ones, numbered from 0 by descending size; -1 for rows that are left out
    #[arg(long, value_name = "FILE")]
    pseudo_labels: Option<PathBuf>,
    /// Rows of the smallest cluster among the pseudo-labels [default: 2]
    #[arg(long, value_name = "N", requires = "pseudo_labels")]
    least_size: Option<usize>,
    /// Leave out of the pseudo-labels clusters in which two rows are less likely of one identity, from 0 to 1; for kin
    /// [default: none is left out]
    #[arg(long, value_name = "P", requires = "pseudo_labels", allow_negative_numbers = true)]
    least_probability: Option<f32>,
}

impl PseudoLabelOptions {
    fn params(&self) -> PseudoLabelParams {
        let default = PseudoLabelParams::default();
        PseudoLabelParams {
            least_size: self.least_size.unwrap_or(default.least_size),
            least_probability: self.least_probability,
        }
    }

    /// Refuses before the work what could not be done after it.
    pub fn check(&self, directory: &Path, method: &MethodInfo) -> Result<(), Failure> {
        let Some(file) = &self.pseudo_labels else { return Ok(()) };
        self.params().check()?;
        // Levels are built from edge probabilities, so the methods that have either have both.
        if self.least_probability.is_some() && !method.levels {
            let name = method.name;
            let message = format!(
                "--least-probability: expected a method that estimates probabilities, found --method {name}"
            );
            return Err(Failure::Usage(message));
        }
        if file.extension().is_none_or(|extension| extension != "npy") {
            let message = format!("--pseudo-labels: expected a .npy file, found {}", file.display());
            return Err(Failure::Usage(message));
        }
        let of_results = file.parent() == Some(directory);
        if of_results && RESULTS.iter().any(|name| file.ends_with(name)) {
            let place = file.display();
            let message = format!("--pseudo-labels: expected a file besides the results, found {place}");
            return Err(Failure::Usage(message));
        }
        // The directory of the results need not exist yet.
        if of_results && !directory.exists() {
            return Ok(());
        }
        check_writable(file)
    }

    /// Writes the file up to its last step, [`AtomicFile::commit`].
    pub fn start(
        &self,
        found: &Clustering,
        truth: Option<&[i64]>,
        directory: &Path,
    ) -> Result<Option<(AtomicFile, PseudoLabelInfo)>, Failure> {
        let Some(file) = &self.pseudo_labels else { return Ok(None) };
        let params = self.params();
        let classes = pseudo_labels(found, &params)?;
        let mut info = PseudoLabelInfo::new(file, &params, &classes);
        info.precision = truth.map(|truth| classes.precision(truth)).transpose()?;
        if file.parent() == Some(directory) {
            make_directory(directory)?;
        }
        Ok(Some((start_npy_i64(file, &classes.labels)?, info)))
    }
}

/// The pseudo-labels in one line.
pub fn summary(info: &PseudoLabelInfo, rows: usize) -> String {
    let mut text = format!(
        "pseudo-labels: {} of {rows} rows ({:.1} %) in {} classes",
        info.rows,
        100.0 * info.share,
        info.classes
    );
    for (what, precision) in [("expected", info.expected_precision.map(f64::from)), ("true", info.precision)]
    {
        if let Some(precision) = precision {
            text += &format!(", {what} precision {precision:.3}");
        }
    }
    text + &format!(" -> {}", info.file.display())
}
