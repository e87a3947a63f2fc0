//! Runs the program, and makes sets for it.

use kinfolk::io::write_npy_i64;
use kinfolk::synth::{Part, Synth, SynthParams};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs `kinfolk-lab` in `directory`; returns its exit code, stdout and stderr.
pub fn lab(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kinfolk-lab"));
    let run = command.args(arguments).current_dir(directory).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
}

fn synth(identities: usize, dim: usize) -> Synth {
    Synth::new(SynthParams { identities, dim, ..SynthParams::default() }).unwrap()
}

fn write(directory: &Path, prefix: &str, part: &Part) {
    fs::create_dir_all(directory).unwrap();
    let file = |what: &str| directory.join(format!("{prefix}{what}.npy"));
    part.write_features(&file("features"), &()).unwrap();
    write_npy_i64(&file("labels"), &part.labels()).unwrap();
}

/// Writes features.npy and labels.npy.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn synthetic(directory: &Path, identities: usize, dim: usize) {
    write(directory, "", &synth(identities, dim).whole());
}

/// Writes train_features.npy and so on, half of the identities in each part.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn synthetic_parts(directory: &Path, identities: usize, dim: usize) {
    let synth = synth(identities, dim);
    let (train, test) = synth.split(0.5).unwrap();
    write(directory, "train_", &train);
    write(directory, "test_", &test);
}
