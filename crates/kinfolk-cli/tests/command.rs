//! The command as a user meets it: what it writes, what it says, how it fails, and what it leaves behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

struct Run {
    output: Output,
}

impl Run {
    fn code(&self) -> i32 {
        self.output.status.code().unwrap()
    }
    fn stdout(&self) -> String {
        String::from_utf8(self.output.stdout.clone()).unwrap()
    }
    fn stderr(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).unwrap()
    }
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout()).unwrap()
    }
}

/// Runs the command in `directory`.
fn kinfolk(directory: &Path, arguments: &[&str]) -> Run {
    let command = Command::new(env!("CARGO_BIN_EXE_kinfolk")).args(arguments).current_dir(directory).output();
    Run { output: command.unwrap() }
}

fn succeeds(directory: &Path, arguments: &[&str]) -> Run {
    let run = kinfolk(directory, arguments);
    assert_eq!(run.code(), 0, "{arguments:?}: {}", run.stderr());
    run
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    files
}

/// Runs `cluster` on a file that it must refuse, and checks code, message, and that nothing was written.
fn refused(name: &str, content: &[u8], more: &[&str], code: i32, message: &str) {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join(name), content).unwrap();
    let before = files(directory.path());
    let mut arguments = vec!["cluster", name, "-o", "out"];
    arguments.extend(more);
    let run = kinfolk(directory.path(), &arguments);
    assert_eq!(run.stderr(), format!("error: {message}\n"));
    assert_eq!(run.code(), code);
    assert_eq!(run.stdout(), "");
    assert_eq!(files(directory.path()), before, "something was left behind");
}

/// A `.npy` file of any shape and type.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let padded = (header.len() + 11).next_multiple_of(64) - 11;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((padded as u16 + 1).to_le_bytes());
    bytes.extend(format!("{header:padded$}\n").bytes());
    bytes.extend(data);
    bytes
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Two pairs of rows, far apart.
const FOUR_ROWS: [f32; 8] = [1.0, 0.1, 1.0, 0.0, -0.1, 1.0, 0.0, 1.0];

fn four_rows(directory: &Path) {
    fs::write(directory.join("x.npy"), npy("<f4", "(4, 2)", &f32s(&FOUR_ROWS))).unwrap();
}

#[test]
fn cluster_writes_labels_links_and_what_was_done() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    let run = succeeds(directory.path(), &["cluster", "x.npy", "--tau", "0.5", "--json"]);
    let out = directory.path().join("x-clusters");
    let labels = fs::read(out.join("labels.npy")).unwrap();
    let values: Vec<i64> =
        labels[128..].chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(values, [0, 0, 1, 1]);
    let csv = fs::read_to_string(out.join("clusters.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "row,cluster,confidence,parent,similarity");
    assert_eq!(lines.len(), 5);
    assert!(lines[1].starts_with("0,0,"));
    let written: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(out.join("run.json")).unwrap()).unwrap();
    assert_eq!(written, run.json());
    assert_eq!(written["clusters"]["count"], 2);
    assert_eq!(written["graph"]["k"], 3);
    for stage in ["read", "knn", "confidence", "connectivity", "partition"] {
        assert!(written["seconds"][stage].is_f64(), "{stage}");
    }
    assert!(written["peak_memory_bytes"].as_u64().unwrap() > 1_000_000);
}

#[test]
fn one_row_is_one_cluster() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("x.npy"), npy("<f4", "(1, 2)", &f32s(&[3.0, 4.0]))).unwrap();
    let run = succeeds(directory.path(), &["cluster", "x.npy", "--json"]);
    assert_eq!(run.json()["clusters"]["count"], 1);
    assert_eq!(run.stderr(), "");
}

#[test]
fn a_k_that_is_too_large_is_lowered_with_a_warning() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    let run = succeeds(directory.path(), &["cluster", "x.npy", "-k", "4", "--json"]);
    assert_eq!(run.json()["graph"]["k"], 3);
    assert_eq!(run.stderr(), "warning: -k 4: expected less than the 4 rows; using 3\n");
    let run = succeeds(directory.path(), &["cluster", "x.npy"]);
    assert_eq!(run.stderr(), "warning: -k 80: expected less than the 4 rows; using 3\n");
}

#[test]
fn a_graph_can_be_made_first_in_either_layout() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    let labels = |arguments: &[&str]| {
        let mut all = vec!["cluster", "x.npy", "-o", "out", "--tau", "0.5"];
        all.extend(arguments);
        succeeds(directory.path(), &all);
        fs::read(directory.path().join("out/labels.npy")).unwrap()
    };
    succeeds(directory.path(), &["knn", "x.npy", "-k", "2", "-o", "graph.npz"]);
    succeeds(directory.path(), &["knn", "x.npy", "-k", "2", "-o", "published.npz", "--published"]);
    let expected = labels(&["-k", "2"]);
    assert_eq!(labels(&["--graph", "graph.npz"]), expected);
    assert_eq!(labels(&["--graph", "published.npz"]), expected);
    labels(&["--graph", "graph.npz", "-k", "1"]);
    let run = kinfolk(directory.path(), &["cluster", "x.npy", "--graph", "graph.npz", "-k", "3"]);
    assert_eq!(run.stderr(), "error: graph.npz: expected 3 neighbours (-k 3), found 2\n");
    assert_eq!(run.code(), 1);
}

#[test]
fn a_graph_of_another_set_is_refused() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    succeeds(directory.path(), &["knn", "x.npy", "-k", "2", "-o", "graph.npz"]);
    fs::write(directory.path().join("y.npy"), npy("<f4", "(3, 2)", &f32s(&FOUR_ROWS[..6]))).unwrap();
    let run = kinfolk(directory.path(), &["cluster", "y.npy", "--graph", "graph.npz"]);
    assert_eq!(run.stderr(), "error: graph.npz: expected 3 vertices (one per embedding), found 4\n");
    assert_eq!(run.code(), 1);
}

#[test]
fn threads_do_not_change_the_labels() {
    let directory = TempDir::new().unwrap();
    succeeds(directory.path(), &["synth", "set", "--identities", "30", "--dim", "48"]);
    let labels = |threads: &str, search: &[&str]| {
        let mut all = vec!["cluster", "set/features.npy", "-o", threads, "--threads", threads];
        all.extend(search);
        succeeds(directory.path(), &all);
        let out = directory.path().join(threads);
        (fs::read(out.join("labels.npy")).unwrap(), fs::read(out.join("clusters.csv")).unwrap())
    };
    for search in [&["--exact"][..], &["--recall", "0.9"]] {
        assert_eq!(labels("1", search), labels("2", search));
    }
}

#[test]
fn eval_scores_labels() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("truth.meta"), "0\n0\n0\n1\n1\n").unwrap();
    fs::write(directory.path().join("found.txt"), "5\n5\n9\n9\n9\n").unwrap();
    let run = succeeds(directory.path(), &["eval", "truth.meta", "found.txt", "--json"]);
    assert_eq!(run.json()["pairwise"]["precision"], 0.5);
    assert_eq!(run.json()["clusters"], 2);
    let table = succeeds(directory.path(), &["eval", "truth.meta", "found.txt"]).stdout();
    assert!(table.contains("pair F") && table.contains("50.00"), "{table}");
}

#[test]
fn eval_refuses_labels_of_different_length() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("truth.txt"), "0\n0\n1\n").unwrap();
    fs::write(directory.path().join("found.txt"), "0\n0\n").unwrap();
    let run = kinfolk(directory.path(), &["eval", "truth.txt", "found.txt"]);
    assert_eq!(run.stderr(), "error: found.txt: expected 3 labels (one per row of truth.txt), found 2\n");
    assert_eq!(run.code(), 1);
}

#[test]
fn synth_splits_by_identity() {
    let directory = TempDir::new().unwrap();
    succeeds(directory.path(), &["synth", "set", "--identities", "20", "--dim", "16", "--split", "0.5"]);
    let names: Vec<_> =
        files(&directory.path().join("set")).iter().map(|f| f.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["test_features.npy", "test_labels.npy", "train_features.npy", "train_labels.npy"]);
    succeeds(directory.path(), &["cluster", "set/test_features.npy", "--labels", "set/test_labels.npy"]);
}

#[test]
fn a_trained_model_needs_no_thresholds() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "16", "--dim", "16", "--split", "0.5"]);
    let train = |model: &str, threads: &str| {
        let (features, labels) = ("set/train_features.npy", "set/train_labels.npy");
        let options = ["-k", "10", "--method", "gcn-v", "--epochs", "2", "--json", "--threads", threads];
        let mut all = vec!["train", features, labels, "-o", model];
        all.extend(options);
        succeeds(here, &all)
    };
    let report = train("one.safetensors", "1").json();
    assert_eq!(report["gcn_v"]["epochs"].as_array().unwrap().len(), 2);
    assert_eq!(report["config"]["k"], 10);
    train("two.safetensors", "2");
    assert_eq!(
        fs::read(here.join("one.safetensors")).unwrap(),
        fs::read(here.join("two.safetensors")).unwrap()
    );
    let run = succeeds(
        here,
        &["cluster", "set/test_features.npy", "--model", "one.safetensors", "--json", "-o", "out"],
    );
    assert_eq!(run.json()["parameters"]["tau"], report["config"]["tau"]);
    assert_eq!(run.json()["parameters"]["method"], "gcn-v");

    // The same model in another process, this one.
    let model = kinfolk_nn::Model::read(&here.join("one.safetensors")).unwrap();
    let features = here.join("set/test_features.npy");
    let embeddings = kinfolk::io::read_embeddings(&features, &Default::default()).unwrap();
    let params = kinfolk_nn::ApplyParams::of(&model);
    let found = kinfolk_nn::cluster(&embeddings, None, &model, &params, &()).unwrap();
    let labels = kinfolk::io::read_labels(&here.join("out/labels.npy")).unwrap();
    assert_eq!(found.clustering.labels, labels);
}

#[test]
fn interrupted_training_leaves_a_model_and_goes_on() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "16", "--dim", "16", "--split", "0.5"]);
    let training = |model: &'static str| {
        let mut all = vec!["train", "set/train_features.npy", "set/train_labels.npy", "-o", model];
        all.extend(["-k", "10", "--method", "gcn-v", "--epochs", "40", "--batch", "16"]);
        all
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_kinfolk"))
        .args(training("m.safetensors"))
        .current_dir(here)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let model = here.join("m.safetensors");
    while !model.exists() {
        assert!(child.try_wait().unwrap().is_none(), "training ended without a model");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("interrupted after epoch "), "{message}");
    assert!(message.contains("of GCN-V; m.safetensors can be used as it is"), "{message}");

    succeeds(here, &["cluster", "set/test_features.npy", "--model", "m.safetensors", "-o", "out"]);
    let mut resume = training("m.safetensors");
    resume.push("--resume");
    let mut other = resume.clone();
    other.extend(["--seed", "3"]);
    let run = kinfolk(here, &other);
    assert!(run.stderr().starts_with("error: training to resume (parameters of GCN-V): expected "));
    succeeds(here, &resume);
    succeeds(here, &training("whole.safetensors"));
    assert_eq!(fs::read(&model).unwrap(), fs::read(here.join("whole.safetensors")).unwrap());
    let run = kinfolk(here, &resume);
    let finished = "expected a model whose training was interrupted, found one whose training is finished";
    assert_eq!(run.stderr(), format!("error: m.safetensors: {finished}\n"));
}

#[test]
fn training_refuses_labels_of_another_set() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    fs::write(directory.path().join("l.txt"), "0\n1\n").unwrap();
    let run = kinfolk(directory.path(), &["train", "x.npy", "l.txt", "-o", "m.safetensors"]);
    assert_eq!(run.stderr(), "error: l.txt: expected 4 labels (one per row of x.npy), found 2\n");
    assert_eq!(run.code(), 1);
    assert!(!directory.path().join("m.safetensors").exists());
}

#[test]
fn demo_draws_a_picture() {
    let directory = TempDir::new().unwrap();
    let run = succeeds(directory.path(), &["demo"]);
    for word in ["pair F", "density", "gcn-v"] {
        assert!(run.stdout().contains(word), "{}", run.stdout());
    }
    let picture = fs::read_to_string(directory.path().join("kinfolk-demo/picture.svg")).unwrap();
    assert!(picture.matches("<circle").count() > 2000);
}

#[test]
fn kin_learns_from_labels() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "30", "--dim", "32", "--split", "0.5"]);
    let model = ["-o", "kin.safetensors", "--method", "kin", "-k", "20", "--json"];
    let labelled = ["train", "set/train_features.npy", "set/train_labels.npy"];
    let report = succeeds(here, &[&labelled[..], &model].concat()).json();
    assert_eq!(report["k"], 20);
    let cluster = ["cluster", "set/test_features.npy", "--model", "kin.safetensors", "--json"];
    let run = succeeds(here, &cluster).json();
    assert_eq!((&run["parameters"]["method"], &run["graph"]["k"]), (&"kin".into(), &20.into()));
    let run = kinfolk(here, &[&cluster[..], &["--method", "gcn-v"]].concat());
    assert_eq!(run.code(), 2);
    assert!(run.stderr().contains("found one of kin"), "{}", run.stderr());
    let run = kinfolk(here, &[&labelled[..], &model, &["--resume"]].concat());
    assert!(run.stderr().contains("--resume: expected"), "{}", run.stderr());
}

#[test]
fn lgcn_and_ltc_learn_from_labels() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "20", "--dim", "16", "--split", "0.5"]);
    let labelled = ["train", "set/train_features.npy", "set/train_labels.npy", "-k", "10", "--epochs", "1"];
    for (method, other, network, unknown) in [
        ("lgcn", "ltc", "lgcn", "--param: expected th, max_size, step or rounds, found least"),
        ("ltc", "lgcn", "gcn_d", "--param: expected least, max_size, step or levels, found th"),
    ] {
        let file = format!("{method}.safetensors");
        let model = ["--method", method, "-o", &file];
        let report = succeeds(here, &[&labelled[..], &model, &["--json"]].concat()).json();
        assert_eq!(report["method"], method);
        assert_eq!(report[network]["epochs"].as_array().unwrap().len(), 1);
        let cluster = ["cluster", "set/test_features.npy", "--model", &file];
        let run = succeeds(here, &[&cluster[..], &["--json", "-o", "one"]].concat()).json();
        assert_eq!(run["parameters"]["method"], method);
        assert_eq!(run["parameters"]["max_size"], report["config"]["max_size"]);
        assert_eq!(run["graph"]["k"], 10);
        // The method may be named, and neighbours and threads may be others' business.
        succeeds(here, &["knn", "set/test_features.npy", "-k", "10", "-o", "graph.npz"]);
        let named = ["--method", method, "--graph", "graph.npz", "--threads", "1", "-o", "two"];
        succeeds(here, &[&cluster[..], &named].concat());
        let labels = |name: &str| fs::read(here.join(name).join("labels.npy")).unwrap();
        assert_eq!(labels("one"), labels("two"));
        let run = succeeds(here, &[&cluster[..], &["--json", "--param", "max_size=7"]].concat()).json();
        assert_eq!(run["parameters"]["max_size"], 7);

        let unknown_name = if method == "lgcn" { "least=1" } else { "th=1" };
        for (arguments, message) in [
            (
                &["--method", other][..],
                format!("--method {other}: expected a model of it, found one of {method}"),
            ),
            (
                &["--method", "kmeans"],
                "--model: expected a method that uses it, found --method kmeans".to_owned(),
            ),
            (&["--tau", "0.5"], format!("--tau: expected a method that uses it, found --method {method}")),
            (&["--rho", "0.5"], format!("--rho: expected a method that uses it, found --method {method}")),
            (&["--prefer", "recall"], "--prefer: expected --method kin, found another".to_owned()),
            (&["--param", unknown_name], unknown.to_owned()),
            (&["--param", "step=x"], "--param step: expected a number, found x".to_owned()),
        ] {
            let run = kinfolk(here, &[&cluster[..], arguments].concat());
            assert_eq!((run.code(), run.stderr()), (2, format!("error: {message}\n")));
        }
        let run = kinfolk(here, &["cluster", "set/test_features.npy", "--method", method]);
        let message = format!("error: --method {method}: expected --model with its networks, found none\n");
        assert_eq!((run.code(), run.stderr()), (2, message));
        let run = kinfolk(here, &[&labelled[..], &model, &["--resume"]].concat());
        let message = format!("error: --resume: expected --method gcn-v or gcn-ve, found {method}\n");
        assert_eq!((run.code(), run.stderr()), (2, message));
        let run = kinfolk(here, &["explain", "one", "0"]);
        assert!(run.stderr().contains(&format!("found {method}")), "{}", run.stderr());
        succeeds(here, &["synth", "wide", "--identities", "5", "--dim", "17"]);
        let run = kinfolk(here, &["cluster", "wide/features.npy", "--model", &file]);
        assert_eq!(run.code(), 1);
        assert!(run.stderr().contains("expected 16 columns, as"), "{}", run.stderr());
    }
}

#[test]
fn weights_are_made_from_a_seed() {
    let directory = TempDir::new().unwrap();
    let run = succeeds(directory.path(), &["bench", "pretrain", "--quick"]);
    assert!(run.stdout().contains("of held-out sets"), "{}", run.stdout());
    let built_in = kinfolk::EdgeModel::default().to_numbers().len() * 4;
    assert_eq!(fs::read(directory.path().join("weights.bin")).unwrap().len(), built_in);
}

#[test]
fn kin_needs_no_threshold() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "20", "--dim", "32"]);
    let count = |prefer: &str| {
        let all = ["cluster", "set/features.npy", "--method", "kin", "--prefer", prefer, "--json"];
        succeeds(here, &all).json()["clusters"]["count"].as_u64().unwrap()
    };
    assert!(count("recall") <= count("balanced") && count("balanced") <= count("precision"));
    assert!(count("0.1") <= count("0.95"));
    let refused = |all: &[&str]| {
        let run = kinfolk(here, &[&["cluster", "set/features.npy"], all].concat());
        assert_eq!(run.code(), 2);
        run.stderr()
    };
    assert!(refused(&["--method", "kin", "--tau", "0.5"]).contains("--tau: expected no threshold"));
    for (name, value) in [("-m", "2"), ("--confidence", "u-num"), ("--radius", "0.5")] {
        let message = refused(&["--method", "kin", name, value]);
        assert!(message.contains(&format!("{name}: expected a method that uses it")), "{message}");
    }
    assert!(
        refused(&["--method", "density", "--prefer", "recall"]).contains("--prefer: expected --method kin")
    );
    assert!(refused(&["--method", "kin", "--prefer", "2"]).contains("a probability from 0 to 1"));
}

#[test]
fn oracles_need_labels() {
    let directory = TempDir::new().unwrap();
    succeeds(directory.path(), &["synth", "set", "--identities", "20", "--dim", "16"]);
    let run = kinfolk(directory.path(), &["cluster", "set/features.npy", "--confidence", "s-nbr"]);
    assert_eq!(run.code(), 2);
    assert!(run.stderr().contains("expected --labels"), "{}", run.stderr());
    for confidence in ["s-nbr", "s-avg", "s-center", "u-num"] {
        let all = ["cluster", "set/features.npy", "--labels", "set/labels.npy", "--confidence", confidence];
        succeeds(directory.path(), &all);
    }
}

#[test]
fn a_missing_file() {
    let directory = TempDir::new().unwrap();
    let run = kinfolk(directory.path(), &["cluster", "faces.npy"]);
    assert_eq!(run.stderr(), "error: faces.npy: no such file\n");
    assert_eq!(run.code(), 1);
    assert!(files(directory.path()).is_empty());
}

#[test]
fn a_truncated_file() {
    let message = "x.npy: expected 32 bytes of data (shape (4, 2), dtype '<f4'), found 31 bytes";
    refused("x.npy", &npy("<f4", "(4, 2)", &f32s(&FOUR_ROWS)[..31]), &[], 1, message);
}

#[test]
fn a_wrong_magic() {
    let message = r#"x.npy: expected a file that starts with "\x93NUMPY", found "PK\x03\x04 not""#;
    refused("x.npy", b"PK\x03\x04 not an array", &[], 1, message);
}

#[test]
fn a_value_that_is_not_finite() {
    for (value, name) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut rows = FOUR_ROWS;
        rows[5] = value;
        let message = format!("x.npy: row 2, column 1: expected a finite number, found {name}");
        refused("x.npy", &npy("<f4", "(4, 2)", &f32s(&rows)), &[], 1, &message);
    }
}

#[test]
fn a_zero_row() {
    let mut rows = FOUR_ROWS;
    rows[4..6].fill(0.0);
    let message = "x.npy: row 2: expected a row of non-zero length, found 2 zeros";
    refused("x.npy", &npy("<f4", "(4, 2)", &f32s(&rows)), &[], 1, message);
}

#[test]
fn a_dim_that_does_not_divide_the_size() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("x.bin"), f32s(&FOUR_ROWS)).unwrap();
    succeeds(directory.path(), &["cluster", "x.bin", "--dim", "2"]);
    let run = kinfolk(directory.path(), &["cluster", "x.bin", "--dim", "3", "-o", "out"]);
    assert!(
        run.stderr()
            .starts_with("error: x.bin: expected whole rows of 3 float32 (3 x 4 bytes), found 32 bytes"),
        "{}",
        run.stderr()
    );
    assert_eq!(run.code(), 1);
    assert!(!directory.path().join("out").exists());
}

#[test]
fn labels_of_another_set() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    fs::write(directory.path().join("l.meta"), "0\n1\n1\n").unwrap();
    let run = kinfolk(directory.path(), &["cluster", "x.npy", "--labels", "l.meta", "-o", "out"]);
    assert_eq!(run.stderr(), "error: l.meta: expected 4 labels (one per row of x.npy), found 3\n");
    assert_eq!(run.code(), 1);
    assert!(!directory.path().join("out").exists());
}

#[test]
fn no_rows() {
    refused(
        "x.npy",
        &npy("<f4", "(0, 2)", &[]),
        &[],
        1,
        "x.npy: expected at least one row and one column, found shape (0, 2)",
    );
}

#[test]
fn bad_usage_exits_with_2() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    let cases: [&[&str]; 8] = [
        &["cluster"],
        &["cluster", "x.npy", "-k", "0"],
        &["cluster", "x.npy", "--tau", "2"],
        &["cluster", "x.npy", "-m", "0"],
        &["cluster", "x.npy", "--recall", "0"],
        &["cluster", "x.npy", "--radius", "0"],
        &["cluster", "x.npy", "--threads", "0"],
        &["cluster", "x.npy", "--method", "none"],
    ];
    for arguments in cases {
        let run = kinfolk(directory.path(), arguments);
        assert_eq!(run.code(), 2, "{arguments:?}: {}", run.stderr());
        assert!(run.stderr().contains("error"), "{arguments:?}");
    }
    assert_eq!(files(directory.path()).len(), 1);
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_work() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    fs::write(directory.path().join("l.txt"), "0\n0\n1\n1\n").unwrap();
    let no_directory = "expected the directory no to write it in, found no such directory";
    let cases: [(&[&str], String); 3] = [
        (
            &["cluster", "x.npy", "-o", "l.txt"],
            "l.txt: expected a directory to write to, found a file".into(),
        ),
        (&["knn", "x.npy", "-k", "2", "-o", "no/g.npz"], format!("no/g.npz: {no_directory}")),
        (&["train", "x.npy", "l.txt", "-o", "no/m.safetensors"], format!("no/m.safetensors: {no_directory}")),
    ];
    for (arguments, message) in cases {
        let run = kinfolk(directory.path(), arguments);
        assert_eq!(run.stderr(), format!("error: {message}\n"));
        assert_eq!(run.code(), 1);
    }
    assert_eq!(files(directory.path()).len(), 2);
}

#[test]
fn every_command_has_help_with_an_example() {
    let directory = TempDir::new().unwrap();
    for command in ["cluster", "train", "import", "knn", "eval", "synth", "demo"] {
        let help = succeeds(directory.path(), &[command, "--help"]).stdout();
        assert!(help.contains("Example:"), "{command}");
    }
}

#[test]
fn every_well_known_method_clusters() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "12", "--dim", "16"]);
    for method in kinfolk_baselines::Method::NAMES {
        let mut arguments =
            vec!["cluster", "set/features.npy", "-k", "10", "--json", "-o", method, "--method", method];
        if ["kmeans", "minibatch-kmeans", "spectral"].contains(&method) {
            arguments.extend(["--clusters", "12"]);
        }
        let run = succeeds(here, &arguments).json();
        assert_eq!(run["parameters"]["method"], method);
        assert!(run["clusters"]["count"].as_u64().unwrap() > 0, "{method}");
        assert_eq!(run["parameters"]["tau"], serde_json::Value::Null, "{method}");
    }
    let again =
        succeeds(here, &["cluster", "set/features.npy", "--json", "--method", "hac", "--clusters", "5"])
            .json();
    assert_eq!(again["clusters"]["count"], 5);
    let kept = [
        "cluster",
        "set/features.npy",
        "--json",
        "--method",
        "dbscan",
        "--param",
        "eps=0.01",
        "--param",
        "noise=kept",
    ];
    let kept = succeeds(here, &kept).json();
    assert!(kept["parameters"]["rows_of_noise"].as_u64().unwrap() > 0);

    for (arguments, message) in [
        (&["--method", "kmeans"][..], "--clusters: expected how many for --method kmeans, found none"),
        (
            &["--method", "aro", "--clusters", "3"],
            "--clusters: expected a method that uses it, found --method aro",
        ),
        (&["--method", "aro", "--tau", "0.3"], "--tau: expected a method that uses it, found --method aro"),
        (&["--param", "eps=1"], "--param: expected a method that uses it, found --method kin"),
        (&["--method", "dbscan", "--param", "eps=x"], "eps: expected a number, found x"),
        (
            &["--method", "dbscan", "--param", "size=1"],
            "--param: expected a parameter of the method, found size (there are eps, min, noise)",
        ),
    ] {
        let run = kinfolk(here, &[&["cluster", "set/features.npy", "-o", "none"], arguments].concat());
        assert_eq!((run.code(), run.stderr()), (2, format!("error: {message}\n")));
    }
    let run = kinfolk(here, &["explain", "kmeans", "0"]);
    assert!(run.stderr().contains("which keep their ties, found kmeans"), "{}", run.stderr());
}
