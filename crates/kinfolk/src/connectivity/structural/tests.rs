use super::features::{FEATURES, Numbers, Scratch, Structure, Whole};
use super::*;
use crate::Embeddings;
use crate::testing::embeddings_and_graph;
use proptest::prelude::*;

/// The features of the edge at `place` of row `i`, each from its definition.
fn slow(graph: &KnnGraph, b: &Background, i: usize, place: usize) -> Vec<f32> {
    let (n, k) = (graph.len(), graph.k());
    let ids = |v: usize| graph.neighbours(v).0.iter().map(|&j| j as usize).collect::<Vec<_>>();
    let z = |v: usize, at: usize| b.standard(v, ids(v)[at], graph.neighbours(v).1[at]);
    let row = |v: usize| (0..k).map(|at| z(v, at)).collect::<Vec<f32>>();
    let mass = |v: usize, at: usize| {
        let most = row(v).into_iter().fold(f32::MIN, f32::max);
        let of = |z: f32| ((z - most) as f64 / 2.0).exp();
        of(z(v, at)) / row(v).into_iter().map(of).sum::<f64>()
    };
    let arrivals = |v: usize| (0..n).filter(|&u| ids(u).contains(&v)).count() as f32;
    let (j, s) = (ids(i)[place], graph.neighbours(i).1[place]);
    let here = z(i, place);
    let back = ids(j).iter().position(|&v| v == i).unwrap_or(k);
    let common: Vec<(usize, usize)> =
        (0..k).filter_map(|at_i| Some((at_i, ids(j).iter().position(|&m| m == ids(i)[at_i])?))).collect();
    let mut out = vec![(s - b.median) / b.spread, here, (b.of_vertex(i, s) - b.of_vertex(j, s)).abs()];
    let both = |out: &mut Vec<f32>, one: f32, other: f32| out.extend([one.min(other), one.max(other)]);
    both(&mut out, (1.0 + place as f32).log2(), (1.0 + back as f32).log2());
    out.push(f32::from(back < k));
    for depth in [5, 10, 20, 40, k] {
        let within = common.iter().filter(|(a, b)| *a < depth && *b < depth).count();
        out.push(within as f32 / depth.min(k) as f32);
    }
    let sum = |of: &dyn Fn(&(usize, usize)) -> f64| common.iter().map(of).sum::<f64>() as f32;
    both(&mut out, sum(&|c| mass(i, c.0)), sum(&|c| mass(j, c.1)));
    out.push(sum(&|c| mass(i, c.0).min(mass(j, c.1))));
    for mark in [0, k / 4, k - 1] {
        both(&mut out, here - row(i)[mark], here - row(j)[mark]);
    }
    let mean = |v: usize, count: usize| row(v).iter().take(count).sum::<f32>() / count.min(k) as f32;
    both(&mut out, mean(i, 5), mean(j, 5));
    both(&mut out, mean(i, 20), mean(j, 20));
    both(&mut out, row(i)[k - 1], row(j)[k - 1]);
    let mut weaker: Vec<f32> = common.iter().map(|&(a, b)| z(i, a).min(z(j, b))).collect();
    weaker.sort_by(|a, b| b.total_cmp(a));
    let last = row(i)[k - 1].min(row(j)[k - 1]);
    for at in [0, 2] {
        out.push(weaker.get(at).copied().unwrap_or(f32::MIN).max(last) - here);
    }
    let listed = |v: usize| ((1.0 + arrivals(v)) / (1.0 + k as f32)).log2();
    both(&mut out, listed(i), listed(j));
    let high = |v: usize| row(v).iter().filter(|&&z| z > 4.0).count() as f32 / k as f32;
    both(&mut out, high(i), high(j));
    let hubs: f32 = common.iter().map(|c| arrivals(ids(i)[c.0])).sum();
    out.push(((1.0 + hubs) / (1.0 + common.len() as f32) / k as f32).log2());
    let median = |v: usize| (b.medians[v] - b.median) / b.spread;
    both(&mut out, median(i), median(j));
    out
}

fn estimate(embeddings: &Embeddings, graph: &KnnGraph) -> Vec<f32> {
    let sizes = HalfViews::of(embeddings, 0).sizes;
    edge_probabilities(graph, &Background::of(embeddings, 0), sizes, &EdgeModel::default(), &()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn features_are_what_their_definitions_say((embeddings, graph) in embeddings_and_graph()) {
        let background = Background::of(&embeddings, 0);
        let whole = Whole::of(&graph, &background);
        let (mut numbers, mut scratch) = (Numbers::for_rows(graph.len()), Scratch::new(graph.k()));
        // A few rows at a time, so that others are met that have no number.
        let order: Vec<u32> = (0..graph.len() as u32).rev().collect();
        for (number, i, structure) in order.chunks(3).flat_map(|rows| {
            let structure = std::rc::Rc::new(Structure::of(&whole, rows, &mut numbers));
            rows.iter().enumerate().map(|(number, &i)| (number, i as usize, structure.clone())).collect::<Vec<_>>()
        }) {
            for (place, fast) in structure.of_row(number, &mut scratch).chunks_exact(FEATURES).enumerate() {
                let slow = slow(&graph, &background, i, place);
                prop_assert_eq!(slow.len(), FEATURES);
                for (column, (fast, slow)) in fast.iter().zip(slow).enumerate() {
                    prop_assert!((fast - slow).abs() <= 1e-3 * (1.0 + slow.abs()), "{column}: {fast} {slow}");
                }
            }
        }
    }

    #[test]
    fn probabilities_are_probabilities((embeddings, graph) in embeddings_and_graph()) {
        let edges = estimate(&embeddings, &graph);
        prop_assert_eq!(edges.len(), graph.len() * graph.k());
        prop_assert!(edges.iter().all(|p| (0.0..=1.0).contains(p)));
    }
}

/// Fails if weights and features no longer match.
#[test]
fn near_is_more_probable_than_far() {
    let params = crate::synth::SynthParams { identities: 50, dim: 64, ..Default::default() };
    let (embeddings, truth): (Embeddings, _) =
        crate::synth::Synth::new(params).unwrap().whole().to_embeddings().unwrap();
    let params = crate::KnnParams { k: 40, ..Default::default() };
    let (graph, _) = crate::knn_graph(&embeddings, &params, &()).unwrap();
    let edges = estimate(&embeddings, &graph);
    let (mut same, mut other) = ((0.0, 0), (0.0, 0));
    for i in 0..graph.len() {
        for (&j, &p) in graph.neighbours(i).0.iter().zip(&edges[i * 40..]) {
            let mean = if truth[i] == truth[j as usize] { &mut same } else { &mut other };
            *mean = (mean.0 + p as f64, mean.1 + 1);
        }
    }
    let (same, other) = (same.0 / same.1 as f64, other.0 / other.1 as f64);
    assert!(same > 0.8 && other < 0.4, "{same} {other}");
}
