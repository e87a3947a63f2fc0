//! DBSCAN: density-based clustering.
//!
//! Ester et al. (1996). The distance of two rows is 1 - cos. A row with at least `min` rows within `eps`, itself
//! included, is a core row. Core rows within `eps` of each other are one cluster, and so are the rows within `eps` of them. All
//! others are noise. A row within `eps` of several clusters belongs to the one whose first core row has the smallest number,
//! as in scikit-learn.
//!
//! [`Dbscan`] compares all pairs, tile by tile, each pair once: N^2 D / 2 products and memory for the pairs within `eps`, at
//! most 256 MB of them; tiles that do not fit are multiplied again when they are needed. [`DbscanKnn`] follows the lists of
//! a kNN graph, in one direction, as the program published with "Learning to Cluster Faces via Confidence and Connectivity
//! Estimation" does: O(N K).

use crate::check;
use crate::clusters::{Clusters, Noise, nearest_in_lists};
use crate::dense::{Rows, largest, products};
use kinfolk::stages::DisjointSets;
use kinfolk::{
    Clustering, Context, Embeddings, Input, KnnGraph, Method, MethodInfo, Parameters, Problem, Progress,
    Result,
};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Rows on each side of a tile, which then takes 1 MB.
const TILE: usize = 512;
/// Pairs that stay in memory.
const MOST_PAIRS: usize = 1 << 25;

kinfolk::parameters! {
    /// DBSCAN: density-based clustering on all pairs of rows.
    ///
    /// Use it when clusters have similar densities and noise should be separated. It finds the number of clusters itself,
    /// but the result depends strongly on `eps`. Use [`DbscanKnn`] for more than about 200,000 rows.
    ///
    /// Cost: N^2 D / 2 products; memory O(N) and at most 256 MB for pairs.
    ///
    /// ```
    /// use kinfolk::{Clusterer, Embeddings};
    /// use kinfolk_baselines::{Dbscan, Noise};
    /// let rows = vec![1.0, 0.1, 1.0, 0.0, 0.9, 0.1, -0.1, 1.0, 0.0, 1.0];
    /// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
    /// let method = Dbscan { eps: 0.1, min: 3, noise: Noise::Keep };
    /// let found = Clusterer::with(method).fit(&embeddings)?;
    /// assert_eq!(found.labels, [0, 0, 0, -1, -1]);
    /// assert_eq!(found.report.noise_rows, Some(2));
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Dbscan {
        /// The largest distance, 1 - cos, between neighbours.
        pub eps: f32 = 0.3, "a distance 1 - cos from 0 to 2", |eps| (0.0..=2.0).contains(eps);
        /// The minimum number of rows within eps of a core row, itself included.
        pub min: usize = 5, "at least 1", |min| *min >= 1;
        /// How noise is labelled: clusters of one row (singletons), label -1 (keep), or the cluster of the most similar
        /// row (assigned).
        pub noise: Noise = Noise::Singletons;
    }
}

kinfolk::parameters! {
    /// DBSCAN on a kNN graph, which uses the neighbours of the graph only.
    ///
    /// Use it instead of [`Dbscan`] on large sets. A row has K neighbours, so `min` above K + 1 would make every row noise
    /// and is refused. Edges are directed, so a cluster contains the rows that its first core row reaches.
    ///
    /// Cost: O(N K) time, O(N) memory.
    ///
    /// ```
    /// use kinfolk::{Clusterer, KnnGraph, Problem};
    /// use kinfolk_baselines::{DbscanKnn, Noise};
    /// let graph = KnnGraph::from_parts(4, 1, vec![1, 0, 1, 0], vec![0.9, 0.9, 0.8, 0.1], "example")?;
    /// let method = DbscanKnn { eps: 0.3, min: 2, noise: Noise::Keep, ..DbscanKnn::default() };
    /// assert_eq!(Clusterer::with(method).run(&Problem::of_graph(&graph))?.labels, [0, 0, 1, -1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct DbscanKnn {
        /// Edges of less than this similarity are left out.
        pub th: f32 = 0.0, "a similarity from -1 to 1", |th| (-1.0..=1.0).contains(th);
        /// The largest distance, 1 - cos, between neighbours.
        pub eps: f32 = 0.3, "a distance 1 - cos from 0 to 2", |eps| (0.0..=2.0).contains(eps);
        /// The minimum number of neighbours within eps of a core row, itself included.
        pub min: usize = 5, "at least 1", |min| *min >= 1;
        /// How noise is labelled: clusters of one row (singletons), label -1 (keep), or the cluster of the most similar
        /// row (assigned).
        pub noise: Noise = Noise::Singletons;
    }
}

static DBSCAN: MethodInfo = MethodInfo::new(
    "dbscan",
    "DBSCAN",
    "Joins rows that have enough rows within a radius; the others are noise",
)
.when("when clusters have similar densities and there is noise")
.cost("N^2 D")
.input(Input::Rows)
.in_paper()
.color("#ff7f0e");

static DBSCAN_KNN: MethodInfo = MethodInfo::new(
    "dbscan-knn",
    "DBSCAN (kNN)",
    "DBSCAN along the edges of the kNN graph, as published for faces",
)
.when("when DBSCAN fits but there are too many rows for it")
.cost("N K")
.input(Input::Graph)
.in_paper()
.color("#b5520b");

impl Method for Dbscan {
    fn info(&self) -> &'static MethodInfo {
        &DBSCAN
    }

    fn parameters(&self) -> &dyn Parameters {
        self
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        self
    }

    fn operations(&self, rows: usize, dim: usize) -> f64 {
        rows as f64 * rows as f64 * 2.0 * dim as f64
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.check()?;
        let embeddings = problem.embeddings()?;
        let found = context.timed("partition", || self.partition(embeddings, context.progress()))?;
        Ok(found.into_clustering(self, None, context))
    }
}

impl Method for DbscanKnn {
    fn info(&self) -> &'static MethodInfo {
        &DBSCAN_KNN
    }

    fn parameters(&self) -> &dyn Parameters {
        self
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        self
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.check()?;
        let given = problem.neighbours(80, context)?;
        let found = context.timed("partition", || self.partition(&given.graph, context.progress()))?;
        Ok(found.into_clustering(self, Some(given.report), context))
    }
}

impl Dbscan {
    fn partition(&self, embeddings: &Embeddings, progress: &dyn Progress) -> Result<Clusters> {
        let rows = Rows::from(embeddings);
        let names = within_radius(rows, self, MOST_PAIRS, progress)?;
        Ok(Clusters::with_noise(&names, self.noise, |noise| most_similar(rows, noise)))
    }
}

impl DbscanKnn {
    fn partition(&self, graph: &KnnGraph, progress: &dyn Progress) -> Result<Clusters> {
        if self.min > graph.k() + 1 {
            let found = format!("{} with {} neighbours", self.min, graph.k());
            return check::refuse("min", "at most K + 1 (the neighbours and the row itself)", found);
        }
        let n = graph.len();
        progress.check()?;
        progress.begin("clusters", 1);
        let least = (1.0 - self.eps).max(self.th);
        // Lists are sorted by descending similarity, so the neighbours within eps come first.
        let near = |i: usize| {
            let (ids, similarities) = graph.neighbours(i);
            &ids[..similarities.partition_point(|&similarity| similarity >= least)]
        };
        let core = |i: usize| near(i).len() + 1 >= self.min;
        let mut names = vec![-1i64; n];
        let mut stack = Vec::new();
        for first in 0..n {
            if names[first] >= 0 || !core(first) {
                continue;
            }
            names[first] = first as i64;
            stack.push(first);
            while let Some(i) = stack.pop() {
                if !core(i) {
                    continue;
                }
                for &j in near(i) {
                    if names[j as usize] < 0 {
                        names[j as usize] = first as i64;
                        stack.push(j as usize);
                    }
                }
            }
        }
        progress.advance(1);
        Ok(Clusters::with_noise(&names, self.noise, |noise| nearest_in_lists(graph, noise)))
    }
}

/// The pairs of a tile that are within `eps`.
fn pairs_of_tile(rows: Rows, (a, b): (usize, usize), least: f32, tile: &mut Vec<f32>) -> Vec<(u32, u32)> {
    let range = |block: usize| block * TILE..((block + 1) * TILE).min(rows.len());
    let (left, right) = (range(a), range(b));
    tile.resize(left.len() * right.len(), 0.0);
    products(rows.part(left.clone()), rows.part(right.clone()), tile, false);
    let mut pairs = Vec::new();
    for (i, scores) in left.zip(tile.chunks_exact(right.len())) {
        // Most chunks contain no such pair, which one comparison with their maximum shows.
        for (at, chunk) in scores.chunks(32).enumerate() {
            if chunk.iter().fold(f32::NEG_INFINITY, |m, &s| if s > m { s } else { m }) < least {
                continue;
            }
            for (l, &score) in chunk.iter().enumerate() {
                let j = right.start + at * 32 + l;
                if score >= least && i < j {
                    pairs.push((i as u32, j as u32));
                }
            }
        }
    }
    pairs
}

/// The name of each row's cluster, its smallest core; -1 for noise.
fn within_radius(
    rows: Rows,
    params: &Dbscan,
    most_pairs: usize,
    progress: &dyn Progress,
) -> Result<Vec<i64>> {
    let n = rows.len();
    let least = 1.0 - params.eps;
    let blocks = n.div_ceil(TILE);
    let tiles: Vec<(usize, usize)> = (0..blocks).flat_map(|a| (a..blocks).map(move |b| (a, b))).collect();
    let counts: Vec<AtomicU32> = (0..n).map(|_| AtomicU32::new(1)).collect();
    let held = AtomicUsize::new(0);
    progress.begin("neighbours", tiles.len() as u64);
    let pairs: Vec<Option<Vec<(u32, u32)>>> = tiles
        .par_iter()
        .map_init(Vec::new, |tile, &at| {
            if progress.cancelled() {
                return None;
            }
            let mut pairs = pairs_of_tile(rows, at, least, tile);
            for &(i, j) in &pairs {
                counts[i as usize].fetch_add(1, Ordering::Relaxed);
                counts[j as usize].fetch_add(1, Ordering::Relaxed);
            }
            progress.advance(1);
            let keep = held.fetch_add(pairs.len(), Ordering::Relaxed) + pairs.len() <= most_pairs;
            pairs.shrink_to_fit();
            keep.then_some(pairs)
        })
        .collect();
    progress.check()?;
    let core: Vec<bool> = counts.into_iter().map(|count| count.into_inner() as usize >= params.min).collect();

    progress.begin("clusters", tiles.len() as u64);
    let mut forest = DisjointSets::new(n);
    // Border rows are assigned at the end, when the clusters of the core rows that reach them are known.
    let mut borders = Vec::new();
    let mut sort_out = |pairs: &[(u32, u32)]| {
        for &(i, j) in pairs {
            match (core[i as usize], core[j as usize]) {
                (true, true) => {
                    forest.join(i, j);
                }
                (true, false) => borders.push((j, i)),
                (false, true) => borders.push((i, j)),
                (false, false) => {}
            }
        }
    };
    for (tiles, pairs) in tiles.chunks(64).zip(pairs.chunks(64)) {
        progress.check()?;
        let again: Vec<Vec<(u32, u32)>> = tiles
            .par_iter()
            .zip(pairs)
            .map_init(Vec::new, |tile, (&at, pairs)| match pairs {
                Some(_) => Vec::new(),
                None => pairs_of_tile(rows, at, least, tile),
            })
            .collect();
        for (pairs, again) in pairs.iter().zip(&again) {
            sort_out(pairs.as_ref().unwrap_or(again));
        }
        progress.advance(tiles.len() as u64);
    }
    let mut names: Vec<i64> =
        (0..n as u32).map(|i| if core[i as usize] { i64::from(forest.find(i)) } else { -1 }).collect();
    for (border, core) in borders {
        let (name, of_core) = (names[border as usize], names[core as usize]);
        if name < 0 || of_core < name {
            names[border as usize] = of_core;
        }
    }
    Ok(names)
}

/// For each noise row, the most similar row that is not noise.
pub(crate) fn most_similar(rows: Rows, noise: &[bool]) -> Vec<Option<u32>> {
    let (alone, clustered): (Vec<u32>, Vec<u32>) = (0..rows.len() as u32).partition(|&i| noise[i as usize]);
    let data = crate::lloyd::gather(rows, &clustered);
    let others = Rows { data: &data, dim: rows.dim };
    let found: Vec<Option<u32>> = alone
        .par_chunks(TILE)
        .flat_map_iter(|task| {
            let data: Vec<f32> = task.iter().flat_map(|&i| rows.row(i as usize)).copied().collect();
            let mut best = vec![(f32::NEG_INFINITY, None); task.len()];
            let mut tile = Vec::new();
            for first in (0..others.len()).step_by(TILE) {
                let part = others.part(first..(first + TILE).min(others.len()));
                tile.resize(task.len() * part.len(), 0.0);
                products(Rows { data: &data, dim: rows.dim }, part, &mut tile, false);
                for (best, scores) in best.iter_mut().zip(tile.chunks_exact(part.len())) {
                    let (score, at) = largest(scores);
                    if score > best.0 {
                        *best = (score, Some(clustered[first + at]));
                    }
                }
            }
            best.into_iter().map(|best| best.1)
        })
        .collect();
    let mut nearest = vec![None; rows.len()];
    alone.into_iter().zip(found).for_each(|(i, found)| nearest[i as usize] = found);
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::dot;
    use crate::testing::{
        embeddings, graphs, on_graph, on_one_and_three_threads, on_rows, refusal, synthetic,
    };
    use proptest::prelude::*;

    /// Expands one cluster after the other, as in the paper.
    fn slow(neighbours: &[Vec<usize>], min: usize) -> Vec<i64> {
        let mut labels = vec![-1; neighbours.len()];
        for i in 0..neighbours.len() {
            if labels[i] >= 0 || neighbours[i].len() < min {
                continue;
            }
            let mut queue = vec![i];
            labels[i] = i as i64;
            while let Some(q) = queue.pop() {
                if neighbours[q].len() >= min {
                    for &p in &neighbours[q] {
                        if labels[p] < 0 {
                            labels[p] = i as i64;
                            queue.push(p);
                        }
                    }
                }
            }
        }
        labels
    }

    proptest! {
        #[test]
        fn tiles_find_what_expansion_finds(rows in embeddings(), eps in 0u8..12, min in 1usize..6, most in 0usize..50) {
            // Cosines of small integers, cut where none of them is.
            let params = Dbscan { eps: f32::from(eps) * 0.1 + 0.003, min, noise: Noise::Keep };
            let all = Rows::from(&rows);
            let near = |i: usize| {
                (0..rows.len()).filter(|&j| i == j || dot(all.row(i), all.row(j)) >= 1.0 - params.eps).collect()
            };
            let neighbours: Vec<Vec<usize>> = (0..rows.len()).map(near).collect();
            let expected = slow(&neighbours, min);
            prop_assert_eq!(within_radius(all, &params, most, &()).unwrap(), expected);
        }

        #[test]
        fn lists_are_followed_as_they_are(graph in graphs(), eps in 0u8..12, min in 1usize..6, th in -1i8..2) {
            let th = f32::from(th) * 0.5;
            let params = DbscanKnn { th, eps: f32::from(eps) * 0.1, min, noise: Noise::Keep };
            let near = |i: usize| {
                let (ids, similarities) = graph.neighbours(i);
                let near = ids.iter().zip(similarities).filter(|&(_, &s)| s >= th && s >= 1.0 - params.eps);
                std::iter::once(i).chain(near.map(|(&j, _)| j as usize)).collect()
            };
            let neighbours: Vec<Vec<usize>> = (0..graph.len()).map(near).collect();
            match params.partition(&graph, &()) {
                Ok(found) => {
                    let expected = Clusters::with_noise(&slow(&neighbours, min), Noise::Keep, |_| vec![]);
                    prop_assert_eq!(found, expected);
                }
                Err(_) => prop_assert!(min > graph.k() + 1),
            }
        }

        #[test]
        fn noise_joins_the_most_similar(rows in embeddings(), noise in prop::collection::vec(prop::bool::ANY, 40)) {
            let all = Rows::from(&rows);
            let found = most_similar(all, &noise[..rows.len()]);
            for i in 0..rows.len() {
                let best = (0..rows.len()).filter(|&j| !noise[j]).map(|j| dot(all.row(i), all.row(j)));
                let best = best.fold(f32::NEG_INFINITY, f32::max);
                match found[i] {
                    Some(j) => prop_assert!(noise[i] && (dot(all.row(i), all.row(j as usize)) - best).abs() < 1e-5),
                    None => prop_assert!(!noise[i] || best == f32::NEG_INFINITY),
                }
            }
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let message = |eps, min| refusal(on_rows(&Dbscan { eps, min, ..Dbscan::default() }, &rows));
        assert_eq!(message(-0.1, 2), "eps: expected a distance 1 - cos from 0 to 2, found -0.1");
        assert!(message(f32::NAN, 2).starts_with("eps"));
        assert!(message(0.1, 0).starts_with("min"));
        let graph = crate::testing::knn(&rows, 1);
        let message = |params: DbscanKnn| refusal(on_graph(&params, &graph));
        assert!(message(DbscanKnn { min: 3, ..Default::default() }).starts_with("min"));
        assert!(message(DbscanKnn { th: 2.0, min: 1, ..Default::default() }).starts_with("th"));
    }

    #[test]
    fn all_noise_and_all_one() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let found = |eps, min, noise| on_rows(&Dbscan { eps, min, noise }, &rows).unwrap();
        assert_eq!(found(0.1, 2, Noise::Keep).labels, [-1, -1]);
        assert_eq!(found(0.1, 2, Noise::Assigned).labels, [0, 1]);
        assert_eq!(found(1.5, 2, Noise::Keep).labels, [0, 0]);
        assert_eq!(found(0.1, 1, Noise::Keep).report.noise_rows, Some(0));
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(40);
        let params = Dbscan { eps: 0.25, min: 10, noise: Noise::Assigned };
        let [one, three] = on_one_and_three_threads(|| params.partition(&rows, &()).unwrap());
        assert_eq!(one, three);
        let few = within_radius(Rows::from(&rows), &params, 1000, &()).unwrap();
        assert_eq!(few, within_radius(Rows::from(&rows), &params, MOST_PAIRS, &()).unwrap());
        let scores = kinfolk::metrics::evaluate(&truth, &one.labels).unwrap();
        assert!(scores.bcubed.f > 0.3, "{scores:?}");
    }
}
