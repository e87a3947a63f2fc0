//! Instance pivot subgraphs: the input of L-GCN for each row (Section 3.2 of Wang et al., 2019).
//!
//! The vertices of the graph of pivot p are p, its `k1` nearest neighbours, and the `k2` nearest of each of these. Two of
//! them are joined if one is among the `active` nearest neighbours of the other. All edges have the same weight and rows sum
//! to one. A vertex without edges, which is possible only if `active` is below `k2`, has a self loop.
//!
//! Cost: O(k1 (k2 + active)) for each pivot, and sorting its edges.

use super::subgraphs::{Centre, NONE, SubGraphs};
use kinfolk::{Error, KnnGraph, Result};

/// The shape of the subgraph of a pivot. The defaults are those that were published for testing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PivotShape {
    /// Neighbours of the pivot; fewer where the graph has fewer. Default 80.
    pub k1: usize,
    /// Neighbours of each of these; 0 leaves the second hop out. Default 5.
    pub k2: usize,
    /// Nearest neighbours that a vertex is joined to. Default 5.
    pub active: usize,
}

impl Default for PivotShape {
    fn default() -> Self {
        PivotShape { k1: 80, k2: 5, active: 5 }
    }
}

impl PivotShape {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<()> {
        for (name, value) in [("k1", self.k1), ("active", self.active)] {
            if value == 0 {
                return Err(Error::Parameter { field: name, expected: "at least 1", found: "0".to_owned() });
            }
        }
        Ok(())
    }

    /// The neighbours of `p` whose links are estimated, nearest first.
    pub(crate) fn first_hop<'a>(&self, graph: &'a KnnGraph, p: u32) -> &'a [u32] {
        let ids = graph.neighbours(p as usize).0;
        &ids[..self.k1.min(ids.len())]
    }
}

/// Buffers that a thread reuses.
#[derive(Debug)]
pub(crate) struct PivotScratch {
    /// For each vertex its row in the stack if it is in the current graph, or [`NONE`].
    slots: Vec<u32>,
    pairs: Vec<(u32, u32)>,
}

impl PivotScratch {
    pub(crate) fn new(n: usize) -> Self {
        PivotScratch { slots: vec![NONE; n], pairs: Vec::new() }
    }
}

/// Appends the graph of `p`: first the pivot itself, then its neighbours, nearest first, then theirs. The rows of the
/// neighbours are returned.
pub(crate) fn push_pivot(
    graph: &KnnGraph,
    shape: &PivotShape,
    p: u32,
    scratch: &mut PivotScratch,
    graphs: &mut SubGraphs,
) -> std::ops::Range<u32> {
    let PivotScratch { slots, pairs } = scratch;
    let nearest = |i: u32, count: usize| {
        let ids = graph.neighbours(i as usize).0;
        &ids[..count.min(ids.len())]
    };
    let start = graphs.rows();
    let mut add = |vertices: &mut Vec<u32>, i: u32| {
        if slots[i as usize] == NONE {
            slots[i as usize] = vertices.len() as u32;
            vertices.push(i);
        }
    };
    let first = shape.first_hop(graph, p);
    add(&mut graphs.vertices, p);
    first.iter().for_each(|&i| add(&mut graphs.vertices, i));
    for &i in first {
        nearest(i, shape.k2).iter().for_each(|&j| add(&mut graphs.vertices, j));
    }
    pairs.clear();
    for (row, &i) in graphs.vertices.iter().enumerate().skip(start) {
        for &j in nearest(i, shape.active) {
            let other = slots[j as usize];
            if other != NONE {
                pairs.extend([(row as u32, other), (other, row as u32)]);
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut pairs = pairs.iter().peekable();
    for row in start as u32..graphs.rows() as u32 {
        let begin = graphs.columns.len();
        while let Some(pair) = pairs.next_if(|pair| pair.0 == row) {
            graphs.columns.push(pair.1);
        }
        if graphs.columns.len() == begin {
            graphs.columns.push(row);
        }
        graphs.values.resize(graphs.columns.len(), 1.0);
        graphs.end_row();
    }
    graphs.vertices[start..].iter().for_each(|&i| slots[i as usize] = NONE);
    graphs.end_graph(Centre::Vertex(p));
    let neighbours = start as u32 + 1;
    neighbours..neighbours + first.len() as u32
}
