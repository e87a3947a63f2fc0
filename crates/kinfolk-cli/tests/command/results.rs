//! The files of a run: all or none, and read back as what they are of.

use super::*;
use std::io::Write;

/// Writes past the end of a file that may not grow fail as they do on a full disk.
#[cfg(unix)]
#[test]
fn a_disk_that_is_full_leaves_no_results() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "8", "--dim", "8", "--seed", "2"]);
    let limited = || {
        // 512 or 1024 bytes each, as the shell counts: enough for labels.npy, not for clusters.csv.
        let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"";
        let program = env!("CARGO_BIN_EXE_kinfolk");
        let mut command = Command::new("sh");
        command.args(["-c", script, program, "cluster", "set/features.npy", "-o", "out"]);
        Run { output: command.current_dir(here).output().unwrap() }
    };
    let run = limited();
    assert_eq!(run.code(), 1, "{}", run.stderr());
    assert!(run.stderr().contains("clusters.csv: File too large"), "{}", run.stderr());
    assert!(!here.join("out").exists(), "{:?}", files(&here.join("out")));

    // The results of an earlier run stay as they were.
    succeeds(here, &["cluster", "set/features.npy", "-o", "out", "--seed", "1"]);
    let content = || files(&here.join("out")).iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>();
    let before = content();
    assert!(before[0].len() > 16 * 1024, "the limit is not reached");
    assert_eq!(limited().code(), 1);
    assert_eq!(content(), before);
}

#[test]
fn the_array_that_was_clustered_is_explained() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    // By the first array 0 and 1 are alike, by the second 0 and 2.
    let first = [1.0, 0.0, 1.0, 0.01, 0.0, 1.0, 0.01, 1.0];
    let second = [1.0, 0.0, 0.0, 1.0, 1.0, 0.01, 0.01, 1.0];
    let mut archive = zip::ZipWriter::new(fs::File::create(here.join("both.npz")).unwrap());
    for (name, rows) in [("first.npy", first), ("second.npy", second)] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(&npy("<f4", "(4, 2)", &f32s(&rows))).unwrap();
    }
    archive.finish().unwrap();
    for (array, similarity) in [("first", "0.000"), ("second", "1.000")] {
        let options = ["--array", array, "--method", "density", "--tau", "0.5", "-o", array];
        succeeds(here, &[&["cluster", "both.npz"], &options[..]].concat());
        let text = succeeds(here, &["explain", array, "0", "2"]).stdout();
        assert!(text.contains(&format!("Their similarity is {similarity}.")), "{array}: {text}");
    }
}
