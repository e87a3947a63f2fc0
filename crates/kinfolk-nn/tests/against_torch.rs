//! Small networks made by PyTorch, imported, give PyTorch's answers (`bench/network_fixtures.py` made both).

#[allow(dead_code, reason = "of what is shared only the reader of arrays is used here")]
mod fixture;

use kinfolk::stages::Adjacency;
use kinfolk::{Embeddings, KnnGraph};
use kinfolk_nn::stages::{
    Candidates, EdgeQuery, PivotShape, Proposals, edge_connectivity, link_probabilities, proposal_scores,
    vertex_confidence,
};
use kinfolk_nn::{GcnModel, Lgcn, Ltc, ModelFile, read_checkpoint, read_kin_model};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const TOLERANCE: f64 = 1e-5;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A network, the arrays beside it, and the graph that these describe.
struct Case {
    checkpoint: PathBuf,
    arrays: HashMap<String, Vec<f64>>,
    features: Embeddings,
    graph: KnnGraph,
    adjacency: Adjacency,
}

impl Case {
    fn read(name: &str) -> Self {
        let directory = root().join("tests/torch").join(name);
        let arrays = fixture::expected(&directory);
        let float = |name: &str| arrays[name].iter().map(|&v| v as f32).collect::<Vec<f32>>();
        let n = arrays["labels"].len();
        let features = float("features");
        let dim = features.len() / n;
        let features = Embeddings::from_rows(features, dim, name).unwrap();
        let ids: Vec<u32> = arrays["ids"].iter().map(|&id| id as u32).collect();
        let graph = KnnGraph::from_parts(n, ids.len() / n, ids, float("similarities"), name).unwrap();
        let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
        Case { checkpoint: directory.join("network.pth"), arrays, features, graph, adjacency }
    }
}

fn near(what: &str, found: &[f32], expected: &[f64]) {
    let found: Vec<f64> = found.iter().map(|&v| v.into()).collect();
    let worst = fixture::largest_difference(&found, expected);
    println!("{what} within {worst:.1e}");
    assert!(worst <= TOLERANCE, "{what} differs by {worst}");
}

#[test]
fn gcn_v() {
    for (name, layers) in [("gcn_v_1", 1), ("gcn_v_3", 3)] {
        let case = Case::read(name);
        let network = read_checkpoint(&case.checkpoint).unwrap();
        assert_eq!(network.convolutions.len(), layers);
        let estimate = vertex_confidence(&network, &case.features, &case.adjacency, true, &()).unwrap();
        near(&format!("{name}: confidence"), &estimate.confidence, &case.arrays["confidence"]);
        near(&format!("{name}: F_L"), &estimate.embeddings, &case.arrays["embeddings"]);
    }
}

#[test]
fn gcn_e() {
    for (name, outputs) in [("gcn_e_1", 1), ("gcn_e_2", 2)] {
        let Case { checkpoint, arrays, features, graph, adjacency } = Case::read(name);
        let network = read_checkpoint(&checkpoint).unwrap();
        assert_eq!(network.output.outputs, outputs);
        let confidence: Vec<f32> = arrays["confidence"].iter().map(|&c| c as f32).collect();
        let query = EdgeQuery { rho: 0.5, candidates: Candidates::MoreConfident };
        let found =
            edge_connectivity(&network, &features, &graph, &adjacency, &confidence, &query, &()).unwrap();
        let vertices: Vec<f64> = found.vertices.iter().map(|&i| i.into()).collect();
        assert_eq!(vertices, arrays["vertices"], "{name}: the most confident");

        let pairs = arrays["pair_vertices"].iter().zip(&arrays["members"]);
        let mut expected: HashMap<(u32, u32), f64> = HashMap::new();
        for ((&i, &j), &value) in pairs.zip(&arrays["connectivity"]) {
            expected.insert((i as u32, j as u32), value);
        }
        assert_eq!(found.candidates.len(), expected.len(), "{name}: candidates");
        let (mut values, mut answers) = (Vec::new(), Vec::new());
        for (v, &i) in found.vertices.iter().enumerate() {
            let range = found.offsets[v]..found.offsets[v + 1];
            for at in range.clone() {
                values.push(found.values[at]);
                // An only candidate is taken without asking the network.
                let only = range.len() == 1;
                answers.push(if only { 1.0 } else { expected[&(i, found.candidates[at])] });
            }
        }
        assert!(values.len() > 20, "{name}: too few candidates to say much");
        near(&format!("{name}: connectivity"), &values, &answers);
    }
}

#[test]
fn lgcn() {
    let Case { checkpoint, arrays, features, graph, .. } = Case::read("lgcn");
    let network = read_checkpoint(&checkpoint).unwrap();
    let [k1, k2, active] = [0, 1, 2].map(|at| arrays["shape"][at] as usize);
    let shape = PivotShape { k1, k2, active };
    let found = link_probabilities(&network, &features, &graph, &shape, &()).unwrap();
    near("lgcn: links", &found.values, &arrays["links"]);
}

#[test]
fn gcn_d() {
    let Case { checkpoint, arrays, features, adjacency, .. } = Case::read("gcn_d");
    let network = read_checkpoint(&checkpoint).unwrap();
    let mut members = arrays["members"].iter().map(|&i| i as u32);
    let mut proposals = Proposals::default();
    for &size in &arrays["sizes"] {
        proposals.push(&members.by_ref().take(size as usize).collect::<Vec<_>>());
    }
    let found = proposal_scores(&network, &features, &adjacency, &proposals, &()).unwrap();
    near("gcn_d: scores", &found, &arrays["scores"]);
}

/// Fuzzing starts from these: each must reach what it was made for.
#[test]
fn seeds_for_fuzzing_are_what_they_seem() {
    let seeds = root().join("../../fuzz/seeds");
    let files = |name: &str| {
        let entries = std::fs::read_dir(seeds.join(name)).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    };
    let check = |path: &Path, refused: &[(&str, &str)], error: Option<String>| {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        match (refused.iter().find(|(name, _)| *name == stem), error) {
            (None, None) => {}
            (Some((_, why)), Some(error)) if error.contains(why) => {}
            (_, error) => panic!("{stem}: {error:?}"),
        }
    };
    let refused = [
        ("integers", "floating-point numbers"),
        ("unknown", "bn1.num_batches_tracked"),
        ("module", "torch.nn.modules.linear.Linear"),
    ];
    let checkpoints = files("checkpoint");
    assert_eq!(checkpoints.len(), 13);
    for path in checkpoints {
        check(&path, &refused, read_checkpoint(&path).err().map(|e| e.to_string()));
    }
    let refused = [("newer", "a newer kinfolk"), ("tau", "tau")];
    let models = files("model");
    assert_eq!(models.len(), 9);
    for path in models {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let file = ModelFile::read(&path);
        let read = match stem.split('_').next() {
            Some("kin") => file.and_then(read_kin_model).map(drop),
            Some("lgcn") => file.and_then(Lgcn::from_file).map(drop),
            Some("ltc") => file.and_then(Ltc::from_file).map(drop),
            _ => file.and_then(GcnModel::from_file).map(drop),
        };
        check(&path, &refused, read.err().map(|e| e.to_string()));
    }
}
