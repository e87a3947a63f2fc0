//! GCN-V and GCN-E.

use super::*;
use crate::{Gcn, GcnConfig, GcnModel, GcnResult};
use kinfolk::{Context, Method, Problem};

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
        // Candidate sets that are sparse, dense, and more than a tile.
        k in 1usize..48,
        dim in 1usize..6,
        widths in prop::collection::vec(1usize..7, 1..5),
        outputs in 1usize..3,
        rho in 0.0f32..=1.0,
        all: bool,
    ) {
        let network = network(seed, dim, &widths, outputs);
        let (features, graph) = set(seed ^ 1, n, dim, k);
        let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
        let confidence = kinfolk::stages::u_weight(&graph, 0.9).unwrap();
        let query = EdgeQuery { rho, candidates: if all { Candidates::AllNeighbours } else { Candidates::MoreConfident } };
        let found =
            edge_connectivity(&network, &features, &graph, &adjacency, &confidence, &query, &()).unwrap();
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
        let fewer = EdgeQuery { rho: rho / 2.0, ..query };
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

fn model(seed: u64, dim: usize, gcn_e: bool) -> GcnModel {
    let config = GcnConfig { k: 12, k_rebuild: 15, tau: 0.5, rho: 0.5, m: 2, ..GcnConfig::default() };
    let gcn_e = gcn_e.then(|| network(seed + 1, 9, &[8, 8, 4, 4], 2));
    GcnModel { gcn_v: network(seed, dim, &[9], 1), gcn_e, config }
}

/// Random weights can leave a row of F_L without a positive value; these do not.
fn biased(mut model: GcnModel) -> GcnModel {
    model.gcn_v.convolutions[0].bias.fill(2.0);
    model
}

fn apply(gcn: &Gcn, features: &Embeddings) -> Result<GcnResult> {
    gcn.apply(&Problem::new(features), &Context::default())
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (features, _) = set(1, 3000, 6, 5);
    let gcn = Gcn::new(biased(model(2, 6, true)));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| apply(&gcn, &features).unwrap())
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one.clustering.reason, three.clustering.reason);
    assert_eq!(one.connectivity, three.connectivity);
    assert_eq!(one.clustering.labels, three.clustering.labels);
    assert!(one.connectivity.unwrap().values.len() > 4 * 512, "too few rows for several batches");
}

#[test]
fn rho_zero_is_gcn_v_alone_and_says_so() {
    let (features, _) = set(3, 300, 6, 5);
    let model = biased(model(4, 6, true));
    let mut zero = Gcn::new(model.clone());
    assert_eq!(zero.info().name, "gcn-ve");
    zero.settings.rho = 0.0;
    assert_eq!(zero.info().name, "gcn-v");
    let zero = apply(&zero, &features).unwrap();
    assert_eq!(zero.clustering.report.method, "gcn-v");
    assert_eq!(zero.clustering.report.notes, ["GCN-E was not used: rho is 0"]);
    let mut without = Gcn::vertex_only(model);
    without.settings.tau = 0.5;
    assert!(without.parameters_mut().set("rho", "0.5").unwrap_err().to_string().contains("found rho"));
    let without = apply(&without, &features).unwrap();
    assert_eq!(zero.clustering.reason, without.clustering.reason);
    assert!(zero.connectivity.is_none() && without.connectivity.is_none());
}

#[test]
fn a_given_graph_is_cut_to_what_the_model_expects() {
    let (features, graph) = set(5, 100, 6, 30);
    let gcn = Gcn::new(biased(model(6, 6, false)));
    let own = apply(&gcn, &features).unwrap().clustering;
    let on =
        |graph: &KnnGraph| gcn.run(&Problem::new(&features).with_graph(graph).unwrap(), &Context::default());
    let given = on(&graph).unwrap();
    assert_eq!(own.reason, given.reason);
    assert_eq!((given.report.k(), given.report.rebuilt_graph.map(|graph| graph.k)), (Some(12), Some(15)));
    let message = on(&graph.nearest(5).unwrap()).unwrap_err().to_string();
    assert_eq!(message, "graph: expected 12 neighbours, as the model expects, found 5");
}

#[test]
fn one_row_is_one_cluster() {
    let features = Embeddings::from_rows(vec![1.0; 6], 6, "test").unwrap();
    let found = apply(&Gcn::new(biased(model(8, 6, true))), &features).unwrap();
    assert_eq!(found.clustering.labels, [0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (features, _) = set(9, 20, 5, 3);
    let mut gcn = Gcn::new(biased(model(10, 6, true)));
    let message = |gcn: &Gcn, features| apply(gcn, features).unwrap_err().to_string();
    assert_eq!(
        message(&gcn, &features),
        "embeddings: expected 6 columns, as the model was trained on, found 5"
    );
    let (features, _) = set(9, 20, 6, 3);
    gcn.settings.rebuild = false;
    assert_eq!(
        message(&gcn, &features),
        "model: expected GCN-E for rows of 6, the columns of the features, which are not rebuilt, found for rows of 9"
    );
    gcn.settings.rho = 1.5;
    assert_eq!(message(&gcn, &features), "rho: expected a share from 0 to 1, found 1.5");
}

#[test]
fn without_rebuilding_the_candidates_are_those_of_the_input() {
    let (features, graph) = set(11, 200, 6, 12);
    let mut model = biased(model(12, 6, false));
    model.gcn_e = Some(network(13, 6, &[8, 4], 1));
    model.config.rebuild = false;
    let found = apply(&Gcn::new(model), &features).unwrap().clustering;
    assert!(found.report.rebuilt_graph.is_none());
    let tree = found.tree().unwrap();
    for i in 0..features.len() {
        let parents = tree.links.of(i).0;
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
