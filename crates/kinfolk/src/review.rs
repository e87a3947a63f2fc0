//! Lists the decisions of a clustering that are most worth checking by a person.
//!
//! A cluster is connected by the edges of a tree: cutting one separates the rows below it from the rest. An edge between two
//! clusters that was not used would have merged them. Each such decision is wrong with some probability, and affects a number
//! of rows. Decisions are sorted by the product of that probability and 1 + log2 of the rows on the smaller side.
//!
//! Cost: O(N log N).

use crate::{Clustering, Reason};

/// The scale of the logistic function from similarity - tau to probability.
const SOFTNESS: f32 = 0.05;

/// Decisions that are wrong with less probability than this are not listed.
const LEAST_DOUBT: f32 = 0.05;

/// A decision that may be wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Doubt {
    /// True if the two rows are in one cluster, false if they are not.
    pub together: bool,
    /// The rows of the deciding edge.
    pub rows: [u32; 2],
    /// Rows on both sides of the edge: of a cluster and the rest of it, or of two clusters.
    pub sizes: [u32; 2],
    /// Cosine of the two rows.
    pub similarity: f32,
    /// Probability that the two rows are of one identity.
    pub probability: f32,
}

impl Doubt {
    /// The probability that the decision is wrong.
    pub fn doubt(&self) -> f32 {
        if self.together { 1.0 - self.probability } else { self.probability }
    }

    fn worth(&self) -> f32 {
        self.doubt() * (1.0 + (self.sizes[0].min(self.sizes[1]) as f32).log2())
    }
}

/// The decisions most worth checking, at most `most`, the most doubtful first.
///
/// With [`Kin`](crate::Kin) the probabilities are those of the edges. Other methods cut at a similarity tau; there the
/// probability of a link of similarity s is taken to be 1 / (1 + exp((tau - s) / 0.05)), which is not calibrated and only
/// gives an order. The list is empty for methods that return no reasons and for clusterings with noise.
///
/// ```
/// use kinfolk::{Clusterer, Density, Embeddings, review};
///
/// // Two pairs; the second of each is not quite like the first.
/// let rows = vec![1.0, 0.0, 0.9, 0.3, 0.0, 1.0, 0.5, 0.9];
/// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
/// let found = Clusterer::with(Density { tau: Some(0.85), ..Density::default() }).fit(&embeddings)?;
/// let doubts = review(&found, 10);
/// assert_eq!(doubts[0].rows, [2, 3]);
/// assert!(doubts[0].together);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn review(found: &Clustering, most: usize) -> Vec<Doubt> {
    let labels = &found.labels;
    if labels.iter().any(|&label| label < 0) || found.reason == Reason::None {
        return Vec::new();
    }
    let sizes = found.sizes();
    let size = |row: usize| sizes[labels[row] as usize] as u32;

    // For each row the edge to its parent, and the strongest one to another cluster: the other row, similarity and
    // probability.
    let edges = |row: usize| -> [Option<(u32, f32, f32)>; 2] {
        match &found.reason {
            Reason::None => [None; 2],
            Reason::Edges(evidence) => [evidence.inside[row], evidence.outside[row]]
                .map(|edge| edge.map(|edge| (edge.row, edge.similarity, edge.probability))),
            Reason::Tree(tree) => {
                let link = tree.links.parent(row).map(|(parent, s)| (parent, s, trust(tree.tau, s)));
                let inside = |link: &(u32, f32, f32)| labels[link.0 as usize] == labels[row];
                [link.filter(inside), link.filter(|link| !inside(link))]
            }
        }
    };
    let below = rows_below(labels.len(), |row| edges(row)[0].map(|edge| edge.0 as usize));

    let mut doubts = Vec::new();
    for (row, &below) in below.iter().enumerate() {
        let [inside, outside] = edges(row);
        if let Some((parent, similarity, probability)) = inside {
            let sizes = [below, size(row) - below];
            let rows = [row as u32, parent];
            doubts.push(Doubt { together: true, rows, sizes, similarity, probability });
        }
        if let Some((other, similarity, probability)) = outside {
            let sizes = [size(row), size(other as usize)];
            let rows = [row as u32, other];
            doubts.push(Doubt { together: false, rows, sizes, similarity, probability });
        }
    }
    doubts.retain(|doubt| doubt.doubt() >= LEAST_DOUBT);
    doubts.sort_by(|a, b| b.worth().total_cmp(&a.worth()).then(a.rows.cmp(&b.rows)));
    // Two clusters are listed once, by their most doubtful edge.
    let mut listed = std::collections::HashSet::new();
    doubts.retain(|doubt| {
        let [a, b] = doubt.rows.map(|row| labels[row as usize]);
        doubt.together || listed.insert((a.min(b), a.max(b)))
    });
    doubts.truncate(most);
    doubts
}

/// The probability of a link of a method that cuts at tau.
pub(crate) fn trust(tau: f32, similarity: f32) -> f32 {
    1.0 / (1.0 + ((tau - similarity) / SOFTNESS).exp())
}

/// How many rows there are in the tree below each row, itself included.
fn rows_below(n: usize, parent: impl Fn(usize) -> Option<usize>) -> Vec<u32> {
    let mut children = vec![0u32; n];
    for parent in (0..n).filter_map(&parent) {
        children[parent] += 1;
    }
    let mut below = vec![1; n];
    let mut ready: Vec<usize> = (0..n).filter(|&row| children[row] == 0).collect();
    while let Some(row) = ready.pop() {
        if let Some(up) = parent(row) {
            below[up] += below[row];
            children[up] -= 1;
            if children[up] == 0 {
                ready.push(up);
            }
        }
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Edge, EdgeEvidence, Kin, Report};

    #[test]
    fn rows_below_are_counted_with_oneself() {
        // 3 is the root, 1 and 2 below it, 0 below 1.
        let parents = [Some(1), Some(3), Some(3), None];
        assert_eq!(rows_below(4, |row| parents[row]), [1, 2, 1, 4]);
    }

    #[test]
    fn the_most_doubtful_come_first_and_pairs_of_clusters_once() {
        let edge =
            |row, probability| Some(Edge { row, similarity: 0.5, probability, ranks: [1, 1], shared: 0 });
        let evidence = EdgeEvidence {
            min_probability: 0.4,
            inside: vec![None, edge(0, 0.99), edge(1, 0.6), None, edge(3, 0.9)],
            outside: vec![None, edge(3, 0.2), edge(4, 0.3), None, edge(1, 0.1)],
            ..EdgeEvidence::default()
        };
        let report = Report::new(&Kin::default(), None, &Context::default());
        let found = Clustering::new(vec![0, 0, 0, 1, 1], Reason::Edges(evidence), report);
        let rows: Vec<_> = review(&found, 10).iter().map(|d| (d.together, d.rows, d.sizes)).collect();
        // 0.3 of two and three rows is worth more than 0.4 of one row and two.
        assert_eq!(rows, [(false, [2, 4], [3, 2]), (true, [2, 1], [1, 2]), (true, [4, 3], [1, 1])]);
        assert_eq!(review(&found, 1).len(), 1);
    }
}
