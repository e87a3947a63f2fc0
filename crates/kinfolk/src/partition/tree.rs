//! The tree-based partition (M = 1) and its extension to directed acyclic graphs (M > 1).

use super::number_by_size;
use crate::Links;

impl Links {
    /// Keeps the links of similarity > `tau` and labels what they connect.
    ///
    /// Labels are 0..C-1 by descending cluster size, ties by smallest member; a vertex without kept links,
    /// its own or others' to it, is a cluster of one. The paper's tau is 0.8.
    pub fn cut(&self, tau: f32) -> Vec<i64> {
        let mut root: Vec<u32> = (0..self.len() as u32).collect();
        for i in 0..self.len() {
            let (parents, similarities) = self.of(i);
            for (&parent, _) in parents.iter().zip(similarities).filter(|&(_, &a)| a > tau) {
                let (a, b) = (find(&mut root, i as u32), find(&mut root, parent));
                root[a.max(b) as usize] = a.min(b);
            }
        }
        // A representative is never larger than what it represents, so ascending order completes it first.
        for i in 0..root.len() {
            root[i] = root[root[i] as usize];
        }
        number_by_size(&root)
    }
}

/// The representative of `i`, halving the path on the way.
fn find(root: &mut [u32], mut i: u32) -> u32 {
    while root[i as usize] != i {
        root[i as usize] = root[root[i as usize] as usize];
        i = root[i as usize];
    }
    i
}
