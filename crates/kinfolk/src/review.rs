//! Which decisions of a clustering are most worth a person's look.
//!
//! A cluster is held together by the ties of a tree: cutting one parts the rows below it from the rest. A tie between two
//! clusters that was not taken would have made them one. Each such decision is wrong with some probability, and the more
//! rows it moves, the worse: decisions are listed by the product of that probability and 1 + log2 of the rows on the smaller
//! side.
//!
//! Cost: O(N log N).

use crate::{Clustering, Links};

/// How fast trust in a link grows with its distance from tau.
const SOFTNESS: f32 = 0.05;

/// Decisions that are wrong with less probability than this are not listed.
const LEAST_DOUBT: f32 = 0.05;

/// A decision that may be wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Doubt {
    /// True if the two rows were put into one cluster, false if they were kept apart.
    pub together: bool,
    /// The rows of the tie it hangs on.
    pub rows: [u32; 2],
    /// Rows on both sides of the tie: of a cluster and the rest of it, or of two clusters.
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

/// The decisions most worth a look, at most `most`, the most doubtful first.
///
/// With [`kin`](crate::kin) the probabilities are those of the ties. Other methods cut at a similarity tau; there the
/// probability of a link of similarity s is taken to be 1 / (1 + exp((tau - s) / 0.05)), which gives an order and no more.
///
/// ```
/// use kinfolk::{ClusterParams, Embeddings, cluster, review};
///
/// // Two pairs; the second of each is not quite like the first.
/// let rows = vec![1.0, 0.0, 0.9, 0.3, 0.0, 1.0, 0.5, 0.9];
/// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
/// let params = ClusterParams { tau: Some(0.85), ..ClusterParams::default() };
/// let found = cluster(&embeddings, None, &params, &())?;
/// let doubts = review(&found, 10);
/// assert_eq!(doubts[0].rows, [2, 3]);
/// assert!(doubts[0].together);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn review(found: &Clustering, most: usize) -> Vec<Doubt> {
    let labels = &found.labels;
    // Noise belongs nowhere, and who keeps it keeps no ties.
    if labels.iter().any(|&label| label < 0) {
        return Vec::new();
    }
    let mut sizes = vec![0u32; labels.iter().max().map_or(0, |&last| last as usize + 1)];
    labels.iter().for_each(|&label| sizes[label as usize] += 1);
    let size = |row: usize| sizes[labels[row] as usize];

    // For each row the tie that keeps it in its cluster, and one that might have taken it to another.
    let ties = |row: usize| match &found.evidence {
        Some(evidence) => [evidence.inside[row], evidence.outside[row]]
            .map(|tie| tie.map(|tie| (tie.row, tie.similarity, tie.probability))),
        None => {
            let link = found.links.parent(row).map(|(parent, s)| (parent, s, trust(found.tau, s)));
            let inside = |link: &(u32, f32, f32)| labels[link.0 as usize] == labels[row];
            [link.filter(inside), link.filter(|link| !inside(link))]
        }
    };
    let below = rows_below(labels.len(), |row| ties(row)[0].map_or(Links::NONE, |tie| tie.0));

    let mut doubts = Vec::new();
    for (row, &below) in below.iter().enumerate() {
        let [inside, outside] = ties(row);
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
    // Two clusters are asked about once, by their strongest tie.
    let mut asked = std::collections::HashSet::new();
    doubts.retain(|doubt| {
        let [a, b] = doubt.rows.map(|row| labels[row as usize]);
        doubt.together || asked.insert((a.min(b), a.max(b)))
    });
    doubts.truncate(most);
    doubts
}

/// The probability of a link of a method that cuts at tau.
fn trust(tau: f32, similarity: f32) -> f32 {
    1.0 / (1.0 + ((tau - similarity) / SOFTNESS).exp())
}

impl Clustering {
    /// The probability that a row and its parent are of one identity, see [`review`]; `None` without a parent.
    pub fn probability(&self, row: usize) -> Option<f32> {
        match &self.evidence {
            Some(evidence) => evidence.inside[row].map(|tie| tie.probability),
            None => self.links.parent(row).map(|(_, similarity)| trust(self.tau, similarity)),
        }
    }
}

/// How many rows there are in the tree below each row, itself included.
fn rows_below(n: usize, parent: impl Fn(usize) -> u32) -> Vec<u32> {
    let mut children = vec![0u32; n];
    for row in 0..n {
        if let Some(count) = children.get_mut(parent(row) as usize) {
            *count += 1;
        }
    }
    let mut below = vec![1; n];
    let mut ready: Vec<usize> = (0..n).filter(|&row| children[row] == 0).collect();
    while let Some(row) = ready.pop() {
        let up = parent(row) as usize;
        if up < n {
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
    use crate::{Evidence, Tie};

    #[test]
    fn rows_below_are_counted_with_oneself() {
        // 3 is the root, 1 and 2 below it, 0 below 1.
        let parents = [1, 3, 3, Links::NONE];
        assert_eq!(rows_below(4, |row| parents[row]), [1, 2, 1, 4]);
    }

    #[test]
    fn the_most_doubtful_come_first_and_pairs_of_clusters_once() {
        let tie =
            |row, probability| Some(Tie { row, similarity: 0.5, probability, ranks: [1, 1], shared: 0 });
        let evidence = Evidence {
            least: 0.4,
            inside: vec![None, tie(0, 0.99), tie(1, 0.6), None, tie(3, 0.9)],
            outside: vec![None, tie(3, 0.2), tie(4, 0.3), None, tie(1, 0.1)],
        };
        let found = Clustering {
            labels: vec![0, 0, 0, 1, 1],
            links: evidence.links().unwrap(),
            tau: -1.0,
            evidence: Some(evidence),
            knn: None,
            k: 2,
            timings: Vec::new(),
        };
        let rows: Vec<_> = review(&found, 10).iter().map(|d| (d.together, d.rows, d.sizes)).collect();
        // 0.3 of two and three rows is worth more than 0.4 of one row and two.
        assert_eq!(rows, [(false, [2, 4], [3, 2]), (true, [2, 1], [1, 2]), (true, [4, 3], [1, 1])]);
        assert_eq!(review(&found, 1).len(), 1);
    }
}
