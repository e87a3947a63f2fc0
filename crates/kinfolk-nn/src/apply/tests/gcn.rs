//! GCN-V and GCN-E.

use super::*;

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
    let expected = "graph: expected 12 neighbours, as the model expects, found 5";
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
    assert_eq!(message(&features, &params), "rho: expected a share from 0 to 1, found 1.5");
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
