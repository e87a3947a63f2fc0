//! Features of the whole set, on which the meaning of the features of an edge depends.
//!
//! Two rows that share half of their neighbours are almost certainly of one identity if most pairs share none, but not if all
//! pairs share many (letters, sentences of one topic). So the model also gets the mean or the deviation of some columns of
//! `features` over the set, estimated on a sample of its edges, more of them to near neighbours. The columns are those that
//! helped most on held-out synthetic sets and on embeddings of Omniglot's background characters.
//!
//! Cost: that of the features of a thousand rows.

use super::features::{FEATURES, Structure};
use crate::random::{Purpose, Stream};
use rayon::prelude::*;

/// The statistic of a column.
#[derive(Clone, Copy)]
enum By {
    Mean,
    Deviation,
}
use By::{Deviation, Mean};

const COLUMNS: [(By, usize); SUMMARY] = [
    // Common neighbours within the first 10 and 20.
    (Deviation, 8),
    (Deviation, 9),
    // The worse rank.
    (Deviation, 5),
    // Common neighbours: their mass, their share.
    (Deviation, 13),
    (Mean, 11),
    (Mean, 12),
    // The in-degrees of the ends.
    (Mean, 30),
    (Deviation, 29),
    // The best common neighbour.
    (Deviation, 27),
    // z.
    (Mean, 1),
];
pub(super) const SUMMARY: usize = 10;
/// The inputs of the model for an edge: its own features, then the summary of the set.
pub(super) const INPUTS: usize = FEATURES + SUMMARY;

const ROWS: usize = 1000;
const OF_ROW: usize = 4;

/// The summary of a set.
pub(super) struct Summary(pub(super) [f32; SUMMARY]);

/// The neighbours of a row to sample, more of them near: positions below `k`.
pub fn near_places<const COUNT: usize>(stream: &mut Stream, k: usize) -> [usize; COUNT] {
    std::array::from_fn(|_| (stream.uniform().powf(1.7) * k as f64) as usize)
}

impl Summary {
    pub(super) fn of(structure: &Structure) -> Self {
        let (n, k) = structure.shape();
        if k == 0 {
            return Self([0.0; SUMMARY]);
        }
        let mut stream = Stream::new(0, Purpose::Summary, 0, 0);
        let rows: Vec<(usize, [usize; OF_ROW])> =
            (0..ROWS).map(|_| (stream.below(n), near_places(&mut stream, k))).collect();
        let of_row = |scratch: &mut _, (row, places): &(usize, [usize; OF_ROW])| {
            let (features, listings) = structure.of_edges(*row, scratch, |place, _| places.contains(&place));
            places.map(|place| {
                let at = listings.iter().take_while(|listing| listing.place < place).count();
                COLUMNS.map(|(_, column)| features[at * FEATURES + column])
            })
        };
        let edges: Vec<[[f32; SUMMARY]; OF_ROW]> =
            rows.par_iter().map_init(|| structure.scratch(), of_row).collect();
        let count = (ROWS * OF_ROW) as f64;
        Self(std::array::from_fn(|at| {
            let values = || edges.iter().flatten().map(|edge| f64::from(edge[at]));
            let mean = values().sum::<f64>() / count;
            match COLUMNS[at].0 {
                Mean => mean as f32,
                Deviation => (values().map(|v| (v - mean).powi(2)).sum::<f64>() / count).sqrt() as f32,
            }
        }))
    }

    /// Inputs of the model for edges whose features are stored one after the other.
    pub(super) fn beside(&self, features: &[f32]) -> Vec<f32> {
        features.chunks_exact(FEATURES).flat_map(|edge| edge.iter().chain(&self.0)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectivity::structural::Background;
    use crate::synth::{Synth, SynthParams};
    use crate::testing::on_one_and_three_threads;
    use crate::{KnnGraph, KnnParams, knn_graph};

    #[test]
    fn it_is_near_what_all_edges_say_on_any_number_of_threads() {
        let params = SynthParams { identities: 30, dim: 64, ..Default::default() };
        let (embeddings, _) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let k = 20;
        let (graph, _) = knn_graph(&embeddings, &KnnParams { k, ..Default::default() }, &()).unwrap();
        let background = Background::of(&embeddings, 0);
        let structure = Structure::of(&graph, &background);
        let [one, three] = on_one_and_three_threads(|| Summary::of(&structure).0);
        assert_eq!(one, three);
        // Every edge, as often as its place is drawn: from a share of u^1.7 of the neighbours to the next.
        let drawn = |place: usize| (place as f64 / k as f64).powf(1.0 / 1.7);
        let mut scratch = structure.scratch();
        for (at, (by, column)) in COLUMNS.into_iter().enumerate() {
            let (mut sum, mut squares) = (0.0, 0.0);
            for i in 0..graph.len() {
                for (place, edge) in structure.of_row(i, &mut scratch).chunks_exact(FEATURES).enumerate() {
                    let weight = (drawn(place + 1) - drawn(place)) / graph.len() as f64;
                    sum += weight * f64::from(edge[column]);
                    squares += weight * f64::from(edge[column]).powi(2);
                }
            }
            let deviation = (squares - sum * sum).max(0.0).sqrt();
            let exact = match by {
                Mean => sum,
                Deviation => deviation,
            };
            let found = f64::from(one[at]);
            assert!((found - exact).abs() < 0.1 * deviation + 1e-3, "{at}: {found} {exact}");
        }
    }

    #[test]
    fn a_graph_without_edges_has_one_too() {
        let embeddings = crate::Embeddings::from_rows(vec![1.0, 0.0], 2, "test").unwrap();
        let graph = KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap();
        let background = Background::of(&embeddings, 0);
        assert_eq!(Summary::of(&Structure::of(&graph, &background)).0, [0.0; SUMMARY]);
    }
}
