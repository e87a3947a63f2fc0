//! The kNN affinity graph.

use crate::{Error, Result};

/// For each vertex its K nearest others by cosine, itself excluded, by descending similarity, ties by
/// smaller id.
#[derive(Debug, Clone, PartialEq)]
pub struct KnnGraph {
    n: usize,
    k: usize,
    ids: Vec<u32>,
    similarities: Vec<f32>,
}

impl KnnGraph {
    /// A graph of `n` vertices from its row-major N x K arrays. `place` names them in errors.
    pub fn from_parts(
        n: usize,
        k: usize,
        ids: Vec<u32>,
        similarities: Vec<f32>,
        place: &str,
    ) -> Result<Self> {
        for (what, found) in [("neighbour ids", ids.len()), ("similarities", similarities.len())] {
            if Some(found) != n.checked_mul(k) {
                let (place, what) = (place.to_owned(), format!("{what} ({n} vertices of {k} neighbours)"));
                return Err(Error::Length { place, what, expected: n.saturating_mul(k), found });
            }
        }
        for (at, (&id, &similarity)) in ids.iter().zip(&similarities).enumerate() {
            let (row, column) = (at / k, at % k);
            if id as usize >= n || id as usize == row {
                return Err(Error::format(
                    place,
                    format!("the id of another of {n} vertices in row {row}, column {column}"),
                    id.to_string(),
                ));
            }
            if !similarity.is_finite() {
                return Err(Error::NotFinite {
                    place: place.to_owned(),
                    row,
                    column,
                    found: similarity as f64,
                });
            }
        }
        Ok(Self { n, k, ids, similarities })
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.n
    }

    /// True when there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Number of neighbours of each vertex.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The neighbours of `i` and their similarities.
    pub fn neighbours(&self, i: usize) -> (&[u32], &[f32]) {
        (&self.ids[i * self.k..][..self.k], &self.similarities[i * self.k..][..self.k])
    }
}
