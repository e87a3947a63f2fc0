//! The kNN affinity graph.

/// For each vertex its K nearest others by cosine, itself excluded, by descending similarity, ties by
/// smaller id.
#[derive(Debug, Clone, PartialEq)]
pub struct KnnGraph {
    k: usize,
    ids: Vec<u32>,
    similarities: Vec<f32>,
}

impl KnnGraph {
    /// Number of vertices. (A graph of one vertex has K = 0 and counts as one.)
    pub fn len(&self) -> usize {
        self.ids.len().checked_div(self.k).unwrap_or(1)
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
