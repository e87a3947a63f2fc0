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
use crate::random::stream;
use kinfolk::{
    Clustering, Context, Embeddings, Input, Method, MethodInfo, Parameters, Problem, Progress, Result,
};

kinfolk::parameters! {
    /// k-means: divides rows into `clusters` groups around their means.
    ///
    /// Use it when the number of clusters is known and they are of similar size: it splits large identities and merges
    /// small ones. From 100,000 rows on, [`MinibatchKmeans`](crate::MinibatchKmeans) costs a tenth.
    ///
    /// Cost: up to (iterations + 1) N C D products, C clusters of D columns; memory O(N + C D).
    ///
    /// ```
    /// use kinfolk::{Clusterer, Embeddings};
    /// use kinfolk_baselines::Kmeans;
    /// let rows = vec![1.0, 0.1, 1.0, 0.0, 0.9, 0.1, -0.1, 1.0, 0.0, 1.0];
    /// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
    /// let found = Clusterer::with(Kmeans { clusters: Some(2), ..Kmeans::default() }).fit(&embeddings)?;
    /// assert_eq!(found.labels, [0, 0, 0, 1, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Kmeans {
        /// How many clusters to make; must be set.
        pub clusters: Option<usize> = None, "at least 1, at most the number of rows",
            |clusters| clusters.is_none_or(|clusters| clusters >= 1);
        /// Maximum number of iterations.
        pub iterations: usize = 25, "at least 1", |iterations| *iterations >= 1;
        /// Stops when an iteration lowers the sum of squared distances by at most this share of it; 0 continues until
        /// nothing moves.
        pub tolerance: f64 = 0.0, "a finite number of 0 or more",
            |tolerance| *tolerance >= 0.0 && tolerance.is_finite();
        /// Scales centroids to unit length (Dhillon and Modha, 2001): the mean direction instead of the mean.
        pub spherical: bool = false;
        /// Seedings to try; the one that ends with the smallest sum of squared distances is taken.
        pub restarts: usize = 1, "at least 1", |restarts| *restarts >= 1;
    }
}

static INFO: MethodInfo =
    MethodInfo::new("kmeans", "k-means", "Assigns every row to the nearest of C means, by Lloyd's algorithm")
        .when("when the number of clusters is known and they are of similar size")
        .cost("N C D per iteration")
        .input(Input::Rows)
        .needs_clusters()
        .in_paper()
        .color("#1f77b4");

impl Method for Kmeans {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn parameters(&self) -> &dyn Parameters {
        self
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        self
    }

    fn operations(&self, rows: usize, dim: usize) -> f64 {
        let distances = rows as f64 * self.clusters.unwrap_or(0) as f64;
        distances * 2.0 * dim as f64 * (self.iterations * self.restarts) as f64
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.check()?;
        let embeddings = problem.embeddings()?;
        let clusters = check::clusters(self.clusters, embeddings.len())?;
        let found = context.timed("partition", || self.partition(embeddings, clusters, context))?;
        Ok(found.into_clustering(self, None, context))
    }
}

impl Kmeans {
    fn partition(&self, embeddings: &Embeddings, clusters: usize, context: &Context) -> Result<Clusters> {
        let how = Fit {
            clusters,
            iterations: self.iterations,
            tolerance: self.tolerance,
            spherical: self.spherical,
            greedy: false,
        };
        let rows = Rows::from(embeddings);
        let names = best_of(rows, &how, self.restarts, context.seed(), context.progress())?;
        Ok(Clusters::from_names(&names))
    }
}

/// The centroid of each row in the best of several tries.
pub(crate) fn best_of(
    rows: Rows,
    how: &Fit,
    tries: usize,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    let mut best: Option<Fitted> = None;
    for try_ in 0..tries {
        let found = fit(rows, how, &mut stream(seed, try_ as u64), progress)?;
        if best.as_ref().is_none_or(|best| found.inertia < best.inertia) {
            best = Some(found);
        }
    }
    Ok(best.into_iter().flat_map(|best| best.nearest).map(|nearest| nearest.centroid).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{embeddings, on_rows, refusal, seeded, synthetic};
    use proptest::prelude::*;

    #[test]
    fn impossible_parameters_are_refused() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let message = |params: Kmeans| refusal(on_rows(&params, &rows));
        let two = Kmeans { clusters: Some(2), ..Kmeans::default() };
        assert_eq!(
            message(Kmeans { clusters: Some(3), ..two.clone() }),
            "clusters: expected at least 1, at most the number of rows, found 3 for 2 rows"
        );
        assert_eq!(message(Kmeans::default()), "clusters: expected how many clusters to make, found none");
        assert!(message(Kmeans { clusters: Some(0), ..two.clone() }).starts_with("clusters"));
        assert!(message(Kmeans { iterations: 0, ..two.clone() }).starts_with("iterations"));
        assert!(message(Kmeans { restarts: 0, ..two.clone() }).starts_with("restarts"));
        assert!(message(Kmeans { tolerance: f64::NAN, ..two }).starts_with("tolerance"));
    }

    proptest! {
        #[test]
        fn every_row_has_a_cluster(rows in embeddings(), seed in 0u64..9, spherical: bool) {
            let clusters = 1 + seed as usize * rows.len() / 9;
            let params = Kmeans { clusters: Some(clusters), spherical, restarts: 2, ..Kmeans::default() };
            let found = seeded(&params, &Problem::new(&rows), seed).unwrap();
            prop_assert_eq!(found.labels.len(), rows.len());
            prop_assert!(found.len() <= clusters);
        }
    }

    #[test]
    fn as_many_clusters_as_different_rows() {
        let data: Vec<f32> = (0..12).flat_map(|i| [1.0, (i % 6) as f32]).collect();
        let rows = Embeddings::from_rows(data, 2, "test").unwrap();
        let params = Kmeans { clusters: Some(6), ..Kmeans::default() };
        let found = on_rows(&params, &rows).unwrap();
        assert_eq!(found.labels, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn identities_are_found() {
        let (rows, truth) = synthetic(40);
        let params = Kmeans { clusters: Some(40), ..Kmeans::default() };
        let found = on_rows(&params, &rows).unwrap();
        let scores = kinfolk::metrics::evaluate(&truth, &found.labels).unwrap();
        assert!(scores.bcubed.f > 0.5, "{scores:?}");
    }
}
