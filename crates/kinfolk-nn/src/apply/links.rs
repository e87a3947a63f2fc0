//! From connectivities to links: the parents of every vertex.

use super::Connectivity;
use kinfolk::stages::{Links, nearest_candidates};
use kinfolk::{KnnGraph, Result};

/// Links the vertices of `connectivity` to their `m` candidates of highest connectivity (of equal ones the
/// nearer), and all others to their `m` nearest candidates.
///
/// The similarity of a link is that of the graph, clipped to 0..1 as in the published code.
pub fn connected_candidates(
    graph: &KnnGraph,
    confidence: &[f32],
    m: usize,
    connectivity: Option<&Connectivity>,
) -> Result<Links> {
    let nearest = nearest_candidates(graph, confidence, m)?;
    let (n, m) = (nearest.len(), nearest.m());
    let (mut parents, mut similarities) = (vec![Links::NONE; n * m], vec![0.0; n * m]);
    for i in 0..n {
        let (ids, values) = nearest.of(i);
        parents[i * m..][..ids.len()].copy_from_slice(ids);
        similarities[i * m..][..ids.len()].copy_from_slice(values);
    }
    if let Some(connectivity) = connectivity {
        let mut best = Vec::new();
        for (&i, range) in connectivity.vertices.iter().zip(connectivity.offsets.windows(2)) {
            best.clear();
            best.extend(range[0]..range[1]);
            // Stable, so that of equal connectivities the nearer candidate stays first.
            best.sort_by(|&a, &b| connectivity.values[b].total_cmp(&connectivity.values[a]));
            for (slot, &entry) in best.iter().take(m).enumerate() {
                parents[i as usize * m + slot] = connectivity.candidates[entry];
                similarities[i as usize * m + slot] = connectivity.similarities[entry];
            }
        }
    }
    similarities.iter_mut().for_each(|similarity| *similarity = similarity.clamp(0.0, 1.0));
    Links::from_parts(confidence.to_vec(), m, parents, similarities)
}
