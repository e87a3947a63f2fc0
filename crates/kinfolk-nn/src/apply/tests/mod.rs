//! Each fast path against the formula written out, in f64, one vertex at a time.

mod gcn;
mod lgcn;
mod ltc;

use super::*;
use crate::testing::{network, set};
use crate::{GraphNetwork, Linear};
use kinfolk::stages::{Adjacency, SizeLimit, candidates};
use kinfolk::{Embeddings, KnnGraph, KnnParams, Result};
use proptest::prelude::*;

type Rows = Vec<Vec<f64>>;

fn affine(layer: &Linear, x: &[f64]) -> Vec<f64> {
    let column = |c: usize| {
        let products = x.iter().enumerate().map(|(r, x)| x * f64::from(layer.weight[r * layer.outputs + c]));
        products.sum::<f64>() + f64::from(layer.bias[c])
    };
    (0..layer.outputs).map(column).collect()
}

/// F_L and the outputs of the head, by Equations 2 and 3 with dense matrices.
fn forward(network: &GraphNetwork, mut x: Rows, adjacency: &Rows) -> (Rows, Rows) {
    for layer in &network.convolutions {
        let joined = |i: usize| {
            let mut row = x[i].clone();
            for d in 0..x[i].len() {
                row.push((0..x.len()).map(|j| adjacency[i][j] * x[j][d]).sum());
            }
            row
        };
        let relu = |row: Vec<f64>| row.into_iter().map(|v| v.max(0.0)).collect();
        x = (0..x.len()).map(|i| relu(affine(layer, &joined(i)))).collect();
    }
    let head = |row: &Vec<f64>| {
        let hidden = affine(&network.hidden, row);
        let slopes = hidden.iter().zip(&network.slopes);
        let hidden: Vec<f64> = slopes.map(|(&v, &s)| if v < 0.0 { v * f64::from(s) } else { v }).collect();
        affine(&network.output, &hidden)
    };
    let outputs = x.iter().map(head).collect();
    (x, outputs)
}

fn dense(adjacency: &Adjacency) -> Rows {
    let n = adjacency.len();
    let mut rows = vec![vec![0.0; n]; n];
    for (i, row) in rows.iter_mut().enumerate() {
        let (columns, values) = adjacency.row(i);
        columns.iter().zip(values).for_each(|(&j, &value)| row[j as usize] = value.into());
    }
    rows
}

fn rows_of(features: &Embeddings) -> Rows {
    (0..features.len()).map(|i| features.row(i).iter().map(|&v| v.into()).collect()).collect()
}

fn close(found: f32, expected: f64) -> bool {
    // Products keep 16 bits of what they add up, which with random weights may be many times what is left in the end.
    (f64::from(found) - expected).abs() <= 1e-3 * expected.abs().max(1.0)
}
