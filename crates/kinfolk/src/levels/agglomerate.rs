//! Agglomeration of a sparse graph by average linkage.
//!
//! Two clusters a and b are as similar as s(a, b) = w_ab / (m_a m_b): the weight between them over the product of their masses,
//! where weights and masses of parts are added. s(a + b, c) is a mean of s(a, c) and s(b, c), so a merge makes nothing more
//! similar than it was (reducible), and the chain of nearest neighbours finds the merges of the greedy algorithm: from any
//! cluster go to its nearest neighbour, and on, until two are nearest to each other; merge these two. With the masses of
//! modularity, m = w, this is Paris (Bonald et al., "Hierarchical graph clustering using node pair sampling", 2018).
//!
//! Weights are integers. Their sums do not depend on the order, so s is symmetric to the bit and the chain always ends.
//!
//! Lists of neighbours are joined at a merge and summed up when they are read next. Cost: about O(E log N) for E edges, if the
//! clusters that merge are of similar size; O(N) memory beyond the lists.

/// Two vertices whose clusters merge, and how similar the clusters are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Link {
    pub ends: [u32; 2],
    pub similarity: f64,
}

/// The links of all merges, those of the parts of a cluster before that of the cluster.
///
/// `lists[v]` has the neighbours of `v` and the weights of the edges, every edge at both of its ends. An edge that is there
/// twice counts twice.
pub(super) fn agglomerate(lists: Vec<Vec<(u32, u64)>>, masses: Vec<f64>) -> Vec<Link> {
    let n = lists.len();
    let mut state =
        State { lists, masses, leader: (0..n as u32).collect(), sums: vec![0; n], merged: Vec::new() };
    let mut chain: Vec<u32> = Vec::new();
    for start in 0..n as u32 {
        if state.leader[start as usize] != start {
            continue;
        }
        chain.push(start);
        while let Some(&last) = chain.last() {
            let before = chain.len().checked_sub(2).map(|at| chain[at]);
            match state.nearest(last, before) {
                // Nothing is connected to it, so it is alone in the chain.
                None => chain.clear(),
                Some((similarity, next)) if Some(next) == before => {
                    chain.truncate(chain.len() - 2);
                    let kept = state.merge(last, next, similarity);
                    if chain.is_empty() {
                        chain.push(kept);
                    }
                }
                Some((_, next)) => chain.push(next),
            }
        }
    }
    state.merged
}

struct State {
    lists: Vec<Vec<(u32, u64)>>,
    masses: Vec<f64>,
    /// Towards the vertex that stands for the cluster.
    leader: Vec<u32>,
    /// Zero outside of `nearest`.
    sums: Vec<u64>,
    merged: Vec<Link>,
}

impl State {
    fn find(&mut self, mut v: u32) -> u32 {
        while self.leader[v as usize] != v {
            let above = self.leader[self.leader[v as usize] as usize];
            self.leader[v as usize] = above;
            v = above;
        }
        v
    }

    /// The cluster most similar to `v`; of equals `before`, which ends the chain, else the first.
    fn nearest(&mut self, v: u32, before: Option<u32>) -> Option<(f64, u32)> {
        let mut list = std::mem::take(&mut self.lists[v as usize]);
        let mut length = 0;
        for at in 0..list.len() {
            let (other, weight) = list[at];
            let other = self.find(other);
            if other == v || weight == 0 {
                continue;
            }
            if self.sums[other as usize] == 0 {
                list[length].0 = other;
                length += 1;
            }
            self.sums[other as usize] += weight;
        }
        list.truncate(length);
        let mut best: Option<(f64, u32)> = None;
        for (other, weight) in &mut list {
            *weight = std::mem::take(&mut self.sums[*other as usize]);
            let similarity = *weight as f64 / (self.masses[v as usize] * self.masses[*other as usize]);
            let better = best.is_none_or(|(most, id)| {
                similarity > most
                    || similarity == most && Some(id) != before && (Some(*other) == before || *other < id)
            });
            if better {
                best = Some((similarity, *other));
            }
        }
        self.lists[v as usize] = list;
        best
    }

    /// The vertex that stands for both.
    fn merge(&mut self, a: u32, b: u32, similarity: f64) -> u32 {
        self.merged.push(Link { ends: [a, b], similarity });
        let lengths = [a, b].map(|v| self.lists[v as usize].len());
        let (kept, gone) = if (lengths[0], b) >= (lengths[1], a) { (a, b) } else { (b, a) };
        self.leader[gone as usize] = kept;
        self.masses[kept as usize] += self.masses[gone as usize];
        let list = std::mem::take(&mut self.lists[gone as usize]);
        self.lists[kept as usize].extend(list);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Edges of a graph of `n` vertices and the masses of the vertices.
    pub fn graphs() -> impl Strategy<Value = (usize, Vec<(u32, u32, u64)>, Vec<f64>)> {
        (1usize..14).prop_flat_map(|n| {
            let vertex = 0..n as u32;
            // Large weights, so that hardly any two similarities are equal.
            let edges = prop::collection::vec((vertex.clone(), vertex, 1u64..1 << 24), 0..40);
            (Just(n), edges, prop::collection::vec(0.5f64..2.0, n))
        })
    }

    fn lists(n: usize, edges: &[(u32, u32, u64)]) -> Vec<Vec<(u32, u64)>> {
        let mut lists = vec![Vec::new(); n];
        for &(a, b, weight) in edges.iter().filter(|edge| edge.0 != edge.1) {
            lists[a as usize].push((b, weight));
            lists[b as usize].push((a, weight));
        }
        lists
    }

    /// Merges the most similar of all pairs until none is connected: the members of every cluster and its similarity.
    fn slow(n: usize, edges: &[(u32, u32, u64)], masses: &[f64]) -> Vec<(Vec<u32>, f64)> {
        let mut clusters: Vec<Vec<u32>> = (0..n as u32).map(|v| vec![v]).collect();
        let mut found = Vec::new();
        let similarity = |a: &[u32], b: &[u32]| {
            let between = |e: &&(u32, u32, u64)| {
                a.contains(&e.0) && b.contains(&e.1) || a.contains(&e.1) && b.contains(&e.0)
            };
            let weight: u64 = edges.iter().filter(between).map(|edge| edge.2).sum();
            let mass = |of: &[u32]| of.iter().map(|&v| masses[v as usize]).sum::<f64>();
            weight as f64 / (mass(a) * mass(b))
        };
        loop {
            let mut best = (0.0, 0, 0);
            for a in 0..clusters.len() {
                for b in 0..a {
                    let s = similarity(&clusters[a], &clusters[b]);
                    best = if s > best.0 { (s, a, b) } else { best };
                }
            }
            let (s, a, b) = best;
            if s == 0.0 {
                return found;
            }
            let gone = clusters.swap_remove(a);
            clusters[b].extend(gone);
            clusters[b].sort_unstable();
            found.push((clusters[b].clone(), s));
        }
    }

    proptest! {
        #[test]
        fn the_chain_finds_the_merges_of_the_greedy_algorithm((n, edges, masses) in graphs()) {
            let links = agglomerate(lists(n, &edges), masses.clone());
            let mut of: Vec<Vec<u32>> = (0..n as u32).map(|v| vec![v]).collect();
            let mut found = Vec::new();
            for link in links {
                let [a, b] = link.ends.map(|end| of[end as usize].clone());
                let mut both = [a, b].concat();
                both.sort_unstable();
                both.iter().for_each(|&v| of[v as usize].clone_from(&both));
                found.push((both, link.similarity));
            }
            let mut expected = slow(n, &edges, &masses);
            let by_members = |a: &(Vec<u32>, f64), b: &(Vec<u32>, f64)| a.0.cmp(&b.0);
            found.sort_by(by_members);
            expected.sort_by(by_members);
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert_eq!(&found.0, &expected.0);
                prop_assert!((found.1 / expected.1 - 1.0).abs() < 1e-9, "{:?} {:?}", found, expected);
            }
        }

        #[test]
        fn equal_similarities_end_the_chain(edges in prop::collection::vec((0u32..9, 0u32..9, Just(1u64)), 0..30)) {
            let links = agglomerate(lists(9, &edges), vec![1.0; 9]);
            prop_assert_eq!(links.len(), slow(9, &edges, &[1.0; 9]).len());
        }
    }
}
