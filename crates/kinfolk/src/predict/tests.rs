use super::*;
use crate::incremental::{self, Edges};
use crate::metrics::evaluate;
use crate::synth::{Synth, SynthParams};
use crate::testing::{embeddings, on_one_and_three_threads};
use crate::{Clusterer, Density, KnnGraph};
use proptest::prelude::*;

fn faces(identities: usize) -> (Embeddings, Vec<i64>) {
    let params = SynthParams { identities, dim: 64, seed: 4, ..SynthParams::default() };
    Synth::new(params).unwrap().whole().to_embeddings().unwrap()
}

fn some(rows: &Embeddings, wanted: impl Fn(usize) -> bool) -> Embeddings {
    let some = (0..rows.len()).filter(|&at| wanted(at)).flat_map(|at| rows.row(at)).copied().collect();
    Embeddings::from_rows(some, rows.dim(), "test").unwrap()
}

fn kin(rows: &Embeddings) -> (Predictor, Vec<i64>) {
    let labels = Clusterer::new().fit(rows).unwrap().labels;
    let predictor = Predictor::by_edges(rows, &labels, &Kin::default(), 80, &Context::default()).unwrap();
    (predictor, labels)
}

/// The obvious way: a graph of all clustered rows and the new one.
#[test]
fn probabilities_are_those_of_a_graph_with_the_row_in_it() {
    let (rows, _) = faces(40);
    let n = rows.len() - 3;
    let old = some(&rows, |at| at < n);
    let found = incremental::cluster(&old, None, &Context::default()).unwrap();
    let predictor =
        Predictor::by_edges(&old, &found.labels, &Kin::default(), 80, &Context::default()).unwrap();
    let answers = predictor.candidates(&some(&rows, |at| at >= n), &()).unwrap();
    let k = found.graph.k();
    let correction = found.knowledge.correction().unwrap();
    for (at, answer) in (n..rows.len()).zip(&answers) {
        let new = some(&rows, |row| row == at);
        let centred = found.knowledge.centred(&new).unwrap();
        let background = found.knowledge.background(&found.centred, &centred);
        let (mut ids, mut similarities, mut arrivals) = (Vec::new(), Vec::new(), vec![0; n + 1]);
        let similarity = |row: usize| incremental::similarity(found.centred.row(row), centred.row(0));
        for row in 0..=n {
            let mut list: Vec<(f32, u32)> = if row < n {
                let (ids, similarities) = found.graph.neighbours(row);
                similarities
                    .iter()
                    .copied()
                    .zip(ids.iter().copied())
                    .chain([(similarity(row), n as u32)])
                    .collect()
            } else {
                (0..n).map(|row| (similarity(row), row as u32)).collect()
            };
            list.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            ids.extend(list[..k].iter().map(|entry| entry.1));
            similarities.extend(list[..k].iter().map(|entry| entry.0));
        }
        ids.iter().for_each(|&id| arrivals[id as usize] += 1);
        let graph = KnnGraph::from_parts(n + 1, k, ids, similarities, "test").unwrap();
        let medians = [&found.medians[..], &background.0].concat();
        let spreads = [&found.spreads[..], &background.1].concat();
        let raw = Edges::of(&graph, &found.knowledge, medians, spreads, arrivals)
            .probabilities(&[n as u32], &())
            .unwrap();
        let own: f32 = raw.iter().sum();
        let edges = graph.neighbours(n).0.iter().zip(&raw).map(|(&id, &p)| {
            let p = correction.apply(own.min(found.relatives[id as usize]), p);
            (found.labels[id as usize], p)
        });
        let size = |label| found.labels.iter().filter(|other| **other == label).count();
        assert_eq!(*answer, crate::assign(edges, size));
    }
}

#[test]
fn rows_join_their_identity_and_strangers_none() {
    let (rows, truth) = faces(60);
    let stranger = |at: usize| truth[at] % 5 == 0;
    let fitted = |at: usize| !stranger(at) && !at.is_multiple_of(5);
    let (predictor, labels) = kin(&some(&rows, fitted));
    let known: Vec<usize> = (0..rows.len()).filter(|&at| !stranger(at) && at.is_multiple_of(5)).collect();
    let found = predictor.predict(&some(&rows, |at| known.contains(&at)), &()).unwrap();
    let fitted_truth: Vec<i64> = (0..rows.len()).filter(|&at| fitted(at)).map(|at| truth[at]).collect();
    // The identity of most rows of a cluster.
    let identity = |label: i64| {
        let mut counts = std::collections::BTreeMap::new();
        labels
            .iter()
            .zip(&fitted_truth)
            .filter(|(l, _)| **l == label)
            .for_each(|(_, t)| *counts.entry(t).or_insert(0) += 1);
        counts.into_iter().max_by_key(|count| count.1).map(|count| *count.0)
    };
    let right = found.iter().zip(&known).filter(|(label, at)| identity(**label) == Some(truth[**at])).count();
    assert!(right as f64 > 0.9 * known.len() as f64, "{right} of {}", known.len());
    let strangers = predictor.predict(&some(&rows, stranger), &()).unwrap();
    let share =
        |labels: &[i64]| labels.iter().filter(|label| **label == -1).count() as f64 / labels.len() as f64;
    let (none, missed) = (share(&strangers), share(&found));
    assert!(none > 0.2 && missed < 0.05, "{none} {missed}");
}

#[test]
fn answers_depend_on_no_other_row_and_not_on_threads() {
    let (rows, _) = faces(40);
    let (predictor, _) = kin(&some(&rows, |at| at % 3 > 0));
    let new = some(&rows, |at| at % 3 == 0);
    let [one, three] = on_one_and_three_threads(|| predictor.candidates(&new, &()).unwrap());
    assert_eq!(one, three);
    for at in [0, 7, new.len() - 1] {
        assert_eq!(predictor.candidates(&some(&new, |row| row == at), &()).unwrap(), one[at..=at]);
    }
}

#[test]
fn the_nearest_row_decides_for_other_methods() {
    let (rows, truth) = faces(40);
    let old = some(&rows, |at| at % 4 > 0);
    let found = Clusterer::with(Density::default()).fit(&old).unwrap();
    let context = Context::default();
    let Some(crate::Criterion::Similarity(tau)) = found.criterion() else { panic!("density has a tau") };
    let new = some(&rows, |at| at % 4 == 0);
    let cosine = |row: &[f32], other: usize| row.iter().zip(old.row(other)).map(|(a, b)| a * b).sum::<f32>();
    let by_tau = Predictor::by_nearest(&old, &found.labels, Some(tau), &context).unwrap();
    for (at, label) in by_tau.predict(&new, &()).unwrap().into_iter().enumerate() {
        let similarities: Vec<f32> = (0..old.len()).map(|other| cosine(new.row(at), other)).collect();
        let nearest = (0..old.len()).max_by(|a, b| similarities[*a].total_cmp(&similarities[*b])).unwrap();
        let near = similarities[nearest];
        assert!(label == if near > tau { found.labels[nearest] } else { -1 } || (near - tau).abs() < 1e-5);
    }
    let without = Predictor::by_nearest(&old, &found.labels, None, &context).unwrap();
    let labels = without.predict(&new, &()).unwrap();
    let truth: Vec<i64> = truth.into_iter().step_by(4).collect();
    assert!(evaluate(&truth, &labels).unwrap().bcubed.precision > 0.7);
    assert_eq!(without.predict(&old, &()).unwrap(), found.labels);
    let refused = by_tau.candidates(&new, &()).unwrap_err().to_string();
    assert_eq!(refused, "method: expected one that estimates edge probabilities, such as kin, found another");
}

#[test]
fn lengths_must_agree() {
    let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
    let (predictor, _) = kin(&rows);
    let wide = Embeddings::from_rows(vec![1.0, 0.0, 0.0], 3, "test").unwrap();
    assert!(predictor.predict(&wide, &()).unwrap_err().to_string().contains("columns"));
    let few = Predictor::by_nearest(&rows, &[0], None, &Context::default()).err().unwrap().to_string();
    assert_eq!(few, "labels: expected 2 labels (one per row), found 1");
}

proptest! {
    #[test]
    fn clustered_rows_keep_their_labels(rows in embeddings(), tau in -1.0f32..1.0) {
        let (predictor, labels) = kin(&rows);
        let by_tau = Predictor::by_nearest(&rows, &labels, Some(tau), &Context::default()).unwrap();
        let without = Predictor::by_nearest(&rows, &labels, None, &Context::default()).unwrap();
        let known = |predictor: &Predictor| predictor.predict(&rows, &()).unwrap();
        for found in [known(&predictor), known(&by_tau), known(&without)] {
            for (at, label) in found.into_iter().enumerate() {
                // Of copies in several clusters any may be meant.
                prop_assert!((0..rows.len()).any(|other| rows.row(other) == rows.row(at) && labels[other] == label));
            }
        }
    }
}
