//! Reads stored model files of every kind and version, so that old models stay readable.
//!
//! `KINFOLK_BLESS=1 cargo nextest run -p kinfolk-nn formats` writes those of the present version anew, for a new version.

use kinfolk::stages::EdgeModel;
use kinfolk::{Context, Embeddings, KinModel, Problem};
use kinfolk_nn::stages::{LgcnParams, LtcParams};
use kinfolk_nn::training::{FitParams, GcnEParams, GcnVParams, TrainParams, Unfinished, train};
use kinfolk_nn::{
    GcnConfig, GcnModel, GraphNetwork, LearnedMethod, Lgcn, Linear, Ltc, MODEL_FORMAT, ModelFile,
    read_kin_model, write_kin_model,
};
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/golden")
        .join(format!("{name}_{MODEL_FORMAT}.safetensors"))
}

/// A small network whose weights are simple numbers.
fn network(dim: usize, width: usize, outputs: usize) -> GraphNetwork {
    let linear = |inputs: usize, outputs: usize| Linear {
        weight: (0..inputs * outputs).map(|i| i as f32 / 8.0 - 1.0).collect(),
        bias: (0..outputs).map(|i| i as f32 / 4.0).collect(),
        inputs,
        outputs,
    };
    GraphNetwork {
        convolutions: vec![linear(2 * dim, width)],
        hidden: linear(width, 3),
        slopes: vec![0.25; 3],
        output: linear(3, outputs),
    }
}

/// The bytes of the stored file, after a comparison with what is written today.
fn compare(name: &str, file: &ModelFile) -> ModelFile {
    let (path, bytes) = (golden(name), file.to_bytes().unwrap());
    if std::env::var_os("KINFOLK_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(
        std::fs::read(&path).unwrap() == bytes,
        "{name} is written in another form: is it a new version?"
    );
    ModelFile::read(&path).unwrap()
}

#[test]
fn every_kind_of_model_is_written_as_ever_and_read_back() {
    let config = GcnConfig { k: 7, tau: 0.7, rho: 0.25, ..GcnConfig::default() };
    let gcn = GcnModel { gcn_v: network(2, 4, 1), gcn_e: Some(network(4, 3, 2)), config };
    let file = kinfolk_nn::Gcn::new(gcn.clone()).to_model().unwrap();
    assert_eq!(GcnModel::from_file(compare("gcn", &file)).unwrap(), gcn);

    // Simple numbers, so that the file does not change with the built-in weights.
    let count = EdgeModel::default().to_numbers().len();
    let numbers: Vec<f32> = (0..count).map(|i| (i % 16) as f32 / 8.0 - 1.0).collect();
    let edge = EdgeModel::from_numbers(&numbers).unwrap();
    let kin = KinModel { whitening: None, edge, probability: 0.5, k: 40 };
    assert_eq!(read_kin_model(compare("kin", &write_kin_model(&kin))).unwrap(), kin);

    let lgcn = Lgcn::new(network(2, 4, 2), &LgcnParams::default());
    assert_eq!(Lgcn::from_file(compare("lgcn", &lgcn.to_model().unwrap())).unwrap(), lgcn);

    let ltc = Ltc::new(network(3, 4, 1), network(3, 4, 2), LtcParams::default());
    assert_eq!(Ltc::from_file(compare("ltc", &ltc.to_model().unwrap())).unwrap(), ltc);
}

/// Written by kinfolk 0.1.0, without a method.
#[test]
fn models_of_versions_1_and_2_are_read() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/model");
    for name in ["gcn_v", "gcn_ve", "not_rebuilt"] {
        let file = ModelFile::read(&seeds.join(format!("{name}.safetensors"))).unwrap();
        assert_eq!(file.method(), "gcn", "{name}");
        let model = GcnModel::from_file(file).unwrap();
        assert_eq!(model.gcn_e.is_some(), name != "gcn_v", "{name}");
    }
}

/// Weights depend on the processor and epochs on the clock, so the file is stored once and must be written again as it was.
#[test]
fn unfinished_training_is_read_and_written_as_ever() {
    let path = golden("unfinished");
    if std::env::var_os("KINFOLK_BLESS").is_some() {
        let rows = (0..24).flat_map(|i| [1.0, (i % 4) as f32 + 0.01 * i as f32]).collect();
        let embeddings = Embeddings::from_rows(rows, 2, "golden").unwrap();
        let labels: Vec<i64> = (0..24).map(|i| i % 4).collect();
        let fit = FitParams { epochs: 2, batch: 8, validation: 0.5, ..FitParams::default() };
        let gcn_v = GcnVParams { convolutions: vec![3], hidden: 2, fit: fit.clone(), ..Default::default() };
        let gcn_e = GcnEParams { convolutions: vec![3, 2], hidden: 2, fit, ..Default::default() };
        let params =
            TrainParams { gcn_v, gcn_e: Some(gcn_e), k_rebuild: Some(4), choices: Default::default() };
        let problem = Problem::new(&embeddings).with_labels(&labels).unwrap().with_k(Some(4)).unwrap();
        let mut epochs = 0;
        let mut save = |unfinished: &Unfinished| {
            epochs += 1;
            if epochs == 5 { unfinished.write(&path) } else { Ok(()) }
        };
        train(&problem, &params, None, &mut save, &Context::default()).unwrap();
    }
    let unfinished = Unfinished::read(&path).unwrap();
    assert_eq!(unfinished.gcn_v.iter().map(|fitted| fitted.history.len()).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(unfinished.state.best.history.len(), 1);
    assert_eq!(unfinished.state.now.convolutions.len(), 2);
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.safetensors");
    unfinished.write(&copy).unwrap();
    assert!(std::fs::read(&path).unwrap() == std::fs::read(&copy).unwrap(), "is it a new version?");
}
