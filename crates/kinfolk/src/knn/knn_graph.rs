//! The kNN affinity graph as a data structure.

use crate::values::Values;
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::HashSet;

/// For each vertex its K nearest others by cosine, itself excluded, by descending similarity, ties by
/// smaller id.
#[derive(Debug, Clone, PartialEq)]
pub struct KnnGraph {
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) ids: Values<u32>,
    pub(super) similarities: Values<f32>,
}

/// For each vertex its K nearest others, wherever they are stored.
pub trait NeighbourLists: Sync {
    /// Number of vertices.
    fn len(&self) -> usize;
    /// True when there is no vertex.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of neighbours of each vertex.
    fn k(&self) -> usize;
    /// The neighbours of `i` and their similarities, by descending similarity, ties by smaller id.
    fn neighbours(&self, i: usize) -> (&[u32], &[f32]);
}

impl NeighbourLists for KnnGraph {
    fn len(&self) -> usize {
        self.n
    }

    fn k(&self) -> usize {
        self.k
    }

    #[inline]
    fn neighbours(&self, i: usize) -> (&[u32], &[f32]) {
        KnnGraph::neighbours(self, i)
    }
}

impl KnnGraph {
    /// A graph from row-major N x K neighbours and similarities, whatever made them. Rows that are not in order
    /// are sorted; one that lists a neighbour twice is refused. `place` names the graph in errors.
    pub fn from_parts(
        n: usize,
        k: usize,
        mut ids: Vec<u32>,
        mut similarities: Vec<f32>,
        place: &str,
    ) -> Result<Self> {
        let length = |what: &str, found| {
            if n.checked_mul(k) == Some(found) {
                return Ok(());
            }
            let what = format!("{what} ({n} vertices x {k} neighbours)");
            Err(Error::Length { place: place.to_owned(), what, expected: n.saturating_mul(k), found })
        };
        length("neighbour ids", ids.len())?;
        length("similarities", similarities.len())?;

        // Chunks of nothing are not allowed, and a graph without edges has nothing to check.
        let row = k.max(1);
        let bad = ids
            .par_chunks_mut(row)
            .zip(similarities.par_chunks_mut(row))
            .enumerate()
            .with_min_len(64)
            .map_init(Vec::new, |scratch, (i, (ids, similarities))| {
                check_row(n, i, ids, similarities, scratch, place)
            })
            .find_map_first(Result::err);
        match bad {
            Some(error) => Err(error),
            None => Ok(Self::of_valid_parts(n, k, ids, similarities)),
        }
    }

    /// A graph of neighbours that are in order.
    pub(crate) fn of_valid_parts(
        n: usize,
        k: usize,
        ids: impl Into<Values<u32>>,
        similarities: impl Into<Values<f32>>,
    ) -> Self {
        Self { n, k, ids: ids.into(), similarities: similarities.into() }
    }

    /// The same graph with only the `k` nearest neighbours of each vertex.
    pub fn nearest(&self, k: usize) -> Result<Self> {
        if k == 0 || k > self.k {
            let found = format!("{k} of {} neighbours", self.k);
            return Err(Error::Parameter {
                field: "k",
                expected: "at least 1, at most what the graph has",
                found,
            });
        }
        let ids: Vec<u32> = self.ids.chunks_exact(self.k).flat_map(|row| &row[..k]).copied().collect();
        let similarities: Vec<f32> =
            self.similarities.chunks_exact(self.k).flat_map(|row| &row[..k]).copied().collect();
        Ok(Self::of_valid_parts(self.n, k, ids, similarities))
    }

    /// The neighbours of all vertices, row-major N x K, and their similarities.
    pub fn into_parts(self) -> (Vec<u32>, Vec<f32>) {
        (self.ids.into_vec(), self.similarities.into_vec())
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.n
    }

    /// True when there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Number of neighbours of each vertex.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The neighbours of `i` and their similarities.
    pub fn neighbours(&self, i: usize) -> (&[u32], &[f32]) {
        (&self.ids[i * self.k..][..self.k], &self.similarities[i * self.k..][..self.k])
    }
}

/// Refuses a row of ids in which one stands twice: whatever walks over edges would count that edge twice.
pub(crate) fn once_each(ids: &[u32], row: usize, scratch: &mut Vec<u32>, place: &str) -> Result<()> {
    let Some(column) = first_repeat(ids, scratch) else { return Ok(()) };
    let (place, expected) = (place.to_owned(), "each neighbour once".to_owned());
    Err(Error::Value { place, row, column, expected, found: format!("{} again", ids[column]) })
}

/// The first place of an id that stands further left as well, in O(K log K).
fn first_repeat(ids: &[u32], scratch: &mut Vec<u32>) -> Option<usize> {
    scratch.clear();
    scratch.extend_from_slice(ids);
    scratch.sort_unstable();
    if scratch.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let mut seen = HashSet::new();
    ids.iter().position(|&id| !seen.insert(id))
}

/// Validates the neighbours of vertex `i` and puts them in order.
fn check_row(
    n: usize,
    i: usize,
    ids: &mut [u32],
    similarities: &mut [f32],
    scratch: &mut Vec<u32>,
    place: &str,
) -> Result<()> {
    for (column, (&id, &similarity)) in ids.iter().zip(&*similarities).enumerate() {
        let value = |expected: String, found: String| {
            Err(Error::Value { place: place.to_owned(), row: i, column, expected, found })
        };
        if id as usize >= n {
            return value(format!("a neighbour below {n}"), id.to_string());
        }
        if id as usize == i {
            return value("a neighbour other than the vertex itself".to_owned(), id.to_string());
        }
        if !similarity.is_finite() {
            return value("a finite similarity".to_owned(), similarity.to_string());
        }
    }
    once_each(ids, i, scratch, place)?;
    // Turns -0 into 0: they are equal similarities, but not to `total_cmp`.
    similarities.iter_mut().for_each(|s| *s += 0.0);
    let in_order = |a: (f32, u32), b: (f32, u32)| a.0 > b.0 || (a.0 == b.0 && a.1 <= b.1);
    if !(1..ids.len()).all(|j| in_order((similarities[j - 1], ids[j - 1]), (similarities[j], ids[j]))) {
        let mut pairs: Vec<_> = similarities.iter().copied().zip(ids.iter().copied()).collect();
        pairs.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (j, (similarity, id)) in pairs.into_iter().enumerate() {
            (similarities[j], ids[j]) = (similarity, id);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_are_put_in_order() {
        let ids = vec![1, 2, 3, 3, 2, 0, 0, 1, 3, 0, 1, 2];
        let similarities = vec![0.1, 0.9, 0.5, 0.7, 0.7, 0.7, 0.3, 0.2, 0.1, -0.0, 0.0, -0.0];
        let graph = KnnGraph::from_parts(4, 3, ids, similarities, "g").unwrap();
        assert_eq!(graph.neighbours(0), (&[2, 3, 1][..], &[0.9, 0.5, 0.1][..]));
        assert_eq!(graph.neighbours(1).0, [0, 2, 3]);
        assert_eq!(graph.neighbours(2).0, [0, 1, 3]);
        assert_eq!(graph.neighbours(3).0, [0, 1, 2]);
        assert_eq!(graph.into_parts().0, [2, 3, 1, 0, 2, 3, 0, 1, 3, 0, 1, 2]);
    }

    #[test]
    fn one_vertex_has_no_neighbours() {
        let graph = KnnGraph::from_parts(1, 0, vec![], vec![], "g").unwrap();
        assert_eq!((graph.len(), graph.k(), graph.neighbours(0)), (1, 0, (&[][..], &[][..])));
    }

    #[test]
    fn bad_parts_are_named() {
        let message = |n, ids: &[u32], similarities: &[f32]| {
            KnnGraph::from_parts(n, 1, ids.to_vec(), similarities.to_vec(), "g").unwrap_err().to_string()
        };
        assert_eq!(
            message(2, &[1], &[0.5, 0.5]),
            "g: expected 2 neighbour ids (2 vertices x 1 neighbours), found 1"
        );
        assert_eq!(
            message(2, &[1, 0], &[0.5]),
            "g: expected 2 similarities (2 vertices x 1 neighbours), found 1"
        );
        assert_eq!(
            message(2, &[1, 2], &[0.5; 2]),
            "g: row 1, column 0: expected a neighbour below 2, found 2"
        );
        assert_eq!(
            message(2, &[1, 1], &[0.5; 2]),
            "g: row 1, column 0: expected a neighbour other than the vertex itself, found 1"
        );
        assert_eq!(
            message(2, &[1, 0], &[f32::NAN, 0.5]),
            "g: row 0, column 0: expected a finite similarity, found NaN"
        );
    }

    #[test]
    fn a_neighbour_listed_twice_is_refused() {
        let message = |ids: &[u32]| {
            let (n, k) = (4, 3);
            let similarities = [0.9, 0.5, 0.1].repeat(n);
            KnnGraph::from_parts(n, k, ids.to_vec(), similarities, "g").unwrap_err().to_string()
        };
        assert_eq!(
            message(&[1, 2, 3, 0, 2, 0, 0, 1, 3, 0, 1, 1]),
            "g: row 1, column 2: expected each neighbour once, found 0 again"
        );
        assert_eq!(
            message(&[1, 2, 3, 0, 2, 3, 1, 1, 1, 0, 1, 2]),
            "g: row 2, column 1: expected each neighbour once, found 1 again"
        );
    }

    proptest! {
        #[test]
        fn repeats_are_found_as_by_looking_at_all_pairs(ids in prop::collection::vec(0u32..30, 0..12)) {
            let expected = (0..ids.len()).find(|&column| ids[..column].contains(&ids[column]));
            prop_assert_eq!(first_repeat(&ids, &mut vec![7; 3]), expected);
        }
    }
}
