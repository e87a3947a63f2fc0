//! Confidence without labels: density in the kNN graph.
//!
//! The radius r is a cosine distance, so v_j is within it when 1 - a_ij < r, that is a_ij > 1 - r. It lies
//! between 0 (exclusive) and 2; a radius of 1 includes every neighbour of positive similarity. Only the K neighbours of the
//! graph count, even if more rows are within the radius.

use crate::{Error, KnnGraph, Result};
use rayon::prelude::*;

/// The radius that includes every neighbour of positive similarity. It is the default of the density tree: the sum of
/// similarities already gives far neighbours less weight, so no radius has to be chosen.
pub const DEFAULT_RADIUS: f32 = 1.0;

/// The number of neighbours of each vertex within the radius `r` (0 < r <= 2): a_ij > 1 - r.
///
/// ```
/// use kinfolk::stages::u_num;
/// use kinfolk::KnnGraph;
/// let ids = vec![1, 2, 0, 2, 1, 0];
/// let similarities = vec![0.9, 0.4, 0.9, 0.5, 0.5, 0.4];
/// let graph = KnnGraph::from_parts(3, 2, ids, similarities, "example")?;
/// assert_eq!(u_num(&graph, 0.55)?, [1.0, 2.0, 1.0]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn u_num(graph: &KnnGraph, r: f32) -> Result<Vec<f32>> {
    within_radius(graph, r, |_| 1.0)
}

/// The sum of the similarities of each vertex to its neighbours within the radius `r` (0 < r <= 2): a_ij > 1
/// - r.
///
/// ```
/// use kinfolk::stages::{DEFAULT_RADIUS, u_weight};
/// use kinfolk::KnnGraph;
/// let ids = vec![1, 2, 0, 2, 1, 0];
/// let similarities = vec![0.5, 0.25, 0.5, 0.0, 0.0, 0.25];
/// let graph = KnnGraph::from_parts(3, 2, ids, similarities, "example")?;
/// assert_eq!(u_weight(&graph, DEFAULT_RADIUS)?, [0.75, 0.5, 0.25]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn u_weight(graph: &KnnGraph, r: f32) -> Result<Vec<f32>> {
    within_radius(graph, r, |similarity| similarity as f64)
}

fn within_radius(graph: &KnnGraph, r: f32, weight: impl Fn(f32) -> f64 + Sync) -> Result<Vec<f32>> {
    if !(r > 0.0 && r <= 2.0) {
        return Err(Error::Parameter {
            field: "radius",
            expected: "above 0, at most 2",
            found: r.to_string(),
        });
    }
    let density = |i| {
        let (_, similarities) = graph.neighbours(i);
        similarities.iter().filter(|&&a| a > 1.0 - r).map(|&a| weight(a)).sum::<f64>() as f32
    };
    Ok((0..graph.len()).into_par_iter().map(density).collect())
}
