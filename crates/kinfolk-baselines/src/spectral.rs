//! Spectral clustering: k-means among the eigenvectors of the graph.
//!
//! Shi and Malik (2000), Ng, Jordan and Weiss (2001), as scikit-learn has it for a given affinity. W holds the similarities
//! of the kNN graph in both directions, those above 0; D its row sums. The C largest eigenvectors x of D^-1/2 W D^-1/2 (the smallest
//! of the normalised Laplacian) are scaled to D^-1/2 x, and the rows of the N x C matrix they make are clustered: by k-means; by
//! k-means of the rows scaled to unit length, as Ng, Jordan and Weiss do; or by turning them towards the corners of a simplex
//! (Yu and Shi, 2003). With thousands of clusters most rows of weakly separated parts are near the origin, where plain k-means
//! leaves them all in one cluster; their directions still tell them apart.
//!
//! What does not hang together has the eigenvalue 1 each, and its eigenvectors are known: one for each component. Lanczos
//! (`eigen`) looks only for the others.
//!
//! Cost: some hundred products of the graph with blocks of vectors, O(N C^2) to keep them orthogonal and for each iteration of
//! k-means, O(C^3) for each restart. Memory: 27 N C + 80 C^2 bytes and the graph, 1.5 GB for 2,504 clusters of 14,042 rows;
//! that is why there is [`SPECTRAL_UP_TO`].

use crate::check;
use crate::clusters::Clusters;
use crate::dense::Rows;
use crate::eigen::{MANY, Operator, largest};
use crate::eigen_dense::dense;
use crate::kmeans::best_of;
use crate::lloyd::Fit;
use crate::random::{Stream, stream};
use crate::sparse::Symmetric;
use kinfolk::stages::DisjointSets;
use kinfolk::{
    Clustering, Context, Input, KnnGraph, Method, MethodInfo, Parameters, Problem, Progress, Result,
};
use rayon::prelude::*;

/// How rows of eigenvectors become clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Assign {
    /// k-means, the best of ten; a single one beyond 2,000 clusters.
    #[default]
    Kmeans,
    /// k-means of rows that are scaled to unit length.
    Directions,
    /// The rotation that brings rows nearest to the axes.
    Discretise,
}

kinfolk::word_values!(
    Assign: "kmeans, directions or discretise",
    "kmeans" => Assign::Kmeans, "directions" => Assign::Directions, "discretise" => Assign::Discretise
);

/// The most clusters that [`Spectral`] makes: beyond, diagonalising matrices of twice as many rows takes hours.
pub const SPECTRAL_UP_TO: usize = 5_000;

kinfolk::parameters! {
    /// Spectral clustering: cuts the graph into `clusters` parts that are weakly connected.
    ///
    /// Use it when the number of clusters is known, at most some thousands, and they are connected rather than round.
    ///
    /// Cost: O(N C (K + C) + C^3) for each of some five restarts, 27 N C + 80 C^2 bytes.
    ///
    /// ```
    /// use kinfolk::{Clusterer, KnnGraph, Problem};
    /// use kinfolk_baselines::Spectral;
    /// let graph = KnnGraph::from_parts(4, 1, vec![1, 0, 3, 2], vec![0.9, 0.9, 0.8, 0.8], "example")?;
    /// let found = Clusterer::with(Spectral { clusters: Some(2), ..Spectral::default() }).run(&Problem::of_graph(&graph))?;
    /// assert_eq!(found.labels, [0, 0, 1, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Spectral {
        /// How many clusters to make; must be set. Each takes an eigenvector; infomap and hac find any number.
        pub clusters: Option<usize> = None,
            "at least 1, at most the number of rows and 5000, since each takes an eigenvector",
            |clusters| clusters.is_none_or(|clusters| (1..=SPECTRAL_UP_TO).contains(&clusters));
        /// How rows of eigenvectors become clusters: by k-means, the best of ten tries up to 2,000 clusters and a single one
        /// beyond; by k-means of rows scaled to unit length (directions), better with many clusters; or by the rotation that
        /// brings rows nearest to the axes (discretise).
        pub assign: Assign = Assign::Kmeans;
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "spectral",
    "Spectral clustering",
    "Runs k-means on the leading eigenvectors of the kNN graph",
)
.when("when the number of clusters is known and small, and they are connected rather than round")
.cost("N C (K + C) + C^3, up to 5,000 clusters")
.input(Input::Graph)
.needs_clusters()
.in_paper()
.color("#d64fa8");

impl Method for Spectral {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn parameters(&self) -> &dyn Parameters {
        self
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        self
    }

    fn operations(&self, rows: usize, _dim: usize) -> f64 {
        let clusters = self.clusters.unwrap_or(0) as f64;
        rows as f64 * clusters * 8.0 * clusters
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.check()?;
        let clusters = check::clusters(self.clusters, problem.len())?;
        let given = problem.neighbours(80, context)?;
        let found = context.timed("partition", || self.partition(&given.graph, clusters, context))?;
        Ok(found.into_clustering(self, Some(given.report), context))
    }
}

impl Spectral {
    fn partition(&self, graph: &KnnGraph, clusters: usize, context: &Context) -> Result<Clusters> {
        let (n, seed, progress) = (graph.len(), context.seed(), context.progress());
        progress.check()?;
        let matrix = Normalised::of(graph);
        let (_, vectors) = largest(&matrix, matrix.components(clusters), clusters, seed, progress)?;
        // D^-1/2 x, by rows.
        let mut rows = vec![0.0f64; n * clusters];
        rows.par_chunks_mut(clusters).enumerate().for_each(|(i, row)| {
            row.iter_mut().enumerate().for_each(|(l, value)| *value = vectors[l * n + i] * matrix.scale[i]);
        });
        drop(vectors);
        let names = match self.assign {
            Assign::Kmeans | Assign::Directions => {
                if self.assign == Assign::Directions {
                    to_unit_length(&mut rows, clusters);
                }
                // Of the size of 1, so that f32 holds them well.
                let most = rows.iter().fold(0.0f64, |most, v| most.max(v.abs())).max(f64::MIN_POSITIVE);
                let data: Vec<f32> = rows.iter().map(|v| (v / most) as f32).collect();
                drop(rows);
                let how = Fit { clusters, iterations: 300, tolerance: 0.0, spherical: false, greedy: true };
                let tries = if clusters <= MANY { 10 } else { 1 };
                best_of(Rows { data: &data, dim: clusters }, &how, tries, seed, progress)?
            }
            Assign::Discretise => {
                progress.begin("rotations", 1);
                let names = discretise(rows, clusters, &mut stream(seed, 1), progress)?;
                progress.advance(1);
                names
            }
        };
        Ok(Clusters::from_names(&names))
    }
}

/// D^-1/2 W D^-1/2.
struct Normalised {
    edges: Symmetric,
    /// D^-1/2, 0 for a vertex without edges.
    scale: Vec<f64>,
}

impl Normalised {
    fn of(graph: &KnnGraph) -> Self {
        let edges = Symmetric::of(graph, |similarity| similarity > 0.0);
        let degree = |i: usize| edges.row(i).1.iter().map(|&s| f64::from(s)).sum::<f64>();
        let scale = |degree: f64| if degree > 0.0 { 1.0 / degree.sqrt() } else { 0.0 };
        let scale = (0..edges.len()).into_par_iter().map(|i| scale(degree(i))).collect();
        Normalised { edges, scale }
    }

    /// The eigenvectors of eigenvalue 1, D^1/2 on each component, of at most `most` components, the largest first.
    fn components(&self, most: usize) -> Vec<f64> {
        let n = self.edges.len();
        let mut forest = DisjointSets::new(n);
        (0..n).for_each(|i| {
            self.edges.row(i).0.iter().for_each(|&j| {
                forest.join(i as u32, j);
            });
        });
        let labels = kinfolk::stages::number_by_size(&forest.names());
        // One vertex has no edge to stay on.
        let alone = (0..n).filter(|&i| self.scale[i] == 0.0).count();
        let count = (labels.iter().max().map_or(0, |last| last + 1) as usize - alone).min(most);
        let mut vectors = vec![0.0; count * n];
        for (i, &label) in labels.iter().enumerate() {
            if (label as usize) < count {
                vectors[label as usize * n + i] = 1.0 / self.scale[i];
            }
        }
        for vector in vectors.chunks_exact_mut(n) {
            let length = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
            vector.iter_mut().for_each(|v| *v /= length);
        }
        vectors
    }
}

impl Operator for Normalised {
    fn len(&self) -> usize {
        self.edges.len()
    }

    fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let (ids, similarities) = self.edges.row(i);
        let scale = self.scale[i];
        ids.iter()
            .zip(similarities)
            .map(move |(&j, &s)| (j as usize, f64::from(s) * scale * self.scale[j as usize]))
    }
}

/// Scales rows of `c` values to unit length, except those that are 0.
fn to_unit_length(rows: &mut [f64], c: usize) {
    for row in rows.chunks_exact_mut(c) {
        let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
        if length > 0.0 {
            row.iter_mut().for_each(|v| *v /= length);
        }
    }
}

/// Turns rows of unit length until they are as near as can be to the axes; the axis of each row is its cluster.
fn discretise(
    mut rows: Vec<f64>,
    c: usize,
    stream: &mut Stream,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    let n = rows.len() / c;
    to_unit_length(&mut rows, c);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let row = |i: usize| &rows[i * c..][..c];
    // The axes begin as rows that are as far from parallel as can be. Each is a row of `axes`.
    let mut axes = row(stream.below(n)).to_vec();
    let mut parallel = vec![0.0f64; n];
    for j in 1..c {
        progress.check()?;
        let last = &axes[(j - 1) * c..];
        parallel
            .par_iter_mut()
            .enumerate()
            .with_min_len(256)
            .for_each(|(i, p)| *p += dot(row(i), last).abs());
        let least = (0..n).min_by(|&a, &b| parallel[a].total_cmp(&parallel[b])).unwrap_or(0);
        axes.extend_from_slice(row(least));
    }
    let mut names = vec![0u32; n];
    let mut last = f64::NEG_INFINITY;
    for _ in 0..20 {
        names = (0..n)
            .into_par_iter()
            .with_min_len(64)
            .map(|i| {
                if progress.cancelled() {
                    return (0, 0.0);
                }
                let along = |axis: &usize| dot(row(i), &axes[axis * c..][..c]);
                // The first of the largest.
                (0..c).fold((0, f64::NEG_INFINITY), |best, axis| {
                    let value = along(&axis);
                    if value > best.1 { (axis as u32, value) } else { best }
                })
            })
            .map(|best| best.0)
            .collect();
        progress.check()?;
        // A = sum over rows of (axis of the row) (row)^T; the orthogonal matrix nearest to it has the new axes as rows.
        let mut a = vec![0.0; c * c];
        for (i, &name) in names.iter().enumerate() {
            a[name as usize * c..][..c].iter_mut().zip(row(i)).for_each(|(a, v)| *a += v);
        }
        let (nearest, agreement) = nearest_orthogonal(&a, c, progress)?;
        axes = nearest;
        if (agreement - last).abs() <= f64::EPSILON * n as f64 {
            break;
        }
        last = agreement;
    }
    Ok(names)
}

/// The orthogonal factor of A = U P, A (A^T A)^-1/2, and the trace of P, the sum of the singular values.
fn nearest_orthogonal(a: &[f64], c: usize, progress: &dyn Progress) -> Result<(Vec<f64>, f64)> {
    let mut gram = vec![0.0; c * c];
    gram.par_chunks_mut(c).enumerate().for_each(|(i, row)| {
        if progress.cancelled() {
            return;
        }
        for from in a.chunks_exact(c) {
            row.iter_mut().zip(from).for_each(|(g, v)| *g += from[i] * v);
        }
    });
    let (values, vectors) = dense(gram, c, progress)?;
    let least = values[0].max(f64::MIN_POSITIVE) * 1e-14;
    let singular: Vec<f64> = values.iter().map(|&v| v.max(least).sqrt()).collect();
    let mut out = vec![0.0; c * c];
    out.par_chunks_mut(c).zip(a.par_chunks(c)).for_each(|(out, row)| {
        if progress.cancelled() {
            return;
        }
        for (v, s) in vectors.chunks_exact(c).zip(&singular) {
            let along = v.iter().zip(row).map(|(v, a)| v * a).sum::<f64>() / s;
            out.iter_mut().zip(v).for_each(|(o, v)| *o += along * v);
        }
    });
    progress.check()?;
    Ok((out, singular.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        graphs, knn, on_graph, on_one_and_three_threads, refusal, same_groups, seeded, synthetic,
    };
    use proptest::prelude::*;

    proptest! {
        /// Known vectors that stay leave the others as the dense problem has them.
        #[test]
        fn eigenvalues_are_those_of_the_dense_matrix(graph in graphs(), share in 0.0..1.0) {
            let matrix = Normalised::of(&graph);
            let n = graph.len();
            let want = 1 + (share * (n - 1) as f64) as usize;
            let mut full = vec![0.0; n * n];
            (0..n).for_each(|i| matrix.row(i).for_each(|(j, value)| full[i * n + j] += value));
            let (expected, _) = dense(full, n, &()).unwrap();
            let (found, vectors) = largest(&matrix, matrix.components(want), want, 3, &()).unwrap();
            prop_assert_eq!(vectors.len(), want * n);
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!((found - expected).abs() < 1e-6, "{:?} {:?}", found, expected);
            }
        }

        /// Eigenvalue 1 belongs to the vectors of components.
        #[test]
        fn components_are_eigenvectors(graph in graphs(), most in 1usize..6) {
            let matrix = Normalised::of(&graph);
            let n = graph.len();
            let vectors = matrix.components(most);
            for v in vectors.chunks_exact(n) {
                for i in 0..n {
                    let product: f64 = matrix.row(i).map(|(j, value)| value * v[j]).sum();
                    prop_assert!((product - v[i]).abs() < 1e-9);
                }
            }
        }

        #[test]
        fn every_row_has_a_cluster(graph in graphs(), share in 0.0..1.0, assign in 0usize..3) {
            let clusters = 1 + (share * graph.len() as f64) as usize;
            let assign = [Assign::Kmeans, Assign::Directions, Assign::Discretise][assign];
            let method = Spectral { clusters: Some(clusters), assign };
            let found = seeded(&method, &Problem::of_graph(&graph), 1).unwrap();
            prop_assert_eq!(found.labels.len(), graph.len());
            prop_assert!(found.len() <= clusters);
        }
    }

    #[test]
    fn the_nearest_orthogonal_matrix_of_a_rotation_is_itself() {
        let (nearest, sum) = nearest_orthogonal(&[0.0, -2.0, 2.0, 0.0], 2, &()).unwrap();
        for (found, expected) in nearest.iter().zip([0.0, -1.0, 1.0, 0.0]) {
            assert!((found - expected).abs() < 1e-9);
        }
        assert!((sum - 4.0).abs() < 1e-9);
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let graph = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
        for clusters in [0, 3] {
            let message =
                refusal(on_graph(&Spectral { clusters: Some(clusters), ..Default::default() }, &graph));
            assert!(message.starts_with("clusters"));
        }
        let many = KnnGraph::from_parts(SPECTRAL_UP_TO + 1, 0, vec![], vec![], "test").unwrap();
        let params = Spectral { clusters: Some(SPECTRAL_UP_TO + 1), ..Default::default() };
        assert!(refusal(on_graph(&params, &many)).contains("eigenvector"));
        let none = refusal(on_graph(&Spectral::default(), &graph));
        assert_eq!(none, "clusters: expected how many clusters to make, found none");
        let both = on_graph(&Spectral { clusters: Some(2), ..Default::default() }, &graph).unwrap();
        assert_eq!(both.labels, [0, 1]);
    }

    #[test]
    fn a_ring_of_cliques_is_cut_between_them() {
        // Nine cliques of ten, each with a weak edge to the next.
        let (n, k) = (90, 10);
        let neighbours = |i: usize| {
            let own = (0..10).map(|j| i / 10 * 10 + j).filter(|&j| j != i).map(|j| (j, 0.9));
            own.chain([((i + 10) % n, if i.is_multiple_of(10) { 0.05 } else { 0.0 })]).collect::<Vec<_>>()
        };
        let edges: Vec<(usize, f32)> = (0..n).flat_map(neighbours).collect();
        let (ids, similarities) = edges.into_iter().map(|(j, s)| (j as u32, s)).unzip();
        let graph = KnnGraph::from_parts(n, k, ids, similarities, "test").unwrap();
        let expected: Vec<i64> = (0..n as i64).map(|i| i / 10).collect();
        for assign in [Assign::Kmeans, Assign::Directions, Assign::Discretise] {
            let found = on_graph(&Spectral { clusters: Some(9), assign }, &graph).unwrap();
            assert!(same_groups(&found.labels, &expected), "{assign:?} {:?}", found.labels);
        }
    }

    #[test]
    fn thousands_of_clusters_are_found() {
        // Pairs of rows, the first 60 of them in a chain of weak edges: these take the search, the others are components.
        let (clusters, chained) = (2_504, 60);
        let neighbours = |i: usize| {
            let next = (i + 2) % (2 * chained);
            [(i ^ 1, 0.9), (next, if i < 2 * chained - 2 { 0.02 } else { 0.0 })]
        };
        let edges = (0..2 * clusters).flat_map(neighbours);
        let (ids, similarities) = edges.map(|(j, s)| (j as u32, s)).unzip();
        let graph = KnnGraph::from_parts(2 * clusters, 2, ids, similarities, "test").unwrap();
        let truth: Vec<i64> = (0..2 * clusters as i64).map(|i| i / 2).collect();
        let found = on_graph(&Spectral { clusters: Some(clusters), ..Default::default() }, &graph).unwrap();
        let scores = kinfolk::metrics::evaluate(&truth, &found.labels).unwrap();
        assert!(scores.bcubed.f > 0.95, "{scores:?}");
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(40);
        let graph = knn(&rows, 30);
        for assign in [Assign::Kmeans, Assign::Directions, Assign::Discretise] {
            let params = Spectral { clusters: Some(40), assign };
            let [one, three] = on_one_and_three_threads(|| on_graph(&params, &graph).unwrap().labels);
            assert_eq!(one, three);
            let scores = kinfolk::metrics::evaluate(&truth, &one).unwrap();
            assert!(scores.bcubed.f > 0.5, "{assign:?} {scores:?}");
        }
    }
}
