//! Files of embeddings of which some rows can be read without the others.

use super::array::Block;
use super::{EmbeddingFormat, ReadOptions, bin, layout, map_file, npy};
use crate::{Error, Result};
use memmap2::Mmap;
use std::ops::Range;
use std::path::Path;

/// Rows that say whether those of a file have unit length.
const LOOKED_AT: usize = 4096;

/// A `.npy` or `.bin` file.
pub(crate) struct RowFile {
    map: Mmap,
    format: EmbeddingFormat,
    dim: Option<usize>,
    place: String,
}

impl RowFile {
    /// Opens a file; `None` if its format can only be read as a whole.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Option<Self>> {
        let format = EmbeddingFormat::of(path)?;
        if !matches!(format, EmbeddingFormat::Npy | EmbeddingFormat::Bin) {
            return Ok(None);
        }
        let map = map_file(path)?;
        let mut dim = options.dim;
        if format == EmbeddingFormat::Bin && dim.is_none() {
            dim = layout::columns(path, map.len())?;
        }
        Ok(Some(Self { map, format, dim, place: path.display().to_string() }))
    }

    /// Rows and columns.
    pub fn shape(&self) -> Result<(usize, usize)> {
        self.block().map(|block| (block.rows, block.width))
    }

    /// Some rows, each of unit length.
    pub fn unit_rows(&self, rows: Range<usize>) -> Result<Vec<f32>> {
        let block = self.block()?;
        if rows.end > block.rows {
            let (place, what) = (self.place.clone(), "rows".to_owned());
            return Err(Error::Length { place, what, expected: rows.end, found: block.rows });
        }
        block.unit_rows(rows, &self.place)
    }

    /// Whether its rows must be converted, as far as the first of them say.
    pub fn is_converted(&self) -> Result<bool> {
        self.block().map(|block| !block.starts_with_unit_rows(LOOKED_AT))
    }

    fn block(&self) -> Result<Block<'_>> {
        match self.format {
            EmbeddingFormat::Bin => bin::block(&self.map, self.dim, &self.place),
            _ => npy::block(&self.map, &self.place),
        }
    }
}
