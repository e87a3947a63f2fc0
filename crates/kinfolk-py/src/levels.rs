//! Levels: the tree as arrays, and its cuts.

use crate::arrays::column;
use kinfolk::stages::{Levels, MergeTree};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The parts of a tree: the number of rows, the nodes of each merge, one after the other, and the heights.
type Parts<'py> = (usize, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);

/// The tree of levels.
pub fn tree<'py>(py: Python<'py>, levels: &Levels) -> PyResult<Parts<'py>> {
    let tree = levels.tree();
    let nodes = tree.merges().as_flattened();
    let heights = PyArray1::from_slice(py, tree.heights());
    Ok((tree.rows(), PyArray1::from_slice(py, nodes), heights))
}

/// A tree from its parts.
#[derive(FromPyObject)]
pub struct Tree<'py>(usize, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>);

impl Tree<'_> {
    fn read(&self) -> PyResult<MergeTree> {
        let Tree(rows, nodes, heights) = self;
        let nodes: Vec<u32> = nodes.as_array().iter().copied().collect();
        let (merges, rest) = nodes.as_chunks::<2>();
        let heights = heights.as_array().iter().copied().collect();
        let tree =
            if rest.is_empty() { MergeTree::from_parts(*rows, merges.to_vec(), heights) } else { None };
        tree.ok_or_else(|| PyValueError::new_err("levels: expected a tree that fit made, found another"))
    }
}

/// The labels of the cut at a height.
#[pyfunction]
pub fn cut<'py>(py: Python<'py>, tree: Tree<'py>, height: f64) -> PyResult<Bound<'py, PyArray1<i64>>> {
    Ok(PyArray1::from_vec(py, tree.read()?.cut(height)))
}

/// The levels that are offered.
#[pyfunction]
pub fn levels<'py>(py: Python<'py>, tree: Tree<'py>) -> PyResult<Bound<'py, PyDict>> {
    let levels = Levels::of_tree(tree.read()?);
    let offered = levels.levels();
    let all = PyDict::new(py);
    all.set_item("heights", column(py, offered.len(), |at| offered[at].height))?;
    all.set_item("clusters", column(py, offered.len(), |at| offered[at].clusters as i64))?;
    all.set_item("persistence", column(py, offered.len(), |at| offered[at].persistence))?;
    all.set_item("default", levels.default_level())?;
    Ok(all)
}

/// The heights at which the cut changes, and its persistence there.
#[pyfunction]
pub fn curve<'py>(py: Python<'py>, tree: Tree<'py>) -> PyResult<[Bound<'py, PyArray1<f64>>; 2]> {
    let curve = Levels::of_tree(tree.read()?).curve();
    Ok([column(py, curve.len(), |at| curve[at].0), column(py, curve.len(), |at| curve[at].1)])
}

/// The branches of the condensed tree.
#[pyfunction]
pub fn branches<'py>(py: Python<'py>, tree: Tree<'py>) -> PyResult<Bound<'py, PyDict>> {
    let branches = kinfolk::stages::branches(&tree.read()?);
    let n = branches.len();
    let all = PyDict::new(py);
    all.set_item("birth", column(py, n, |at| branches[at].birth))?;
    all.set_item("death", column(py, n, |at| branches[at].death))?;
    all.set_item("first_rows", column(py, n, |at| i64::from(branches[at].first_rows)))?;
    all.set_item("last_rows", column(py, n, |at| i64::from(branches[at].last_rows)))?;
    all.set_item("left", column(py, n, |at| i64::from(branches[at].left)))?;
    Ok(all)
}
