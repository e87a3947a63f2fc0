//! Sparse matrices times dense ones, forwards and backwards.
//!
//! Training needs Y = A X and, for its gradient, dX = A^T dY. Both walk compressed rows and keep one row of sums, so
//! nothing of the size edges x features is ever made.
//!
//! Cost: 2 nnz D operations for each product; the transpose is built once, in O(nnz).

use crate::apply::subgraphs::SubGraphs;
use kinfolk::laboratory::weighted_sum;
use rayon::prelude::*;
use std::sync::Arc;

/// A sparse matrix as compressed rows.
#[derive(Debug)]
pub(super) struct Sparse {
    /// Where each row starts, and the end of the last.
    pub(super) offsets: Vec<usize>,
    /// Columns of the entries, ascending within a row.
    pub(super) columns: Vec<u32>,
    /// Their values.
    pub(super) values: Vec<f32>,
}

/// A square sparse matrix and its transpose, shared by the passes that use them.
#[derive(Debug, Clone)]
pub(super) struct Operator(Arc<[Sparse; 2]>);

impl Operator {
    pub(super) fn new(matrix: Sparse) -> Self {
        let transpose = matrix.transpose();
        Self(Arc::new([matrix, transpose]))
    }

    pub(super) fn matrix(&self) -> &Sparse {
        &self.0[0]
    }

    /// The operator of the backward pass.
    pub(super) fn transposed(&self) -> &Sparse {
        &self.0[1]
    }
}

impl Sparse {
    /// No rows yet.
    pub(super) fn with_capacity(rows: usize, entries: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { offsets, columns: Vec::with_capacity(entries), values: Vec::with_capacity(entries) }
    }

    /// The block-diagonal matrix of several small graphs.
    pub(super) fn of(graphs: SubGraphs) -> Self {
        let offsets = std::iter::once(0).chain(graphs.offsets).collect();
        Self { offsets, columns: graphs.columns, values: graphs.values }
    }

    /// [X, A X] for rows X of `dim` columns.
    pub(super) fn joined(&self, rows: &[f32], dim: usize) -> Vec<f32> {
        let mut out = vec![0.0; 2 * rows.len()];
        out.par_chunks_mut(2 * dim).enumerate().with_min_len(64).for_each(|(i, out)| {
            let (own, mean) = out.split_at_mut(dim);
            own.copy_from_slice(&rows[i * dim..][..dim]);
            self.row_times(i, rows, dim, mean);
        });
        out
    }

    pub(super) fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Appends a row of a block on the diagonal: of `columns` and `values`, those whose column is in `set`, divided by
    /// their sum. Both lists of columns ascend; the block's first column is `first`.
    pub(super) fn push_block_row(&mut self, first: u32, set: &[u32], columns: &[u32], values: &[f32]) {
        let mut place = 0;
        for (&column, &value) in columns.iter().zip(values) {
            while set.get(place).is_some_and(|&member| member < column) {
                place += 1;
            }
            if set.get(place) == Some(&column) {
                self.columns.push(first + place as u32);
                self.values.push(value);
            }
        }
        self.end_row();
    }

    /// Makes a row of the entries since the last one, divided by their sum.
    pub(super) fn end_row(&mut self) {
        let start = self.offsets[self.rows()];
        let sum: f32 = self.values[start..].iter().sum();
        // The loop of a vertex to itself is among them, so the sum is above zero.
        self.values[start..].iter_mut().for_each(|value| *value /= sum);
        self.end_row_as_it_is();
    }

    /// Makes a row of the entries since the last one.
    pub(super) fn end_row_as_it_is(&mut self) {
        self.offsets.push(self.columns.len());
    }

    /// Counting sort by column. Rows are visited in order, so the new columns ascend too.
    fn transpose(&self) -> Self {
        let n = self.rows();
        let mut offsets = vec![0; n + 1];
        for &column in &self.columns {
            offsets[column as usize + 1] += 1;
        }
        for i in 0..n {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut columns = vec![0; self.columns.len()];
        let mut values = vec![0.0; self.values.len()];
        for i in 0..n {
            for e in self.offsets[i]..self.offsets[i + 1] {
                let place = &mut next[self.columns[e] as usize];
                columns[*place] = i as u32;
                values[*place] = self.values[e];
                *place += 1;
            }
        }
        Self { offsets, columns, values }
    }

    /// This matrix times `dense`, row-major with `dim` columns. Every sum runs on one thread in the order of the
    /// columns, so the bits do not depend on the number of threads.
    pub(super) fn times(&self, dense: &[f32], dim: usize) -> Vec<f32> {
        let mut out = vec![0.0; self.rows() * dim];
        out.par_chunks_mut(dim.max(1)).enumerate().with_min_len(64).for_each(|(i, out)| {
            self.row_times(i, dense, dim, out);
        });
        out
    }

    /// Row `i` times `dense`.
    fn row_times(&self, i: usize, dense: &[f32], dim: usize, out: &mut [f32]) {
        let row = self.offsets[i]..self.offsets[i + 1];
        weighted_sum(&self.columns[row.clone()], &self.values[row], dense, dim, out);
    }
}
