//! `kinfolk cluster`, and the graph that it can be given.

use super::*;

#[test]
fn cluster_writes_labels_links_and_what_was_done() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    let run = succeeds(directory.path(), &["cluster", "x.npy", "--tau", "0.5", "--json"]);
    let out = directory.path().join("x-clusters");
    let labels = fs::read(out.join("labels.npy")).unwrap();
    let values: Vec<i64> =
        labels[128..].chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(values, [0, 0, 1, 1]);
    let csv = fs::read_to_string(out.join("clusters.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "row,cluster,confidence,parent,similarity");
    assert_eq!(lines.len(), 5);
    assert!(lines[1].starts_with("0,0,"));
    let written: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(out.join("run.json")).unwrap()).unwrap();
    assert_eq!(written, run.json());
    assert_eq!(written["clusters"]["count"], 2);
    assert_eq!(written["graph"]["k"], 3);
    for stage in ["read", "knn", "confidence", "connectivity", "partition"] {
        assert!(written["seconds"][stage].is_f64(), "{stage}");
    }
    assert!(written["peak_memory_bytes"].as_u64().unwrap() > 1_000_000);
}

#[test]
fn one_row_is_one_cluster() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("x.npy"), npy("<f4", "(1, 2)", &f32s(&[3.0, 4.0]))).unwrap();
    let run = succeeds(directory.path(), &["cluster", "x.npy", "--json"]);
    assert_eq!(run.json()["clusters"]["count"], 1);
    assert_eq!(run.stderr(), "");
}

#[test]
fn a_k_that_is_too_large_is_lowered_with_a_warning() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    let run = succeeds(directory.path(), &["cluster", "x.npy", "-k", "4", "--json"]);
    assert_eq!(run.json()["graph"]["k"], 3);
    assert_eq!(run.stderr(), "warning: -k 4: expected less than the 4 rows; using 3\n");
    let run = succeeds(directory.path(), &["cluster", "x.npy"]);
    assert_eq!(run.stderr(), "warning: -k 80: expected less than the 4 rows; using 3\n");
}

#[test]
fn a_graph_can_be_made_first_in_either_layout() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    let labels = |arguments: &[&str]| {
        let mut all = vec!["cluster", "x.npy", "-o", "out", "--tau", "0.5"];
        all.extend(arguments);
        succeeds(directory.path(), &all);
        fs::read(directory.path().join("out/labels.npy")).unwrap()
    };
    succeeds(directory.path(), &["knn", "x.npy", "-k", "2", "-o", "graph.npz"]);
    succeeds(directory.path(), &["knn", "x.npy", "-k", "2", "-o", "published.npz", "--published"]);
    let expected = labels(&["-k", "2"]);
    assert_eq!(labels(&["--graph", "graph.npz"]), expected);
    assert_eq!(labels(&["--graph", "published.npz"]), expected);
    labels(&["--graph", "graph.npz", "-k", "1"]);
    let run = kinfolk(directory.path(), &["cluster", "x.npy", "--graph", "graph.npz", "-k", "3"]);
    assert_eq!(run.stderr(), "error: graph.npz: expected 3 neighbours (-k 3), found 2\n");
    assert_eq!(run.code(), 1);
}

#[test]
fn a_graph_of_another_set_is_refused() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    succeeds(directory.path(), &["knn", "x.npy", "-k", "2", "-o", "graph.npz"]);
    fs::write(directory.path().join("y.npy"), npy("<f4", "(3, 2)", &f32s(&FOUR_ROWS[..6]))).unwrap();
    let run = kinfolk(directory.path(), &["cluster", "y.npy", "--graph", "graph.npz"]);
    assert_eq!(run.stderr(), "error: graph.npz: expected 3 vertices (one per embedding), found 4\n");
    assert_eq!(run.code(), 1);
}

#[test]
fn threads_do_not_change_the_labels() {
    let directory = TempDir::new().unwrap();
    succeeds(directory.path(), &["synth", "set", "--identities", "30", "--dim", "48"]);
    let labels = |threads: &str, search: &[&str]| {
        let mut all = vec!["cluster", "set/features.npy", "-o", threads, "--threads", threads];
        all.extend(search);
        succeeds(directory.path(), &all);
        let out = directory.path().join(threads);
        (fs::read(out.join("labels.npy")).unwrap(), fs::read(out.join("clusters.csv")).unwrap())
    };
    for search in [&["--exact"][..], &["--recall", "0.9"]] {
        assert_eq!(labels("1", search), labels("2", search));
    }
}

#[test]
fn kin_needs_no_threshold() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "20", "--dim", "32"]);
    let count = |prefer: &str| {
        let all = ["cluster", "set/features.npy", "--method", "kin", "--prefer", prefer, "--json"];
        succeeds(here, &all).json()["clusters"]["count"].as_u64().unwrap()
    };
    assert!(count("recall") <= count("balanced") && count("balanced") <= count("precision"));
    assert!(count("0.1") <= count("0.95"));
    let refused = |all: &[&str]| {
        let run = kinfolk(here, &[&["cluster", "set/features.npy"], all].concat());
        assert_eq!(run.code(), 2);
        run.stderr()
    };
    for (name, value) in [("--tau", "0.5"), ("-m", "2"), ("--confidence", "u-num"), ("--radius", "0.5")] {
        let message = refused(&["--method", "kin", name, value]);
        assert!(message.contains(&format!("{name}: expected a method that uses it")), "{message}");
    }
    assert!(
        refused(&["--method", "density", "--prefer", "recall"])
            .contains("--prefer: expected a method that uses it")
    );
    assert!(refused(&["--method", "kin", "--prefer", "2"]).contains("a probability from 0 to 1"));
}

#[test]
fn oracles_need_labels() {
    let directory = TempDir::new().unwrap();
    succeeds(directory.path(), &["synth", "set", "--identities", "20", "--dim", "16"]);
    let run = kinfolk(directory.path(), &["cluster", "set/features.npy", "--confidence", "s-nbr"]);
    assert_eq!(run.code(), 2);
    assert!(run.stderr().contains("expected --labels"), "{}", run.stderr());
    for confidence in ["s-nbr", "s-avg", "s-center", "u-num"] {
        let all = ["cluster", "set/features.npy", "--labels", "set/labels.npy", "--confidence", confidence];
        succeeds(directory.path(), &all);
    }
}

#[test]
fn every_method_clusters() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "12", "--dim", "16"]);
    for info in kinfolk_methods::METHODS.iter().map(|entry| entry.info()).filter(|info| !info.needs_model) {
        let method = info.name;
        let mut arguments = vec!["cluster", "set/features.npy", "--json", "-o", method, "--method", method];
        if !matches!(info.input, kinfolk::Input::Rows | kinfolk::Input::RowsOrGraph) {
            arguments.extend(["-k", "10"]);
        }
        if info.needs_clusters {
            arguments.extend(["--clusters", "12"]);
        }
        let run = succeeds(here, &arguments).json();
        assert_eq!(run["parameters"]["method"], method);
        assert!(run["clusters"]["count"].as_u64().unwrap() > 0, "{method}");
        assert_eq!(run["parameters"]["tau"].is_f64(), method == "density", "{method}");
    }
    let again =
        succeeds(here, &["cluster", "set/features.npy", "--json", "--method", "hac", "--clusters", "5"])
            .json();
    assert_eq!(again["clusters"]["count"], 5);
    let arguments = [
        "cluster",
        "set/features.npy",
        "--json",
        "--method",
        "dbscan",
        "--param",
        "eps=0.01",
        "--param",
        "noise=keep",
    ];
    let run = succeeds(here, &arguments).json();
    assert!(run["parameters"]["rows_of_noise"].as_u64().unwrap() > 0);

    for (arguments, message) in [
        (
            &["--method", "kmeans"][..],
            "--clusters: expected the number of clusters for --method kmeans, found none",
        ),
        (
            &["--method", "aro", "--clusters", "3"],
            "--clusters: expected a method that uses it, found --method aro",
        ),
        (&["--method", "aro", "--tau", "0.3"], "--tau: expected a method that uses it, found --method aro"),
        (
            &["--param", "eps=1"],
            "--param: expected a parameter of the method, found eps (there are prefer, identity_size, super_vertices)",
        ),
        (
            &["--method", "dbscan", "--param", "eps=x"],
            "--param eps: expected a distance 1 - cos from 0 to 2, found x",
        ),
        (
            &["--method", "dbscan", "--param", "size=1"],
            "--param: expected a parameter of the method, found size (there are eps, min, noise)",
        ),
    ] {
        let run = kinfolk(here, &[&["cluster", "set/features.npy", "-o", "none"], arguments].concat());
        assert_eq!((run.code(), run.stderr()), (2, format!("error: {message}\n")));
    }
    let run = kinfolk(here, &["explain", "kmeans", "0"]);
    assert!(run.stderr().contains("a method that returns reasons"), "{}", run.stderr());
    assert!(run.stderr().ends_with("found kmeans\n"), "{}", run.stderr());
}
