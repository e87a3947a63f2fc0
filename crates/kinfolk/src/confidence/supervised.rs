//! Confidence from labels: the training targets of a confidence estimator.

use crate::labels::densify;
use crate::{Embeddings, Error, KnnGraph, Result};
use rayon::prelude::*;

/// s_nbr, Equation 1: the mean over the neighbours of +a_ij where the labels agree and -a_ij where they
/// differ.
///
/// Between -1 and 1; 0 for a vertex without neighbours. (The published code then divides by the largest
/// absolute value of the set, so that targets of two sets cannot be compared; the paper does not.)
///
/// ```
/// use kinfolk::stages::s_nbr;
/// use kinfolk::KnnGraph;
/// let ids = vec![1, 2, 0, 2, 1, 0];
/// let similarities = vec![0.75, 0.25, 0.75, 0.5, 0.5, 0.25];
/// let graph = KnnGraph::from_parts(3, 2, ids, similarities, "example")?;
/// assert_eq!(s_nbr(&graph, &[7, 7, 8])?, [0.25, 0.125, -0.375]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn s_nbr(graph: &KnnGraph, labels: &[i64]) -> Result<Vec<f32>> {
    one_label_each(graph.len(), labels)?;
    let confidence = |i: usize| {
        let (ids, similarities) = graph.neighbours(i);
        let signed =
            |(&j, &a): (&u32, &f32)| if labels[j as usize] == labels[i] { a as f64 } else { -a as f64 };
        let sum: f64 = ids.iter().zip(similarities).map(signed).sum();
        (sum / graph.k().max(1) as f64) as f32
    };
    Ok((0..graph.len()).into_par_iter().map(confidence).collect())
}

/// s_avg: the mean similarity of each vertex to all others of its label.
///
/// With S the sum of the features of the label and n their number, this is (x . S - x . x) / (n - 1). A label
/// of one vertex has no others and gets 0, as in the published code: nothing supports it.
pub fn s_avg(embeddings: &Embeddings, labels: &[i64]) -> Result<Vec<f32>> {
    let sums = LabelSums::of(embeddings, labels)?;
    Ok(sums.map(embeddings, |x, sum, n| (dot(x, sum) - square(x)) / (n - 1.0).max(1.0)))
}

/// s_center: the cosine of each vertex with the mean feature of its label.
///
/// A label of one vertex is its own centre and gets 1; where features cancel out so that there is no centre,
/// 0. (The published code does not normalise the mean, so that there spread-out labels score lower.)
pub fn s_center(embeddings: &Embeddings, labels: &[i64]) -> Result<Vec<f32>> {
    let sums = LabelSums::of(embeddings, labels)?;
    Ok(sums.map(embeddings, |x, sum, _| {
        let norm = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
        if norm > 1e-6 { dot(x, sum) / norm } else { 0.0 }
    }))
}

fn one_label_each(n: usize, labels: &[i64]) -> Result<()> {
    if labels.len() == n {
        return Ok(());
    }
    let what = "labels (one per vertex)".to_owned();
    Err(Error::Length { place: "labels".to_owned(), what, expected: n, found: labels.len() })
}

fn dot(x: &[f32], sum: &[f64]) -> f64 {
    x.iter().zip(sum).map(|(&x, &s)| x as f64 * s).sum()
}

fn square(x: &[f32]) -> f64 {
    x.iter().map(|&x| x as f64 * x as f64).sum()
}

/// The rows of each label, so that all of a label's work can be done where its sum is at hand.
struct LabelSums {
    /// Rows by label, in ascending order within one.
    members: Vec<u32>,
    /// Where the rows of each label end.
    ends: Vec<usize>,
}

impl LabelSums {
    fn of(embeddings: &Embeddings, labels: &[i64]) -> Result<Self> {
        one_label_each(embeddings.len(), labels)?;
        let dense = densify(labels);
        let (members, ends) = dense.members();
        Ok(Self { members, ends })
    }

    /// Computes `confidence(row, sum of the rows of its label, number of those rows)` for every row.
    ///
    /// The sums are in double precision because s_avg subtracts: in single precision the error of a sum over
    /// thousands of rows would be as large as the differences between good and better.
    fn map(
        &self,
        embeddings: &Embeddings,
        confidence: impl Fn(&[f32], &[f64], f64) -> f64 + Sync,
    ) -> Vec<f32> {
        let of_label = |label: usize| {
            let first = if label == 0 { 0 } else { self.ends[label - 1] };
            let members = &self.members[first..self.ends[label]];
            let mut sum = vec![0.0; embeddings.dim()];
            for &i in members {
                sum.iter_mut().zip(embeddings.row(i as usize)).for_each(|(sum, &x)| *sum += x as f64);
            }
            let n = members.len() as f64;
            members
                .iter()
                .map(|&i| confidence(embeddings.row(i as usize), &sum, n) as f32)
                .collect::<Vec<_>>()
        };
        let by_label: Vec<f32> = (0..self.ends.len()).into_par_iter().flat_map_iter(of_label).collect();
        let mut result = vec![0.0; by_label.len()];
        self.members.iter().zip(by_label).for_each(|(&i, value)| result[i as usize] = value);
        result
    }
}
