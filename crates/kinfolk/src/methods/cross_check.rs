//! Edge probabilities of rows with few relatives, checked by the other half of the coordinates.
//!
//! The edge model does not know how clear the identities of a set are. Between two rows with few other relatives a probability of
//! 0.6 is right in one of six cases on good photographs of faces, and in one of two on blurred ones. Two views can tell, without
//! labels: of the edges to which one half of the coordinates gives this probability, how many does the partition by the other half
//! confirm? The noise of one half knows nothing of the other. A true edge may be missed, so the share is divided by that
//! of the edges of 0.83 to 0.96, which are nearly all true. The quotient is the mean probability that edges of this bin should
//! have, and the logits of all edges of the bin are shifted by the difference.
//!
//! Bins are by the logit and by the smaller number of expected relatives of both ends, the sum of the probabilities of a row. From
//! 7.5 relatives on nothing is changed: larger groups are judged by many edges, and the halves, which know less, split them.
//!
//! Cost: one opinion of `halves`, and O(N K).

use super::halves::{Halves, Opinion};
use crate::connectivity::structural::Sizes;
use crate::{Context, EdgeModel, KnnGraph, Result};
use rayon::prelude::*;

/// Upper bounds of the numbers of expected relatives. With another bin, up to 15.5, faces of 24 pixels lose a point on halves of
/// their identities, and no set gains half a point.
const RELATIVES: [f32; 4] = [0.5, 1.5, 3.5, 7.5];
/// Bins of logits from -4 to 4, and one beyond either end.
const LOGITS: usize = 12;
const WIDTH: f32 = 0.8;
/// The bins that count as true: those of logits from 1.6 to 3.2. With the last bin instead the correction is too strong on faces of
/// 24 pixels, because edges near 1 are confirmed more often than other true edges.
const TRUE: std::ops::Range<usize> = 8..10;
/// Edges of the former mean that are added to each bin, so that few edges change little.
const DOUBT: f64 = 5.0;

/// What is added to the logit of an edge, by expected relatives and logit.
pub(crate) struct CrossCheck([[f32; LOGITS]; RELATIVES.len()]);

/// Edges of a bin.
#[derive(Clone, Copy, Default)]
struct Bin {
    edges: f64,
    /// The sum of their probabilities.
    expected: f64,
    /// Those that the other half confirms.
    confirmed: f64,
}

impl CrossCheck {
    /// By both halves of a set, with the sizes and the model that are used for the whole.
    pub(crate) fn of(halves: &Halves, sizes: Sizes, model: &EdgeModel, context: &Context) -> Result<Self> {
        let mut bins = [[Bin::default(); LOGITS]; RELATIVES.len()];
        if let Some([one, other]) = halves.opinions(sizes, model, context)? {
            count(&one, &other.labels, &mut bins);
            count(&other, &one.labels, &mut bins);
        }
        Ok(Self(bins.map(shifts)))
    }

    /// Corrects the probabilities of all edges.
    pub(crate) fn apply(&self, graph: &KnnGraph, probabilities: &mut [f32]) {
        const ROWS: usize = 256;
        let expected = relatives(graph, probabilities);
        let tasks = probabilities.par_chunks_mut(ROWS * graph.k().max(1)).enumerate();
        tasks.for_each(|(task, probabilities)| self.correct(graph, &expected, task * ROWS, probabilities));
    }

    /// Corrects those of the rows from `first` on; every row of the graph has an expected number of relatives.
    pub(crate) fn correct(
        &self,
        graph: &KnnGraph,
        expected: &[f32],
        first: usize,
        probabilities: &mut [f32],
    ) {
        for (i, row) in (first..).zip(probabilities.chunks_mut(graph.k().max(1))) {
            for (probability, &j) in row.iter_mut().zip(graph.neighbours(i).0) {
                *probability = self.corrected(expected[i].min(expected[j as usize]), *probability);
            }
        }
    }

    /// The probability of an edge whose ends have at least this number of expected relatives.
    pub(crate) fn corrected(&self, relatives: f32, probability: f32) -> f32 {
        let Some((few, at)) = place(relatives, probability) else { return probability };
        let logit = logit(probability) + self.0[few][at];
        1.0 / (1.0 + (-logit).exp())
    }

    /// As numbers, for a file.
    pub(crate) fn to_numbers(&self) -> Vec<f32> {
        self.0.concat()
    }

    /// From these numbers, if the count is right.
    pub(crate) fn from_numbers(numbers: &[f32]) -> Option<Self> {
        let rows: Option<Vec<[f32; LOGITS]>> =
            numbers.chunks(LOGITS).map(|row| row.try_into().ok()).collect();
        Some(Self(rows?.try_into().ok()?))
    }
}

/// Adds the edges of one half; `labels` are those of the other half.
fn count(half: &Opinion, labels: &[i64], bins: &mut [[Bin; LOGITS]; RELATIVES.len()]) {
    let Opinion { graph, probabilities, .. } = half;
    let expected = relatives(graph, probabilities);
    for (i, row) in probabilities.chunks_exact(graph.k().max(1)).enumerate() {
        for (&probability, &j) in row.iter().zip(graph.neighbours(i).0) {
            let j = j as usize;
            if let Some((few, at)) = place(expected[i].min(expected[j]), probability) {
                let bin = &mut bins[few][at];
                bin.edges += 1.0;
                bin.expected += f64::from(probability);
                bin.confirmed += f64::from(u8::from(labels[i] == labels[j]));
            }
        }
    }
}

/// The differences of the logits of what is confirmed and what was expected.
fn shifts(bins: [Bin; LOGITS]) -> [f32; LOGITS] {
    let sure =
        bins[TRUE].iter().fold([DOUBT; 2], |[found, all], bin| [found + bin.confirmed, all + bin.edges]);
    let found = sure[0] / sure[1];
    bins.map(|bin| {
        if bin.edges == 0.0 {
            return 0.0;
        }
        let mean = bin.expected / bin.edges;
        let right = ((bin.confirmed / found).min(bin.edges) + DOUBT * mean) / (bin.edges + DOUBT);
        logit(right as f32) - logit(mean as f32)
    })
}

/// The expected number of relatives of each row.
fn relatives(graph: &KnnGraph, probabilities: &[f32]) -> Vec<f32> {
    if graph.k() == 0 {
        return vec![0.0; graph.len()];
    }
    probabilities.par_chunks_exact(graph.k()).map(|row| row.iter().sum()).collect()
}

/// The bin of an edge; none for copies, and for rows with many relatives.
fn place(relatives: f32, probability: f32) -> Option<(usize, usize)> {
    let few = RELATIVES.iter().position(|&bound| relatives < bound)?;
    let at = (logit(probability) / WIDTH).floor() as isize + LOGITS as isize / 2;
    (probability < 1.0).then_some((few, at.clamp(0, LOGITS as isize - 1) as usize))
}

fn logit(probability: f32) -> f32 {
    const LEAST: f32 = 1e-4;
    let p = probability.clamp(LEAST, 1.0 - LEAST);
    (p / (1.0 - p)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectivity::structural::{Background, edge_probabilities};
    use crate::synth::{Synth, SynthParams};
    use crate::testing::on_one_and_three_threads;
    use crate::{Embeddings, KnnParams, knn_graph};
    use proptest::prelude::*;

    fn bin(edges: f64, probability: f64, confirmed: f64) -> Bin {
        Bin { edges, expected: edges * probability, confirmed }
    }

    fn probability(logit: f32) -> f32 {
        1.0 / (1.0 + (-logit).exp())
    }

    #[test]
    fn the_other_half_decides_where_there_are_many_edges() {
        let mut bins = [Bin::default(); LOGITS];
        bins[6] = bin(10_000.0, 0.6, 1_500.0);
        bins[7] = bin(10_000.0, 0.75, 9_000.0);
        bins[5] = bin(3.0, 0.4, 0.0);
        bins[8] = bin(5_000.0, 0.9, 4_000.0);
        bins[9] = bin(5_000.0, 0.95, 4_000.0);
        let shifts = shifts(bins);
        let after = |at: usize, p: f32| probability(logit(p) + shifts[at]);
        // The other half finds four of five true edges.
        assert!((after(6, 0.6) - 0.15 / 0.8).abs() < 0.01);
        assert!(after(7, 0.75) > 0.99);
        // Three edges say little.
        assert!((after(5, 0.4) - 0.25).abs() < 0.01);
        assert_eq!(shifts[0], 0.0);
    }

    #[test]
    fn bins_are_by_relatives_and_logit() {
        assert_eq!(place(0.2, 0.5), Some((0, 6)));
        assert_eq!(place(1.0, 0.49), Some((1, 5)));
        assert_eq!(place(7.4, 1e-9), Some((3, 0)));
        assert_eq!(place(2.0, 0.9999), Some((2, LOGITS - 1)));
        assert_eq!(place(7.5, 0.5), None);
        assert_eq!(place(2.0, 1.0), None);
        let [least, most] = [TRUE.start, TRUE.end].map(|at| WIDTH * (at as f32 - LOGITS as f32 / 2.0));
        assert!((probability(least) - 0.83).abs() < 0.005 && (probability(most) - 0.96).abs() < 0.005);
    }

    /// Mostly identities of one clear image.
    fn singletons() -> (Embeddings, Vec<i64>) {
        let params = SynthParams {
            identities: 900,
            dim: 64,
            mean_size: 3.0,
            singletons: 0.75,
            noise: 0.55,
            seed: 4,
            ..SynthParams::default()
        };
        Synth::new(params).unwrap().whole().to_embeddings().unwrap()
    }

    #[test]
    fn probabilities_of_singletons_come_nearer_to_the_truth_on_any_number_of_threads() {
        let (rows, truth) = singletons();
        let graph = knn_graph(&rows, &KnnParams::default(), &()).unwrap().0;
        let model = EdgeModel::default();
        let context = Context::default();
        let halves = Halves::of(&rows, graph.k(), &context).unwrap();
        let before =
            edge_probabilities(&graph, &Background::of(&rows, 0), halves.sizes, &model, &()).unwrap();
        let corrected = || {
            let mut probabilities = before.clone();
            CrossCheck::of(&halves, halves.sizes, &model, &context)
                .unwrap()
                .apply(&graph, &mut probabilities);
            probabilities
        };
        let [after, three] = on_one_and_three_threads(corrected);
        assert_eq!(after, three);
        let loss = |probabilities: &[f32]| {
            let edge = |(at, &p): (usize, &f32)| {
                let (i, j) = (at / graph.k(), graph.neighbours(at / graph.k()).0[at % graph.k()]);
                let right = if truth[i] == truth[j as usize] { p } else { 1.0 - p };
                -f64::from(right.max(1e-6)).ln()
            };
            probabilities.iter().enumerate().map(edge).sum::<f64>() / probabilities.len() as f64
        };
        assert!(loss(&after) < 0.95 * loss(&before), "{} {}", loss(&before), loss(&after));
    }

    #[test]
    fn rows_of_few_columns_are_not_changed() {
        let rows =
            Embeddings::from_rows((0..90).map(|at| 1.0 + (at % 7) as f32).collect(), 3, "test").unwrap();
        let context = Context::default();
        let halves = Halves::of(&rows, 5, &context).unwrap();
        let check = CrossCheck::of(&halves, halves.sizes, &EdgeModel::default(), &context).unwrap();
        assert_eq!(check.0, [[0.0; LOGITS]; RELATIVES.len()]);
    }

    proptest! {
        #[test]
        fn both_directions_of_an_edge_stay_equal(shift in prop::collection::vec(-3.0f32..3.0, LOGITS), p in 0.0f32..1.0) {
            let graph = KnnGraph::from_parts(3, 2, vec![1, 2, 0, 2, 0, 1], vec![0.9, 0.5, 0.9, 0.4, 0.5, 0.4], "test").unwrap();
            let mut shifts = [[0.0; LOGITS]; RELATIVES.len()];
            shifts.iter_mut().for_each(|row| row.copy_from_slice(&shift));
            let mut probabilities = vec![p, 0.3, p, 1.0, 0.3, 1.0];
            CrossCheck(shifts).apply(&graph, &mut probabilities);
            prop_assert_eq!(probabilities[0], probabilities[2]);
            prop_assert_eq!(probabilities[1], probabilities[4]);
            // Copies stay copies.
            prop_assert_eq!((probabilities[3], probabilities[5]), (1.0, 1.0));
            let (few, at) = place((p + 0.3f32).min(1.3), p).unwrap();
            prop_assert!((probabilities[0] - probability(logit(p) + shifts[few][at])).abs() < 1e-6);
        }
    }
}
