//! Levels: nested partitions from fine to coarse, one of which is the partition of the method.
//!
//! **Tree.** The rows of each default cluster are agglomerated by the edges within it, then the clusters by the edges between
//! them, so the default partition is a cut of the tree. Edges weigh their probability p, in both directions together, w_ij =
//! p_ij + p_ji; also those below the minimum, because many improbable edges between two clusters are evidence too. The linkage
//! is the average w_ab / (m_a m_b) with masses that are added (see `agglomerate`). The mass of a row or default cluster is the
//! root of its weight, sqrt(sum_j w_ij), as in the normalised Laplacian: then the similarity of two clusters is the share of
//! their weight that they have in common, whatever their size. With the weight itself as mass, which is Paris, a stray
//! row may prefer another to the large cluster it belongs to, and equal shares merge small clusters octaves before large ones.
//!
//! **Height.** Inside a default cluster, similarities are divided by their mean over all pairs of its rows; between clusters,
//! by 1/2, which is the share that two halves of one homogeneous cluster have in common. So both are about 1 for what cannot
//! be told apart, and the height of a merge of similarity s is log2(s_0 / s), in octaves: one octave up, clusters are merged
//! that are connected half as strongly. s_0 is where merging by s alone would take as many rows out of default clusters as it
//! would bring together; heights inside default clusters are limited to 0 and below, those of clusters to above 0. Parts of a
//! default cluster that no edge connects merge at 0; clusters that no edge connects never do.
//!
//! **Persistence.** The life of a cluster is from the height at which it forms to that at which it merges with another that is
//! not tiny, as in the condensed tree of HDBSCAN (Campello et al., 2013); a tiny one has one row or less than a 20th of the
//! rows. The persistence of a partition is the mean of the lives of the rows' clusters, in octaves, where a row alone counts
//! 0. Offered are the default and the peaks of persistence over heights, at most eight (see `persistence`).
//!
//! Cost: O(E log N) for the E edges, default clusters in parallel; 40 bytes for each row, and 32 for each edge inside the
//! clusters in progress and each pair of clusters with an edge. A cut is O(N).

mod agglomerate;
mod branches;
mod persistence;
mod tree;
mod weights;

pub use branches::{Branch, branches};
pub use tree::MergeTree;

use crate::{Error, KnnGraph, Progress, Result, number_by_size};
use weights::Weights;

/// Nested partitions from fine to coarse, and the tree of which they are cuts.
///
/// ```
/// use kinfolk::synth::{Synth, SynthParams};
/// # fn main() -> kinfolk::Result<()> {
/// let params = SynthParams { identities: 40, dim: 64, ..SynthParams::default() };
/// let (embeddings, _) = Synth::new(params)?.whole().to_embeddings()?;
/// let found = kinfolk::Clusterer::new().levels(true).fit(&embeddings)?;
/// let levels = found.levels.as_ref().expect("kin has levels");
/// assert_eq!(levels.labels(levels.default_level()), found.labels);
/// for level in levels.levels() {
///     println!("{} clusters, persistence {:.2} octaves", level.clusters, level.persistence);
/// }
/// // Any other cut: merge clusters that are connected up to an octave less than the default requires.
/// let coarser = levels.cut(1.0);
/// assert!(coarser.iter().max() <= found.labels.iter().max());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    tree: MergeTree,
    levels: Vec<Level>,
}

/// One of the partitions that [`Levels`] offers.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Level {
    /// The height of the cut, in octaves; 0 is the default, finer ones are below.
    pub height: f64,
    /// Number of clusters.
    pub clusters: usize,
    /// The mean life of the rows' clusters, in octaves.
    pub persistence: f64,
    /// Whether this is the partition that the method returned.
    pub default: bool,
}

/// The height of the first merges of default clusters: above that of the default, 0.
const ABOVE: f64 = 1e-6;

impl Levels {
    /// The levels around the default partition `labels`, from the probabilities of the graph's edges (N x K).
    pub fn of(
        graph: &KnnGraph,
        probabilities: &[f32],
        labels: &[i64],
        progress: &dyn Progress,
    ) -> Result<Self> {
        check(graph, probabilities, labels)?;
        // Clusters need not be numbered without gaps.
        let labels = number_by_size(labels);
        let weights = Weights::of(graph, probabilities, &labels);
        let inside = weights.inside(progress)?;
        let between = weights.between(progress)?;
        let zero = zero(&inside, &between);
        let height = |link: &RowLink| (zero / link.similarity).log2();
        // Parts without an edge have similarity 0 and therefore no finite height.
        let fine = inside.iter().map(|link| (link.ends[0], link.ends[1], height(link).min(0.0)));
        let coarse = between.iter().map(|link| (link.ends[0], link.ends[1], height(link).max(ABOVE)));
        let links: Vec<(u32, u32, f64)> = fine.chain(coarse).collect();
        Ok(Self::of_tree(MergeTree::of_links(labels.len(), &links)))
    }

    /// The levels of a tree whose default is the cut at 0.
    pub fn of_tree(tree: MergeTree) -> Self {
        let levels = persistence::levels(&tree);
        Self { tree, levels }
    }

    /// The tree.
    pub fn tree(&self) -> &MergeTree {
        &self.tree
    }

    /// The levels that are offered, from fine to coarse; each is a refinement of the next. One is the default.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The index of the default.
    pub fn default_level(&self) -> usize {
        self.levels.iter().position(|level| level.default).unwrap_or(0)
    }

    /// The labels of a level, numbered by descending size.
    ///
    /// # Panics
    /// If there is no such level.
    pub fn labels(&self, level: usize) -> Vec<i64> {
        self.cut(self.levels[level].height)
    }

    /// The labels of the cut at any height, numbered by descending size.
    pub fn cut(&self, height: f64) -> Vec<i64> {
        self.tree.cut(height)
    }

    /// The persistence of the cut at every height at which it changes, (height, persistence), fine to coarse.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        persistence::curve(&self.tree)
    }
}

/// Rows whose clusters merge.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RowLink {
    ends: [u32; 2],
    similarity: f64,
    /// Rows of the smaller cluster.
    moved: u32,
}

/// s_0: the similarity below which as many rows would leave default clusters as would join them above it.
fn zero(inside: &[RowLink], between: &[RowLink]) -> f64 {
    let mut all: Vec<(f64, u64, bool)> = Vec::with_capacity(inside.len() + between.len());
    all.extend(inside.iter().map(|link| (link.similarity, link.moved.into(), true)));
    all.extend(between.iter().map(|link| (link.similarity, link.moved.into(), false)));
    all.retain(|link| link.0 > 0.0);
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut joining: u64 = all.iter().filter(|link| !link.2).map(|link| link.1).sum();
    let mut leaving = 0;
    let mut below = None;
    for &(similarity, rows, is_inside) in &all {
        if leaving >= joining {
            // Anything between the two would do.
            return below.map_or(similarity, |below: f64| (below * similarity).sqrt());
        }
        if is_inside {
            leaving += rows;
        } else {
            joining -= rows;
        }
        below = Some(similarity);
    }
    below.unwrap_or(1.0)
}

fn check(graph: &KnnGraph, probabilities: &[f32], labels: &[i64]) -> Result<()> {
    let (n, k) = (graph.len(), graph.k());
    let lengths = [
        ("probabilities (one per edge)", n * k, probabilities.len()),
        ("labels (one per vertex)", n, labels.len()),
    ];
    for (what, expected, found) in lengths {
        if expected != found {
            let (place, what) = ("levels".to_owned(), what.to_owned());
            return Err(Error::Length { place, what, expected, found });
        }
    }
    match probabilities.iter().position(|p| !(0.0..=1.0).contains(p)) {
        Some(at) => Err(Error::Value {
            place: "probabilities".to_owned(),
            row: at / k,
            column: at % k,
            expected: "a probability from 0 to 1".to_owned(),
            found: probabilities[at].to_string(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
