//! LTC.

use super::*;

/// A few overlapping sets of rows.
fn made_up_proposals(seed: u64, n: usize, count: usize) -> Proposals {
    let mut numbers = crate::testing::Numbers::new(seed);
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
    kinfolk::stages::number_by_size(&(0..n).map(name).collect::<Vec<_>>())
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
            crate::apply::ltc::segmented(&network, &features, &adjacency, &proposals, &scores, [0.2, 0.8], 2, &()).unwrap();
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
            let names = kinfolk::stages::limited_components(n, edges, &params.limit, &()).unwrap();
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
    let default = LtcParams::default();
    assert_eq!(message(default.clone()), "GCN-D: expected 7 columns of features, and one more, found 6");
    assert_eq!(
        message(LtcParams { least: 1.5, ..default.clone() }),
        "least: expected an IoU from 0 to 1, found 1.5"
    );
    assert_eq!(
        message(LtcParams { segment: Some([0.7, 0.3]), ..default.clone() }),
        "segment: expected IoUs from 0 to 1, the smaller first, found 0.7 to 0.3"
    );
    let with = |proposals| LtcParams { proposals, ..default.clone() };
    let none = ProposalParams { settings: vec![], ..default.proposals.clone() };
    assert_eq!(message(with(none)), "settings: expected at least 1, found 0");
    let small = ProposalParams { min_size: 1, ..default.proposals.clone() };
    assert_eq!(message(with(small)), "min_size: expected at least 2, found 1");
    let settings = vec![ProposalSetting { k: 3, th: 7.0 }];
    let far = ProposalParams { settings, ..default.proposals.clone() };
    assert_eq!(message(with(far)), "th: expected a similarity from -1 to 1, found 7");
}
