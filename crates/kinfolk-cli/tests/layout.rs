//! The published directory layout: `features/x.bin`, `labels/x.meta`, `knns/x/faiss_k_80.npz`.

use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Runs the command in `directory`; returns its exit code, stdout and stderr.
fn kinfolk(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_kinfolk")).args(arguments).current_dir(directory).output();
    let run = run.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
}

fn succeeds(directory: &Path, arguments: &[&str]) -> serde_json::Value {
    let (code, stdout, stderr) = kinfolk(directory, &[arguments, &["--json"]].concat());
    assert_eq!(code, 0, "{arguments:?}: {stderr}");
    serde_json::from_str(&stdout).unwrap()
}

fn refused(directory: &Path, arguments: &[&str], message: &str) {
    let (code, _, stderr) = kinfolk(directory, arguments);
    assert_eq!((code, stderr), (1, format!("error: {message}\n")), "{arguments:?}");
}

const IDENTITIES: usize = 8;
const ROWS: usize = 6;
const DIM: usize = 8;

/// Each identity near an axis of its own.
fn rows() -> Vec<f32> {
    let mut rows = Vec::new();
    for i in 0..IDENTITIES * ROWS {
        let mut row = [0.0; DIM];
        row[i / ROWS] = 1.0;
        row[(i / ROWS + i % ROWS) % DIM] += 0.2;
        rows.extend(row);
    }
    rows
}

/// Writes the layout below `directory`; the graph has K = 5 as the published code counts, itself included.
fn lay_out(directory: &Path) {
    for part in ["features", "labels", "knns/x"] {
        fs::create_dir_all(directory.join("data").join(part)).unwrap();
    }
    let bytes: Vec<u8> = rows().iter().flat_map(|v| v.to_le_bytes()).collect();
    fs::write(directory.join("data/features/x.bin"), bytes).unwrap();
    let labels: String = (0..IDENTITIES * ROWS).map(|i| format!("{}\n", i / ROWS)).collect();
    fs::write(directory.join("data/labels/x.meta"), labels).unwrap();
    let graph = "data/knns/x/faiss_k_5.npz";
    succeeds(directory, &["knn", "data/features/x.bin", "-k", "4", "--published", "-o", graph]);
}

const FEATURES: &str = "data/features/x.bin";
const LABELS: &str = "data/labels/x.meta";
const GRAPH: &str = "data/knns/x/faiss_k_5.npz";

#[test]
fn cluster_knn_and_train_need_no_dim() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    lay_out(at);
    let run =
        succeeds(at, &["cluster", FEATURES, "--labels", LABELS, "--graph", GRAPH, "--tau", "0.5", "-o", "a"]);
    assert_eq!(run["features"]["rows"], IDENTITIES * ROWS);
    assert_eq!(run["features"]["dim"], DIM);
    assert_eq!(run["graph"]["k"], 4);
    assert_eq!(run["clusters"]["count"], IDENTITIES);
    assert_eq!(run["scores"]["pairwise"]["f"], 1.0);

    let train = ["train", FEATURES, LABELS, "--graph", GRAPH, "--epochs", "2", "--method", "gcn-v"];
    let run = succeeds(at, &[&train[..], &["-o", "m.safetensors"]].concat());
    assert_eq!(run["config"]["k"], 4);
    let model = ["--model", "m.safetensors", "-o", "b"];
    let run = succeeds(at, &[&["cluster", FEATURES, "--graph", GRAPH][..], &model].concat());
    assert_eq!(run["graph"]["k"], 4);

    // From within the directory too, and by labels of another kind.
    fs::rename(at.join(LABELS), at.join("data/labels/x.txt")).unwrap();
    let run = succeeds(&at.join("data/features"), &["knn", "x.bin", "-k", "3", "-o", "g.npz"]);
    assert_eq!(run["rows"], IDENTITIES * ROWS);
}

#[test]
fn dim_wins_over_labels() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    lay_out(at);
    let run = succeeds(at, &["cluster", FEATURES, "--dim", "16", "--tau", "0.5", "-k", "3", "-o", "a"]);
    assert_eq!(run["features"]["rows"], IDENTITIES * ROWS / 2);
}

#[test]
fn missing_files_are_named() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    lay_out(at);
    fs::write(at.join(LABELS), "0\n".repeat(7)).unwrap();
    let expected = "whole rows of float32, one for each of the 7 labels of data/labels/x.meta";
    let found = "1536 bytes (--dim says how many columns)";
    refused(at, &["cluster", FEATURES], &format!("{FEATURES}: expected {expected}, found {found}"));
    fs::remove_file(at.join(LABELS)).unwrap();
    let expected = "the number of columns to be given (--dim), or features/NAME.bin with labels/NAME.meta beside \
                    it: a raw file does not say";
    refused(at, &["cluster", FEATURES], &format!("{FEATURES}: expected {expected}, found none"));
}
