//! HDBSCAN: a hierarchy of DBSCAN clusters over all radii, from which the most stable clusters are selected.
//!
//! Campello, Moulavi and Sander (2013); McInnes and Healy (2017). The core distance of a row is that to its neighbour number
//! `min_samples`; the mutual reachability distance of two rows is the maximum of their core distances and |x - y|. Cutting the
//! minimum spanning tree of this distance from long edges to short gives a tree of clusters; parts with fewer than
//! `min_cluster_size` rows leave it. With lambda = 1 / distance, the stability of a cluster (its excess of mass) is the sum over
//! its rows of the range of lambda for which they are in it. A cluster is selected if its stability is larger than that of the
//! clusters selected within it.
//!
//! On rows the spanning tree is found exactly, by Boruvka's algorithm: in each round, every component finds its shortest edge
//! to another. An exact kNN graph has this edge for most rows. For the others, the similarity of the last neighbour is an upper
//! bound, so rows are compared in tiles by descending bound, and only while their bound exceeds the best edge of their
//! component. Distances are represented by similarities, 1 - d^2 / 2, of which mutual reachability is the minimum.
//!
//! On a kNN graph only its edges are used; components that they do not connect are connected last, at distance 2.

use crate::check;
use crate::clusters::{Clusters, Noise, nearest_in_lists};
use crate::dbscan::most_similar;
use crate::dense::{Rows, products};
use kinfolk::stages::DisjointSets;
use kinfolk::{
    Clustering, Context, Embeddings, Input, KnnGraph, KnnParams, Method, MethodInfo, Parameters, Problem,
    Progress, Result, Search, knn_graph,
};
use rayon::prelude::*;

/// Rows of one task, and columns of one product.
const TILE: usize = 256;
/// Neighbours of the graph that has the shortest edge for most rows.
const NEIGHBOURS: usize = 32;
/// The minimum distance, which also applies to copies of one row.
const LEAST_DISTANCE: f64 = 1e-6;

/// The most rows on which [`Hdbscan`] is exact. Above, it works on the graph.
pub const HDBSCAN_UP_TO: usize = 100_000;

/// Which clusters of the tree are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Selection {
    /// Those with a larger excess of mass than the clusters within them.
    #[default]
    ExcessOfMass,
    /// The leaves of the tree: the finest clusters.
    Leaves,
}

kinfolk::word_values!(Selection: "worth or leaves", "worth" => Selection::ExcessOfMass, "leaves" => Selection::Leaves);

kinfolk::parameters! {
    /// HDBSCAN: finds the clusters that are stable over the widest range of radii.
    ///
    /// Use it when clusters differ in density and noise should be separated. The minimum cluster size is its only important
    /// parameter.
    ///
    /// Up to [`HDBSCAN_UP_TO`] rows it is exact; above, and if only a graph is given, it uses the edges of the kNN graph.
    ///
    /// Cost: about N^2 D products, fewer the better the clusters are separated, O(N) memory; on the graph O(N K log(N K)) time,
    /// O(N K) memory.
    ///
    /// ```
    /// use kinfolk::{Clusterer, Embeddings, KnnGraph, Problem};
    /// use kinfolk_baselines::{Hdbscan, Noise};
    /// let rows = vec![1.0, 0.1, 1.0, 0.0, 1.0, 0.2, -0.1, 1.0, 0.0, 1.0, 0.1, 1.0, -1.0, -1.0];
    /// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
    /// let method = Hdbscan {
    ///     min_cluster_size: 3, min_samples: Some(1), noise: Noise::Keep, ..Hdbscan::default()
    /// };
    /// let found = Clusterer::with(method.clone()).fit(&embeddings)?;
    /// assert_eq!(found.labels, [0, 0, 0, 1, 1, 1, -1]);
    ///
    /// let ids = vec![1, 2, 0, 2, 0, 1, 4, 5, 3, 5, 3, 4];
    /// let graph = KnnGraph::from_parts(6, 2, ids, vec![0.9; 12], "example")?;
    /// let found = Clusterer::with(method).run(&Problem::of_graph(&graph))?;
    /// assert_eq!(found.labels, [0, 0, 0, 1, 1, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Hdbscan {
        /// The minimum number of rows of a cluster.
        pub min_cluster_size: usize = 5, "at least 2", |size| *size >= 2;
        /// The core distance is the distance to this neighbour, the row itself not counted; auto takes min_cluster_size.
        pub min_samples: Option<usize> = None, "at least 1, fewer than the rows",
            |samples| samples.is_none_or(|samples| samples >= 1);
        /// Which clusters of the tree are selected: those of largest excess of mass (worth), or the finest (leaves).
        pub selection: Selection = Selection::ExcessOfMass;
        /// How noise is labelled: clusters of one row (singletons), label -1 (keep), or the cluster of the most similar
        /// row (assigned).
        pub noise: Noise = Noise::Singletons;
    }
}

static INFO: MethodInfo =
    MethodInfo::new("hdbscan", "HDBSCAN", "Runs DBSCAN at all radii and selects the most stable clusters")
        .when("when clusters have different densities and there is noise")
        .cost("N^2 D up to 100,000 rows, then N K log N")
        .input(Input::RowsOrGraph)
        .color("#b8860b");

impl Method for Hdbscan {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn parameters(&self) -> &dyn Parameters {
        self
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        self
    }

    fn uses_graph(&self, rows: usize) -> bool {
        rows > HDBSCAN_UP_TO
    }

    fn operations(&self, rows: usize, dim: usize) -> f64 {
        if self.uses_graph(rows) { 0.0 } else { rows as f64 * rows as f64 * 2.0 * dim as f64 }
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.check()?;
        let min_samples = self.min_samples_of(problem.len())?;
        let (found, report) = if problem.has_embeddings() && !self.uses_graph(problem.len()) {
            let embeddings = problem.embeddings()?;
            let partition = || self.partition_rows(embeddings, min_samples, context.progress());
            (context.timed("partition", partition)?, None)
        } else {
            let given = problem.neighbours(80, context)?;
            let partition = || self.partition_graph(&given.graph, min_samples, context.progress());
            (context.timed("partition", partition)?, Some(given.report))
        };
        let mut clustering = found.into_clustering(self, report, context);
        clustering.report.set("min_samples", min_samples);
        Ok(clustering)
    }
}

impl Hdbscan {
    /// The number of the neighbour that defines the core distance.
    fn min_samples_of(&self, n: usize) -> Result<usize> {
        if let Some(samples) = self.min_samples.filter(|&samples| samples >= n.max(2)) {
            let found = format!("{samples} for {n} rows");
            return check::refuse("min_samples", "at least 1, fewer than the rows", found);
        }
        Ok(self.min_samples.unwrap_or(self.min_cluster_size).min(n.saturating_sub(1)).max(1))
    }

    /// Exact, on the rows.
    fn partition_rows(
        &self,
        embeddings: &Embeddings,
        min_samples: usize,
        progress: &dyn Progress,
    ) -> Result<Clusters> {
        let n = embeddings.len();
        let rows = Rows::from(embeddings);
        let edges = if n == 1 {
            Vec::new()
        } else {
            let k = (2 * min_samples).max(NEIGHBOURS);
            let params = KnnParams { k, search: Search::Exact, ..KnnParams::default() };
            let (graph, _) = knn_graph(embeddings, &params, progress)?;
            spanning_tree(rows, &graph, min_samples, progress)?
        };
        let names = select(n, edges, self);
        Ok(Clusters::with_noise(&names, self.noise, |noise| most_similar(rows, noise)))
    }

    /// On the edges of a kNN graph.
    fn partition_graph(
        &self,
        graph: &KnnGraph,
        min_samples: usize,
        progress: &dyn Progress,
    ) -> Result<Clusters> {
        let n = graph.len();
        if n > 1 && min_samples > graph.k() {
            let found = format!("{min_samples} with {} neighbours", graph.k());
            return check::refuse("min_samples", "at most K, the number of neighbours in the graph", found);
        }
        progress.check()?;
        progress.begin("spanning tree", 1);
        let edges = spanning_forest(graph, min_samples);
        progress.advance(1);
        let names = select(n, edges, self);
        Ok(Clusters::with_noise(&names, self.noise, |noise| nearest_in_lists(graph, noise)))
    }
}

/// Two rows and their mutual reachability, as a similarity.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Edge {
    a: u32,
    b: u32,
    similarity: f32,
}

/// The similarity of each vertex to its neighbour number `min_samples`.
fn cores(graph: &KnnGraph, min_samples: usize) -> Vec<f32> {
    (0..graph.len()).map(|i| graph.neighbours(i).1[min_samples - 1]).collect()
}

/// Kruskal's algorithm on the edges of the graph, with edges of similarity -1 between the remaining components.
fn spanning_forest(graph: &KnnGraph, min_samples: usize) -> Vec<Edge> {
    let n = graph.len();
    if n < 2 {
        return Vec::new();
    }
    let cores = cores(graph, min_samples);
    let mut edges: Vec<Edge> = (0..n)
        .into_par_iter()
        .flat_map_iter(|i| {
            let (ids, similarities) = graph.neighbours(i);
            let cores = &cores;
            ids.iter().zip(similarities).map(move |(&j, &similarity)| {
                let (a, b) = (j.min(i as u32), j.max(i as u32));
                Edge { a, b, similarity: similarity.min(cores[i]).min(cores[j as usize]) }
            })
        })
        .collect();
    edges
        .par_sort_unstable_by(|x, y| y.similarity.total_cmp(&x.similarity).then((x.a, x.b).cmp(&(y.a, y.b))));
    let mut forest = DisjointSets::new(n);
    edges.retain(|edge| forest.join(edge.a, edge.b));
    edges.extend(
        (1..n as u32).filter_map(|b| forest.join(0, b).then_some(Edge { a: 0, b, similarity: -1.0 })),
    );
    edges
}

/// The best known edge from a row to another component.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Leaving {
    /// No edge to another component has a larger similarity.
    bound: f32,
    /// The target of the edge with that similarity, if it is known and still in another component.
    to: Option<u32>,
}

/// The maximum spanning tree of mutual reachability as a similarity, by Boruvka's algorithm.
fn spanning_tree(
    rows: Rows,
    graph: &KnnGraph,
    min_samples: usize,
    progress: &dyn Progress,
) -> Result<Vec<Edge>> {
    let n = rows.len();
    let cores = cores(graph, min_samples);
    let mut forest = DisjointSets::new(n);
    let mut component: Vec<u32> = (0..n as u32).collect();
    let mut leaving = vec![Leaving { bound: f32::INFINITY, to: None }; n];
    let mut edges: Vec<Edge> = Vec::with_capacity(n - 1);
    progress.begin("spanning tree", n as u64 - 1);
    while edges.len() < n - 1 {
        progress.check()?;
        leaving.par_iter_mut().enumerate().with_min_len(TILE).for_each(|(i, leaving)| {
            if leaving.to.is_some_and(|to| component[to as usize] == component[i]) {
                leaving.to = None;
            }
            // After a comparison with all rows, the list cannot contain anything better.
            if leaving.to.is_none() {
                look_up(graph, &cores, &component, i, leaving);
            }
        });
        let best = best_edges(rows, &cores, &component, &mut leaving, progress)?;
        let before = edges.len();
        for edge in best {
            if forest.join(edge.a, edge.b) {
                edges.push(edge);
            }
        }
        component = forest.clone().names();
        progress.advance((edges.len() - before) as u64);
    }
    Ok(edges)
}

/// Finds the best edge from `i` to another component in its list, if the list is sufficient to decide it.
fn look_up(graph: &KnnGraph, cores: &[f32], component: &[u32], i: usize, leaving: &mut Leaving) {
    let (ids, similarities) = graph.neighbours(i);
    let mut best: Option<(f32, u32)> = None;
    for (&j, &similarity) in ids.iter().zip(similarities) {
        if component[j as usize] == component[i] {
            continue;
        }
        let reach = similarity.min(cores[i]).min(cores[j as usize]);
        if best.is_none_or(|best| reach > best.0 || (reach == best.0 && j < best.1)) {
            best = Some((reach, j));
        }
    }
    // Rows that are not in the list are at most as similar as its last entry.
    let beyond =
        if ids.len() + 1 >= component.len() { f32::NEG_INFINITY } else { similarities[ids.len() - 1] };
    match best {
        Some((reach, j)) if reach > beyond && reach <= leaving.bound => {
            *leaving = Leaving { bound: reach, to: Some(j) };
        }
        _ => leaving.bound = leaving.bound.min(beyond.max(best.map_or(f32::NEG_INFINITY, |best| best.0))),
    }
}

/// The best edge from each component to another. Where lists are not sufficient, all rows are compared.
fn best_edges(
    rows: Rows,
    cores: &[f32],
    component: &[u32],
    leaving: &mut [Leaving],
    progress: &dyn Progress,
) -> Result<Vec<Edge>> {
    let n = rows.len();
    let better = |a: &Edge, b: &Edge| {
        a.similarity > b.similarity || (a.similarity == b.similarity && (a.a, a.b) < (b.a, b.b))
    };
    let mut best: Vec<Option<Edge>> = vec![None; n];
    let offer = |best: &mut Vec<Option<Edge>>, i: usize, leaving: Leaving| {
        let Some(to) = leaving.to else { return };
        let edge = Edge { a: to.min(i as u32), b: to.max(i as u32), similarity: leaving.bound };
        let of_component = &mut best[component[i] as usize];
        if of_component.as_ref().is_none_or(|known| better(&edge, known)) {
            *of_component = Some(edge);
        }
    };
    let mut open: Vec<u32> = Vec::new();
    for (i, &leaving) in leaving.iter().enumerate() {
        match leaving.to {
            Some(_) => offer(&mut best, i, leaving),
            None => open.push(i as u32),
        }
    }
    open.sort_by(|&i, &j| leaving[j as usize].bound.total_cmp(&leaving[i as usize].bound).then(i.cmp(&j)));
    let compare = |task: &[u32]| {
        if progress.cancelled() {
            return Vec::new();
        }
        compare(rows, cores, component, task)
    };
    // The first batches are small, because the first rows often decide for their components.
    let (mut start, mut size) = (0, TILE);
    while start < open.len() {
        let mut batch = Vec::with_capacity(size);
        while start < open.len() && batch.len() < size {
            let i = open[start];
            start += 1;
            let known =
                best[component[i as usize] as usize].map_or(f32::NEG_INFINITY, |edge| edge.similarity);
            if leaving[i as usize].bound >= known {
                batch.push(i);
            }
        }
        let found: Vec<Leaving> = batch.par_chunks(TILE / 4).flat_map_iter(&compare).collect();
        progress.check()?;
        for (&i, found) in batch.iter().zip(found) {
            leaving[i as usize] = found;
            offer(&mut best, i as usize, found);
        }
        size = (2 * size).min(16 * TILE);
    }
    Ok(best.into_iter().flatten().collect())
}

/// The best edge from each of the rows `task` to another component, by comparison with all rows.
fn compare(rows: Rows, cores: &[f32], component: &[u32], task: &[u32]) -> Vec<Leaving> {
    let data: Vec<f32> = task.iter().flat_map(|&i| rows.row(i as usize)).copied().collect();
    let left = Rows { data: &data, dim: rows.dim };
    let mut best = vec![Leaving { bound: f32::NEG_INFINITY, to: None }; task.len()];
    let mut tile = Vec::new();
    for first in (0..rows.len()).step_by(TILE) {
        let part = first..(first + TILE).min(rows.len());
        tile.resize(task.len() * part.len(), 0.0);
        products(left, rows.part(part.clone()), &mut tile, false);
        for ((best, &i), scores) in best.iter_mut().zip(task).zip(tile.chunks_exact_mut(part.len())) {
            let (core, own) = (cores[i as usize], component[i as usize]);
            for ((score, &other), &of) in
                scores.iter_mut().zip(&cores[part.clone()]).zip(&component[part.clone()])
            {
                let reach = if other < *score { other } else { *score };
                let reach = if core < reach { core } else { reach };
                *score = if of == own { f32::NEG_INFINITY } else { reach };
            }
            let (reach, at) = crate::dense::largest(scores);
            if reach > best.bound {
                *best = Leaving { bound: reach, to: Some((first + at) as u32) };
            }
        }
    }
    best
}

/// A cluster of the condensed tree.
struct Node {
    parent: usize,
    /// 1 / distance at which it splits off.
    birth: f64,
    stability: f64,
    children: usize,
}

/// The clusters of rows by the edges of a spanning tree: any name, -1 for noise.
fn select(n: usize, mut edges: Vec<Edge>, params: &Hdbscan) -> Vec<i64> {
    edges.sort_by(|x, y| y.similarity.total_cmp(&x.similarity).then((x.a, x.b).cmp(&(y.a, y.b))));
    // The merges, bottom up: the two parts of each and its number of rows.
    let mut forest = DisjointSets::new(n);
    let mut top: Vec<u32> = (0..n as u32).collect();
    let mut sizes = vec![1usize; n];
    let mut merges: Vec<(u32, u32, f64)> = Vec::with_capacity(edges.len());
    for edge in &edges {
        let (a, b) = (forest.find(edge.a), forest.find(edge.b));
        let (left, right) = (top[a as usize], top[b as usize]);
        forest.join(a, b);
        top[forest.find(a) as usize] = (n + merges.len()) as u32;
        sizes.push(sizes[left as usize] + sizes[right as usize]);
        let distance = (2.0 - 2.0 * f64::from(edge.similarity)).max(0.0).sqrt().max(LEAST_DISTANCE);
        merges.push((left, right, 1.0 / distance));
    }
    let (nodes, fell_from) = condense(n, &merges, &sizes, params.min_cluster_size);
    let taken = take(&nodes, params.selection);
    fell_from.into_iter().map(|node| taken[node].map_or(-1, |node| node as i64)).collect()
}

/// The tree of clusters of at least `least` rows, from the root down, and the cluster that each row fell from.
fn condense(n: usize, merges: &[(u32, u32, f64)], sizes: &[usize], least: usize) -> (Vec<Node>, Vec<usize>) {
    let mut nodes = vec![Node { parent: 0, birth: 0.0, stability: 0.0, children: 0 }];
    let mut fell_from = vec![0; n];
    let mut open: Vec<(u32, usize)> = Vec::new();
    if let Some(root) = merges.len().checked_sub(1) {
        open.push(((n + root) as u32, 0));
    }
    let mut falling = Vec::new();
    while let Some((merge, cluster)) = open.pop() {
        let (left, right, lambda) = merges[merge as usize - n];
        let lasted = lambda - nodes[cluster].birth;
        let both = sizes[left as usize] >= least && sizes[right as usize] >= least;
        for side in [left, right] {
            let size = sizes[side as usize];
            if both {
                nodes[cluster].stability += lasted * size as f64;
                nodes[cluster].children += 1;
                open.push((side, nodes.len()));
                nodes.push(Node { parent: cluster, birth: lambda, stability: 0.0, children: 0 });
            } else if size >= least {
                open.push((side, cluster));
            } else {
                nodes[cluster].stability += lasted * size as f64;
                falling.push(side);
                while let Some(part) = falling.pop() {
                    match (part as usize).checked_sub(n) {
                        None => fell_from[part as usize] = cluster,
                        Some(merge) => falling.extend([merges[merge].0, merges[merge].1]),
                    }
                }
            }
        }
    }
    (nodes, fell_from)
}

/// For each cluster the selected one that it is or lies in. The root, which contains all rows, is never selected.
fn take(nodes: &[Node], selection: Selection) -> Vec<Option<usize>> {
    let mut within = vec![0.0; nodes.len()];
    let mut good = vec![false; nodes.len()];
    for (at, node) in nodes.iter().enumerate().skip(1).rev() {
        good[at] = match selection {
            Selection::ExcessOfMass => within[at] <= node.stability,
            Selection::Leaves => node.children == 0,
        };
        let stability = if within[at] <= node.stability { node.stability } else { within[at] };
        within[node.parent] += stability;
    }
    let mut taken: Vec<Option<usize>> = vec![None; nodes.len()];
    for (at, node) in nodes.iter().enumerate().skip(1) {
        taken[at] = taken[node.parent].or(good[at].then_some(at));
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::dot;
    use crate::testing::{embeddings, knn, on_graph, on_one_and_three_threads, on_rows, refusal, synthetic};
    use proptest::prelude::*;

    /// Prim's algorithm on all pairs; the similarities of the tree, sorted.
    fn prim(rows: Rows, min_samples: usize) -> Vec<f32> {
        let n = rows.len();
        let similarity = |i: usize, j: usize| dot(rows.row(i), rows.row(j));
        let core = |i: usize| {
            let mut others: Vec<f32> = (0..n).filter(|&j| j != i).map(|j| similarity(i, j)).collect();
            others.sort_by(|a, b| b.total_cmp(a));
            others[min_samples - 1]
        };
        let cores: Vec<f32> = (0..n).map(core).collect();
        let mut inside = vec![false; n];
        let mut best = vec![f32::NEG_INFINITY; n];
        let mut weights = Vec::new();
        let mut at = 0;
        for _ in 1..n {
            inside[at] = true;
            for j in (0..n).filter(|&j| !inside[j]) {
                best[j] = best[j].max(similarity(at, j).min(cores[at]).min(cores[j]));
            }
            at = (0..n).filter(|&j| !inside[j]).max_by(|&a, &b| best[a].total_cmp(&best[b])).unwrap();
            weights.push(best[at]);
        }
        weights.sort_by(f32::total_cmp);
        weights
    }

    proptest! {
        #[test]
        fn the_tree_is_that_of_prim(rows in embeddings(), k in 1usize..9, samples in 1usize..9) {
            prop_assume!(rows.len() > 1);
            let graph = knn(&rows, k);
            let samples = samples.min(graph.k());
            let all = Rows::from(&rows);
            let mut found: Vec<f32> = spanning_tree(all, &graph, samples, &()).unwrap().iter().map(|e| e.similarity).collect();
            found.sort_by(f32::total_cmp);
            let expected = prim(all, samples);
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                prop_assert!((found - expected).abs() < 1e-5, "{} {}", found, expected);
            }
        }

        #[test]
        fn a_whole_graph_gives_the_exact_clusters(rows in embeddings(), size in 2usize..6) {
            prop_assume!(rows.len() > 1);
            let all = Rows::from(&rows);
            let graph = knn(&rows, rows.len() - 1);
            let sum = |edges: Vec<Edge>| edges.iter().map(|e| f64::from(e.similarity)).sum::<f64>();
            let samples = size.min(graph.k());
            let (exact, on_graph) = (spanning_tree(all, &graph, samples, &()).unwrap(), spanning_forest(&graph, samples));
            prop_assert!((sum(exact) - sum(on_graph)).abs() < 1e-4);
        }

        /// By the definition: components after all edges below a similarity are cut.
        #[test]
        fn clusters_are_large_enough_and_connected(rows in embeddings(), size in 2usize..6, leaves: bool) {
            let selection = if leaves { Selection::Leaves } else { Selection::ExcessOfMass };
            let params = Hdbscan {
                min_cluster_size: size, min_samples: None, selection, noise: Noise::Keep,
            };
            let found = on_rows(&params, &rows).unwrap();
            for label in 0..found.len() as i64 {
                prop_assert!(found.labels.iter().filter(|&&l| l == label).count() >= size);
            }
            // A single cluster would be the root, which is never selected.
            prop_assert!(found.len() != 1);
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let message = |params: Hdbscan| refusal(on_rows(&params, &rows));
        let default = Hdbscan::default();
        assert_eq!(
            message(Hdbscan { min_cluster_size: 1, ..default.clone() }),
            "min_cluster_size: expected at least 2, found 1"
        );
        assert!(message(Hdbscan { min_samples: Some(0), ..default.clone() }).starts_with("min_samples"));
        assert!(message(Hdbscan { min_samples: Some(2), ..default.clone() }).starts_with("min_samples"));
        let three = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 2, "test").unwrap();
        let params = Hdbscan { min_samples: Some(2), ..default };
        let message = refusal(on_graph(&params, &knn(&three, 1)));
        assert!(message.contains("2 with 1 neighbours"), "{message}");
    }

    #[test]
    fn one_row_two_rows_and_copies() {
        let labels = |data: Vec<f32>| {
            let rows = Embeddings::from_rows(data, 1, "test").unwrap();
            let params = Hdbscan { noise: Noise::Keep, min_cluster_size: 2, ..Default::default() };
            on_rows(&params, &rows).unwrap().labels
        };
        assert_eq!(labels(vec![1.0]), [-1]);
        assert_eq!(labels(vec![1.0, 1.0]), [-1, -1]);
        assert_eq!(labels(vec![1.0, 1.0, 1.0, -1.0, -1.0, -1.0]), [0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(40);
        let graph = knn(&rows, 30);
        let params = Hdbscan { noise: Noise::Assigned, ..Default::default() };
        let [one, three] = on_one_and_three_threads(|| {
            [params.partition_rows(&rows, 5, &()).unwrap(), params.partition_graph(&graph, 5, &()).unwrap()]
        });
        assert_eq!(one, three);
        for found in one {
            let scores = kinfolk::metrics::evaluate(&truth, &found.labels).unwrap();
            assert!(scores.bcubed.f > 0.4, "{scores:?}");
        }
    }
}
