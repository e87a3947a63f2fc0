//! `cluster --work`: a run that was killed goes on, and finds what it would have found.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn kinfolk(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kinfolk"));
    command.args(arguments).current_dir(directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    kinfolk(directory, arguments).output().unwrap()
}

fn succeed(directory: &Path, arguments: &[&str]) {
    let output = run(directory, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn refused(directory: &Path, arguments: &[&str], code: i32) -> String {
    let output = run(directory, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

fn labels(directory: &Path, name: &str) -> Vec<u8> {
    std::fs::read(directory.join(name).join("labels.npy")).unwrap()
}

/// A directory with a set, and the result of a run that nothing interrupted.
fn prepared(arguments: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    succeed(path, &["synth", "set", "--identities", "30", "--dim", "32"]);
    succeed(path, &[&["cluster", "set/features.npy", "-o", "whole"], arguments].concat());
    directory
}

/// Kills a run after some time; whether it had ended by itself.
fn killed(mut run: Child, after: Duration) -> bool {
    std::thread::sleep(after);
    let ended = run.try_wait().unwrap().is_some();
    let _ = run.kill();
    run.wait().unwrap();
    ended
}

/// Fifty times, at times that are spread over a whole run.
#[test]
fn a_killed_run_goes_on() {
    let search = ["--recall", "0.9", "-k", "20"];
    let directory = prepared(&search);
    let path = directory.path();
    let arguments =
        [&["cluster", "set/features.npy", "-o", "resumed", "--work", "stages"], &search[..]].concat();
    let start = std::time::Instant::now();
    succeed(path, &arguments);
    let whole = start.elapsed();
    assert_eq!(labels(path, "resumed"), labels(path, "whole"));
    let mut ended = 0;
    for round in 0..50 {
        // Some rounds begin anew, some after the stages that the rounds before have finished.
        if round % 5 == 0 {
            std::fs::remove_dir_all(path.join("stages")).unwrap();
            std::fs::remove_dir_all(path.join("resumed")).unwrap_or_default();
        }
        let after = whole.mul_f64(f64::from(round * 37 % 50) / 50.0);
        ended += u32::from(killed(kinfolk(path, &arguments).spawn().unwrap(), after));
        // What is there is whole.
        if path.join("resumed/run.json").exists() {
            assert_eq!(labels(path, "resumed"), labels(path, "whole"), "{round}");
        }
        if round % 5 == 4 {
            succeed(path, &arguments);
            assert_eq!(labels(path, "resumed"), labels(path, "whole"), "{round}");
        }
    }
    assert!(ended < 40, "most rounds should have been killed, {ended} had ended");
}

#[test]
fn stages_of_something_else_are_refused_by_name() {
    let directory = prepared(&[]);
    let path = directory.path();
    succeed(path, &["cluster", "set/features.npy", "-o", "kept", "--work", "stages"]);
    assert_eq!(labels(path, "kept"), labels(path, "whole"));
    let other = |arguments: &[&str]| {
        refused(
            path,
            &[&["cluster", "set/features.npy", "-o", "other", "--work", "stages"], arguments].concat(),
            1,
        )
    };
    assert!(other(&["-k", "30"]).contains("stages/knn.kept: expected stage knn with k 30"));
    assert!(other(&["--seed", "2"]).contains("stages/knn.kept: expected stage knn with seed 2"));
    let message = other(&["--prefer", "recall"]);
    assert!(
        message.contains("stages/partition.kept: expected stage partition with least_probability 0.3"),
        "{message}"
    );
    succeed(path, &["synth", "set2", "--identities", "30", "--dim", "32", "--seed", "7"]);
    let message = refused(path, &["cluster", "set2/features.npy", "--work", "stages"], 1);
    assert!(message.contains("expected stage knn with rows"), "{message}");
    assert!(!path.join("other").exists());
    // A method without these stages keeps its neighbours.
    succeed(
        path,
        &["cluster", "set/features.npy", "-o", "tree", "--method", "density", "--work", "tree-stages"],
    );
    assert!(path.join("tree-stages/knn.kept").exists());
}

#[test]
fn a_directory_that_would_not_be_used_is_refused() {
    let directory = prepared(&[]);
    let path = directory.path();
    let message = refused(
        path,
        &["cluster", "set/features.npy", "--method", "kmeans", "--clusters", "9", "--work", "w"],
        2,
    );
    assert!(
        message.ends_with("--work: expected a method that uses neighbours, found --method kmeans"),
        "{message}"
    );
    succeed(path, &["knn", "set/features.npy", "-k", "20", "-o", "graph.npz"]);
    let given = ["cluster", "set/features.npy", "--graph", "graph.npz", "--method", "density", "--work", "w"];
    assert!(refused(path, &given, 2).contains("--work: expected a search, or --method kin, found --graph"));
    assert!(!path.join("w").exists());
    std::fs::write(path.join("file"), "").unwrap();
    let message = refused(path, &["cluster", "set/features.npy", "--work", "file"], 1);
    assert!(message.contains("file: expected a directory to work in, found a file"), "{message}");
}

#[test]
fn a_memory_that_is_too_small_is_refused_at_once_and_one_that_is_enough_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    succeed(path, &["synth", "set", "--identities", "20", "--dim", "512"]);
    succeed(path, &["cluster", "set/features.npy", "-o", "whole"]);
    let message = refused(path, &["cluster", "set/features.npy", "-o", "small", "--memory", "1M"], 1);
    assert!(message.contains("kin on ") && message.ends_with("of memory, 1.0 MB may be used"), "{message}");
    assert!(!path.join("small").exists());
    let message = refused(
        path,
        &["cluster", "set/features.npy", "--method", "kmeans", "--clusters", "9", "--memory", "1G"],
        2,
    );
    assert!(
        message.ends_with("--memory: expected a method that uses neighbours, found --method kmeans"),
        "{message}"
    );
    // An eighth of this is less than the rows, so they go to a file, of which nothing remains.
    succeed(path, &["cluster", "set/features.npy", "-o", "enough", "--memory", "0.008g"]);
    let message = refused(path, &["knn", "set/features.npy", "-o", "graph.npz", "--memory", "1M"], 1);
    assert!(message.contains("the search on") && message.ends_with("1.0 MB may be used"), "{message}");
    let train = ["train", "set/features.npy", "set/labels.npy", "-o", "model.safetensors", "--memory", "1M"];
    let message = refused(path, &train, 1);
    assert!(message.contains("training gcn-ve on") && message.ends_with("1.0 MB may be used"), "{message}");
    assert!(!path.join("graph.npz").exists() && !path.join("model.safetensors").exists());
    assert_eq!(labels(path, "enough"), labels(path, "whole"));
    let left = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<String> = left.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(left.iter().all(|name| ["set", "whole", "enough"].contains(&name.as_str())), "{left:?}");
    for wrong in ["8X", "-1", "0", "G", "1e30"] {
        let message = refused(path, &["cluster", "set/features.npy", &format!("--memory={wrong}")], 2);
        assert!(message.contains("expected a number of bytes above 0, such as 8G"), "{message}");
    }
}
