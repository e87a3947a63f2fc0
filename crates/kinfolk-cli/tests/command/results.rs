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
    let limited = |more: &[&str]| {
        // 512 or 1024 bytes each, as the shell counts: enough for labels.npy, not for
        // the clusters.
        let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"";
        let program = env!("CARGO_BIN_EXE_kinfolk");
        let mut command = Command::new("sh");
        command.args(["-c", script, program, "cluster", "set/features.npy", "-o", "out"]).args(more);
        Run { output: command.current_dir(here).output().unwrap() }
    };
    for (more, name) in [(&[][..], "clusters.csv"), (&["--parquet"], "clusters.parquet")] {
        let run = limited(more);
        assert_eq!(run.code(), 1, "{}", run.stderr());
        assert!(run.stderr().contains(&format!("{name}: File too large")), "{}", run.stderr());
        assert!(!here.join("out").exists(), "{:?}", files(&here.join("out")));
    }

    // The results of an earlier run stay as they were.
    succeeds(here, &["cluster", "set/features.npy", "-o", "out", "--seed", "1"]);
    let content = || files(&here.join("out")).iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>();
    let before = content();
    assert!(before[0].len() > 16 * 1024, "the limit is not reached");
    assert_eq!(limited(&[]).code(), 1);
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

fn names(directory: &Path) -> Vec<String> {
    files(directory).iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn clusters_as_parquet_replace_those_as_text_and_explain_alike() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "20", "--dim", "16", "--seed", "3"]);
    for method in ["kin", "density", "kmeans"] {
        let cluster = |more: &[&str]| {
            let clusters: &[&str] = if method == "kmeans" { &["--clusters", "20"] } else { &[] };
            let options = ["cluster", "set/features.npy", "--method", method, "-o", method];
            succeeds(here, &[&options, clusters, more].concat());
        };
        let explained = || -> Vec<String> {
            let rows: [&[&str]; 3] = [&["0"], &["0", "1"], &["5", "700"]];
            let explain = |rows: &[&str]| kinfolk(here, &[&["explain", method], rows].concat());
            rows.map(|rows| explain(rows).stdout() + &explain(rows).stderr()).into()
        };
        let out = here.join(method);
        cluster(&[]);
        assert_eq!(names(&out), ["clusters.csv", "labels.npy", "review.csv", "run.json"]);
        let (labels, of_text) = (fs::read(out.join("labels.npy")).unwrap(), explained());
        cluster(&["--parquet"]);
        assert_eq!(names(&out), ["clusters.parquet", "labels.npy", "review.csv", "run.json"]);
        assert_eq!((fs::read(out.join("labels.npy")).unwrap(), explained()), (labels, of_text));
        cluster(&[]);
        assert_eq!(names(&out), ["clusters.csv", "labels.npy", "review.csv", "run.json"]);
    }
}

#[test]
fn damaged_and_missing_clusters_are_refused() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    four_rows(here);
    let refused = |message: &str| {
        let run = kinfolk(here, &["explain", "out", "0"]);
        assert_eq!((run.code(), run.stdout().as_str()), (1, ""));
        assert!(run.stderr().starts_with(&format!("error: {message}")), "{}", run.stderr());
    };
    let [csv, parquet] = ["out/clusters.csv", "out/clusters.parquet"].map(|name| here.join(name));
    succeeds(here, &["cluster", "x.npy", "-o", "out"]);
    let text = fs::read_to_string(&csv).unwrap();
    succeeds(here, &["cluster", "x.npy", "-o", "out", "--parquet"]);
    let whole = fs::read(&parquet).unwrap();
    for length in [1, whole.len() / 2, whole.len() - 1] {
        fs::write(&parquet, &whole[..length]).unwrap();
        refused("out/clusters.parquet: expected a parquet file, found ");
    }
    fs::write(&parquet, []).unwrap();
    refused("out/clusters.parquet: expected a file with something in it, found an empty file");
    fs::write(&csv, &text).unwrap();
    refused("out: expected either clusters.csv or clusters.parquet, found both");
    fs::remove_file(&parquet).unwrap();
    fs::write(&csv, text.trim_end().rsplit_once('\n').unwrap().0).unwrap();
    refused("out/clusters.csv: expected 4 rows (as run.json says), found 3");
    fs::remove_file(&csv).unwrap();
    refused("out: expected either clusters.csv or clusters.parquet, found neither");
}
