//! The command: its files, its output, and its errors.

mod album;
mod cluster;
mod levels;
mod options;
#[cfg(unix)]
mod postgres;
mod pseudo_labels;
mod refused_files;
mod results;
#[cfg(unix)]
mod server;
mod train;

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
fn bench_runs_kinfolk_lab_and_reports_if_it_is_missing() {
    let directory = TempDir::new().unwrap();
    // Alone in its directory, and nothing on the PATH.
    let own = directory.path().join("kinfolk");
    fs::copy(env!("CARGO_BIN_EXE_kinfolk"), &own).unwrap();
    let bench = |arguments: &[&str]| {
        let mut command = Command::new(&own);
        let run = command.arg("bench").args(arguments).env("PATH", "").current_dir(directory.path()).output();
        Run { output: run.unwrap() }
    };
    let run = bench(&["--help"]);
    assert_eq!(run.code(), 2);
    assert_eq!(
        run.stderr(),
        "error: bench: expected the program kinfolk-lab beside kinfolk, found none \
         (build it with: cargo build --release -p kinfolk-lab)\n"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let lab = directory.path().join("kinfolk-lab");
        fs::write(&lab, "#!/bin/sh\necho \"$@\"\nexit 7\n").unwrap();
        fs::set_permissions(&lab, fs::Permissions::from_mode(0o755)).unwrap();
        for arguments in
            [&["--help"][..], &["table1", "--quick", "-k", "20", "--threads", "1"], &["--version"]]
        {
            let run = bench(arguments);
            assert_eq!(run.stdout(), format!("{}\n", arguments.join(" ")), "{}", run.stderr());
            assert_eq!(run.code(), 7);
        }
    }
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
fn an_output_that_cannot_be_written_is_refused_before_the_work() {
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
    for command in ["album", "cluster", "train", "import", "knn", "eval", "synth", "demo"] {
        let help = succeeds(directory.path(), &[command, "--help"]).stdout();
        assert!(help.contains("Example:"), "{command}");
    }
}
