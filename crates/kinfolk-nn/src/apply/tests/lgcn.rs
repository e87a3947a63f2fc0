//! L-GCN.

use super::*;

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
    kinfolk::stages::number_by_size(&labels)
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
        let values = crate::testing::Numbers::new(seed).many(n * k1).iter().map(|v| (v + 1.0) / 2.0).collect();
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
    let default = LgcnParams::default();
    assert_eq!(message(default.clone()), "L-GCN: expected 6 columns of features, found 5");
    let shape = PivotShape { k1: 0, ..default.shape };
    assert_eq!(message(LgcnParams { shape, ..default.clone() }), "k1: expected at least 1, found 0");
    let shape = PivotShape { active: 0, ..default.shape };
    assert_eq!(message(LgcnParams { shape, ..default.clone() }), "active: expected at least 1, found 0");
    assert_eq!(
        message(LgcnParams { th: 2.0, ..default.clone() }),
        "th: expected a probability from 0 to 1, found 2"
    );
    let limit = SizeLimit { max_size: 0, ..default.limit.clone() };
    assert_eq!(message(LgcnParams { limit, ..default.clone() }), "max_size: expected at least 1, found 0");
    let limit = SizeLimit { step: 0.0, ..default.limit.clone() };
    assert_eq!(
        message(LgcnParams { limit, ..default }),
        "step: expected a share above 0, at most 1, found 0"
    );
}
