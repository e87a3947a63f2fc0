//! The result of the connectivity stage: the links of each vertex.

use crate::{Error, Result};

/// The links of each vertex, at most M, with the data to cut them at any tau and to explain why two vertices were merged:
/// parents, similarities and confidences.
///
/// Created by [`nearest_candidates`](crate::nearest_candidates), or by [`Links::from_parts`] from an estimator's
/// choice; [`Links::cut`] turns it into labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Links {
    confidence: Vec<f32>,
    m: usize,
    parents: Vec<u32>,
    similarities: Vec<f32>,
}

impl Links {
    /// Means "no more links" in the arrays of [`Links::from_parts`].
    pub const NONE: u32 = u32::MAX;

    /// Links from row-major N x M arrays: each row the vertices it links to, best first, padded at the end
    /// with [`Links::NONE`]; the similarities beside the padding are ignored.
    pub fn from_parts(
        confidence: Vec<f32>,
        m: usize,
        parents: Vec<u32>,
        similarities: Vec<f32>,
    ) -> Result<Self> {
        let n = confidence.len();
        check_confidence(n, &confidence)?;
        for (what, found) in [("parents", parents.len()), ("similarities", similarities.len())] {
            if Some(found) != n.checked_mul(m) {
                let (place, what) = ("links".to_owned(), format!("{what} ({n} vertices of {m} links)"));
                return Err(Error::Length { place, what, expected: n.saturating_mul(m), found });
            }
        }
        for (at, (&parent, &similarity)) in parents.iter().zip(&similarities).enumerate() {
            if parent != Self::NONE && parent as usize >= n {
                return Err(Error::Parameter {
                    field: "parents",
                    expected: "ids of vertices",
                    found: format!("{parent} for vertex {} of {n}", at / m),
                });
            }
            if parent != Self::NONE && !similarity.is_finite() {
                let (place, found) = ("links".to_owned(), similarity as f64);
                return Err(Error::NotFinite { place, row: at / m, column: at % m, found });
            }
        }
        Ok(Self { confidence, m, parents, similarities })
    }

    /// Links from parts that are known to be valid.
    pub(crate) fn of_valid_parts(
        confidence: Vec<f32>,
        m: usize,
        parents: Vec<u32>,
        similarities: Vec<f32>,
    ) -> Self {
        Self { confidence, m, parents, similarities }
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.confidence.len()
    }

    /// True when there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.confidence.is_empty()
    }

    /// The most links a vertex can have: 1 for a forest, more for a directed acyclic graph.
    pub fn m(&self) -> usize {
        self.m
    }

    /// The confidence of each vertex.
    pub fn confidence(&self) -> &[f32] {
        &self.confidence
    }

    /// The parents of vertex `i` and their similarities, best first.
    pub fn of(&self, i: usize) -> (&[u32], &[f32]) {
        let parents = &self.parents[i * self.m..][..self.m];
        let links = parents.iter().position(|&parent| parent == Self::NONE).unwrap_or(self.m);
        (&parents[..links], &self.similarities[i * self.m..][..links])
    }

    /// The first link of vertex `i` with its similarity; `None` for a root.
    pub fn parent(&self, i: usize) -> Option<(u32, f32)> {
        let (parents, similarities) = self.of(i);
        Some((*parents.first()?, *similarities.first()?))
    }
}

/// One finite confidence for each of `n` vertices.
pub(crate) fn check_confidence(n: usize, confidence: &[f32]) -> Result<()> {
    let place = || "confidence".to_owned();
    if confidence.len() != n {
        let what = "confidences (one per vertex)".to_owned();
        return Err(Error::Length { place: place(), what, expected: n, found: confidence.len() });
    }
    match confidence.iter().position(|c| !c.is_finite()) {
        Some(row) => Err(Error::NotFinite { place: place(), row, column: 0, found: confidence[row] as f64 }),
        None => Ok(()),
    }
}
