//! Hierarchical agglomerative clustering: repeatedly merges the two nearest clusters.
//!
//! On rows it is exact: all distances |x - y|, then kodama's spanning tree (single linkage) or nearest-neighbour chain
//! (Murtagh, 1983; Müllner, 2011). N^2 D / 2 products, O(N^2) steps, 2 N^2 bytes.
//!
//! On a kNN graph it uses only the edges, so it scales to large N. Single linkage is Kruskal's spanning forest.
//! Average linkage is that of graphs (Dhulipala et al., 2021): the similarity of two clusters is the sum of the
//! similarities of the edges between them divided by the number of pairs of rows, so that pairs without an edge count as 0. It is
//! reducible, so a nearest-neighbour chain finds the same merges as always merging the most similar two. It needs O(N K)
//! memory and about N K log N steps, because the smaller of two neighbour lists is merged into the larger.

use crate::check;
use crate::clusters::Clusters;
use crate::dense::{Rows, products};
use kinfolk::stages::DisjointSets;
use kinfolk::{
    Clustering, Context, Embeddings, GraphReport, Input, KnnGraph, Method, MethodInfo, ParamValue,
    Parameters, Problem, Progress, Result,
};
use rayon::prelude::*;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Rows of one task, and columns of one product.
const TILE: usize = 256;

/// The distance between two clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linkage {
    /// The distance of their nearest rows.
    Single,
    /// The distance of their farthest rows.
    Complete,
    /// The mean distance over all pairs of their rows.
    #[default]
    Average,
    /// The increase of the within-cluster sum of squares if they are merged.
    Ward,
}

kinfolk::word_values!(Linkage: "single, complete, average or ward",
    "single" => Linkage::Single, "complete" => Linkage::Complete, "average" => Linkage::Average, "ward" => Linkage::Ward);

/// The most rows on which [`Hac`] is exact: 1.8 GB of distances. Above, it works on the graph.
pub const HAC_UP_TO: usize = 30_000;

/// Clusters are merged up to this distance by default.
const DISTANCE: f32 = 1.0;

kinfolk::parameters! {
    /// Hierarchical agglomerative clustering: repeatedly merges the two nearest clusters.
    ///
    /// Use it on small sets: average linkage with a cut by distance needs no number of clusters and is among the best of the
    /// classical methods for identities.
    ///
    /// Up to [`HAC_UP_TO`] rows it is exact. Above, and if only a graph is given, it uses the edges of the kNN graph. This
    /// is possible only for single and average linkage, and merging ends early if no edges are left.
    ///
    /// Cost: N^2 D / 2 products on all threads, O(N^2) on one, 2 N^2 bytes; on the graph N K log(N K) steps, O(N K) memory.
    ///
    /// ```
    /// use kinfolk::{Clusterer, Embeddings, KnnGraph, Problem};
    /// use kinfolk_baselines::{Hac, Linkage};
    /// let rows = vec![1.0, 0.1, 1.0, 0.0, 0.9, 0.1, -0.1, 1.0, 0.0, 1.0];
    /// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
    /// let ward = Hac { linkage: Linkage::Ward, clusters: Some(2), ..Hac::default() };
    /// assert_eq!(Clusterer::with(ward).fit(&embeddings)?.labels, [0, 0, 0, 1, 1]);
    ///
    /// let graph = KnnGraph::from_parts(4, 1, vec![1, 0, 1, 0], vec![0.9, 0.9, 0.8, 0.1], "example")?;
    /// let single = Hac { linkage: Linkage::Single, distance: 0.7, ..Hac::default() };
    /// assert_eq!(Clusterer::with(single).run(&Problem::of_graph(&graph))?.labels, [0, 0, 0, 1]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Hac {
        /// The distance between two clusters.
        pub linkage: Linkage = Linkage::Average;
        /// The number of clusters; auto merges up to the distance instead.
        pub clusters: Option<usize> = None, "at least 1, at most the number of rows",
            |clusters| clusters.is_none_or(|clusters| clusters >= 1);
        /// Clusters farther apart than this are not merged, unless the number of clusters is set. For unit rows, distance d
        /// is cosine 1 - d^2 / 2.
        pub distance: f32 = DISTANCE, "a finite number of 0 or more",
            |distance| *distance >= 0.0 && distance.is_finite();
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "hac",
    "Hierarchical agglomerative clustering",
    "Merges the two nearest clusters until the number of clusters or the distance is reached",
)
.when("on small sets without noise, when a distance or the number of clusters is known")
.cost("N^2 D up to 30,000 rows, then N K log N")
.input(Input::RowsOrGraph)
.in_paper()
.color("#2ca02c");

impl Method for Hac {
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
        rows > HAC_UP_TO
    }

    fn operations(&self, rows: usize, dim: usize) -> f64 {
        if self.uses_graph(rows) { 0.0 } else { rows as f64 * rows as f64 * 2.0 * dim as f64 }
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.check()?;
        if self.clusters.is_some() {
            check::clusters(self.clusters, problem.len())?;
            if self.distance != DISTANCE {
                return check::refuse("distance", "no distance with a number of clusters", self.distance);
            }
        }
        let (found, graph) = self.partition(problem, context)?;
        let mut found = found.into_clustering(self, graph, context);
        // Merging stops by the number of clusters or by distance: the report lists only the one that applied.
        let unused = if self.clusters.is_some() { "distance" } else { "clusters" };
        found.report.parameters.retain(|parameter| parameter.0 != unused);
        Ok(found)
    }
}

impl Hac {
    /// Clusters the rows if there are few enough, else the graph.
    fn partition(&self, problem: &Problem, context: &Context) -> Result<(Clusters, Option<GraphReport>)> {
        if problem.has_embeddings() && !self.uses_graph(problem.len()) {
            let embeddings = problem.embeddings()?;
            let found = context.timed("partition", || self.partition_rows(embeddings, context.progress()))?;
            return Ok((found, None));
        }
        if !matches!(self.linkage, Linkage::Single | Linkage::Average) {
            let expected = "single or average, which can be computed from a kNN graph";
            return check::refuse("linkage", expected, self.linkage.format());
        }
        let given = problem.neighbours(80, context)?;
        let found = context.timed("partition", || self.partition_graph(&given.graph, context.progress()))?;
        Ok((found, Some(given.report)))
    }

    /// Exact linkage, with all distances in memory.
    fn partition_rows(&self, embeddings: &Embeddings, progress: &dyn Progress) -> Result<Clusters> {
        let n = embeddings.len();
        if n == 1 {
            return Ok(Clusters::from_names(&[0u32]));
        }
        let mut distances = distances(Rows::from(embeddings), progress)?;
        progress.begin("merges", 1);
        let linkage = match self.linkage {
            Linkage::Single => kodama::Method::Single,
            Linkage::Complete => kodama::Method::Complete,
            Linkage::Average => kodama::Method::Average,
            Linkage::Ward => kodama::Method::Ward,
        };
        let merges = kodama::linkage(&mut distances, n, linkage);
        let mut forest = DisjointSets::new(n);
        // A member of each cluster: rows, then what each step made.
        let mut member: Vec<u32> = (0..n as u32).collect();
        let stop = match self.clusters {
            Some(clusters) => n - clusters,
            None => merges.steps().partition_point(|step| step.dissimilarity <= self.distance),
        };
        for step in &merges.steps()[..stop] {
            let (a, b) = (member[step.cluster1], member[step.cluster2]);
            forest.join(a, b);
            member.push(a);
        }
        progress.advance(1);
        Ok(Clusters::from_names(&forest.names()))
    }

    /// Single or average linkage over the edges of a kNN graph.
    fn partition_graph(&self, graph: &KnnGraph, progress: &dyn Progress) -> Result<Clusters> {
        let n = graph.len();
        let (most, least) = match self.clusters {
            Some(clusters) => (n - clusters, f64::NEG_INFINITY),
            None => (n, 1.0 - f64::from(self.distance).powi(2) / 2.0),
        };
        progress.check()?;
        progress.begin("merges", n as u64);
        let mut merges = match self.linkage {
            Linkage::Single => single(graph),
            _ => average(graph, least, progress)?,
        };
        // Chains find merges out of order. A merge never has a larger similarity than those it builds on, but for rounding;
        // the order in which they were found settles ties.
        merges.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
        let mut forest = DisjointSets::new(n);
        for merge in merges.iter().take(most).take_while(|merge| merge.similarity >= least) {
            forest.join(merge.a, merge.b);
        }
        Ok(Clusters::from_names(&forest.names()))
    }
}

/// |x - y| of all pairs: those of row 0 with 1.., then those of row 1 with 2.. and so on.
fn distances(rows: Rows, progress: &dyn Progress) -> Result<Vec<f32>> {
    let n = rows.len();
    let mut condensed = vec![0.0f32; n * (n - 1) / 2];
    let mut rest = condensed.as_mut_slice();
    let mut tasks = Vec::new();
    for first in (0..n).step_by(TILE) {
        let last = (first + TILE).min(n);
        let (own, others) = rest.split_at_mut((first..last).map(|i| n - 1 - i).sum());
        tasks.push((first..last, own));
        rest = others;
    }
    progress.begin("distances", tasks.len() as u64);
    tasks.into_par_iter().for_each_init(Vec::new, |tile, (range, mut own)| {
        let mut lines: Vec<&mut [f32]> = Vec::with_capacity(range.len());
        for i in range.clone() {
            let (line, others) = own.split_at_mut(n - 1 - i);
            lines.push(line);
            own = others;
        }
        for first in (range.start..n).step_by(TILE) {
            if progress.cancelled() {
                return;
            }
            let part = first..(first + TILE).min(n);
            tile.resize(range.len() * part.len(), 0.0);
            products(rows.part(range.clone()), rows.part(part.clone()), tile, false);
            for (i, (line, scores)) in range.clone().zip(lines.iter_mut().zip(tile.chunks_exact(part.len())))
            {
                let skip = (i + 1).saturating_sub(part.start).min(part.len());
                let to = (part.start + skip).max(i + 1) - i - 1;
                for (distance, &score) in line[to..].iter_mut().zip(&scores[skip..]) {
                    *distance = (2.0 - 2.0 * score).max(0.0).sqrt();
                }
            }
        }
        progress.advance(1);
    });
    progress.check()?;
    Ok(condensed)
}

/// Two clusters, each named by a member, become one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Merge {
    a: u32,
    b: u32,
    similarity: f64,
}

/// Every edge once, as (smaller end, larger end, similarity).
fn edges(graph: &KnnGraph) -> Vec<(u32, u32, f32)> {
    let mut edges: Vec<(u32, u32, f32)> = (0..graph.len())
        .into_par_iter()
        .flat_map_iter(|i| {
            let (ids, similarities) = graph.neighbours(i);
            let i = i as u32;
            ids.iter().zip(similarities).map(move |(&j, &similarity)| (i.min(j), i.max(j), similarity))
        })
        .collect();
    edges.par_sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(b.2.total_cmp(&a.2)));
    edges.dedup_by_key(|edge| (edge.0, edge.1));
    edges
}

/// The edges of a spanning forest of greatest similarity, by Kruskal's algorithm.
fn single(graph: &KnnGraph) -> Vec<Merge> {
    let mut edges = edges(graph);
    edges.par_sort_unstable_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
    let mut forest = DisjointSets::new(graph.len());
    edges.retain(|&(a, b, _)| forest.join(a, b));
    edges.into_iter().map(|(a, b, similarity)| Merge { a, b, similarity: similarity.into() }).collect()
}

/// The sum of similarities to each neighbouring cluster.
type Sums = HashMap<u32, f64, BuildHasherDefault<Mix>>;

/// Average linkage by a nearest-neighbour chain: each of the chain's clusters is followed by the one most similar to it, and
/// two that are each other's are joined. Merges of less than `least` are not looked for: without them no cluster grows to have
/// most of the others for neighbours.
fn average(graph: &KnnGraph, least: f64, progress: &dyn Progress) -> Result<Vec<Merge>> {
    let n = graph.len();
    let mut sums: Vec<Sums> = vec![Sums::default(); n];
    for (a, b, similarity) in edges(graph) {
        // Pairs of negative similarity count as pairs without an edge.
        if similarity > 0.0 {
            sums[a as usize].insert(b, similarity.into());
            sums[b as usize].insert(a, similarity.into());
        }
    }
    let mut sizes = vec![1.0f64; n];
    // Neither part of another cluster nor done.
    let mut open = vec![true; n];
    let mut merges = Vec::with_capacity(n);
    let mut chain: Vec<u32> = Vec::new();
    for first in 0..n as u32 {
        // A chain that ends in a merge leaves its cluster with neighbours to join.
        while chain.is_empty() && open[first as usize] {
            chain.push(first);
            let found = merges.len();
            grow(&mut chain, least, &mut sums, &mut sizes, &mut open, &mut merges, progress)?;
            progress.advance((merges.len() - found) as u64);
        }
    }
    Ok(merges)
}

/// Extends the chain and merges at its end until the chain is empty.
fn grow(
    chain: &mut Vec<u32>,
    least: f64,
    sums: &mut [Sums],
    sizes: &mut [f64],
    open: &mut [bool],
    merges: &mut Vec<Merge>,
    progress: &dyn Progress,
) -> Result<()> {
    while let Some(&top) = chain.last() {
        progress.check()?;
        let below = chain.len().checked_sub(2).map(|at| chain[at]);
        let size = sizes[top as usize];
        // Ties go to the previous cluster of the chain, so that the chain ends, then to the smallest id.
        let better = |a: (u32, f64), b: (u32, f64)| {
            let order = a.1.total_cmp(&b.1).then((Some(a.0) == below).cmp(&(Some(b.0) == below)));
            if order.then(b.0.cmp(&a.0)).is_gt() { a } else { b }
        };
        let means = sums[top as usize].iter().map(|(&c, &sum)| (c, sum / (size * sizes[c as usize])));
        let Some((next, similarity)) = means.reduce(better).filter(|nearest| nearest.1 >= least) else {
            // No neighbour is similar enough, and merges of other clusters cannot change that.
            open[top as usize] = false;
            chain.pop();
            continue;
        };
        if Some(next) != below {
            chain.push(next);
            continue;
        }
        chain.truncate(chain.len() - 2);
        let (from, to) =
            if sums[top as usize].len() < sums[next as usize].len() { (top, next) } else { (next, top) };
        for (c, sum) in std::mem::take(&mut sums[from as usize]) {
            sums[c as usize].remove(&from);
            if c != to {
                *sums[to as usize].entry(c).or_insert(0.0) += sum;
                *sums[c as usize].entry(to).or_insert(0.0) += sum;
            }
        }
        sizes[to as usize] += sizes[from as usize];
        open[from as usize] = false;
        merges.push(Merge { a: from, b: to, similarity });
    }
    Ok(())
}

/// Multiplies and folds. The default hasher, which resists chosen keys, would take most of the time.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, value: u32) {
        let product = u128::from(self.0 ^ u64::from(value)) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::dot;
    use crate::testing::{
        embeddings, knn, on_graph, on_one_and_three_threads, on_rows, refusal, same_groups, synthetic,
    };
    use proptest::prelude::*;

    /// Distance of two clusters by the definition.
    fn between(rows: Rows, a: &[usize], b: &[usize], linkage: Linkage) -> f64 {
        let pair = |i: usize, j: usize| f64::from(2.0 - 2.0 * dot(rows.row(i), rows.row(j))).max(0.0).sqrt();
        let all = a.iter().flat_map(|&i| b.iter().map(move |&j| pair(i, j)));
        match linkage {
            Linkage::Single => all.fold(f64::INFINITY, f64::min),
            Linkage::Complete => all.fold(0.0, f64::max),
            Linkage::Average => all.sum::<f64>() / (a.len() * b.len()) as f64,
            Linkage::Ward => {
                let mean = |of: &[usize], l: usize| {
                    of.iter().map(|&i| f64::from(rows.row(i)[l])).sum::<f64>() / of.len() as f64
                };
                let apart: f64 = (0..rows.dim).map(|l| (mean(a, l) - mean(b, l)).powi(2)).sum();
                let (a, b) = (a.len() as f64, b.len() as f64);
                (2.0 * a * b / (a + b) * apart).sqrt()
            }
        }
    }

    /// Always merges the two nearest clusters; returns the distance and labels of each step. `None` if distances are
    /// tied, or so small that they are mostly rounding error in f32.
    fn slow(rows: Rows, linkage: Linkage) -> Option<Vec<(f64, Vec<i64>)>> {
        let mut clusters: Vec<Vec<usize>> = (0..rows.len()).map(|i| vec![i]).collect();
        let mut steps: Vec<(f64, Vec<i64>)> = Vec::new();
        while clusters.len() > 1 {
            let mut pairs = Vec::new();
            for b in 0..clusters.len() {
                for a in 0..b {
                    pairs.push((between(rows, &clusters[a], &clusters[b], linkage), a, b));
                }
            }
            pairs.sort_by(|x, y| x.0.total_cmp(&y.0));
            let (distance, a, b) = pairs[0];
            let tied = pairs.get(1).is_some_and(|next| next.0 - distance < 1e-4);
            if tied || distance < 0.01 || steps.last().is_some_and(|last| distance - last.0 < 1e-4) {
                return None;
            }
            let joined = clusters.remove(b);
            clusters[a].extend(joined);
            let mut labels = vec![0; rows.len()];
            clusters.iter().enumerate().for_each(|(c, m)| m.iter().for_each(|&i| labels[i] = c as i64));
            steps.push((distance, labels));
        }
        Some(steps)
    }

    /// Rows whose distances are hardly ever equal.
    fn untied() -> impl Strategy<Value = Embeddings> {
        (2usize..5, 2usize..14).prop_flat_map(|(dim, n)| {
            prop::collection::vec(-1.0f32..1.0, dim * n).prop_map(move |mut data| {
                data.iter_mut().step_by(dim).for_each(|v| *v += 1.5);
                Embeddings::from_rows(data, dim, "test").unwrap()
            })
        })
    }

    proptest! {
        #[test]
        fn merges_are_of_the_nearest_two(rows in untied(), which in 0usize..4, at in 0.0..1.0) {
            let linkage = [Linkage::Single, Linkage::Complete, Linkage::Average, Linkage::Ward][which];
            let steps = slow(Rows::from(&rows), linkage);
            prop_assume!(steps.is_some());
            let steps = steps.unwrap();
            let step = (at * steps.len() as f64) as usize;
            let (distance, expected) = &steps[step];
            let found = |method: Hac| on_rows(&method, &rows).unwrap().labels;
            let clusters = Some(rows.len() - 1 - step);
            let counted = found(Hac { linkage, clusters, ..Hac::default() });
            prop_assert!(same_groups(&counted, expected));
            let distance = *distance as f32 + 5e-5;
            let measured = found(Hac { linkage, distance, ..Hac::default() });
            prop_assert!(same_groups(&measured, expected));
        }

        #[test]
        fn distances_are_where_kodama_looks(rows in embeddings()) {
            prop_assume!(rows.len() > 1);
            let all = Rows::from(&rows);
            let mut at = distances(all, &()).unwrap().into_iter();
            for i in 0..rows.len() {
                for j in i + 1..rows.len() {
                    let expected = (2.0 - 2.0 * dot(all.row(i), all.row(j))).max(0.0);
                    let found = at.next().unwrap();
                    prop_assert!((found * found - expected).abs() < 1e-5);
                }
            }
            prop_assert_eq!(at.next(), None);
        }

        #[test]
        fn single_linkage_on_a_whole_graph_is_exact(rows in untied(), distance in 0.1f32..1.5) {
            let graph = knn(&rows, rows.len() - 1);
            let method = Hac { linkage: Linkage::Single, distance, ..Hac::default() };
            let (found, expected) = (on_graph(&method, &graph).unwrap(), on_rows(&method, &rows).unwrap());
            prop_assert_eq!(found.labels, expected.labels);
        }

        #[test]
        fn chains_join_the_most_similar(rows in untied(), k in 1usize..14, least in 0.01f32..1.0) {
            let graph = knn(&rows, k);
            // By the definition: the two clusters with the largest mean, while it is large enough.
            let n = graph.len();
            let mut known = vec![0.0f64; n * n];
            for (a, b, s) in edges(&graph) {
                known[a as usize * n + b as usize] = f64::from(s.max(0.0));
                known[b as usize * n + a as usize] = f64::from(s.max(0.0));
            }
            let mut clusters: Vec<Vec<usize>> = (0..n).map(|i| vec![i]).collect();
            let mean = |a: &[usize], b: &[usize]| {
                let sum: f64 = a.iter().flat_map(|&i| b.iter().map(move |&j| (i, j))).map(|(i, j)| known[i * n + j]).sum();
                sum / (a.len() * b.len()) as f64
            };
            let mut tied = false;
            loop {
                let mut pairs: Vec<(f64, usize, usize)> = (0..clusters.len())
                    .flat_map(|b| (0..b).map(move |a| (a, b)))
                    .map(|(a, b)| (mean(&clusters[a], &clusters[b]), a, b))
                    .collect();
                pairs.sort_by(|x, y| y.0.total_cmp(&x.0));
                let Some(&(best, a, b)) = pairs.first().filter(|p| p.0 > f64::from(least)) else { break };
                tied |= pairs.iter().skip(1).any(|p| (p.0 - best).abs() < 1e-9) || (best - f64::from(least)).abs() < 1e-5;
                let joined = clusters.remove(b);
                clusters[a].extend(joined);
            }
            prop_assume!(!tied);
            let mut expected = vec![0; n];
            clusters.iter().enumerate().for_each(|(c, m)| m.iter().for_each(|&i| expected[i] = c as i64));
            let distance = (2.0 - 2.0 * least).sqrt();
            let found = on_graph(&Hac { distance, ..Hac::default() }, &graph).unwrap();
            prop_assert!(same_groups(&found.labels, &expected), "{:?} {:?}", found.labels, expected);
            let counted = on_graph(&Hac { clusters: Some(clusters.len()), ..Hac::default() }, &graph).unwrap();
            prop_assert!(same_groups(&counted.labels, &expected), "{:?} {:?}", counted.labels, expected);
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let message = |method: Hac| refusal(on_rows(&method, &rows));
        assert!(message(Hac { clusters: Some(0), ..Hac::default() }).starts_with("clusters"));
        assert!(message(Hac { clusters: Some(3), ..Hac::default() }).starts_with("clusters"));
        assert!(message(Hac { distance: f32::NAN, ..Hac::default() }).starts_with("distance"));
        assert_eq!(
            message(Hac { clusters: Some(2), distance: 0.5, ..Hac::default() }),
            "distance: expected no distance with a number of clusters, found 0.5"
        );
        let ward = Hac { linkage: Linkage::Ward, ..Hac::default() };
        assert_eq!(
            refusal(on_graph(&ward, &knn(&rows, 1))),
            "linkage: expected single or average, which can be computed from a kNN graph, found ward"
        );
    }

    #[test]
    fn the_report_lists_only_the_stopping_rule_in_force() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let graph = knn(&rows, 1);
        let by_count = Hac { clusters: Some(2), ..Hac::default() };
        let by_distance = Hac { distance: 0.5, ..Hac::default() };
        for found in [on_rows(&by_count, &rows), on_graph(&by_count, &graph)] {
            let expected = [("linkage", "average".to_owned()), ("clusters", "2".to_owned())];
            assert_eq!(found.unwrap().report.parameters, expected);
        }
        for found in [on_rows(&by_distance, &rows), on_graph(&by_distance, &graph)] {
            let expected = [("linkage", "average".to_owned()), ("distance", "0.5".to_owned())];
            assert_eq!(found.unwrap().report.parameters, expected);
        }
    }

    #[test]
    fn the_graph_is_used_above_the_limit() {
        let many = Embeddings::from_rows(vec![1.0; HAC_UP_TO + 1], 1, "test").unwrap();
        assert!(!Hac::default().uses_graph(HAC_UP_TO) && Hac::default().uses_graph(many.len()));
        let complete = Hac { linkage: Linkage::Complete, ..Hac::default() };
        assert!(refusal(on_rows(&complete, &many)).contains("kNN graph"));
    }

    #[test]
    fn one_row_duplicates_and_as_many_clusters_as_rows() {
        let one = Embeddings::from_rows(vec![1.0], 1, "test").unwrap();
        assert_eq!(on_rows(&Hac::default(), &one).unwrap().labels, [0]);
        let same = Embeddings::from_rows(vec![1.0; 5], 1, "test").unwrap();
        for linkage in [Linkage::Single, Linkage::Complete, Linkage::Average, Linkage::Ward] {
            let found = |method: Hac| on_rows(&method, &same).unwrap().len();
            let near = Hac { linkage, distance: 0.01, ..Hac::default() };
            let five = Hac { linkage, clusters: Some(5), ..Hac::default() };
            assert_eq!((found(near), found(five)), (1, 5));
        }
    }

    #[test]
    fn identities_are_found_on_any_number_of_threads() {
        let (rows, truth) = synthetic(40);
        let exact = Hac { distance: 0.95, ..Hac::default() };
        let graph = knn(&rows, 60);
        let along_edges = Hac { distance: 1.2, ..Hac::default() };
        let [one, three] = on_one_and_three_threads(|| {
            [on_rows(&exact, &rows).unwrap().labels, on_graph(&along_edges, &graph).unwrap().labels]
        });
        assert_eq!(one, three);
        for found in one {
            let scores = kinfolk::metrics::evaluate(&truth, &found).unwrap();
            assert!(scores.bcubed.f > 0.5, "{scores:?}");
        }
    }
}
