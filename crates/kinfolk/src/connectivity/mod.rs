//! Connectivity: links each vertex to neighbours of higher confidence.
//!
//! The candidate set of Equation 6 is S_i = { v_j : c_j > c_i, v_j in N_i }. kinfolk makes the order total:
//! of two equal confidences, that of the smaller id is higher. So duplicates of one photograph, which have equal confidences,
//! are in one tree. Candidates are always higher in this order, so there are no cycles.
//!
//! Without an estimator of connectivity (rho = 0 in Section 3.3) each vertex takes the M nearest of its
//! candidates; M = 1 gives trees, M > 1 directed acyclic graphs.
//!
//! Cost: O(N K) time at worst; the scan of a vertex ends at its M-th candidate.

mod links;
pub(crate) mod structural;

pub use links::Links;
pub(crate) use links::check_confidence;
pub use structural::EdgeModel;

use crate::{Error, KnnGraph, Result};
use rayon::prelude::*;

/// True when `j` is above `i` in the total order: higher confidence or, at equal confidence, smaller id.
fn above(confidence: &[f32], j: usize, i: usize) -> bool {
    confidence[j] > confidence[i] || (confidence[j] == confidence[i] && j < i)
}

/// The candidate set of vertex `i`, nearest first: the neighbours of higher confidence and their
/// similarities, where of equal confidences that of the smaller id is the higher.
///
/// `confidence` must have one finite value per vertex, which is not checked here; [`nearest_candidates`] checks it.
///
/// ```
/// use kinfolk::stages::candidates;
/// use kinfolk::KnnGraph;
/// let ids = vec![1, 2, 0, 2, 1, 0];
/// let similarities = vec![0.9, 0.4, 0.9, 0.5, 0.5, 0.4];
/// let graph = KnnGraph::from_parts(3, 2, ids, similarities, "example")?;
/// let confidence = [0.2, 0.1, 0.2];
/// assert_eq!(candidates(&graph, &confidence, 1).collect::<Vec<_>>(), [(0, 0.9), (2, 0.5)]);
/// assert_eq!(candidates(&graph, &confidence, 2).collect::<Vec<_>>(), [(0, 0.4)]);
/// assert_eq!(candidates(&graph, &confidence, 0).count(), 0);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn candidates<'a>(
    graph: &'a KnnGraph,
    confidence: &'a [f32],
    i: usize,
) -> impl Iterator<Item = (u32, f32)> + 'a {
    let (ids, similarities) = graph.neighbours(i);
    let pairs = ids.iter().copied().zip(similarities.iter().copied());
    pairs.filter(move |&(j, _)| above(confidence, j as usize, i))
}

/// Links every vertex to the `m` nearest of its candidates (`m` >= 1), or to as many as it has.
///
/// Fails if there is not one confidence per vertex, or if one is NaN or infinite.
///
/// ```
/// use kinfolk::stages::{DEFAULT_RADIUS, nearest_candidates, u_weight};
/// use kinfolk::KnnGraph;
/// // Two pairs, 0-1 and 2-3, and a weak similarity between 1 and 2.
/// let ids = vec![1, 2, 0, 2, 3, 1, 2, 1];
/// let similarities = vec![0.9, 0.1, 0.9, 0.3, 0.8, 0.3, 0.8, 0.1];
/// let graph = KnnGraph::from_parts(4, 2, ids, similarities, "example")?;
/// let links = nearest_candidates(&graph, &u_weight(&graph, DEFAULT_RADIUS)?, 1)?;
/// assert_eq!(links.parent(0), Some((1, 0.9)));
/// assert_eq!(links.parent(1), None);
/// assert_eq!(links.cut(0.5), [0, 0, 1, 1]);
/// assert_eq!(links.cut(0.2), [0, 0, 0, 0]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn nearest_candidates(graph: &KnnGraph, confidence: &[f32], m: usize) -> Result<Links> {
    if m == 0 {
        return Err(Error::Parameter { field: "m", expected: "1 or more", found: m.to_string() });
    }
    check_confidence(graph.len(), confidence)?;
    // No vertex has more candidates than neighbours, so a large m needs no memory.
    let m = m.min(graph.k().max(1));
    let mut parents = vec![Links::NONE; graph.len() * m];
    let mut similarities = vec![0.0; graph.len() * m];
    parents.par_chunks_mut(m).zip(similarities.par_chunks_mut(m)).enumerate().for_each(
        |(i, (parents, similarities))| {
            for ((parent, similarity), (j, a)) in
                parents.iter_mut().zip(similarities).zip(candidates(graph, confidence, i))
            {
                (*parent, *similarity) = (j, a);
            }
        },
    );
    Links::from_parts(confidence.to_vec(), m, parents, similarities)
}

#[cfg(test)]
mod tests;
