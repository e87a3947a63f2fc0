//! k-means: Lloyd's algorithm with k-means++ seeding.
//!
//! Minimises the sum of squared distances of rows to the mean of their cluster (Lloyd, 1982; seeding by Arthur and
//! Vassilvitskii, 2007), for unit rows 2 - 2 cos. `lloyd` has the arithmetic.
//!
//! Cost: N C D products for seeding and at most as many for each iteration; O(N + C D) memory beside the rows.

use crate::check;
use crate::clusters::Clusters;
use crate::dense::Rows;
use crate::lloyd::{Fit, Fitted, fit};
use crate::random::Stream;
use kinfolk::{Embeddings, Progress, Result};

/// Parameters of [`kmeans`].
#[derive(Debug, Clone, PartialEq)]
pub struct KmeansParams {
    /// How many clusters.
    pub clusters: usize,
    /// The most iterations.
    pub iterations: usize,
    /// Ends when an iteration lowers the sum of squared distances by at most this share of it; 0 for when nothing
    /// moves any more.
    pub tolerance: f64,
    /// Keeps centroids on the sphere (Dhillon and Modha, 2001): the mean direction instead of the mean.
    pub spherical: bool,
    /// Seedings to try; the one that ends with the smallest sum is taken.
    pub restarts: usize,
    /// Seed of the centres.
    pub seed: u64,
}

impl Default for KmeansParams {
    fn default() -> Self {
        KmeansParams { clusters: 8, iterations: 25, tolerance: 0.0, spherical: false, restarts: 1, seed: 0 }
    }
}

/// Divides rows into `clusters` groups around their means.
///
/// Use it when the number of clusters is known and they are of like size: it splits large identities and merges small ones.
/// At 100,000 rows and more, [`minibatch_kmeans`](crate::minibatch_kmeans) costs a tenth.
///
/// Cost: up to (iterations + 1) N C D products, C clusters of D columns; memory O(N + C D).
///
/// ```
/// use kinfolk::Embeddings;
/// use kinfolk_baselines::{KmeansParams, kmeans};
/// let rows = vec![1.0, 0.1, 1.0, 0.0, 0.9, 0.1, -0.1, 1.0, 0.0, 1.0];
/// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
/// let found = kmeans(&embeddings, &KmeansParams { clusters: 2, ..Default::default() }, &())?;
/// assert_eq!(found.labels, [0, 0, 0, 1, 1]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn kmeans(embeddings: &Embeddings, params: &KmeansParams, progress: &dyn Progress) -> Result<Clusters> {
    check::clusters(params.clusters, embeddings.len())?;
    check::at_least_one("iterations", params.iterations)?;
    check::at_least_one("restarts", params.restarts)?;
    check::not_negative("tolerance", params.tolerance)?;
    let how = Fit {
        clusters: params.clusters,
        iterations: params.iterations,
        tolerance: params.tolerance,
        spherical: params.spherical,
        greedy: false,
    };
    Ok(Clusters::from_names(&best_of(Rows::from(embeddings), &how, params.restarts, params.seed, progress)))
}

/// The centroid of each row in the best of several tries.
pub(crate) fn best_of(rows: Rows, how: &Fit, tries: usize, seed: u64, progress: &dyn Progress) -> Vec<u32> {
    let mut best: Option<Fitted> = None;
    for try_ in 0..tries {
        let found = fit(rows, how, &mut Stream::new(seed, try_ as u64), progress);
        if best.as_ref().is_none_or(|best| found.inertia < best.inertia) {
            best = Some(found);
        }
    }
    best.into_iter().flat_map(|best| best.nearest).map(|nearest| nearest.centroid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{embeddings, synthetic};
    use proptest::prelude::*;

    #[test]
    fn impossible_parameters_are_refused() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let message = |params| kmeans(&rows, &params, &()).unwrap_err().to_string();
        let default = KmeansParams::default();
        assert_eq!(
            message(KmeansParams { clusters: 3, ..default.clone() }),
            "clusters: expected at least 1, at most the number of rows, found 3 for 2 rows"
        );
        assert!(message(KmeansParams { clusters: 0, ..default.clone() }).starts_with("clusters"));
        let two = KmeansParams { clusters: 2, ..default };
        assert!(message(KmeansParams { iterations: 0, ..two.clone() }).starts_with("iterations"));
        assert!(message(KmeansParams { restarts: 0, ..two.clone() }).starts_with("restarts"));
        assert!(message(KmeansParams { tolerance: f64::NAN, ..two }).starts_with("tolerance"));
    }

    proptest! {
        #[test]
        fn every_row_has_a_cluster(rows in embeddings(), seed in 0u64..9, spherical: bool) {
            let clusters = 1 + seed as usize * rows.len() / 9;
            let params = KmeansParams { clusters, spherical, seed, restarts: 2, ..Default::default() };
            let found = kmeans(&rows, &params, &()).unwrap();
            prop_assert_eq!(found.labels.len(), rows.len());
            prop_assert!(found.len() <= clusters);
        }
    }

    #[test]
    fn as_many_clusters_as_different_rows() {
        let data: Vec<f32> = (0..12).flat_map(|i| [1.0, (i % 6) as f32]).collect();
        let rows = Embeddings::from_rows(data, 2, "test").unwrap();
        let params = KmeansParams { clusters: 6, ..Default::default() };
        let found = kmeans(&rows, &params, &()).unwrap();
        assert_eq!(found.labels, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn identities_are_found() {
        let (rows, truth) = synthetic(40);
        let params = KmeansParams { clusters: 40, ..Default::default() };
        let found = kmeans(&rows, &params, &()).unwrap();
        let scores = kinfolk::metrics::evaluate(&truth, &found.labels).unwrap();
        assert!(scores.bcubed.f > 0.5, "{scores:?}");
    }
}
