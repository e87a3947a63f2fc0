//! Mini-batch k-means: centroids are updated from small random batches instead of the whole set.
//!
//! Sculley, "Web-scale k-means clustering" (2010), as in scikit-learn: a centroid is the mean of all rows that were ever
//! assigned to it. Every 10 C rows, centroids with less than a share `reassignment` of the rows of the largest are moved to
//! random rows of the batch. It ends when the smoothed mean squared distance of the batches has not improved for `patience`
//! batches.
//!
//! Cost: B C D products for each batch of B rows, and N C D for the labels at the end; O(N + C D) memory.

use crate::check;
use crate::clusters::Clusters;
use crate::dense::{Rows, square};
use crate::lloyd::{Centroids, Groups, gather, greedy_plus_plus, inertia};
use crate::random::{Stream, stream};
use kinfolk::{
    Clustering, Context, Embeddings, Input, Method, MethodInfo, Parameters, Problem, Progress, Result,
};

kinfolk::parameters! {
    /// Mini-batch k-means: partitions rows into `clusters` clusters around means that are learned from small batches.
    ///
    /// Use it instead of [`Kmeans`](crate::Kmeans) when there are many rows: a few points worse, many times faster.
    ///
    /// Cost: about a hundred batches of `batch` C D products, and N C D for the labels; memory O(N + C D).
    ///
    /// ```
    /// use kinfolk::{Clusterer, Embeddings};
    /// use kinfolk_baselines::MinibatchKmeans;
    /// let rows = vec![1.0, 0.1, 1.0, 0.0, 0.9, 0.1, -0.1, 1.0, 0.0, 1.0];
    /// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
    /// let method = MinibatchKmeans { clusters: Some(2), ..MinibatchKmeans::default() };
    /// assert_eq!(Clusterer::with(method).fit(&embeddings)?.labels, [0, 0, 0, 1, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct MinibatchKmeans {
        /// The number of clusters; required.
        pub clusters: Option<usize> = None, "at least 1, at most the number of rows",
            |clusters| clusters.is_none_or(|clusters| clusters >= 1);
        /// Rows of a batch.
        pub batch: usize = 1024, "at least 1", |batch| *batch >= 1;
        /// Maximum number of batches, in passes over the set.
        pub passes: usize = 100, "at least 1", |passes| *passes >= 1;
        /// Stops after this many batches without improvement.
        pub patience: usize = 10, "at least 1", |patience| *patience >= 1;
        /// Centroids with less than this share of the rows of the largest are moved to random rows.
        pub reassignment: f64 = 0.01, "a finite number of 0 or more",
            |reassignment| *reassignment >= 0.0 && reassignment.is_finite();
        /// Number of initialisations to try, each on a sample; the best one is used.
        pub seedings: usize = 3, "at least 1", |seedings| *seedings >= 1;
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "minibatch-kmeans",
    "Mini-batch k-means",
    "Assigns every row to the nearest of C means, which are learned from small random batches",
)
.when("when k-means fits but there are too many rows for it: a few points worse, many times faster")
.cost("N C D")
.input(Input::Rows)
.needs_clusters()
.in_paper()
.color("#5a9bd4");

impl Method for MinibatchKmeans {
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
        rows as f64 * self.clusters.unwrap_or(0) as f64 * 2.0 * dim as f64
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.check()?;
        let embeddings = problem.embeddings()?;
        let clusters = check::clusters(self.clusters, embeddings.len())?;
        let found = context.timed("partition", || self.partition(embeddings, clusters, context))?;
        Ok(found.into_clustering(self, None, context))
    }
}

impl MinibatchKmeans {
    fn partition(&self, embeddings: &Embeddings, clusters: usize, context: &Context) -> Result<Clusters> {
        let (rows, progress) = (Rows::from(embeddings), context.progress());
        let centroids = self.train(rows, clusters, context)?;
        progress.begin("labels", 1);
        let names: Vec<u32> =
            centroids.nearest(rows, progress)?.iter().map(|nearest| nearest.centroid).collect();
        progress.advance(1);
        Ok(Clusters::from_names(&names))
    }

    fn train(&self, rows: Rows, clusters: usize, context: &Context) -> Result<Centroids> {
        let (n, progress) = (rows.len(), context.progress());
        let batch = self.batch.min(n);
        let mut stream = stream(context.seed(), 0);
        progress.begin("seeds", (self.seedings * clusters) as u64);
        let mut centroids = seeds(rows, batch, clusters, self.seedings, &mut stream, progress)?;
        let mut counts = vec![0.0f64; clusters];
        let mut since_reassignment = 0;
        let mut stop = Stop::new(self.patience, (2.0 * batch as f64 / (n as f64 + 1.0)).min(1.0));
        let steps = (self.passes * n).div_ceil(batch);
        progress.begin("batches", steps as u64);
        for _ in 0..steps {
            progress.check()?;
            let drawn: Vec<u32> = (0..batch).map(|_| stream.below(n) as u32).collect();
            let data = gather(rows, &drawn);
            let sample = Rows { data: &data, dim: rows.dim };
            let nearest = centroids.nearest(sample, progress)?;
            let squares: Vec<f32> = (0..batch).map(|i| square(sample.row(i))).collect();
            let mean = inertia(&squares, &nearest) / batch as f64;

            since_reassignment += batch;
            let reassign = since_reassignment >= 10 * clusters || counts.contains(&0.0);
            let groups = Groups::new(&nearest, clusters);
            let mut moved = std::mem::take(&mut centroids.data);
            follow(&mut moved, sample, &groups, &mut counts);
            if reassign {
                since_reassignment = 0;
                put_elsewhere(&mut moved, sample, &mut counts, self.reassignment, &mut stream);
            }
            centroids = Centroids::new(moved, rows.dim);
            progress.advance(1);
            progress.note(&format!("mean squared distance {mean:.5}"));
            if stop.after(mean) {
                break;
            }
        }
        Ok(centroids)
    }
}

/// The best of several initialisations, evaluated on a sample of rows that none of them used.
fn seeds(
    rows: Rows,
    batch: usize,
    clusters: usize,
    seedings: usize,
    stream: &mut Stream,
    progress: &dyn Progress,
) -> Result<Centroids> {
    let n = rows.len();
    let size = if 3 * batch < clusters { 3 * clusters } else { 3 * batch }.min(n);
    let judges: Vec<u32> = (0..size).map(|_| stream.below(n) as u32).collect();
    let judges = gather(rows, &judges);
    let judges = Rows { data: &judges, dim: rows.dim };
    let squares: Vec<f32> = (0..judges.len()).map(|i| square(judges.row(i))).collect();
    let mut best: Option<(f64, Centroids)> = None;
    for _ in 0..seedings {
        let sample = gather(rows, &stream.sample(n, size));
        let sample = Rows { data: &sample, dim: rows.dim };
        let lengths: Vec<f32> = (0..sample.len()).map(|i| square(sample.row(i))).collect();
        let chosen = greedy_plus_plus(sample, &lengths, clusters, stream, progress)?;
        let centroids = Centroids::of_rows(sample, &chosen);
        let sum = inertia(&squares, &centroids.nearest(judges, progress)?);
        if best.as_ref().is_none_or(|best| sum < best.0) {
            best = Some((sum, centroids));
        }
    }
    Ok(best.map_or_else(|| Centroids::new(Vec::new(), rows.dim), |best| best.1))
}

/// Moves each centroid towards its rows of the batch: it is the mean of all rows that were ever assigned to it.
fn follow(centroids: &mut [f32], sample: Rows, groups: &Groups, counts: &mut [f64]) {
    for (c, (centroid, count)) in centroids.chunks_exact_mut(sample.dim).zip(counts).enumerate() {
        let members = groups.of(c);
        if members.is_empty() {
            continue;
        }
        let total = *count + members.len() as f64;
        for (l, value) in centroid.iter_mut().enumerate() {
            let sum: f64 = members.iter().map(|&i| f64::from(sample.row(i as usize)[l])).sum();
            *value = ((f64::from(*value) * *count + sum) / total) as f32;
        }
        *count = total;
    }
}

/// Puts centroids with few rows on random rows of the batch, at most half as many as the batch has.
fn put_elsewhere(centroids: &mut [f32], sample: Rows, counts: &mut [f64], share: f64, stream: &mut Stream) {
    let most = counts.iter().copied().fold(0.0, f64::max);
    let mut few: Vec<usize> = (0..counts.len()).filter(|&c| counts[c] < share * most).collect();
    few.sort_by(|&a, &b| counts[a].total_cmp(&counts[b]));
    few.truncate(sample.len() / 2);
    let drawn = stream.sample(sample.len(), few.len());
    for (&c, &row) in few.iter().zip(&drawn) {
        centroids[c * sample.dim..][..sample.dim].copy_from_slice(sample.row(row as usize));
    }
    // With fewer rows they would be moved again at once.
    let moved = |c: usize| few.contains(&c);
    let least = (0..counts.len()).filter(|&c| !moved(c)).map(|c| counts[c]).fold(f64::INFINITY, f64::min);
    if least.is_finite() {
        few.iter().for_each(|&c| counts[c] = least);
    }
}

/// Decides when to stop, by a smoothed mean squared distance.
struct Stop {
    patience: usize,
    alpha: f64,
    batches: usize,
    smoothed: Option<f64>,
    least: f64,
    without_improvement: usize,
}

impl Stop {
    fn new(patience: usize, alpha: f64) -> Self {
        Stop { patience, alpha, batches: 0, smoothed: None, least: f64::INFINITY, without_improvement: 0 }
    }

    /// True after enough batches without improvement.
    fn after(&mut self, mean: f64) -> bool {
        self.batches += 1;
        // The first batch measures only the initialisation.
        if self.batches == 1 {
            return false;
        }
        let smoothed =
            self.smoothed.map_or(mean, |smoothed| smoothed * (1.0 - self.alpha) + mean * self.alpha);
        self.smoothed = Some(smoothed);
        if smoothed < self.least {
            (self.least, self.without_improvement) = (smoothed, 0);
        } else {
            self.without_improvement += 1;
        }
        self.without_improvement >= self.patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{embeddings, on_one_and_three_threads, on_rows, refusal, seeded, synthetic};
    use proptest::prelude::*;

    #[test]
    fn impossible_parameters_are_refused() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let two = MinibatchKmeans { clusters: Some(2), ..Default::default() };
        let message = |params: MinibatchKmeans| refusal(on_rows(&params, &rows));
        assert!(message(MinibatchKmeans { clusters: Some(3), ..two.clone() }).starts_with("clusters"));
        assert!(message(MinibatchKmeans { batch: 0, ..two.clone() }).starts_with("batch"));
        assert!(message(MinibatchKmeans { passes: 0, ..two.clone() }).starts_with("passes"));
        assert!(message(MinibatchKmeans { patience: 0, ..two.clone() }).starts_with("patience"));
        assert!(message(MinibatchKmeans { seedings: 0, ..two.clone() }).starts_with("seedings"));
        assert!(message(MinibatchKmeans { reassignment: -1.0, ..two }).starts_with("reassignment"));
    }

    proptest! {
        /// A centroid is the mean of the rows assigned to it, in whatever batches they came.
        #[test]
        fn centroids_are_running_means(rows in embeddings(), batches in 1usize..4) {
            let rows = Rows::from(&rows);
            let mut counts = vec![0.0];
            let mut centroid = vec![9.0; rows.dim];
            let size = rows.len().div_ceil(batches);
            for first in (0..rows.len()).step_by(size) {
                let part = rows.part(first..(first + size).min(rows.len()));
                let nearest = Centroids::new(centroid.clone(), rows.dim).nearest(part, &()).unwrap();
                follow(&mut centroid, part, &Groups::new(&nearest, 1), &mut counts);
            }
            for (l, &value) in centroid.iter().enumerate() {
                let mean = (0..rows.len()).map(|i| rows.row(i)[l]).sum::<f32>() / rows.len() as f32;
                prop_assert!((value - mean).abs() < 1e-5);
            }
        }

        #[test]
        fn every_row_has_a_cluster(rows in embeddings(), seed in 0u64..9) {
            let clusters = 1 + seed as usize * rows.len() / 9;
            let params = MinibatchKmeans { clusters: Some(clusters), batch: 7, passes: 3, ..Default::default() };
            let found = seeded(&params, &Problem::new(&rows), seed).unwrap();
            prop_assert_eq!(found.labels.len(), rows.len());
            prop_assert!(found.len() <= clusters);
        }
    }

    #[test]
    fn rare_centroids_are_put_on_rows() {
        let sample = [1.0, 2.0, 3.0, 4.0];
        let mut centroids = [7.0, 8.0, 9.0];
        let mut counts = [100.0, 0.5, 50.0];
        let sample = Rows { data: &sample, dim: 1 };
        put_elsewhere(&mut centroids, sample, &mut counts, 0.01, &mut stream(0, 0));
        assert_eq!((centroids[0], centroids[2], counts), (7.0, 9.0, [100.0, 50.0, 50.0]));
        assert!(sample.data.contains(&centroids[1]));
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(40);
        let params = MinibatchKmeans { clusters: Some(40), batch: 600, ..Default::default() };
        let [one, three] = on_one_and_three_threads(|| on_rows(&params, &rows).unwrap().labels);
        assert_eq!(one, three);
        let scores = kinfolk::metrics::evaluate(&truth, &one).unwrap();
        assert!(scores.bcubed.f > 0.5, "{scores:?}");
    }
}
