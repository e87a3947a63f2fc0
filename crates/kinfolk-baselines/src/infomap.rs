//! Infomap: the partition with which a random walk on the graph is told in the fewest bits.
//!
//! Rosvall and Bergstrom (2008), by kinfolk's own map equation; edges are those of the kNN graph above a cosine threshold,
//! weighted by their similarity, as papers after "Learning to Cluster Faces via Confidence and Connectivity Estimation" use it.
//!
//! Cost: O(N K) memory and a few dozen passes over the edges.

use crate::check;
use crate::clusters::Clusters;
use kinfolk::{Flow, KnnGraph, MapParams, Progress, Result, WeightedGraph, map_equation};
use rayon::prelude::*;

/// Parameters of [`infomap`].
#[derive(Debug, Clone, PartialEq)]
pub struct InfomapParams {
    /// Edges of at most this similarity are left out.
    pub th: f32,
    /// How a walker uses an edge.
    pub flow: Flow,
    /// Seed of the order in which vertices move.
    pub seed: u64,
}

impl Default for InfomapParams {
    fn default() -> Self {
        InfomapParams { th: 0.6, flow: Flow::default(), seed: 0 }
    }
}

/// Finds modules in which a random walk stays long.
///
/// Use it when a threshold can be chosen on labelled data: with a good one it is the best of the methods here.
///
/// Cost: a few dozen passes over N K edges, O(N K) memory.
///
/// ```
/// use kinfolk::KnnGraph;
/// use kinfolk_baselines::{InfomapParams, infomap};
/// let graph = KnnGraph::from_parts(4, 1, vec![1, 0, 3, 2], vec![0.9, 0.9, 0.8, 0.8], "example")?;
/// assert_eq!(infomap(&graph, &InfomapParams::default(), &())?.labels, [0, 0, 1, 1]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn infomap(graph: &KnnGraph, params: &InfomapParams, progress: &dyn Progress) -> Result<Clusters> {
    check::cosine("th", params.th)?;
    let weight = |&similarity: &f32| if similarity > params.th { similarity.max(0.0) } else { 0.0 };
    let weights: Vec<f32> = (0..graph.len())
        .into_par_iter()
        .flat_map_iter(|i| graph.neighbours(i).1.iter().map(weight))
        .collect();
    let edges = WeightedGraph::from_knn(graph, &weights)?;
    let found = map_equation(
        &edges,
        &MapParams { flow: params.flow, seed: params.seed, ..MapParams::default() },
        progress,
    )?;
    Ok(Clusters { labels: found.labels, noise: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{knn, on_one_and_three_threads, synthetic};

    #[test]
    fn impossible_parameters_are_refused() {
        let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
        let message = infomap(&graph, &InfomapParams { th: f32::NAN, ..Default::default() }, &());
        assert_eq!(message.unwrap_err().to_string(), "th: expected a similarity from -1 to 1, found NaN");
    }

    #[test]
    fn only_edges_above_the_threshold_count() {
        let two = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
        let found = |th| infomap(&two, &InfomapParams { th, ..Default::default() }, &()).unwrap().labels;
        assert_eq!((found(0.4), found(0.5)), (vec![0, 0], vec![0, 1]));
        // Opposite rows have no weight that a walk could use.
        let apart = KnnGraph::from_parts(2, 1, vec![1, 0], vec![-0.5; 2], "test").unwrap();
        let params = InfomapParams { th: -1.0, ..Default::default() };
        assert_eq!(infomap(&apart, &params, &()).unwrap().labels, [0, 1]);
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(40);
        let graph = knn(&rows, 30);
        let params = InfomapParams { th: 0.6, ..Default::default() };
        let [one, three] = on_one_and_three_threads(|| infomap(&graph, &params, &()).unwrap());
        assert_eq!(one, three);
        let scores = kinfolk::metrics::evaluate(&truth, &one.labels).unwrap();
        assert!(scores.bcubed.f > 0.5, "{scores:?}");
    }
}
