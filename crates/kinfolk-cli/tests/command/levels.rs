//! `cluster --levels`: its files, its output, and who refuses it.

use super::*;
use kinfolk::io::read_labels;

#[test]
fn levels_are_written_with_the_other_results() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "40", "--dim", "32"]);
    let run = succeeds(here, &["cluster", "set/features.npy", "-o", "out", "--levels"]);
    let out = here.join("out");
    let lines = fs::read_to_string(out.join("levels.csv")).unwrap();
    let lines: Vec<Vec<&str>> = lines.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0], ["level", "clusters", "persistence", "height", "default"]);
    let levels = &lines[1..];
    assert!(levels.len() > 1 && run.stdout().contains("default"), "{}", run.stdout());
    // One row of labels for each level, after a header of 128 bytes.
    let labels = read_labels(&out.join("labels.npy")).unwrap();
    let bytes = fs::read(out.join("levels.npy")).unwrap();
    let values = &bytes[bytes.len() - 8 * levels.len() * labels.len()..];
    let values: Vec<i64> =
        values.chunks(8).map(|value| i64::from_le_bytes(value.try_into().unwrap())).collect();
    for (line, of_level) in levels.iter().zip(values.chunks(labels.len())) {
        let clusters = of_level.iter().max().unwrap() + 1;
        assert_eq!(line[1], clusters.to_string());
        assert_eq!(line[4] == "true", of_level == labels);
    }
    let header = String::from_utf8_lossy(&bytes[..bytes.len() - 8 * values.len()]).into_owned();
    assert!(header.contains(&format!("'shape': ({}, {})", levels.len(), labels.len())), "{header}");
    assert!(fs::read_to_string(out.join("levels.svg")).unwrap().contains(", the default"));
    assert_eq!(succeeds(here, &["explain", "out", "0"]).code(), 0);

    // The same as JSON; and a run without levels leaves none of them behind.
    let json = succeeds(here, &["cluster", "set/features.npy", "-o", "out", "--levels", "--json"]).json();
    assert_eq!(json["levels"].as_array().unwrap().len(), levels.len());
    assert!(json["seconds"]["levels"].is_number());
    let json = succeeds(here, &["cluster", "set/features.npy", "-o", "out", "--json"]).json();
    assert!(json.get("levels").is_none());
    let names = |file: &PathBuf| file.file_name().unwrap().to_string_lossy().into_owned();
    let left: Vec<String> = files(&out).iter().map(names).collect();
    assert_eq!(left, ["clusters.csv", "labels.npy", "review.csv", "run.json"]);
}

#[test]
fn methods_without_edge_probabilities_refuse_levels() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "12", "--dim", "8"]);
    for entry in kinfolk_methods::METHODS.iter().filter(|entry| entry.make().is_some()) {
        let info = entry.info();
        let clusters: &[&str] = if info.needs_clusters { &["--clusters", "3"] } else { &[] };
        let base = ["cluster", "set/features.npy", "-o", info.name, "--levels", "--method", info.name];
        let run = kinfolk(here, &[&base[..], clusters].concat());
        if info.levels {
            assert_eq!(run.code(), 0, "{}", run.stderr());
            continue;
        }
        let message =
            format!("error: --levels: expected a method that uses it, found --method {}\n", info.name);
        assert_eq!((run.code(), run.stderr()), (2, message));
        assert!(!here.join(info.name).exists());
    }
}

#[test]
fn one_row_has_one_level() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    fs::write(here.join("one.npy"), npy("<f4", "(1, 2)", &f32s(&[1.0, 0.0]))).unwrap();
    let run = succeeds(here, &["cluster", "one.npy", "-o", "out", "--levels", "--json"]).json();
    assert_eq!(run["levels"].as_array().unwrap().len(), 1);
    assert_eq!(run["levels"][0]["default"], true);
}
