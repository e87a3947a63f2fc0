//! Disjoint sets of rows.

/// Sets that can be joined; each is named by its smallest member.
///
/// ```
/// let mut sets = kinfolk::stages::DisjointSets::new(4);
/// assert!(sets.join(3, 1));
/// assert_eq!(sets.names(), [0, 1, 2, 1]);
/// ```
#[derive(Debug, Clone)]
pub struct DisjointSets(Vec<u32>);

impl DisjointSets {
    /// `n` sets of one.
    pub fn new(n: usize) -> Self {
        DisjointSets((0..n as u32).collect())
    }

    /// The smallest member of the set of `i`.
    pub fn find(&mut self, i: u32) -> u32 {
        let parents = &mut self.0;
        let mut i = i as usize;
        // Every other step skips one: the path is half as long next time.
        while parents[i] as usize != i {
            parents[i] = parents[parents[i] as usize];
            i = parents[i] as usize;
        }
        i as u32
    }

    /// Joins the sets of `a` and `b`; false if they were one already.
    pub fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b) as usize] = a.min(b);
        a != b
    }

    /// The name of every row's set.
    pub fn names(mut self) -> Vec<u32> {
        (0..self.0.len() as u32).map(|i| self.find(i)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_are_those_of_relabelling(n in 1usize..30, pairs in prop::collection::vec((0u32..30, 0u32..30), 0..40)) {
            let mut sets = DisjointSets::new(n);
            let mut labels: Vec<u32> = (0..n as u32).collect();
            for (a, b) in pairs.into_iter().map(|(a, b)| (a % n as u32, b % n as u32)) {
                let (from, to) = (labels[a as usize], labels[b as usize]);
                prop_assert_eq!(sets.join(a, b), from != to);
                let (low, high) = (from.min(to), from.max(to));
                labels.iter_mut().filter(|l| **l == high).for_each(|l| *l = low);
            }
            prop_assert_eq!(sets.names(), labels);
        }
    }
}
