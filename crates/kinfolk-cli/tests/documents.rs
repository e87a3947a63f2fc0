//! The commands of the tutorial and the cookbook run as they are printed.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Programs that the documents may use.
const PROGRAMS: [&str; 5] = ["kinfolk", "mkdir", "cp", "cat", "head"];

/// A command, and whether the document shows it fail.
struct Example {
    line: usize,
    command: String,
    fails: bool,
}

/// Every line that begins with `$ ` in a block of kind `console`, with the output shown below it.
fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut in_console = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| in_console) {
            examples.push(Example { line: number + 1, command: command.to_owned(), fails: false });
        } else if in_console && line.starts_with("error:") {
            let last = examples.last_mut().expect("output follows a command");
            last.fails = true;
        }
    }
    examples
}

/// Runs the examples of a document in order, in one empty directory.
fn run(name: &str) {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let text = std::fs::read_to_string(&document).unwrap();
    let examples = examples(&text);
    assert!(examples.len() > 5, "{name}: only {} commands", examples.len());
    let directory = TempDir::new().unwrap();
    for Example { line, command, fails } in examples {
        let program = command.split_whitespace().next().unwrap_or_default();
        assert!(PROGRAMS.contains(&program), "{name}, line {line}: {program} is not one of {PROGRAMS:?}");
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(directory.path())
            .env("PATH", path())
            .output()
            .unwrap();
        let (code, errors) = (output.status.code(), String::from_utf8_lossy(&output.stderr));
        assert_eq!(code != Some(0), fails, "{name}, line {line}: {command}\nexit code {code:?}\n{errors}");
    }
}

/// The search path, the directory of the built command first.
fn path() -> std::ffi::OsString {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_kinfolk")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&others))).unwrap()
}

#[test]
fn the_tutorial_runs() {
    run("tutorial.md");
}

#[test]
fn the_cookbook_runs() {
    run("cookbook.md");
}

#[test]
fn commands_are_distinguished_from_output() {
    let text =
        "$ not this\n```console\n$ kinfolk a\nout\n$ kinfolk b\nerror: no\n```\n```text\n$ kinfolk c\n```\n";
    let found: Vec<(usize, String, bool)> =
        examples(text).into_iter().map(|e| (e.line, e.command, e.fails)).collect();
    assert_eq!(found, [(3, "kinfolk a".to_owned(), false), (5, "kinfolk b".to_owned(), true)]);
}
