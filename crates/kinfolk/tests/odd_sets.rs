//! The default on sets that are unlike a large album: tiny, narrow, wide, without any group, with two, of copies, of bits, not
//! normalised.

use kinfolk::metrics::evaluate;
use kinfolk::random::{Purpose, Stream};
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{Clusterer, Embeddings};

/// Identities of these sizes: a random centre each, and rows with noise of this level around it.
fn identities(sizes: &[usize], dim: usize, noise: f32) -> (Vec<f32>, Vec<i64>) {
    let mut stream = Stream::new(11, Purpose::Image, 0, 0);
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for (&size, label) in sizes.iter().zip(0..) {
        let centre: Vec<f32> = (0..dim).map(|_| stream.rough_normal()).collect();
        for _ in 0..size {
            rows.extend(centre.iter().map(|v| v + noise * stream.rough_normal()));
            labels.push(label);
        }
    }
    (rows, labels)
}

fn labels(rows: Vec<f32>, dim: usize) -> Vec<i64> {
    let embeddings = Embeddings::from_rows(rows, dim, "test").unwrap();
    Clusterer::new().fit(&embeddings).unwrap().labels
}

/// BCubed F and the number of clusters.
fn score(rows: Vec<f32>, dim: usize, truth: &[i64]) -> (f64, u64) {
    let scores = evaluate(truth, &labels(rows, dim)).unwrap();
    (scores.bcubed.f, scores.clusters)
}

#[test]
fn fifty_rows_of_ten_identities() {
    let (rows, truth) = identities(&[5; 10], 64, 0.5);
    let (f, clusters) = score(rows, 64, &truth);
    assert!(f > 0.9, "{f} {clusters}");
}

#[test]
fn fifty_rows_of_two_identities() {
    let (rows, truth) = identities(&[30, 20], 64, 0.8);
    let (f, clusters) = score(rows, 64, &truth);
    assert!(f > 0.9, "{f} {clusters}");
}

#[test]
fn two_giant_identities() {
    let (rows, truth) = identities(&[1500, 1000], 128, 1.0);
    let (f, clusters) = score(rows, 128, &truth);
    assert!(f > 0.95, "{f} {clusters}");
}

#[test]
fn one_person_in_most_photographs() {
    let sizes = [&[800][..], &[10; 40]].concat();
    let (rows, truth) = identities(&sizes, 128, 0.8);
    let (f, clusters) = score(rows, 128, &truth);
    assert!(f > 0.95, "{f} {clusters}");
}

#[test]
fn eight_columns() {
    let (rows, truth) = identities(&[25; 40], 8, 0.12);
    let (f, clusters) = score(rows, 8, &truth);
    assert!(f > 0.8, "{f} {clusters}");
}

#[test]
fn four_thousand_columns() {
    let (rows, truth) = identities(&[15; 40], 4096, 1.0);
    let (f, clusters) = score(rows, 4096, &truth);
    assert!(f > 0.95, "{f} {clusters}");
}

#[test]
fn all_rows_are_singletons() {
    let (rows, truth) = identities(&[1; 2000], 128, 0.0);
    let (f, clusters) = score(rows, 128, &truth);
    assert!(f > 0.95, "{f} {clusters}");
}

#[test]
fn every_row_three_times() {
    let (rows, truth) = identities(&[12; 60], 64, 0.5);
    let copies = rows.chunks_exact(64).flat_map(|row| row.repeat(3)).collect();
    let truth: Vec<i64> = truth.iter().flat_map(|&label| [label; 3]).collect();
    let (f, clusters) = score(copies, 64, &truth);
    assert!(f > 0.9, "{f} {clusters}");
}

#[test]
fn copies_of_singletons_are_pairs() {
    let (rows, truth) = identities(&[1; 500], 64, 0.0);
    let copies = rows.chunks_exact(64).flat_map(|row| row.repeat(2)).collect();
    let truth: Vec<i64> = truth.iter().flat_map(|&label| [label; 2]).collect();
    let (f, clusters) = score(copies, 64, &truth);
    assert!(f > 0.95, "{f} {clusters}");
}

#[test]
fn binary_values() {
    let (rows, truth) = identities(&[20; 50], 256, 0.6);
    let bits = rows.iter().map(|&v| if v > 0.0 { 1.0 } else { 0.0 }).collect();
    let (f, clusters) = score(bits, 256, &truth);
    assert!(f > 0.95, "{f} {clusters}");
}

#[test]
fn rows_as_a_text_embedder_leaves_them() {
    // Lengths from 5 to 500, and an offset that all rows share and that is longer than what distinguishes them.
    let params = SynthParams { identities: 60, dim: 128, seed: 3, ..SynthParams::default() };
    let (embeddings, truth) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
    let plain = Clusterer::new().fit(&embeddings).unwrap().labels;
    let mut stream = Stream::new(1, Purpose::Image, 0, 0);
    let offset: Vec<f32> = (0..128).map(|_| 0.15 * stream.rough_normal()).collect();
    let mut rows = Vec::new();
    for row in embeddings.as_slice().chunks_exact(128) {
        let length = 5.0 * 100.0f32.powf(stream.uniform_f32());
        rows.extend(row.iter().zip(&offset).map(|(v, o)| length * (v + o)));
    }
    let f = |labels: &[i64]| evaluate(&truth, labels).unwrap().bcubed.f;
    let (plain, offset) = (f(&plain), f(&labels(rows, 128)));
    assert!(plain > 0.8 && offset > plain - 0.03, "{plain} {offset}");
}
