//! Files in and out: embeddings, labels and kNN graphs.
//!
//! Each `read_*` takes a path and goes by its extension; the matching `parse_*` takes bytes that are already
//! in memory. Files are memory-mapped, not copied: do not truncate or overwrite one in place while it is in
//! use. Files are written atomically ([`AtomicFile`]).
//!
//! Errors name the file, and the row and column (from 0) if there are any. Lengths that a file declares are checked against its
//! size before memory is allocated.

mod array;
mod atomic;
mod bin;
mod element;
mod graph_file;
mod labels;
mod layout;
mod npy;
mod npz;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod rows;

pub use atomic::AtomicFile;
pub use graph_file::{GraphLayout, parse_graph, read_graph, write_graph};
pub use labels::{LabelFormat, check_label_count, parse_labels, read_labels};
pub use npy::{NpyF32Writer, start_npy_i64, write_npy_f32, write_npy_i64};
pub(crate) use npy::{header_bytes, write_npy_i64_to};
#[doc(hidden)]
pub use npz::read_integers;
pub(crate) use rows::RowFile;

use crate::memory::Budget;
use crate::{Embeddings, Error, Result};
use bytes::Bytes;
use memmap2::Mmap;
use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

/// Options for reading embeddings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Number of columns of a raw `.bin` file. Not needed for `features/NAME.bin` beside `labels/NAME.meta` (or `.npy`,
    /// `.txt`), the published layout: there it follows from the number of labels.
    pub dim: Option<usize>,
    /// The array of a `.npz` file or the column of a `.parquet` file; the first one if none is named.
    pub array: Option<String>,
}

/// How embeddings are written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingFormat {
    /// `.npy`: a numpy matrix of float16, float32 or float64.
    Npy,
    /// `.npz`: such matrices in a zip archive.
    Npz,
    /// `.bin`: float32, little-endian, row after row.
    Bin,
    /// `.parquet`: a column of lists of floats. Needs the cargo feature `parquet`.
    Parquet,
}

impl EmbeddingFormat {
    /// The format that a file's extension stands for.
    pub fn of(path: &Path) -> Result<Self> {
        match extension(path).as_str() {
            "npy" => Ok(EmbeddingFormat::Npy),
            "npz" => Ok(EmbeddingFormat::Npz),
            "bin" => Ok(EmbeddingFormat::Bin),
            "parquet" => Ok(EmbeddingFormat::Parquet),
            other => Err(unknown_extension(path, "a feature file: .npy, .npz, .bin or .parquet", other)),
        }
    }
}

/// Reads embeddings, by the file's extension, and normalises their rows.
///
/// A file that holds float32 rows of unit length, aligned and in order, stays a memory map
/// ([`Embeddings::is_mapped`]); any other is converted in parallel into one buffer.
pub fn read_embeddings(path: &Path, options: &ReadOptions) -> Result<Embeddings> {
    let format = EmbeddingFormat::of(path)?;
    let bytes = Bytes::from_owner(map_file(path)?);
    let mut options = options.clone();
    if format == EmbeddingFormat::Bin && options.dim.is_none() {
        options.dim = layout::columns(path, bytes.len())?;
    }
    parse_embeddings(bytes, format, &options, &path.display().to_string())
}

/// Reads embeddings as [`read_embeddings`] does. Rows of a `.npy` or `.bin` file that must be converted, such as those of float16, go
/// to a file without a name in `directory` if they are more than an eighth of the memory (by default what is free), so that
/// the system may drop their pages.
pub fn read_embeddings_beside(
    path: &Path,
    options: &ReadOptions,
    directory: &Path,
    memory: Option<u64>,
) -> Result<Embeddings> {
    if let Some(file) = RowFile::open(path, options)? {
        let (rows, dim) = file.shape()?;
        if Budget(memory).is_large(4 * (rows * dim) as u64)
            && file.is_converted()?
            && let Some(embeddings) =
                Embeddings::of_pieces(directory, rows, dim, |rows| file.unit_rows(rows))?
        {
            return Ok(embeddings);
        }
    }
    read_embeddings(path, options)
}

/// Reads embeddings from the bytes of a file; `place` names it in errors.
pub fn parse_embeddings(
    bytes: impl Into<Bytes>,
    format: EmbeddingFormat,
    options: &ReadOptions,
    place: &str,
) -> Result<Embeddings> {
    let bytes = bytes.into();
    let array = options.array.as_deref();
    let (rows, dim) = match format {
        EmbeddingFormat::Npy => npy::unit_rows(&bytes, place)?,
        EmbeddingFormat::Npz => npz::unit_rows(&bytes, array, place)?,
        EmbeddingFormat::Bin => bin::unit_rows(&bytes, options.dim, place)?,
        #[cfg(feature = "parquet")]
        EmbeddingFormat::Parquet => parquet::unit_rows(&bytes, array, place)?,
        #[cfg(not(feature = "parquet"))]
        EmbeddingFormat::Parquet => return Err(without_parquet(place.as_ref(), "read")),
    };
    Ok(match rows {
        Cow::Owned(data) => Embeddings::from_unit_rows(data, dim),
        Cow::Borrowed(rows) => Embeddings::from_unit_bytes(bytes.slice_ref(bytemuck::cast_slice(rows)), dim),
    })
}

/// The answer of a build without the cargo feature `parquet`.
#[cfg(not(feature = "parquet"))]
pub(crate) fn without_parquet(place: &Path, verb: &str) -> Error {
    let expected = format!("kinfolk built with the cargo feature `parquet` to {verb} this file");
    Error::format(place, expected, "a build without it")
}

/// Maps a file that is not empty.
pub(crate) fn map_file(path: &Path) -> Result<Mmap> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let metadata = file.metadata().map_err(|e| Error::io(path, e))?;
    if metadata.is_dir() {
        return Err(Error::format(path, "a file", "a directory"));
    }
    if metadata.is_file() && metadata.len() == 0 {
        return Err(Error::format(path, "a file with something in it", "an empty file"));
    }
    // SAFETY: a map is undefined once another process truncates or overwrites the file. No system call prevents
    // that; the module's documentation asks for it, and files written by this crate are replaced whole, never
    // overwritten.
    unsafe { Mmap::map(&file) }.map_err(|e| Error::io(path, e))
}

/// The extension in lower case, or nothing.
fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default()
}

fn unknown_extension(path: &Path, expected: &str, found: &str) -> Error {
    match found {
        "" => Error::format(path, expected, "no extension"),
        found => Error::format(path, expected, format!(".{found}")),
    }
}
