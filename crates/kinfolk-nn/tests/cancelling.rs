//! Training and applying networks end soon, with `Error::Cancelled`, once they are cancelled.

#![cfg(feature = "training")]

#[path = "../../kinfolk/tests/fuse/mod.rs"]
mod fuse;

use fuse::ends_wherever_it_is_cancelled;
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{Context, Embeddings, KnnGraph, KnnParams, Problem, knn_graph};
use kinfolk_nn::stages::{lgcn, ltc};
use kinfolk_nn::training::*;
use kinfolk_nn::*;

fn ten_neighbours() -> KnnParams {
    KnnParams { k: 10, ..KnnParams::default() }
}

fn faces() -> (Embeddings, Vec<i64>, KnnGraph) {
    let params = SynthParams { identities: 24, dim: 16, ..SynthParams::default() };
    let (rows, labels) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
    let graph = knn_graph(&rows, &ten_neighbours(), &()).unwrap().0;
    (rows, labels, graph)
}

fn quick() -> FitParams {
    FitParams { epochs: 2, examples: 100, validation: 0.25, ..FitParams::default() }
}

#[test]
fn gcn_ends_wherever_it_is_cancelled() {
    let (rows, labels, graph) = faces();
    let gcn_v = GcnVParams { convolutions: vec![8], hidden: 8, fit: quick(), ..Default::default() };
    let gcn_e = GcnEParams { convolutions: vec![8], hidden: 8, fit: quick(), ..Default::default() };
    ends_wherever_it_is_cancelled("GCN-V", |progress| train_gcn_v(&rows, &labels, &graph, &gcn_v, progress));
    let params = TrainParams { gcn_v, gcn_e: Some(gcn_e), k_rebuild: Some(10), choices: Default::default() };
    let problem = Problem::new(&rows).with_labels(&labels).unwrap().with_k(Some(10)).unwrap();
    let run = |progress: &dyn kinfolk::Progress| {
        train(&problem, &params, None, &mut |_| Ok(()), &Context::new(progress))
    };
    ends_wherever_it_is_cancelled("training", run);
    let mut gcn = Gcn::new(run(&()).unwrap().model);
    // Whatever was found to be best, both networks are used.
    gcn.settings.rho = 0.5;
    ends_wherever_it_is_cancelled("clustering", |progress| {
        Ok(gcn.apply(&problem, &Context::new(progress))?.clustering)
    });
}

#[test]
fn lgcn_ends_wherever_it_is_cancelled() {
    let (rows, labels, graph) = faces();
    let params = LgcnTraining { convolutions: vec![8], hidden: 8, fit: quick(), ..Default::default() };
    let run = |progress: &dyn kinfolk::Progress| train_lgcn(&rows, &labels, &graph, &params, progress);
    ends_wherever_it_is_cancelled("training", run);
    let model = run(&()).unwrap().model;
    let (network, params) = (model.network(), model.params());
    ends_wherever_it_is_cancelled("lgcn", |progress| lgcn(&rows, &graph, network, &params, progress));
}

#[test]
fn ltc_ends_wherever_it_is_cancelled() {
    let (rows, labels, graph) = faces();
    let params = LtcTraining { convolutions: vec![8], hidden: 8, fit: quick(), ..Default::default() };
    let run = |progress: &dyn kinfolk::Progress| train_ltc(&rows, &labels, &graph, &params, progress);
    ends_wherever_it_is_cancelled("training", run);
    let model = run(&()).unwrap().model;
    let (networks, params) = (model.networks(), model.params());
    ends_wherever_it_is_cancelled("ltc", |progress| ltc(&rows, &graph, networks, &params, progress));
}
