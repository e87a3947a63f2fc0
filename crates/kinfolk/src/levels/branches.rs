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
    /// Whether it was tiny compared with the branch that it became part of, which lived on.
    pub tiny: bool,
}

/// The branches of a tree, in the order in which they form.
pub fn branches(tree: &MergeTree) -> Vec<Branch> {
    lives(tree).branches
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
