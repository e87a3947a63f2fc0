//! Unit rows: the embeddings every later stage works on.

use crate::{Error, Result};
use rayon::prelude::*;

/// N rows of D floats, each of unit length, so that the dot product of two rows is their cosine.
#[derive(Debug, Clone)]
pub struct Embeddings {
    data: Vec<f32>,
    dim: usize,
}

impl Embeddings {
    /// Normalises the rows of a row-major matrix. `place` names the matrix in errors.
    pub fn from_rows(mut data: Vec<f32>, dim: usize, place: &str) -> Result<Self> {
        data.par_chunks_mut(dim).enumerate().try_for_each(|(i, row)| {
            let norm = row.iter().map(|&v| v as f64 * v as f64).sum::<f64>().sqrt();
            if norm == 0.0 {
                return Err(Error::ZeroRow { place: place.to_owned(), row: i, columns: row.len() });
            }
            row.iter_mut().for_each(|v| *v = (*v as f64 / norm) as f32);
            Ok(())
        })?;
        Ok(Self { data, dim })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.data.len() / self.dim
    }

    /// True when there is no row; a file without rows is refused, so only an empty matrix made by hand.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Row `i`, of unit length.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.dim..][..self.dim]
    }

    /// All rows, one after the other.
    pub fn as_slice(&self) -> &[f32] {
        &self.data
    }
}
