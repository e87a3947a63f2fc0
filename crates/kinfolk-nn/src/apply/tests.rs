//! Each fast path against the formula written out, in f64, one vertex at a time.

use super::*;
use crate::testing::{network, set};
use crate::{GraphNetwork, Linear};
use kinfolk::{SizeLimit, candidates};
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

/// The connectivities of vertex `i` with the candidates `set`, by Section 3.3.
fn naive_connectivity(
    network: &GraphNetwork,
    features: &Rows,
    adjacency: &Rows,
    i: usize,
    set: &[usize],
) -> Vec<f64> {
    let x = set.iter().map(|&j| features[j].iter().zip(&features[i]).map(|(f, own)| f - own).collect());
    let sub = set.iter().map(|&j| {
        let row: Vec<f64> = set.iter().map(|&k| adjacency[j][k]).collect();
        let sum: f64 = row.iter().sum();
        row.iter().map(|value| value / sum).collect()
    });
    let (_, outputs) = forward(network, x.collect(), &sub.collect());
    let value = |output: &Vec<f64>| match output[..] {
        [a, b] => b.exp() / (a.exp() + b.exp()),
        _ => output[0],
    };
    outputs.iter().map(value).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn confidence_is_that_of_the_formula(
        seed: u64,
        n in 1usize..60,
        k in 1usize..9,
        dim in 1usize..6,
        widths in prop::collection::vec(1usize..7, 1..4),
    ) {
        let network = network(seed, dim, &widths, 1);
        let (features, graph) = set(seed ^ 1, n, dim, k);
        let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
        let found = vertex_confidence(&network, &features, &adjacency, true, &()).unwrap();
        let (f_l, outputs) = forward(&network, rows_of(&features), &dense(&adjacency));
        for (found, expected) in found.confidence.iter().zip(outputs.iter().flatten()) {
            prop_assert!(close(*found, *expected), "{found} {expected}");
        }
        prop_assert_eq!(found.embeddings.len(), n * network.width());
        for (found, expected) in found.embeddings.iter().zip(f_l.iter().flatten()) {
            prop_assert!(close(*found, *expected), "{found} {expected}");
        }
        let lean = vertex_confidence(&network, &features, &adjacency, false, &()).unwrap();
        prop_assert!(lean.embeddings.is_empty());
        prop_assert_eq!(lean.confidence, found.confidence);
    }

    #[test]
    fn connectivity_is_that_of_the_formula(
        seed: u64,
        n in 1usize..60,
        k in 1usize..12,
        dim in 1usize..6,
        widths in prop::collection::vec(1usize..7, 1..5),
        outputs in 1usize..3,
        rho in 0.0f32..=1.0,
        all: bool,
    ) {
        let network = network(seed, dim, &widths, outputs);
        let (features, graph) = set(seed ^ 1, n, dim, k);
        let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
        let confidence = kinfolk::u_weight(&graph, 0.9).unwrap();
        let asked = Asked { rho, among: if all { Among::AllNeighbours } else { Among::MoreConfident } };
        let found =
            edge_connectivity(&network, &features, &graph, &adjacency, &confidence, &asked, &()).unwrap();
        prop_assert_eq!(found.vertices.len(), (f64::from(rho) * n as f64).round() as usize);
        let (rows, dense) = (rows_of(&features), dense(&adjacency));
        for (v, &i) in found.vertices.iter().enumerate() {
            let range = found.offsets[v]..found.offsets[v + 1];
            let set: Vec<usize> = match all {
                true => graph.neighbours(i as usize).0.iter().map(|&j| j as usize).collect(),
                false => candidates(&graph, &confidence, i as usize).map(|(j, _)| j as usize).collect(),
            };
            let ids: Vec<usize> = found.candidates[range.clone()].iter().map(|&j| j as usize).collect();
            prop_assert_eq!(&ids, &set);
            if set.len() == 1 {
                prop_assert_eq!(&found.values[range], &[1.0][..]);
                continue;
            }
            let expected = naive_connectivity(&network, &rows, &dense, i as usize, &set);
            for (found, expected) in found.values[range].iter().zip(expected) {
                prop_assert!(close(*found, expected), "{found} {expected}");
            }
        }
        prop_assert_eq!(*found.offsets.last().unwrap(), found.values.len());
        let fewer = Asked { rho: rho / 2.0, ..asked };
        let fewer =
            edge_connectivity(&network, &features, &graph, &adjacency, &confidence, &fewer, &()).unwrap();
        let up_to = found.up_to(rho / 2.0, n);
        prop_assert_eq!((&up_to.vertices, &up_to.offsets), (&fewer.vertices, &fewer.offsets));
        prop_assert_eq!((&up_to.candidates, &up_to.similarities), (&fewer.candidates, &fewer.similarities));
        // Batches begin elsewhere, which may change the last bits.
        for (found, expected) in up_to.values.iter().zip(fewer.values) {
            prop_assert!(close(*found, f64::from(expected)));
        }
    }
}

fn model(seed: u64, dim: usize, gcn_e: bool) -> Model {
    let config = ModelConfig { k: 12, k_rebuild: 15, tau: 0.5, rho: 0.5, m: 2, ..ModelConfig::default() };
    let gcn_e = gcn_e.then(|| network(seed + 1, 9, &[8, 8, 4, 4], 2));
    Model { gcn_v: network(seed, dim, &[9], 1), gcn_e, config }
}

/// Made-up weights can leave a row of F_L without a positive value; these do not.
fn biased(mut model: Model) -> Model {
    model.gcn_v.convolutions[0].bias.fill(2.0);
    model
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (features, _) = set(1, 3000, 6, 5);
    let model = biased(model(2, 6, true));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| cluster(&features, None, &model, &ApplyParams::of(&model), &()).unwrap())
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one.clustering.links, three.clustering.links);
    assert_eq!(one.connectivity, three.connectivity);
    assert_eq!(one.clustering.labels, three.clustering.labels);
    assert!(one.connectivity.unwrap().values.len() > 4 * 512, "too few rows for several batches");
}

#[test]
fn rho_zero_is_gcn_v_alone() {
    let (features, _) = set(3, 300, 6, 5);
    let model = biased(model(4, 6, true));
    let mut params = ApplyParams::of(&model);
    params.config.rho = 0.0;
    let zero = cluster(&features, None, &model, &params, &()).unwrap();
    params.config.rho = 0.5;
    params.connectivity = false;
    let without = cluster(&features, None, &model, &params, &()).unwrap();
    assert_eq!(zero.clustering.links, without.clustering.links);
    assert!(zero.connectivity.is_none() && without.connectivity.is_none());
}

#[test]
fn a_given_graph_is_cut_to_what_the_model_wants() {
    let (features, graph) = set(5, 100, 6, 30);
    let model = biased(model(6, 6, false));
    let params = ApplyParams::of(&model);
    let own = cluster(&features, None, &model, &params, &()).unwrap();
    let given = cluster(&features, Some(&graph), &model, &params, &()).unwrap();
    assert_eq!(own.clustering.links, given.clustering.links);
    assert_eq!((given.clustering.k, given.rebuilt.map(|(k, _)| k)), (12, Some(15)));
    let few = graph.nearest(5).unwrap();
    let message = cluster(&features, Some(&few), &model, &params, &()).unwrap_err().to_string();
    let expected = "graph: expected 12 neighbours, as the model wants (-k sets another number), found 5";
    assert_eq!(message, expected);
}

#[test]
fn one_row_is_one_cluster() {
    let features = Embeddings::from_rows(vec![1.0; 6], 6, "test").unwrap();
    let model = biased(model(8, 6, true));
    let found = cluster(&features, None, &model, &ApplyParams::of(&model), &()).unwrap();
    assert_eq!(found.clustering.labels, [0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (features, _) = set(9, 20, 5, 3);
    let model = biased(model(10, 6, true));
    let mut params = ApplyParams::of(&model);
    let message =
        |features, params: &_| cluster(features, None, &model, params, &()).unwrap_err().to_string();
    assert_eq!(
        message(&features, &params),
        "model: expected 6 columns of features (what the model was trained on), found 5"
    );
    let (features, _) = set(9, 20, 6, 3);
    params.config.rebuild = false;
    assert_eq!(
        message(&features, &params),
        "model: expected GCN-E for rows of 6, the columns of the features, which are not rebuilt, found for rows of 9"
    );
    params.config.rho = 1.5;
    assert_eq!(message(&features, &params), "--rho: expected a share from 0 to 1, found 1.5");
}

#[test]
fn without_rebuilding_the_candidates_are_those_of_the_input() {
    let (features, graph) = set(11, 200, 6, 12);
    let mut model = biased(model(12, 6, false));
    model.gcn_e = Some(network(13, 6, &[8, 4], 1));
    model.config.rebuild = false;
    let found = cluster(&features, None, &model, &ApplyParams::of(&model), &()).unwrap();
    assert!(found.rebuilt.is_none());
    for i in 0..features.len() {
        let parents = found.clustering.links.of(i).0;
        assert!(parents.iter().all(|j| graph.neighbours(i).0.contains(j)));
    }
}

#[test]
fn the_highest_connectivity_wins_and_ties_go_to_the_nearer() {
    let ids = vec![1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2];
    let similarities = vec![0.9, 0.8, -0.7, 0.9, 0.5, 0.4, 0.8, 0.5, 0.3, 0.4, 0.3, -0.7];
    let graph = KnnGraph::from_parts(4, 3, ids, similarities, "test").unwrap();
    let confidence = [0.1, 0.2, 0.3, 0.4];
    let connectivity = |values: [f32; 3]| Connectivity {
        vertices: vec![0],
        offsets: vec![0, 3],
        candidates: vec![1, 2, 3],
        similarities: vec![0.9, 0.8, -0.7],
        values: values.to_vec(),
    };
    let parent =
        |values| connected_candidates(&graph, &confidence, 1, Some(&connectivity(values))).unwrap().parent(0);
    assert_eq!(parent([0.1, 0.5, 0.5]), Some((2, 0.8)));
    assert_eq!(parent([0.1, 0.5, 0.6]), Some((3, 0.0)), "similarities are clipped");
    let links = connected_candidates(&graph, &confidence, 2, Some(&connectivity([0.4, 0.1, 0.6]))).unwrap();
    assert_eq!(links.of(0), (&[3, 1][..], &[0.0, 0.9][..]));
    assert_eq!(connected_candidates(&graph, &confidence, 1, None).unwrap().parent(0), Some((1, 0.9)));
}

/// What L-GCN sees of pivot `p`, and its probabilities, from sets and dense matrices.
fn naive_links(
    network: &GraphNetwork,
    rows: &Rows,
    graph: &KnnGraph,
    shape: &PivotShape,
    p: u32,
) -> Vec<f64> {
    let nearest = |i: u32, count: usize| graph.neighbours(i as usize).0.iter().copied().take(count);
    let mut nodes = vec![p];
    nodes.extend(nearest(p, shape.k1));
    for i in nearest(p, shape.k1) {
        nodes.extend(nearest(i, shape.k2));
    }
    nodes.sort_unstable();
    nodes.dedup();
    let joined = |i: u32, j: u32| nearest(i, shape.active).any(|n| n == j);
    let adjacency: Rows = nodes
        .iter()
        .map(|&i| {
            let row: Vec<f64> =
                nodes.iter().map(|&j| f64::from(u8::from(joined(i, j) || joined(j, i)))).collect();
            match row.iter().sum::<f64>() {
                0.0 => nodes.iter().map(|&j| f64::from(u8::from(i == j))).collect(),
                sum => row.iter().map(|value| value / sum).collect(),
            }
        })
        .collect();
    let differences = nodes
        .iter()
        .map(|&i| rows[i as usize].iter().zip(&rows[p as usize]).map(|(own, pivot)| own - pivot).collect())
        .collect();
    let (_, outputs) = forward(network, differences, &adjacency);
    let place = |j| nodes.iter().position(|&node| node == j).unwrap();
    nearest(p, shape.k1)
        .map(|j| match outputs[place(j)][..] {
            [different, same] => same.exp() / (same.exp() + different.exp()),
            _ => outputs[place(j)][0],
        })
        .collect()
}

/// Pseudo-label propagation by walking over a dense matrix, again and again on what is left.
fn naive_propagation(graph: &KnnGraph, links: &LinkProbabilities, th: f32, limit: &SizeLimit) -> Vec<i64> {
    let n = graph.len();
    let mut answers: Vec<Vec<Vec<f32>>> = vec![vec![Vec::new(); n]; n];
    for (at, &answer) in links.values.iter().enumerate() {
        let i = at / links.k1;
        let j = graph.neighbours(i).0[at % links.k1] as usize;
        answers[i][j].push(answer);
        answers[j][i].push(answer);
    }
    let weight = |i: usize, j: usize| match answers[i][j].len() {
        0 => None,
        count => Some(answers[i][j].iter().sum::<f32>() / count as f32).filter(|&weight| weight >= th),
    };
    let all = (0..n * n).filter_map(|ij| weight(ij / n, ij % n));
    let mut least = all.fold(1.0, |least: f64, weight| least.min(weight.into()));
    let (mut labels, mut next) = (vec![-1; n], 0);
    let mut left: Vec<usize> = (0..n).collect();
    for round in 0..=limit.rounds {
        let mut too_large = Vec::new();
        let mut seen = vec![false; n];
        for &first in &left {
            if std::mem::replace(&mut seen[first], true) {
                continue;
            }
            let mut group = vec![first];
            let mut at = 0;
            while at < group.len() {
                for &j in &left {
                    if !seen[j] && weight(group[at], j).is_some_and(|weight| f64::from(weight) >= least) {
                        seen[j] = true;
                        group.push(j);
                    }
                }
                at += 1;
            }
            if group.len() > limit.max_size && round < limit.rounds {
                too_large.extend(group);
            } else {
                group.iter().for_each(|&i| labels[i] = next);
                next += 1;
            }
        }
        left = too_large;
        least += (1.0 - least) * f64::from(limit.step);
    }
    kinfolk::number_by_size(&labels)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn links_are_those_of_the_formula(
        seed: u64,
        n in 2usize..60,
        k in 1usize..12,
        dim in 1usize..6,
        widths in prop::collection::vec(1usize..7, 1..5),
        outputs in 1usize..3,
        (k1, k2, active) in (1usize..14, 0usize..5, 1usize..5),
    ) {
        let network = network(seed, dim, &widths, outputs);
        let (features, graph) = set(seed ^ 1, n, dim, k);
        let shape = PivotShape { k1, k2, active };
        let found = link_probabilities(&network, &features, &graph, &shape, &()).unwrap();
        prop_assert_eq!(found.k1, k1.min(graph.k()));
        let rows = rows_of(&features);
        for p in 0..n {
            let expected = naive_links(&network, &rows, &graph, &shape, p as u32);
            let found = &found.values[p * found.k1..][..found.k1];
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                prop_assert!(close(*found, expected), "{found} {expected}");
            }
        }
    }

    #[test]
    fn propagation_is_that_of_walking(
        seed: u64,
        n in 2usize..40,
        k in 1usize..8,
        k1 in 1usize..8,
        th in 0.0f32..0.8,
        max_size in 1usize..12,
        step in 0.05f32..1.0,
        rounds in 1usize..30,
    ) {
        let (_, graph) = set(seed, n, 3, k);
        let k1 = k1.min(graph.k());
        let values = crate::testing::Numbers(seed).many(n * k1).iter().map(|v| (v + 1.0) / 2.0).collect();
        let links = LinkProbabilities { k1, values };
        let limit = SizeLimit { max_size, step, rounds };
        let found = propagate(&graph, &links, th, &limit, &()).unwrap();
        prop_assert_eq!(found, naive_propagation(&graph, &links, th, &limit));
    }
}

#[test]
fn threads_change_no_link() {
    let (features, graph) = set(1, 3000, 6, 12);
    let network = network(2, 6, &[8, 8, 4, 4], 2);
    let params = LgcnParams {
        th: 0.3,
        limit: SizeLimit { max_size: 40, ..SizeLimit::default() },
        ..LgcnParams::default()
    };
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let links = link_probabilities(&network, &features, &graph, &params.shape, &()).unwrap();
            (links, lgcn(&features, &graph, &network, &params, &()).unwrap())
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn lgcn_of_one_row_is_one_cluster() {
    let features = Embeddings::from_rows(vec![1.0; 6], 6, "test").unwrap();
    let graph = KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap();
    let network = network(2, 6, &[8, 4], 2);
    assert_eq!(lgcn(&features, &graph, &network, &LgcnParams::default(), &()).unwrap(), [0]);
}

#[test]
fn what_lgcn_cannot_do_is_refused() {
    let (features, graph) = set(9, 20, 5, 3);
    let network = network(2, 6, &[8, 4], 2);
    let message =
        |params: LgcnParams| lgcn(&features, &graph, &network, &params, &()).unwrap_err().to_string();
    let usual = LgcnParams::default();
    assert_eq!(message(usual.clone()), "L-GCN: expected 6 columns of features, found 5");
    let shape = PivotShape { k1: 0, ..usual.shape };
    assert_eq!(message(LgcnParams { shape, ..usual.clone() }), "--k1: expected at least 1, found 0");
    let shape = PivotShape { active: 0, ..usual.shape };
    assert_eq!(message(LgcnParams { shape, ..usual.clone() }), "--active: expected at least 1, found 0");
    assert_eq!(
        message(LgcnParams { th: 2.0, ..usual.clone() }),
        "--th: expected a probability from 0 to 1, found 2"
    );
    let limit = SizeLimit { max_size: 0, ..usual.limit.clone() };
    assert_eq!(message(LgcnParams { limit, ..usual.clone() }), "--max-size: expected at least 1, found 0");
    let limit = SizeLimit { step: 0.0, ..usual.limit.clone() };
    assert_eq!(
        message(LgcnParams { limit, ..usual }),
        "--step: expected a share above 0, at most 1, found 0"
    );
}

/// A few overlapping sets of rows.
fn made_up_proposals(seed: u64, n: usize, count: usize) -> Proposals {
    let mut numbers = crate::testing::Numbers(seed);
    let mut all = Proposals::default();
    for _ in 0..count {
        let mut members: Vec<u32> = (0..n as u32).filter(|_| numbers.next() > 0.4).collect();
        if members.is_empty() {
            members.push(count as u32 % n as u32);
        }
        all.push(&members);
    }
    all
}

/// F_L and outputs of a network over a proposal, with rows that are seen from `from` and have `extra` as last column.
fn naive_proposal(
    network: &GraphNetwork,
    rows: &Rows,
    adjacency: &Rows,
    members: &[u32],
    from: &[f64],
    extra: impl Fn(usize) -> f64,
) -> (Rows, Rows) {
    let sub: Rows = members
        .iter()
        .map(|&i| {
            let row: Vec<f64> = members.iter().map(|&j| adjacency[i as usize][j as usize]).collect();
            let sum: f64 = row.iter().sum();
            row.iter().map(|value| value / sum).collect()
        })
        .collect();
    let x = members.iter().map(|&i| {
        let mut row: Vec<f64> = rows[i as usize].iter().zip(from).map(|(own, from)| own - from).collect();
        row.push(extra(i as usize));
        row
    });
    forward(network, x.collect(), &sub)
}

/// Rows are given to the first proposal, by score, that has them.
fn naive_de_overlapping(n: usize, proposals: &Proposals, scores: &[f32], least: f32) -> Vec<i64> {
    let better = |a: usize, b: usize| {
        let key = |at: usize| (scores[at], proposals.members(at).len());
        key(a).0 > key(b).0
            || (key(a).0 == key(b).0 && (key(a).1 > key(b).1 || (key(a).1 == key(b).1 && a < b)))
    };
    let name = |i: usize| {
        let mut best: Option<usize> = None;
        for (at, members) in proposals.iter().enumerate() {
            let has = members.contains(&(i as u32)) && scores[at] >= least;
            if has && best.is_none_or(|best| better(at, best)) {
                best = Some(at);
            }
        }
        best.map_or(i as i64, |at| (n + at) as i64)
    };
    kinfolk::number_by_size(&(0..n).map(name).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn scores_of_proposals_are_those_of_the_formula(
        seed: u64,
        n in 2usize..50,
        k in 1usize..9,
        dim in 1usize..6,
        widths in prop::collection::vec(1usize..7, 1..4),
        count in 1usize..20,
    ) {
        let network = network(seed, dim + 1, &widths, 1);
        let (features, graph) = set(seed ^ 1, n, dim, k);
        let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
        let proposals = made_up_proposals(seed ^ 2, n, count);
        let found = proposal_scores(&network, &features, &adjacency, &proposals, &()).unwrap();
        let (rows, dense) = (rows_of(&features), dense(&adjacency));
        for (members, found) in proposals.iter().zip(found) {
            let mean: Vec<f64> = (0..dim)
                .map(|d| members.iter().map(|&i| rows[i as usize][d]).sum::<f64>() / members.len() as f64)
                .collect();
            let inside = |i: usize| members.iter().map(|&j| dense[i][j as usize]).sum();
            let (f_l, _) = naive_proposal(&network, &rows, &dense, members, &mean, inside);
            let most = (0..network.width())
                .map(|c| f_l.iter().fold(f64::NEG_INFINITY, |most, row| most.max(row[c])))
                .collect::<Vec<f64>>();
            let hidden = affine(&network.hidden, &most);
            let bent = hidden.iter().zip(&network.slopes);
            let bent: Vec<f64> = bent.map(|(&v, &s)| if v < 0.0 { v * f64::from(s) } else { v }).collect();
            let expected = affine(&network.output, &bent)[0];
            prop_assert!(close(found, expected), "{found} {expected}");
        }
    }

    #[test]
    fn outliers_are_those_of_the_formula(
        seed: u64,
        n in 2usize..50,
        k in 1usize..9,
        dim in 1usize..6,
        widths in prop::collection::vec(1usize..7, 1..4),
        count in 1usize..12,
    ) {
        let network = network(seed, dim + 1, &widths, 2);
        let (features, graph) = set(seed ^ 1, n, dim, k);
        let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
        let proposals = made_up_proposals(seed ^ 2, n, count);
        let scores: Vec<f32> = (0..count).map(|at| at as f32 / count as f32).collect();
        let found =
            ltc::segmented(&network, &features, &adjacency, &proposals, &scores, [0.2, 0.8], 2, &()).unwrap();
        let (rows, dense) = (rows_of(&features), dense(&adjacency));
        let mut expected = Proposals::default();
        for (members, _) in proposals.iter().zip(&scores).filter(|(_, score)| (0.2..=0.8).contains(*score)) {
            let mut most: Vec<u32> = Vec::new();
            let seeds = members.len().min(4);
            for s in 0..seeds {
                let seed = members[(2 * s + 1) * members.len() / (2 * seeds)];
                let marked = |i: usize| f64::from(u8::from(i == seed as usize));
                let from = &rows[seed as usize];
                let (_, outputs) = naive_proposal(&network, &rows, &dense, members, from, marked);
                // What is on the edge may fall on either side.
                prop_assume!(outputs.iter().all(|o| (o[0] - o[1]).abs() > 1e-3));
                let left: Vec<u32> =
                    members.iter().zip(outputs).filter(|(_, o)| o[1] > o[0]).map(|(&i, _)| i).collect();
                if left.len() > most.len() {
                    most = left;
                }
            }
            if most.len() >= 2 && most.len() < members.len() {
                expected.push(&most);
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn the_best_proposal_takes_its_rows_first(
        seed: u64,
        n in 1usize..30,
        count in 0usize..20,
        scores in prop::collection::vec(0u8..5, 20),
        least in 0.0f32..0.8,
    ) {
        let proposals = made_up_proposals(seed, n, count);
        let scores: Vec<f32> = scores.iter().take(count).map(|&score| f32::from(score) / 5.0).collect();
        prop_assert_eq!(
            de_overlapped(n, &proposals, &scores, least),
            naive_de_overlapping(n, &proposals, &scores, least)
        );
    }

    #[test]
    fn proposals_hang_together_and_are_there_once(seed: u64, n in 2usize..80, k in 1usize..8, max_size in 3usize..20) {
        let (features, graph) = set(seed, n, 3, k);
        let limit = SizeLimit { max_size, ..SizeLimit::default() };
        let settings = [-0.5, 0.3, 0.9].map(|th| ProposalSetting { k: 5, th }).to_vec();
        let params = ProposalParams { settings, limit, min_size: 2, levels: 1 };
        let found = proposals(&features, &graph, &params, &()).unwrap();
        let mut all: Vec<&[u32]> = found.iter().collect();
        for members in &all {
            prop_assert!(members.len() >= 2 && members.is_sorted());
            prop_assert!(members.iter().all(|&i| (i as usize) < n));
        }
        all.sort();
        let before = all.len();
        all.dedup();
        prop_assert_eq!(all.len(), before, "the same proposal twice");
        // Those of the first level are what limited_components finds.
        for setting in &params.settings {
            let mut edges = Vec::new();
            for i in 0..n {
                let (ids, similarities) = graph.neighbours(i);
                let near = ids.iter().zip(similarities).take(setting.k);
                edges.extend(near.filter(|e| *e.1 >= setting.th).map(|(&j, &s)| (i as u32, j, s.min(1.0))));
            }
            let names = kinfolk::limited_components(n, edges, &params.limit, &()).unwrap();
            for name in 0..n as u32 {
                let members: Vec<u32> = (0..n as u32).filter(|&i| names[i as usize] == name).collect();
                if members.len() >= 2 {
                    prop_assert!(all.binary_search(&&members[..]).is_ok());
                }
            }
        }
    }
}

#[test]
fn super_vertices_are_joined_by_their_means() {
    // Four pairs on a circle, the first two near each other, and the last two.
    let angles = [0.0f32, 0.02, 0.3, 0.32, 2.0, 2.02, 2.3, 2.32];
    let rows: Vec<f32> = angles.iter().flat_map(|angle| [angle.cos(), angle.sin()]).collect();
    let features = Embeddings::from_rows(rows, 2, "test").unwrap();
    let graph = kinfolk::knn_graph(&features, &KnnParams { k: 1, ..KnnParams::default() }, &()).unwrap().0;
    let settings = vec![ProposalSetting { k: 1, th: 0.9 }];
    let params = ProposalParams { settings, min_size: 2, ..ProposalParams::default() };
    let found = proposals(&features, &graph, &params, &()).unwrap();
    let found: Vec<&[u32]> = found.iter().collect();
    let expected: [&[u32]; 6] = [&[0, 1], &[2, 3], &[4, 5], &[6, 7], &[0, 1, 2, 3], &[4, 5, 6, 7]];
    assert_eq!(found, expected);
}

#[test]
fn threads_change_no_proposal() {
    let (features, graph) = set(1, 3000, 6, 12);
    let networks = [network(2, 7, &[8, 4], 1), network(3, 7, &[8, 4], 2)];
    let settings = [0.2, 0.6, 0.9].map(|th| ProposalSetting { k: 12, th }).to_vec();
    let limit = SizeLimit { max_size: 40, ..SizeLimit::default() };
    let params = LtcParams {
        proposals: ProposalParams { settings, limit, ..ProposalParams::default() },
        segment: Some([0.0, 1.0]),
        ..LtcParams::default()
    };
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| ltc(&features, &graph, [&networks[0], &networks[1]], &params, &()).unwrap())
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn ltc_of_one_row_is_one_cluster() {
    let features = Embeddings::from_rows(vec![1.0; 6], 6, "test").unwrap();
    let graph = KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap();
    let networks = [network(2, 7, &[8, 4], 1), network(3, 7, &[8, 4], 2)];
    let found = ltc(&features, &graph, [&networks[0], &networks[1]], &LtcParams::default(), &()).unwrap();
    assert_eq!(found, [0]);
}

#[test]
fn what_ltc_cannot_do_is_refused() {
    let (features, graph) = set(9, 20, 5, 3);
    let networks = [network(2, 7, &[8, 4], 1), network(3, 7, &[8, 4], 2)];
    let message = |params: LtcParams| {
        ltc(&features, &graph, [&networks[0], &networks[1]], &params, &()).unwrap_err().to_string()
    };
    let usual = LtcParams::default();
    assert_eq!(message(usual.clone()), "GCN-D: expected 7 columns of features, and one more, found 6");
    assert_eq!(
        message(LtcParams { least: 1.5, ..usual.clone() }),
        "--least: expected an IoU from 0 to 1, found 1.5"
    );
    assert_eq!(
        message(LtcParams { segment: Some([0.7, 0.3]), ..usual.clone() }),
        "--segment: expected IoUs from 0 to 1, the smaller first, found 0.7 to 0.3"
    );
    let with = |proposals| LtcParams { proposals, ..usual.clone() };
    let none = ProposalParams { settings: vec![], ..usual.proposals.clone() };
    assert_eq!(message(with(none)), "--settings: expected at least 1, found 0");
    let small = ProposalParams { min_size: 1, ..usual.proposals.clone() };
    assert_eq!(message(with(small)), "--min-size: expected at least 2, found 1");
    let settings = vec![ProposalSetting { k: 3, th: 7.0 }];
    let far = ProposalParams { settings, ..usual.proposals.clone() };
    assert_eq!(message(with(far)), "--th: expected a similarity from -1 to 1, found 7");
}
