//! The published networks, imported, give the answers that PyTorch gave.

mod fixture;

use fixture::Found;
use kinfolk::io::{ReadOptions, read_embeddings};
use kinfolk::stages::Adjacency;
use kinfolk::{Clustering, Context, KnnParams, Problem, knn_graph};
use kinfolk_nn::stages::vertex_confidence;
use kinfolk_nn::{Gcn, GcnConfig, GcnModel, read_checkpoint};

fn found(clustering: &Clustering) -> Found {
    let links = &clustering.tree().unwrap().links;
    let parents =
        (0..links.len()).map(|i| links.parent(i).map_or((-1.0, 0.0), |(j, a)| (j.into(), a.into())));
    let (parents, similarities) = parents.unzip();
    let confidence = links.confidence().iter().map(|&c| c.into()).collect();
    Found { confidence, parents, similarities, labels: clustering.labels.clone() }
}

#[test]
fn the_library_agrees_with_the_published_networks() {
    let Some(directory) = fixture::directory() else { return };
    let expected = fixture::expected(&directory);
    let features = read_embeddings(&directory.join("features.npy"), &ReadOptions::default()).unwrap();
    let config = GcnConfig { k: 20, k_rebuild: 40, tau: 0.7, tau_v: 0.7, rho: 0.2, ..GcnConfig::default() };
    let gcn_v = read_checkpoint(&directory.join("gcn_v.pth")).unwrap();
    let gcn_e = read_checkpoint(&directory.join("gcn_e.pth")).unwrap();
    let model = GcnModel { gcn_v, gcn_e: Some(gcn_e), config };

    let params = KnnParams { k: 20, ..KnnParams::default() };
    let (graph, _) = knn_graph(&features, &params, &()).unwrap();
    let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
    let estimate = vertex_confidence(&model.gcn_v, &features, &adjacency, true, &()).unwrap();
    let head = &expected["embedding_head"];
    let embeddings: Vec<f64> = estimate.embeddings[..head.len()].iter().map(|&v| v.into()).collect();
    let worst = fixture::largest_difference(&embeddings, head);
    assert!(worst <= 1e-4, "embeddings differ by {worst}");

    let (problem, context) = (Problem::new(&features), Context::default());
    let ve = Gcn::new(model.clone()).apply(&problem, &context).unwrap();
    fixture::compare(&found(&ve.clustering), &expected, "ve");
    let problem = problem.with_graph(&graph).unwrap();
    let v = Gcn::vertex_only(model).apply(&problem, &context).unwrap();
    fixture::compare(&found(&v.clustering), &expected, "v");

    let connectivity = ve.connectivity.unwrap();
    let (vertices, offsets) = (&expected["conn_vertex"], &expected["conn_ptr"]);
    let mut worst: f64 = 0.0;
    for (i, range) in vertices.iter().zip(offsets.windows(2)) {
        let range = range[0] as usize..range[1] as usize;
        let rank = connectivity.vertices.iter().position(|&j| f64::from(j) == *i).unwrap();
        let own = connectivity.offsets[rank]..connectivity.offsets[rank + 1];
        assert_eq!(own.len(), range.len(), "candidates of {i}");
        for entry in range {
            let neighbour = expected["conn_neighbour"][entry];
            let at = own.clone().find(|&at| f64::from(connectivity.candidates[at]) == neighbour).unwrap();
            worst = worst.max((f64::from(connectivity.values[at]) - expected["conn_value"][entry]).abs());
        }
    }
    println!("connectivity within {worst:.1e}");
    assert!(worst <= 1e-4, "connectivity differs by {worst}");
}
