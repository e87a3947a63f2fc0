//! `kinfolk import` and `kinfolk cluster --model`: the published networks through the command, and how it fails.

#[path = "../../kinfolk-nn/tests/fixture/mod.rs"]
mod fixture;

use fixture::Found;
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

fn succeeds(directory: &Path, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = kinfolk(directory, arguments);
    assert_eq!(code, 0, "{arguments:?}: {stderr}");
    stdout
}

fn read(directory: &Path) -> Found {
    let mut found =
        Found { confidence: Vec::new(), parents: Vec::new(), similarities: Vec::new(), labels: Vec::new() };
    for line in fs::read_to_string(directory.join("clusters.csv")).unwrap().lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number =
            |at: usize, none: f64| if fields[at].is_empty() { none } else { fields[at].parse().unwrap() };
        found.labels.push(fields[1].parse().unwrap());
        found.confidence.push(number(2, 0.0));
        found.parents.push(number(3, -1.0));
        found.similarities.push(number(4, 0.0));
    }
    found
}

#[test]
fn the_command_agrees_with_the_published_networks() {
    let Some(published) = fixture::directory() else { return };
    let expected = fixture::expected(&published);
    let file = |name: &str| published.canonicalize().unwrap().join(name).display().to_string();
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let (v, e, features) = (file("gcn_v.pth"), file("gcn_e.pth"), file("features.npy"));
    let settings = ["-k", "20", "--k-rebuild", "40", "--tau", "0.7", "--rho", "0.2"];
    let mut import = vec!["import", &v, &e, "-o", "model.safetensors"];
    import.extend(settings);
    assert_eq!(
        succeeds(at, &import),
        "features of 128 columns, GCN-V of 1 graph convolution, GCN-E of 4 -> model.safetensors\n"
    );

    let run = succeeds(at, &["cluster", &features, "--model", "model.safetensors", "-o", "ve", "--json"]);
    fixture::compare(&read(&at.join("ve")), &expected, "ve");
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    assert_eq!(run["parameters"]["method"], "gcn-ve");
    assert_eq!((&run["graph"]["k"], &run["rebuilt_graph"]["k"]), (&20.into(), &40.into()));

    // GCN-V alone, once by its name and once from a model without GCN-E whose settings are overridden.
    succeeds(at, &["cluster", &features, "--model", "model.safetensors", "--method", "gcn-v", "-o", "v"]);
    fixture::compare(&read(&at.join("v")), &expected, "v");
    succeeds(at, &["import", &v, "-o", "plain.safetensors"]);
    let mut plain = vec!["cluster", &features, "--model", "plain.safetensors", "-o", "plain"];
    // Without GCN-E there is no rho.
    plain.extend(&settings[..6]);
    succeeds(at, &plain);
    assert_eq!(
        fs::read(at.join("plain/clusters.csv")).unwrap(),
        fs::read(at.join("v/clusters.csv")).unwrap()
    );

    let (code, _, stderr) =
        kinfolk(at, &["cluster", &features, "--model", "plain.safetensors", "--method", "gcn-ve"]);
    let expected = "error: --method gcn-ve: expected a model with GCN-E, found none in plain.safetensors\n";
    assert_eq!((code, stderr.as_str()), (2, expected));
    let (code, _, stderr) = kinfolk(at, &["import", &e, "-o", "x.safetensors"]);
    let expected = "error: x.safetensors: expected GCN-V with 1 output, the confidence, found 2\n";
    assert_eq!((code, stderr.as_str()), (1, expected));
    assert!(!at.join("x.safetensors").exists());
}

#[test]
fn a_checkpoint_that_would_run_a_program_is_refused() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let mut file = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.".to_vec();
    file.extend(b"\x80\x02M\xe9\x03.\x80\x02}.\x80\x02cposix\nsystem\n(X\x0a\0\0\0touch owned\x85R.");
    fs::write(at.join("evil.pth"), file).unwrap();
    let (code, _, stderr) = kinfolk(at, &["import", "evil.pth", "-o", "m.safetensors"]);
    let expected =
        "error: evil.pth: expected only tensors, dicts, lists and numbers, found a call of posix.system\n";
    assert_eq!((code, stderr.as_str()), (1, expected));
    assert_eq!(fs::read_dir(at).unwrap().count(), 1, "something was left behind");
}

#[test]
fn methods_and_models_go_together() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let refused = |arguments: &[&str], code: i32, message: &str| {
        let (found, _, stderr) = kinfolk(at, arguments);
        assert_eq!(found, code, "{arguments:?}: {stderr}");
        assert!(stderr.starts_with(&format!("error: {message}")), "{arguments:?}: {stderr}");
    };
    fs::write(at.join("x.bin"), [0, 0, 128, 63].repeat(4)).unwrap();
    let cluster = ["cluster", "x.bin", "--dim", "2"];
    let with = |more: &[&'static str]| [&cluster[..], more].concat();
    let message = "--method gcn-v: expected a --model, found none";
    refused(&with(&["--method", "gcn-v"]), 2, message);
    refused(&with(&["--rho", "0.5"]), 2, "--rho: expected a method that uses it, found --method kin");
    refused(&with(&["--model", "none.safetensors"]), 1, "none.safetensors: no such file");
    fs::write(at.join("bad.safetensors"), b"no model").unwrap();
    refused(&with(&["--model", "bad.safetensors"]), 1, "bad.safetensors: expected a kinfolk model");
}
