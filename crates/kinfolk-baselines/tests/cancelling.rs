//! Every method ends soon, with `Error::Cancelled`, once it is cancelled.

#[path = "../../kinfolk/tests/fuse/mod.rs"]
mod fuse;

use fuse::ends_wherever_it_is_cancelled;
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{Context, KnnParams, Method, Problem, knn_graph};
use kinfolk_baselines::*;

#[test]
fn every_method_ends_wherever_it_is_cancelled() {
    let params = SynthParams { identities: 40, dim: 16, seed: 3, ..SynthParams::default() };
    let (rows, _) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
    let (graph, _) = knn_graph(&rows, &KnnParams { k: 12, ..KnnParams::default() }, &()).unwrap();
    let clusters = Some(40);
    let average = Hac { linkage: Linkage::Average, clusters, ..Default::default() };
    let single = Hac { linkage: Linkage::Single, ..average.clone() };
    let spectral = |assign| Spectral { clusters: Some(20), assign };
    let methods: [(&str, Box<dyn Method>, bool); 19] = [
        ("kmeans", Box::new(Kmeans { clusters, ..Default::default() }), false),
        ("minibatch kmeans", Box::new(MinibatchKmeans { clusters, batch: 64, ..Default::default() }), false),
        ("hac", Box::new(average.clone()), false),
        ("hac on a graph", Box::new(average), true),
        ("single linkage on a graph", Box::new(single), true),
        ("dbscan", Box::new(Dbscan::default()), false),
        ("dbscan on a graph", Box::new(DbscanKnn::default()), true),
        ("meanshift", Box::new(Meanshift::default()), false),
        ("hdbscan", Box::new(Hdbscan::default()), false),
        ("hdbscan on a graph", Box::new(Hdbscan::default()), true),
        ("optics", Box::new(Optics::default()), true),
        ("spectral with kmeans", Box::new(spectral(Assign::Kmeans)), true),
        ("spectral with rotations", Box::new(spectral(Assign::Discretise)), true),
        ("aro", Box::new(Aro::default()), true),
        ("cdp", Box::new(Cdp::default()), true),
        ("chinese whispers", Box::new(ChineseWhispers::default()), true),
        ("infomap", Box::new(Infomap::default()), true),
        ("facemap", Box::new(FaceMap::default()), true),
        ("fc-es", Box::new(FcEs::default()), true),
    ];
    for (name, method, on_graph) in methods {
        let problem = if on_graph { Problem::of_graph(&graph) } else { Problem::new(&rows) };
        ends_wherever_it_is_cancelled(name, |progress| method.run(&problem, &Context::new(progress)));
    }
}
