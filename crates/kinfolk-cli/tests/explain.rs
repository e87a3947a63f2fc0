//! `explain` and `review.csv`, from clusterings with known reasons.

use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Runs the command; returns its exit code and its output on both streams.
fn kinfolk(directory: &Path, arguments: &[&str]) -> (i32, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_kinfolk")).args(arguments).current_dir(directory).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

fn explain(directory: &Path, rows: &[&str]) -> String {
    let (code, text) = kinfolk(directory, &[&["explain", "out"], rows].concat());
    assert_eq!(code, 0, "{text}");
    text
}

/// A set of synthetic identities, clustered; the true labels and the clusters.
fn clustered(method: &str) -> (TempDir, Vec<i64>) {
    let directory = TempDir::new().unwrap();
    let synth = ["synth", "set", "--identities", "40", "--dim", "32", "--seed", "3"];
    assert_eq!(kinfolk(directory.path(), &synth).0, 0);
    let arguments = ["cluster", "set/features.npy", "--method", method, "-o", "out"];
    let (code, text) = kinfolk(directory.path(), &arguments);
    assert_eq!(code, 0, "{text}");
    let labels = kinfolk::io::read_labels(&directory.path().join("out/labels.npy")).unwrap();
    (directory, labels)
}

/// The row numbers of the edges that `explain` lists.
fn edges(text: &str) -> Vec<[usize; 2]> {
    let listed = text.lines().filter_map(|line| line.strip_prefix("  "));
    listed
        .map(|line| {
            let (rows, _) = line.split_once(':').unwrap();
            let (a, b) = rows.split_once(" - ").unwrap();
            [a, b].map(|row| row.parse().unwrap())
        })
        .collect()
}

#[test]
fn two_rows_of_a_cluster_have_a_chain_between_them() {
    for method in ["kin", "density"] {
        let (directory, labels) = clustered(method);
        let rows: Vec<usize> = (0..labels.len()).filter(|&row| labels[row] == 0).collect();
        let (a, b) = (rows[0], rows[rows.len() - 1]);
        let text = explain(directory.path(), &[&a.to_string(), &b.to_string()]);
        assert!(text.contains("They are together by"), "{method}: {text}");
        assert!(text.contains("Their similarity is"), "{method}: {text}");
        let edges = edges(&text);
        // Both ends appear, every edge is within the cluster, and each row between is in two edges.
        let count = |row: usize| edges.iter().flatten().filter(|&&end| end == row).count();
        assert_eq!((count(a), count(b)), (1, 1), "{method}: {text}");
        for &row in edges.iter().flatten() {
            assert_eq!(labels[row], 0);
            assert!(row == a || row == b || count(row) == 2, "{method}: {text}");
        }
        assert_eq!(text.contains("likely one identity"), method == "kin", "{text}");
    }
}

#[test]
fn rows_of_different_clusters_are_apart() {
    for method in ["kin", "density"] {
        let (directory, labels) = clustered(method);
        let other = labels.iter().position(|&label| label != labels[0]).unwrap();
        let text = explain(directory.path(), &["0", &other.to_string()]);
        assert!(text.contains("They are apart"), "{method}: {text}");
        let alone = explain(directory.path(), &["0"]);
        assert!(alone.starts_with("Row 0, "), "{alone}");
    }
}

#[test]
fn the_most_doubtful_decisions_are_listed_first() {
    let (directory, labels) = clustered("kin");
    let text = fs::read_to_string(directory.path().join("out/review.csv")).unwrap();
    let mut lines = text.lines();
    let heading = "decision,doubt,row_a,row_b,cluster_a,cluster_b,rows_a,rows_b,similarity,probability";
    assert_eq!(lines.next(), Some(heading));
    let mut last = f32::MAX;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields[at].parse::<f32>().unwrap();
        let [a, b] = [2, 3].map(|at| labels[number(at) as usize]);
        assert_eq!(fields[0] == "together", a == b, "{line}");
        assert_eq!([number(4), number(5)], [a as f32, b as f32]);
        let worth = number(1) * (1.0 + number(6).min(number(7)).log2());
        // Printed with three digits.
        assert!(worth <= last + 0.01, "{line}");
        last = worth;
    }
}

#[test]
fn a_directory_without_a_result_is_refused() {
    let (directory, labels) = clustered("density");
    let here = directory.path();
    let (code, text) = kinfolk(here, &["explain", "out", &labels.len().to_string()]);
    assert_eq!(code, 2);
    assert!(text.contains(&format!("from 0, found {} of {} rows", labels.len(), labels.len())), "{text}");
    let (code, text) = kinfolk(here, &["explain", "set", "0"]);
    assert_eq!(code, 1);
    assert!(text.contains("run.json"), "{text}");
    let path = here.join("out/clusters.csv");
    let good = fs::read_to_string(&path).unwrap();
    for (damaged, place) in [
        (good.replacen("row,", "rows,", 1), "line 1"),
        (good.replacen("\n1,", "\none,", 1), "line 3"),
        (good.replacen("\n2,", "\n2,-9", 1), "row 2: expected a cluster"),
    ] {
        fs::write(&path, damaged).unwrap();
        let (code, text) = kinfolk(here, &["explain", "out", "0"]);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains(place), "{place}: {text}");
    }
}
