//! Long calls end soon, with `Error::Cancelled`, once they are cancelled.

mod fuse;

use fuse::ends_wherever_it_is_cancelled;
use kinfolk::stages::{MapParams, SizeLimit, WeightedGraph, limited_components, map_equation};
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{
    Clusterer, Context, Embeddings, KinTraining, KnnParams, Problem, Search, knn_graph, train_kin,
};

fn faces(identities: usize) -> (Embeddings, Vec<i64>) {
    let params = SynthParams { identities, dim: 16, seed: 3, ..SynthParams::default() };
    Synth::new(params).unwrap().whole().to_embeddings().unwrap()
}

#[test]
fn every_stage_ends_wherever_it_is_cancelled() {
    let (rows, _) = faces(60);
    let knn = |search| KnnParams { k: 12, search, ..KnnParams::default() };
    let (graph, _) = knn_graph(&rows, &knn(Search::Exact), &()).unwrap();
    let weights: Vec<f32> = (0..graph.len()).flat_map(|i| graph.neighbours(i).1.to_vec()).collect();
    let weights: Vec<f32> = weights.into_iter().map(|weight| weight.clamp(0.0, 1.0)).collect();
    let weighted = WeightedGraph::from_knn(&graph, &weights).unwrap();
    ends_wherever_it_is_cancelled("kin", |progress| Clusterer::new().progress(progress).fit(&rows));
    ends_wherever_it_is_cancelled("exact search", |progress| knn_graph(&rows, &knn(Search::Exact), progress));
    ends_wherever_it_is_cancelled("join", |progress| knn_graph(&rows, &knn(Search::Recall(0.9)), progress));
    ends_wherever_it_is_cancelled("map equation", |progress| {
        map_equation(&weighted, &MapParams::default(), progress)
    });
    ends_wherever_it_is_cancelled("limited components", |progress| {
        let edges = (1..100).map(|i| (i - 1, i, 0.5)).collect();
        limited_components(100, edges, &SizeLimit { max_size: 3, ..SizeLimit::default() }, progress)
    });
}

#[test]
fn training_ends_wherever_it_is_cancelled() {
    let (rows, labels) = faces(20);
    let params = KinTraining { epochs: 2, ..KinTraining::default() };
    let problem = Problem::new(&rows).with_labels(&labels).unwrap();
    ends_wherever_it_is_cancelled("training", |progress| {
        train_kin(&problem, &params, &Context::new(progress))
    });
}

#[test]
fn a_file_that_is_not_finished_does_not_appear() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("features.npy");
    let synth = Synth::new(SynthParams { identities: 30, dim: 16, ..SynthParams::default() }).unwrap();
    ends_wherever_it_is_cancelled("writing", |progress| {
        let _ = std::fs::remove_file(&path);
        let result = synth.whole().write_features(&path, progress);
        assert_eq!(path.exists(), result.is_ok());
        result
    });
}
