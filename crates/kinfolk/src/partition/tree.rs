//! The tree-based partition (M = 1) and its extension to directed acyclic graphs (M > 1).

use super::{DisjointSets, number_by_size};
use crate::Links;

impl Links {
    /// Labels the connected components of the links of similarity > `tau`.
    ///
    /// Labels are 0..C-1 by descending cluster size, ties by smallest member. A vertex without such links, in either
    /// direction, is a cluster of one. The paper's tau is 0.8.
    pub fn cut(&self, tau: f32) -> Vec<i64> {
        let mut forest = DisjointSets::new(self.len());
        for i in 0..self.len() {
            let (parents, similarities) = self.of(i);
            for (&parent, _) in parents.iter().zip(similarities).filter(|&(_, &a)| a > tau) {
                forest.join(i as u32, parent);
            }
        }
        number_by_size(&forest.names())
    }
}
