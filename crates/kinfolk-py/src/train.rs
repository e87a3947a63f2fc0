//! Training on labelled rows, with the choices of `kinfolk train`.

use crate::arrays::{Matrix, Neighbours, labels};
use crate::work::Manner;
use kinfolk::{Embeddings, Error, KinTraining, KnnGraph, KnnParams, Progress, knn_graph, train_kin};
use kinfolk_nn::{
    FitParams, GcnEParams, GcnVParams, KinModel, LgcnTraining, LtcTraining, PivotShape, TrainParams,
    train_lgcn, train_ltc,
};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Trains a model and returns its file.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the Python side has names for them")]
pub fn train<'py>(
    py: Python<'py>,
    x: Matrix,
    y: PyReadonlyArray1<'py, i64>,
    neighbours: Option<Neighbours>,
    method: String,
    k: Option<usize>,
    seed: u64,
    manner: Manner,
) -> PyResult<Bound<'py, PyBytes>> {
    let y = labels(&y);
    let usual = KnnParams::default();
    let knn = KnnParams { k: k.unwrap_or(usual.k), seed, ..usual };
    let model = manner.run(py, move |progress| {
        let embeddings = x.embeddings()?;
        let graph = neighbours.map(Neighbours::graph).transpose()?;
        match method.as_str() {
            "kin" => {
                // A K that was asked for is kept.
                let params = KinTraining { knn, grow: k.is_none(), ..KinTraining::default() };
                KinModel::from(train_kin(&embeddings, &y, graph.as_ref(), &params, progress)?).to_bytes()
            }
            "gcn-v" | "gcn-ve" => {
                networks(&embeddings, &y, graph.as_ref(), knn, method == "gcn-ve", progress)
            }
            "lgcn" => {
                let graph = searched(&embeddings, graph, &knn, progress)?;
                let usual = LgcnTraining::default();
                let shape = PivotShape { k1: usual.shape.k1.min(graph.k()).max(1), ..usual.shape };
                let params = LgcnTraining { shape, fit: FitParams { seed, ..usual.fit.clone() }, ..usual };
                train_lgcn(&embeddings, &y, &graph, &params, progress)?.model.to_bytes()
            }
            "ltc" => {
                let graph = searched(&embeddings, graph, &knn, progress)?;
                let usual = LtcTraining::default();
                let params = LtcTraining { fit: FitParams { seed, ..usual.fit.clone() }, ..usual };
                train_ltc(&embeddings, &y, &graph, &params, progress)?.model.to_bytes()
            }
            other => Err(Error::Parameter {
                field: "method",
                expected: "one that learns (kin, gcn-v, gcn-ve, lgcn or ltc)",
                found: other.to_owned(),
            }),
        }
    })?;
    Ok(PyBytes::new(py, &model))
}

/// The given graph, or one that is searched for.
fn searched(
    embeddings: &Embeddings,
    graph: Option<KnnGraph>,
    knn: &KnnParams,
    progress: &dyn Progress,
) -> kinfolk::Result<KnnGraph> {
    match graph {
        Some(graph) => Ok(graph),
        None => Ok(knn_graph(embeddings, knn, progress)?.0),
    }
}

fn networks(
    embeddings: &Embeddings,
    labels: &[i64],
    graph: Option<&KnnGraph>,
    mut knn: KnnParams,
    connectivity: bool,
    progress: &dyn Progress,
) -> kinfolk::Result<Vec<u8>> {
    knn.k = graph.map_or(knn.k, KnnGraph::k);
    let (mut gcn_v, mut gcn_e) = (GcnVParams::default(), GcnEParams::default());
    // Many steps for a small set; for a large one fewer, whose products are faster.
    let batch = (embeddings.len() / 800).next_power_of_two().clamp(64, 256);
    gcn_v.fit = FitParams { batch, seed: knn.seed, ..gcn_v.fit };
    gcn_e.fit = FitParams {
        learning_rate: gcn_v.fit.learning_rate,
        validation: gcn_v.fit.validation,
        seed: knn.seed,
        ..gcn_e.fit
    };
    let k_rebuild = knn.k;
    let params = TrainParams { knn, gcn_v, gcn_e: connectivity.then_some(gcn_e), k_rebuild };
    let trained = kinfolk_nn::train(embeddings, labels, graph, &params, None, &mut |_| Ok(()), progress)?;
    trained.model.to_bytes()
}
