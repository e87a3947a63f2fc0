//! Labels: one integer per row of the features.
//!
//! `.npy` holds any integer type, as shape (N,) or (N, 1). `.meta` and `.txt` hold one integer per line, as
//! in the published face data sets.

use super::array::Array;
use super::element::Accept;
use super::{extension, map_file};
use crate::{Error, Result};
use std::path::Path;

/// How labels are written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelFormat {
    /// `.npy`: a numpy array of integers.
    Npy,
    /// `.meta`, `.txt`: one integer per line.
    Text,
}

impl LabelFormat {
    /// The format that a file's extension stands for.
    pub fn of(path: &Path) -> Result<Self> {
        match extension(path).as_str() {
            "npy" => Ok(LabelFormat::Npy),
            "meta" | "txt" => Ok(LabelFormat::Text),
            other => Err(super::unknown_extension(path, "a label file: .npy, .meta or .txt", other)),
        }
    }
}

/// Reads one label per row. The values are as in the file: any integers, in any order.
pub fn read_labels(path: &Path) -> Result<Vec<i64>> {
    let format = LabelFormat::of(path)?;
    parse_labels(&map_file(path)?, format, &path.display().to_string())
}

/// Reads labels from the bytes of a file; `place` names it in errors.
pub fn parse_labels(bytes: &[u8], format: LabelFormat, place: &str) -> Result<Vec<i64>> {
    let labels = match format {
        LabelFormat::Npy => parse_npy(bytes, place)?,
        LabelFormat::Text => parse_text(bytes, place)?,
    };
    if labels.is_empty() {
        return Err(Error::format(place, "at least one label", "0 labels"));
    }
    Ok(labels)
}

/// Refuses labels that are not one per row of the features.
pub fn check_label_count(
    labels: &[i64],
    rows: usize,
    labels_path: &Path,
    features_path: &Path,
) -> Result<()> {
    if labels.len() == rows {
        return Ok(());
    }
    Err(Error::Length {
        place: labels_path.display().to_string(),
        what: format!("labels (one per row of {})", features_path.display()),
        expected: rows,
        found: labels.len(),
    })
}

fn parse_npy(bytes: &[u8], place: &str) -> Result<Vec<i64>> {
    let array = Array::from_slice(bytes, Accept::Integers, place.to_owned())?;
    if !matches!(array.header.shape.as_slice(), [_] | [_, 1]) {
        return Err(array.header.wrong_shape("labels of shape (rows,) or (rows, 1)", place));
    }
    let mut labels = Vec::with_capacity(array.header.rows_and_width().0);
    array.for_each_block(|_, block| {
        for (row, value) in block.bytes.chunks_exact(block.element.size()).enumerate() {
            let label = block.element.read_integer(value);
            labels.push(i64::try_from(label).map_err(|_| Error::Row {
                place: place.to_owned(),
                row,
                expected: format!("a label of at most {}", i64::MAX),
                found: label.to_string(),
            })?);
        }
        Ok(())
    })?;
    Ok(labels)
}

fn parse_text(bytes: &[u8], place: &str) -> Result<Vec<i64>> {
    // What follows the last number is not a line without a label.
    let bytes = bytes.trim_ascii_end();
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let mut labels = Vec::new();
    for (i, line) in bytes.split(|&b| b == b'\n').enumerate() {
        let text = line.trim_ascii();
        let label = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        labels.push(label.ok_or_else(|| Error::Line {
            place: place.to_owned(),
            line: i + 1,
            expected: "an integer",
            found: match text {
                [] => "an empty line".to_owned(),
                text => format!("\"{}\"", text[..text.len().min(40)].escape_ascii()),
            },
        })?);
    }
    Ok(labels)
}
