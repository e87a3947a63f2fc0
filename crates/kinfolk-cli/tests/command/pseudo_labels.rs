//! `cluster --pseudo-labels`: the file, what is printed, and what is refused.

use super::*;
use kinfolk::io::read_labels;

fn set() -> TempDir {
    let directory = TempDir::new().unwrap();
    succeeds(directory.path(), &["synth", "set", "--identities", "40", "--dim", "32"]);
    directory
}

#[test]
fn classes_are_dense_by_size_and_described() {
    let directory = set();
    let here = directory.path();
    // The file may be in the directory of the results, before it exists.
    let base = ["cluster", "set/features.npy", "-o", "out", "--labels", "set/labels.npy"];
    let options = ["--pseudo-labels", "out/classes.npy", "--least-size", "5", "--least-probability", "0.8"];
    let run = succeeds(here, &[&base[..], &options].concat());
    assert!(run.stdout().contains("\npseudo-labels: "), "{}", run.stdout());
    assert!(run.stdout().contains("expected precision 0.") && run.stdout().contains("true precision"));
    let (classes, labels) = (
        read_labels(&here.join("out/classes.npy")).unwrap(),
        read_labels(&here.join("out/labels.npy")).unwrap(),
    );
    let sizes: Vec<usize> = (0..=*classes.iter().max().unwrap())
        .map(|class| classes.iter().filter(|&&other| other == class).count())
        .collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes.iter().all(|&size| size >= 5), "{sizes:?}");
    assert_eq!(classes.len(), labels.len());
    assert!(classes.contains(&-1));
    let json = succeeds(here, &[&base[..], &options, &["--json"]].concat()).json();
    let info = &json["pseudo_labels"];
    assert_eq!((&info["classes"], &info["least_size"]), (&sizes.len().into(), &5.into()));
    assert_eq!(info["rows"], sizes.iter().sum::<usize>());
    assert!(info["expected_precision"].as_f64().unwrap() >= 0.8 && info["precision"].is_number());
    assert_eq!(succeeds(here, &["explain", "out", "0"]).code(), 0);

    // By default all clusters of two rows and more.
    let json =
        succeeds(here, &["cluster", "set/features.npy", "--pseudo-labels", "all.npy", "--json"]).json();
    let alone = json["clusters"]["singletons"].as_u64().unwrap();
    assert_eq!(json["pseudo_labels"]["rows"], labels.len() as u64 - alone);
    assert!(json["pseudo_labels"].get("least_probability").is_none());
}

#[test]
fn where_nothing_is_kept_all_rows_are_left_out() {
    let directory = set();
    let here = directory.path();
    let options = ["--pseudo-labels", "none.npy", "--least-size", "100000"];
    let run = succeeds(here, &[&["cluster", "set/features.npy"][..], &options].concat());
    assert!(run.stdout().contains("(0.0 %) in 0 classes, expected precision 1.000"), "{}", run.stdout());
    assert!(read_labels(&here.join("none.npy")).unwrap().iter().all(|&class| class == -1));
}

#[test]
fn trees_have_sizes_but_no_probabilities() {
    let directory = set();
    let here = directory.path();
    let base = ["cluster", "set/features.npy", "--method", "density", "--pseudo-labels", "classes.npy"];
    let run = succeeds(here, &[&base[..], &["--least-size", "3"]].concat());
    assert!(
        run.stdout().contains("pseudo-labels: ") && !run.stdout().contains("precision"),
        "{}",
        run.stdout()
    );
    fs::remove_file(here.join("classes.npy")).unwrap();
    let run = kinfolk(here, &[&base[..], &["--least-probability", "0.5"]].concat());
    let message =
        "--least-probability: expected a method that estimates probabilities, found --method density";
    assert_eq!((run.code(), run.stderr()), (2, format!("error: {message}\n")));
    assert!(!here.join("classes.npy").exists());
}

#[test]
fn what_cannot_be_is_refused_before_the_work() {
    let directory = set();
    let here = directory.path();
    fs::create_dir(here.join("folder.npy")).unwrap();
    let before = files(here);
    for (options, code, message) in [
        (
            &["--pseudo-labels", "folder.npy"][..],
            1,
            "folder.npy: expected a file to write, found a directory",
        ),
        (&["--pseudo-labels", "c.txt"], 2, "--pseudo-labels: expected a .npy file, found c.txt"),
        (
            &["--pseudo-labels", "out/labels.npy"],
            2,
            "--pseudo-labels: expected a file besides the results, found out/labels.npy",
        ),
        (&["--pseudo-labels", "c.npy", "--least-size", "0"], 2, "--least-size: expected at least 1, found 0"),
        (
            &["--pseudo-labels", "c.npy", "--least-probability", "1.5"],
            2,
            "--least-probability: expected a probability from 0 to 1, found 1.5",
        ),
        (
            &["--pseudo-labels", "c.npy", "--least-probability", "NaN"],
            2,
            "--least-probability: expected a probability from 0 to 1, found NaN",
        ),
        (
            &["--pseudo-labels", "nowhere/c.npy"],
            1,
            "nowhere/c.npy: expected the directory nowhere to write it in, found no such directory",
        ),
    ] {
        let run = kinfolk(here, &[&["cluster", "set/features.npy", "-o", "out"], options].concat());
        assert_eq!((run.code(), run.stderr()), (code, format!("error: {message}\n")));
        assert_eq!(files(here), before);
    }
    for option in [["--least-size", "3"], ["--least-probability", "0.5"]] {
        let run = kinfolk(here, &[&["cluster", "set/features.npy", "-o", "out"][..], &option].concat());
        assert_eq!(run.code(), 2);
        assert!(run.stderr().contains("--pseudo-labels <FILE>"), "{}", run.stderr());
    }
    assert_eq!(files(here), before);
}
