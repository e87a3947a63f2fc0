//! Which rows a mini-batch of GCN-V aggregates over in each convolution after the first.
//!
//! A row of the last convolution needs all its neighbours' rows of the one before, those need their neighbours' and so
//! on: soon the whole graph. Two ways to need fewer:
//!
//! - Neighbours (GraphSAGE, Hamilton et al., 2017; Section 3.2 of the paper points to it): a row aggregates over
//!   itself and S of its neighbours, their weights scaled to sum to one. The rows of a batch grow by the factor S + 1
//!   with each convolution.
//! - Vertices (FastGCN, Chen et al., 2018): for each convolution t vertices are drawn for all rows of the batch
//!   together, with replacement and probability q(u) proportional to the squared norm of column u of A~. A~ F
//!   is estimated by 1/t times the sum over the drawn u of A~(:, u) F(u, :) / q(u), whose mean over draws is A~ F. Of
//!   all q this one has the least variance if the rows of F are of equal length. The rows of a batch grow by t with
//!   each convolution. If t is at least the number of vertices, all are taken once, and nothing is estimated.
//!
//! Cost of a batch with R rows: O(R S), or O(R (degree) + t log N). Once, for q: O(nnz).

use super::batch::Operators;
use super::params::at_least_one;
use super::random::Random;
use super::sparse::{Operator, Sparse};
use kinfolk::Result;
use kinfolk::stages::Adjacency;
use std::collections::HashMap;

/// What is drawn anew for each batch, for each convolution after the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// This many neighbours of each row.
    Neighbours(usize),
    /// This many vertices, the same for all rows of the batch.
    Vertices(usize),
}

impl Default for Sampling {
    /// Ten neighbours.
    fn default() -> Self {
        SamplingKind::default().of(None)
    }
}

impl Sampling {
    /// Refuses to draw nothing.
    pub(super) fn validate(&self) -> Result<()> {
        let (Sampling::Neighbours(sampled) | Sampling::Vertices(sampled)) = *self;
        at_least_one("sampled", sampled)
    }
}

/// One of the two ways, without the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SamplingKind {
    /// Neighbours of each row.
    #[default]
    Neighbours,
    /// Vertices for all rows.
    Vertices,
}

kinfolk::word_values!(SamplingKind: "neighbours or vertices",
    "neighbours" => SamplingKind::Neighbours, "vertices" => SamplingKind::Vertices);

impl SamplingKind {
    /// With this number, or by default 10 neighbours, 1,024 vertices.
    pub fn of(self, sampled: Option<usize>) -> Sampling {
        match self {
            SamplingKind::Neighbours => Sampling::Neighbours(sampled.unwrap_or(10)),
            SamplingKind::Vertices => Sampling::Vertices(sampled.unwrap_or(1024)),
        }
    }
}

/// Draws rows and operators for batches of one graph.
pub(super) enum Sampler {
    Neighbours(usize),
    Vertices(Importance),
}

impl Sampler {
    pub(super) fn new(sampling: Sampling, adjacency: &Adjacency) -> Self {
        match sampling {
            Sampling::Neighbours(sampled) => Sampler::Neighbours(sampled),
            Sampling::Vertices(sampled) => Sampler::Vertices(Importance::new(sampled, adjacency)),
        }
    }

    /// `examples` and all that their outputs depend on beyond the first of `convolutions`, and the operators of the
    /// others.
    pub(super) fn draw(
        &self,
        adjacency: &Adjacency,
        convolutions: usize,
        examples: &[u32],
        random: &mut Random,
    ) -> (Vec<u32>, Operators) {
        match self {
            Sampler::Neighbours(sampled) => neighbours(adjacency, convolutions, *sampled, examples, random),
            Sampler::Vertices(importance) => vertices(adjacency, convolutions, importance, examples, random),
        }
    }
}

/// Rows in the order in which they are first needed.
struct Rows {
    rows: Vec<u32>,
    places: HashMap<u32, u32>,
}

impl Rows {
    fn new(examples: &[u32]) -> Self {
        Rows { rows: examples.to_vec(), places: (0..).zip(examples).map(|(at, &i)| (i, at)).collect() }
    }

    /// The place of a row, which is the last one if it is new.
    fn place(&mut self, row: u32) -> u32 {
        let next = self.rows.len() as u32;
        let place = *self.places.entry(row).or_insert(next);
        if place == next {
            self.rows.push(row);
        }
        place
    }
}

/// One matrix for all convolutions: a row keeps the neighbours that were drawn for it.
fn neighbours(
    adjacency: &Adjacency,
    convolutions: usize,
    sampled: usize,
    examples: &[u32],
    random: &mut Random,
) -> (Vec<u32>, Operators) {
    let mut needed = Rows::new(examples);
    let mut matrix = Sparse::with_capacity(examples.len(), 0);
    let mut entries: Vec<(u32, f32)> = Vec::new();
    // Each round takes in the neighbours of the rows that the round before took in.
    for _ in 1..convolutions {
        for at in matrix.rows()..needed.rows.len() {
            let own = needed.rows[at];
            let (columns, values) = adjacency.row(own as usize);
            entries.clear();
            entries.extend(columns.iter().copied().zip(values.iter().copied()));
            // Itself first, then the others shuffled as far as they are wanted.
            if let Some(itself) = entries.iter().position(|&(j, _)| j == own) {
                entries.swap(0, itself);
            }
            let wanted = (sampled + 1).min(entries.len());
            for slot in 1..wanted {
                let other = slot + random.below(entries.len() - slot);
                entries.swap(slot, other);
            }
            for &(j, value) in &entries[..wanted] {
                matrix.columns.push(needed.place(j));
                matrix.values.push(value);
            }
            matrix.end_row();
        }
    }
    // What the last layer's outputs do not depend on still needs a row of the matrix.
    while matrix.rows() < needed.rows.len() {
        matrix.end_row_as_it_is();
    }
    (needed.rows, Operators::Same(Operator::new(matrix)))
}

/// How vertices are drawn.
pub(super) struct Importance {
    /// How many.
    sampled: usize,
    /// q(0), q(0) + q(1), and so on; empty if all vertices are taken.
    sums: Vec<f64>,
}

impl Importance {
    pub(super) fn new(sampled: usize, adjacency: &Adjacency) -> Self {
        let n = adjacency.len();
        if sampled >= n {
            return Importance { sampled, sums: Vec::new() };
        }
        let mut sums = vec![0.0; n];
        for i in 0..n {
            let (columns, values) = adjacency.row(i);
            for (&j, &value) in columns.iter().zip(values) {
                sums[j as usize] += f64::from(value).powi(2);
            }
        }
        let mut total = 0.0;
        for sum in &mut sums {
            total += *sum;
            *sum = total;
        }
        sums.iter_mut().for_each(|sum| *sum /= total);
        Importance { sampled, sums }
    }

    /// The vertices that are drawn, ascending, with (times drawn) / (t q); all with weight 1 if all are taken.
    pub(super) fn draw(&self, vertices: usize, random: &mut Random) -> Vec<(u32, f32)> {
        if self.sums.is_empty() {
            return (0..vertices as u32).map(|u| (u, 1.0)).collect();
        }
        let draw = |random: &mut Random| {
            let point = random.uniform();
            // The last sum may be rounded to below 1.
            self.sums.partition_point(|&sum| sum <= point).min(vertices - 1) as u32
        };
        let mut drawn: Vec<u32> = (0..self.sampled).map(|_| draw(random)).collect();
        drawn.sort_unstable();
        let weight = |group: &[u32]| {
            let u = group[0] as usize;
            let q = self.sums[u] - if u == 0 { 0.0 } else { self.sums[u - 1] };
            (group[0], (group.len() as f64 / (self.sampled as f64 * q)) as f32)
        };
        drawn.chunk_by(|a, b| a == b).map(weight).collect()
    }
}

/// One matrix for each convolution, because estimates of different layers must not depend on the same draw.
fn vertices(
    adjacency: &Adjacency,
    convolutions: usize,
    importance: &Importance,
    examples: &[u32],
    random: &mut Random,
) -> (Vec<u32>, Operators) {
    let mut needed = Rows::new(examples);
    // From the last convolution to the second: each needs the rows that are needed after it, and those that it draws.
    let mut matrices: Vec<Sparse> = Vec::with_capacity(convolutions - 1);
    for _ in 1..convolutions {
        let outputs = needed.rows.len();
        let drawn: HashMap<u32, (u32, f32)> = importance
            .draw(adjacency.len(), random)
            .into_iter()
            .map(|(u, weight)| (u, (needed.place(u), weight)))
            .collect();
        let mut matrix = Sparse::with_capacity(outputs, 0);
        for &row in &needed.rows[..outputs] {
            let (columns, values) = adjacency.row(row as usize);
            for (u, value) in columns.iter().zip(values) {
                if let Some(&(place, weight)) = drawn.get(u) {
                    matrix.columns.push(place);
                    matrix.values.push(value * weight);
                }
            }
            matrix.end_row_as_it_is();
        }
        matrices.push(matrix);
    }
    let rows = needed.rows.len();
    let square = |mut matrix: Sparse| {
        while matrix.rows() < rows {
            matrix.end_row_as_it_is();
        }
        Operator::new(matrix)
    };
    (needed.rows, Operators::Each(matrices.into_iter().rev().map(square).collect()))
}

#[cfg(test)]
mod tests {
    use super::super::random::{Purpose, random};
    use super::*;
    use kinfolk::synth::{Synth, SynthParams};
    use kinfolk::{KnnParams, knn_graph};

    /// A graph with vertices of very different degrees.
    fn graph() -> Adjacency {
        let params = SynthParams { identities: 8, dim: 8, ..SynthParams::default() };
        let (rows, _) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let (graph, _) = knn_graph(&rows, &KnnParams { k: 5, ..KnnParams::default() }, &()).unwrap();
        Adjacency::from_knn(&graph, 0.0).unwrap()
    }

    /// Features of all vertices, two columns.
    fn features(vertices: usize) -> Vec<f32> {
        let mut random = random(2, Purpose::Weights, 0);
        (0..2 * vertices).map(|_| random.uniform_f32() + 0.5).collect()
    }

    /// The operator of convolution `l` times the features of the rows that were drawn, for the first `outputs` rows.
    fn estimate(rows: &[u32], operators: &Operators, l: usize, features: &[f32], outputs: usize) -> Vec<f64> {
        let own: Vec<f32> = rows.iter().flat_map(|&i| &features[2 * i as usize..][..2]).copied().collect();
        operators.of(l).matrix().times(&own, 2)[..2 * outputs].iter().map(|&v| f64::from(v)).collect()
    }

    #[test]
    fn the_mean_over_draws_is_the_product() {
        let adjacency = graph();
        let features = features(adjacency.len());
        let examples: Vec<u32> = (0..adjacency.len() as u32).step_by(7).collect();
        let mut exact = vec![0.0; 2 * examples.len()];
        adjacency.aggregate_rows(&examples, &features, 2, &mut exact);
        let sampler = Sampler::new(Sampling::Vertices(100), &adjacency);
        let (draws, mut noise) = (10_000, random(5, Purpose::Noise, 0));
        // Of both layers of three convolutions, and of all values together, which shows smaller errors than each alone.
        let mut sums = vec![[0.0f64; 2]; 4 * examples.len() + 1];
        for _ in 0..draws {
            let (rows, operators) = sampler.draw(&adjacency, 3, &examples, &mut noise);
            let mut values =
                [1, 2].map(|l| estimate(&rows, &operators, l, &features, examples.len())).concat();
            values.push(values.iter().sum());
            for (sums, value) in sums.iter_mut().zip(values) {
                *sums = [sums[0] + value, sums[1] + value * value];
            }
        }
        let draws = f64::from(draws);
        let mut exact: Vec<f64> = [&exact[..], &exact].concat().into_iter().map(f64::from).collect();
        exact.push(exact.iter().sum());
        let mut shares = Vec::new();
        for (sums, exact) in sums.iter().zip(exact) {
            let mean = sums[0] / draws;
            let error = ((sums[1] / draws - mean * mean) / draws).sqrt();
            assert!((mean - exact).abs() < 5.0 * error, "{mean} {exact}, error {error}");
            shares.push(error / exact);
        }
        // What is drawn does vary, and a wrong factor of one percent would show.
        let together = shares[shares.len() - 1];
        assert!(together > 0.0 && together < 0.002, "{together}");
    }

    #[test]
    fn vertices_are_drawn_by_the_squared_norms_of_columns() {
        let adjacency = graph();
        let mut squares = vec![0.0f64; adjacency.len()];
        for i in 0..adjacency.len() {
            let (columns, values) = adjacency.row(i);
            columns.iter().zip(values).for_each(|(&j, &v)| squares[j as usize] += f64::from(v).powi(2));
        }
        let total: f64 = squares.iter().sum();
        let importance = Importance::new(50, &adjacency);
        let (draws, mut noise) = (4000, random(5, Purpose::Noise, 0));
        let mut counts = vec![0.0f64; adjacency.len()];
        for _ in 0..draws {
            for (u, weight) in importance.draw(adjacency.len(), &mut noise) {
                // The weight is (times drawn) / (50 q).
                counts[u as usize] += f64::from(weight) * 50.0 * squares[u as usize] / total;
            }
        }
        for (count, square) in counts.iter().zip(&squares) {
            let expected = f64::from(draws) * 50.0 * square / total;
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{count} {expected}");
        }
    }

    #[test]
    fn with_all_vertices_nothing_is_estimated() {
        let adjacency = graph();
        let n = adjacency.len();
        let features = features(n);
        let examples = [3, 1, 7];
        let mut exact = vec![0.0; 6];
        adjacency.aggregate_rows(&examples, &features, 2, &mut exact);
        let sampler = Sampler::new(Sampling::Vertices(n), &adjacency);
        let (rows, operators) = sampler.draw(&adjacency, 3, &examples, &mut random(0, Purpose::Noise, 0));
        assert_eq!((rows.len(), &rows[..3]), (n, &examples[..]));
        for l in [1, 2] {
            let found = estimate(&rows, &operators, l, &features, 3);
            assert!(found.iter().zip(&exact).all(|(a, &b)| (a - f64::from(b)).abs() < 1e-6));
        }
    }
}
