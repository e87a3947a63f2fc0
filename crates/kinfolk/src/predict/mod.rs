//! The clusters of a finished clustering that new rows belong to.
//!
//! | rule | a new row belongs to |
//! |---|---|
//! | [`Predictor::by_edges`], for `kin` | the most probable cluster ([`assign`](crate::assign)), by the estimated probabilities of the edges to its neighbours (`edges`), if that is more probable than none |
//! | [`Predictor::by_nearest`], for other methods | the cluster of the nearest row, if it is near enough |
//!
//! Every new row is judged as if it alone had been added, so its answer depends on no other new row. A copy of a clustered row
//! belongs where that row is, whatever the edges say.
//!
//! Cost: making one for `kin` costs what clustering does, without the partition, and holds the graph and a copy of the rows (8 K +
//! 4 D + 28 bytes for each). Predicting compares every new row with every clustered one (D integer products), and codes all rows
//! once for each call.

mod edges;
mod search;

use crate::incremental::{AddedNeighbours, coding_loss};
use crate::{Assignment, Context, Embeddings, Error, Kin, KnnParams, Progress, Result, knn_graph};
use edges::OfEdges;
use search::{FOUND, copied, nearest};

/// New rows that are looked at together: what is found of them before the answer is some kilobytes for each.
const BLOCK: usize = 16_384;

/// Says which cluster new rows belong to.
pub struct Predictor {
    labels: Vec<i64>,
    /// Rows of each cluster.
    sizes: Vec<usize>,
    rule: Rule,
}

enum Rule {
    Edges(Box<OfEdges>),
    Nearest(Nearest),
}

/// Rows as they were given, and how near a new one must be.
struct Nearest {
    rows: Embeddings,
    loss: f32,
    bound: Bound,
}

enum Bound {
    /// The similarity must be above this.
    Above(f32),
    /// It must be at least that of the cluster. Where there is none, only copies are near enough.
    OfCluster(Vec<Option<f32>>),
}

impl Predictor {
    /// For the `labels` that `method` found for these rows with `k` neighbours of each; a row belongs to a cluster if this is more
    /// probable than none, by the odds that two rows without other edges need to join.
    pub fn by_edges(
        rows: &Embeddings,
        labels: &[i64],
        method: &Kin,
        k: usize,
        context: &Context,
    ) -> Result<Self> {
        let sizes = sizes(rows, labels)?;
        let rule = Rule::Edges(Box::new(OfEdges::of(rows, method, k, context)?));
        Ok(Self { labels: labels.to_vec(), sizes, rule })
    }

    /// For labels that any method found for these rows. A new row must be more similar than `tau` to the nearest of them; without a
    /// tau as similar as, in that row's cluster, the row is to its nearest neighbour that is farthest from it.
    pub fn by_nearest(
        rows: &Embeddings,
        labels: &[i64],
        tau: Option<f32>,
        context: &Context,
    ) -> Result<Self> {
        let sizes = sizes(rows, labels)?;
        let bound = match tau {
            Some(tau) => Bound::Above(tau),
            None => Bound::OfCluster(least_similarities(rows, labels, sizes.len(), context)?),
        };
        let loss = coding_loss(rows);
        let rule = Rule::Nearest(Nearest { rows: rows.clone(), loss, bound });
        Ok(Self { labels: labels.to_vec(), sizes, rule })
    }

    /// The cluster of each new row; -1 for those that belong to none.
    pub fn predict(&self, rows: &Embeddings, progress: &dyn Progress) -> Result<Vec<i64>> {
        match &self.rule {
            Rule::Edges(edges) => {
                let joins = |assignment: Assignment<i64>| {
                    let best = assignment.candidates.first();
                    best.filter(|best| edges.suffices(best.1, assignment.none)).map_or(-1, |best| best.0)
                };
                Ok(self.assignments(edges, rows, progress)?.into_iter().map(joins).collect())
            }
            Rule::Nearest(known) => in_blocks(rows, |rows| known.labels(&self.labels, rows, progress)),
        }
    }

    /// Where each new row may belong: the clusters with their probabilities, and the probability of none. Only methods that
    /// estimate the probabilities of edges say so.
    pub fn candidates(&self, rows: &Embeddings, progress: &dyn Progress) -> Result<Vec<Assignment<i64>>> {
        match &self.rule {
            Rule::Edges(edges) => self.assignments(edges, rows, progress),
            Rule::Nearest(_) => {
                let (expected, found) =
                    ("one that estimates edge probabilities, such as kin", "another".to_owned());
                Err(Error::Parameter { field: "method", expected, found })
            }
        }
    }

    fn assignments(
        &self,
        edges: &OfEdges,
        rows: &Embeddings,
        progress: &dyn Progress,
    ) -> Result<Vec<Assignment<i64>>> {
        in_blocks(rows, |rows| edges.assignments(&self.labels, &self.sizes, rows, progress))
    }
}

impl Nearest {
    fn labels(&self, labels: &[i64], new: &Embeddings, progress: &dyn Progress) -> Result<Vec<i64>> {
        let k = FOUND.min(self.rows.len());
        let AddedNeighbours { ids, similarities, .. } =
            nearest(&self.rows, self.loss, new, k, |_| f32::INFINITY, progress)?;
        let of_row = |at: usize| {
            let (ids, similarities) = (&ids[at * k..][..k], &similarities[at * k..][..k]);
            if let Some(copy) = copied(&self.rows, ids, similarities, new.row(at)) {
                return labels[copy as usize];
            }
            let label = labels[ids[0] as usize];
            let near = match &self.bound {
                Bound::Above(tau) => similarities[0] > *tau,
                Bound::OfCluster(least) => {
                    let least = usize::try_from(label).ok().and_then(|cluster| least[cluster]);
                    least.is_some_and(|least| similarities[0] >= least)
                }
            };
            if near { label } else { -1 }
        };
        Ok((0..new.len()).map(of_row).collect())
    }
}

/// What `work` says of all rows, which it sees [`BLOCK`] at a time.
fn in_blocks<T>(rows: &Embeddings, work: impl Fn(&Embeddings) -> Result<Vec<T>>) -> Result<Vec<T>> {
    if rows.len() <= BLOCK {
        return work(rows);
    }
    let mut all = Vec::with_capacity(rows.len());
    for block in rows.as_slice().chunks(BLOCK * rows.dim()) {
        all.extend(work(&Embeddings::from_unit_rows(block.to_vec(), rows.dim()))?);
    }
    Ok(all)
}

/// The number of rows of each cluster; rows of the label -1 are in none.
fn sizes(rows: &Embeddings, labels: &[i64]) -> Result<Vec<usize>> {
    if labels.len() != rows.len() {
        let (place, what) = ("labels".to_owned(), "labels (one per row)".to_owned());
        return Err(Error::Length { place, what, expected: rows.len(), found: labels.len() });
    }
    let clusters = labels.iter().max().map_or(0, |&last| (last + 1).max(0) as usize);
    let mut sizes = vec![0; clusters];
    labels.iter().filter_map(|&label| usize::try_from(label).ok()).for_each(|label| sizes[label] += 1);
    Ok(sizes)
}

/// Of each cluster the smallest similarity of one of its rows to the nearest other row of the cluster.
fn least_similarities(
    rows: &Embeddings,
    labels: &[i64],
    clusters: usize,
    context: &Context,
) -> Result<Vec<Option<f32>>> {
    let params = KnnParams { seed: context.seed(), ..KnnParams::default() };
    let (graph, _) = context.timed("knn", || knn_graph(rows, &params, context.progress()))?;
    let mut least: Vec<Option<f32>> = vec![None; clusters];
    for (row, &label) in labels.iter().enumerate() {
        let Ok(cluster) = usize::try_from(label) else { continue };
        let (ids, similarities) = graph.neighbours(row);
        let inside = ids.iter().zip(similarities).find(|(id, _)| labels[**id as usize] == label);
        if let Some((_, &similarity)) = inside {
            least[cluster] = Some(least[cluster].map_or(similarity, |least| least.min(similarity)));
        }
    }
    Ok(least)
}

#[cfg(test)]
mod tests;
