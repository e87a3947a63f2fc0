//! Runs the PyPI packages `infomap` and `evoc` on a set, by a Python interpreter that has them.

use kinfolk::io::{GraphLayout, read_labels, write_graph, write_npy_f32};
use kinfolk::{Embeddings, Error, KnnGraph};
use kinfolk_cli::failure::Failure;
use kinfolk_cli::make_directory;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The script, which can also be run by itself.
const SCRIPT: &str = include_str!("programs.py");

/// One run of one program.
pub struct Run {
    pub program: String,
    pub setting: String,
    pub labels: Vec<i64>,
    pub seconds: f64,
}

/// Refuses an interpreter that lacks the packages, before anything is measured.
pub fn check_python(python: &Path) -> Result<(), Failure> {
    let ran = Command::new(python).args(["-c", "import numpy, infomap, evoc"]).output();
    let ran = ran.map_err(|e| Error::io(python, e))?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    let found = said.lines().last().unwrap_or("none of them").to_owned();
    Err(Failure::Usage(format!(
        "--python {}: expected a Python with numpy, infomap and evoc, found {found}",
        python.display()
    )))
}

/// Runs the packages on a set. Files go to a temporary directory in `output`, which is removed even after an error.
pub fn run_programs(
    python: &Path,
    features: &Embeddings,
    graph: &KnnGraph,
    output: &Path,
) -> Result<Vec<Run>, Failure> {
    // A unique name, because the directory will be removed.
    let directory = output.join(format!("programs-{}", std::process::id()));
    make_directory(&directory)?;
    let runs = run_in(&directory, python, features, graph);
    std::fs::remove_dir_all(&directory).map_err(|e| Error::io(&directory, e))?;
    runs
}

fn run_in(
    directory: &Path,
    python: &Path,
    features: &Embeddings,
    graph: &KnnGraph,
) -> Result<Vec<Run>, Failure> {
    write_npy_f32(&directory.join("features.npy"), features.as_slice(), features.dim())?;
    write_graph(&directory.join("graph.npz"), graph, GraphLayout::Kinfolk)?;
    let ran = Command::new(python)
        .arg("-c")
        .arg(SCRIPT)
        .arg(directory)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| Error::io(python, e))?;
    if !ran.status.success() {
        return Err(Failure::Usage(format!(
            "--python {}: expected infomap and evoc to succeed, found {}",
            python.display(),
            ran.status
        )));
    }
    String::from_utf8_lossy(&ran.stdout).lines().map(parse).collect()
}

/// A line of the script.
fn parse(line: &str) -> Result<Run, Failure> {
    let strange = || Failure::Usage(format!("expected program, setting, file and seconds, found {line}"));
    let fields: Vec<&str> = line.split('\t').collect();
    let [program, setting, file, seconds] = fields[..] else { return Err(strange()) };
    Ok(Run {
        program: program.to_owned(),
        setting: setting.to_owned(),
        labels: read_labels(&PathBuf::from(file))?,
        seconds: seconds.parse().map_err(|_| strange())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_none_is_an_error() {
        assert!(matches!(parse("infomap\tthreshold 0"), Err(Failure::Usage(_))));
    }
}
