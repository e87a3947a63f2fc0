//! The directory layout of the published face data sets: `features/NAME.bin` and beside it `labels/NAME.meta`.
//!
//! A raw file does not say how many columns it has, but with the number of labels it does:
//! columns = bytes / 4 / labels. Cost: the labels are read once more.

use super::read_labels;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Extensions of a labels file, in the order in which they are looked for.
const LABELS: [&str; 3] = ["meta", "npy", "txt"];

/// The columns of a raw file of this many bytes, if it lies in this layout.
pub(super) fn columns(path: &Path, bytes: usize) -> Result<Option<usize>> {
    let Some(beside) = labels_beside(path) else { return Ok(None) };
    let rows = read_labels(&beside)?.len();
    if bytes.is_multiple_of(4 * rows) {
        return Ok(Some(bytes / 4 / rows));
    }
    let expected =
        format!("whole rows of float32, one for each of the {rows} labels of {}", beside.display());
    Err(Error::format(path, expected, format!("{bytes} bytes (--dim says how many columns)")))
}

/// The labels of a file in a directory called `features`.
fn labels_beside(path: &Path) -> Option<PathBuf> {
    // A name alone lies in a directory too, the current one.
    let path = match path.parent()?.file_name() {
        Some(_) => path.to_owned(),
        None => std::path::absolute(path).ok()?,
    };
    let features = path.parent().filter(|directory| directory.ends_with("features"))?;
    let labels = features.parent()?.join("labels").join(path.file_name()?);
    LABELS.iter().map(|extension| labels.with_extension(extension)).find(|file| file.is_file())
}
