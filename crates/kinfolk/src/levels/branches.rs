//! The condensed tree: clusters from the height at which they form to the height at which they end.
//!
//! A merge in which one side is tiny continues the life of the other side. Every other merge ends both and begins a new one.
//!
//! Cost: O(N).

use super::MergeTree;

/// A cluster during its life.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Branch {
    /// The height at which it forms.
    pub birth: f64,
    /// The height at which it becomes part of `parent`; for roots the greatest height of the tree.
    pub death: f64,
    /// The number of rows when it forms.
    pub first_rows: u32,
    /// The number of rows when it ends.
    pub last_rows: u32,
    /// The branch that it becomes part of, by its index.
    pub parent: Option<u32>,
    /// Where it begins, in rows from the left, if all branches are drawn side by side: the parts of a branch from its left end,
    /// the largest first, then what it absorbs.
    pub left: u32,
    /// Whether it was tiny compared with the branch that it became part of, which lived on.
    pub tiny: bool,
}

/// The branches of a tree, in the order in which they form.
pub fn branches(tree: &MergeTree) -> Vec<Branch> {
    let mut branches = lives(tree).branches;
    let mut parts: Vec<Vec<u32>> = vec![Vec::new(); branches.len()];
    let mut roots = Vec::new();
    for (branch, at) in branches.iter().zip(0..) {
        match branch.parent {
            Some(parent) => parts[parent as usize].push(at),
            None => roots.push(at),
        }
    }
    let mut open = vec![(roots, [0, 0])];
    while let Some((mut list, [first, absorbed])) = open.pop() {
        list.sort_by_key(|&at| {
            let branch = &branches[at as usize];
            (branch.tiny, std::cmp::Reverse(branch.last_rows), at)
        });
        let mut next = [first, absorbed];
        for at in list {
            let branch = &mut branches[at as usize];
            let next = &mut next[usize::from(branch.tiny)];
            branch.left = *next;
            *next += branch.last_rows;
            let inside = std::mem::take(&mut parts[at as usize]);
            open.push((inside, [branch.left, branch.left + branch.first_rows]));
        }
    }
    branches
}

/// Whether a cluster of `small` rows is tiny compared with one of `large`, so that their merge does not end the life of the
/// latter.
fn is_tiny(small: u32, large: u32) -> bool {
    small < 2 || u64::from(small) * 20 < large.into()
}

pub(super) struct Lives {
    branches: Vec<Branch>,
    /// The branch of each node; none for rows.
    of_node: Vec<u32>,
    sizes: Vec<u32>,
}

/// No branch: the node is a row.
const NONE: u32 = u32::MAX;

impl Lives {
    /// The life of the cluster of a node, once for each of its rows; 0 for a row alone.
    pub fn of_rows(&self, node: usize) -> f64 {
        match self.of_node[node] {
            NONE => 0.0,
            branch => {
                let branch = &self.branches[branch as usize];
                (branch.death - branch.birth) * f64::from(self.sizes[node])
            }
        }
    }
}

pub(super) fn lives(tree: &MergeTree) -> Lives {
    let sizes = tree.sizes();
    let top = tree.heights.last().copied().unwrap_or(0.0);
    let mut branches: Vec<Branch> = Vec::new();
    let mut of_node = vec![NONE; sizes.len()];
    for (at, (&[a, b], &height)) in tree.merges.iter().zip(&tree.heights).enumerate() {
        let node = tree.rows + at;
        let (large, small) = if sizes[a as usize] >= sizes[b as usize] {
            (a as usize, b as usize)
        } else {
            (b as usize, a as usize)
        };
        let continues = of_node[large] != NONE && is_tiny(sizes[small], sizes[large]);
        let branch = if continues {
            of_node[large]
        } else {
            let first_rows = sizes[node];
            branches.push(Branch {
                birth: height,
                death: top,
                first_rows,
                last_rows: first_rows,
                parent: None,
                left: 0,
                tiny: false,
            });
            branches.len() as u32 - 1
        };
        of_node[node] = branch;
        branches[branch as usize].last_rows = sizes[node];
        for part in [large, small]
            .map(|part| of_node[part])
            .into_iter()
            .filter(|&part| part != NONE && part != branch)
        {
            let part = &mut branches[part as usize];
            (part.death, part.parent, part.tiny) = (height, Some(branch), continues);
        }
    }
    Lives { branches, of_node, sizes }
}
