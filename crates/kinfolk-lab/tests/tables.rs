//! The tables of `kinfolk-lab` on small sets: the files they write, the methods they compare, and the time limit.

mod common;
#[path = "../../kinfolk-nn/tests/fixture/mod.rs"]
#[allow(dead_code, reason = "other tests compare with the answers of these networks")]
mod fixture;

use common::{lab, synthetic_parts};
use kinfolk::synth::{Profile, Synth, SynthParams};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const METHODS: [&str; 23] = [
    "kmeans",
    "minibatch-kmeans",
    "hac",
    "dbscan",
    "dbscan-knn",
    "meanshift",
    "spectral",
    "aro",
    "cdp",
    "lgcn",
    "ltc",
    "chinese-whispers",
    "hdbscan",
    "optics",
    "infomap",
    "facemap",
    "fc-es",
    "density",
    "kin",
    "gcn-v-paper",
    "gcn-ve-paper",
    "gcn-v",
    "gcn-ve",
];

/// What a table wrote.
struct Written {
    stdout: String,
    markdown: String,
    picture: String,
    /// A map from column to value for each line of the CSV file.
    lines: Vec<HashMap<String, String>>,
}

impl Written {
    fn column(&self, name: &str) -> Vec<&str> {
        self.lines.iter().map(|line| line[name].as_str()).collect()
    }

    /// Both F's and the seconds of every run that ended are numbers, and there is nothing where it did not.
    fn check_values(&self) {
        for line in &self.lines {
            let done = line["ended"] == "done";
            for (name, most) in
                [("pairwise_f", 100.0), ("bcubed_f", 100.0), ("seconds", 1e4), ("clusters", 1e6)]
            {
                match line[name].parse::<f64>() {
                    Ok(value) => assert!(done && (0.0..=most).contains(&value), "{line:?}"),
                    Err(_) => assert!(!done && line[name].is_empty(), "{line:?}"),
                }
            }
        }
    }
}

fn table(name: &str, arguments: &[&str]) -> Written {
    let directory = TempDir::new().unwrap();
    let (code, stdout, stderr) = lab(directory.path(), &[&[name][..], arguments].concat());
    assert_eq!(code, 0, "{name}: {stderr}");
    read(&directory.path().join(format!("bench-{name}")), name, stdout)
}

fn read(directory: &Path, name: &str, stdout: String) -> Written {
    let file = |end: &str| fs::read_to_string(directory.join(format!("{name}.{end}"))).unwrap();
    let (csv, markdown, picture) = (file("csv"), file("md"), file("svg"));
    let mut rows = csv.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let heading = rows.next().unwrap();
    let lines: Vec<HashMap<String, String>> = rows
        .map(|row| {
            assert_eq!(row.len(), heading.len(), "{csv}");
            heading.iter().cloned().zip(row).collect()
        })
        .collect();
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"), "{picture}");
    assert!(!picture.contains("NaN") && !picture.contains("inf\""), "{picture}");
    for said in ["How parameters were chosen", "seed 0", "kinfolk 0.", "settings of each method"] {
        assert!(markdown.contains(said), "{said}: {markdown}");
    }
    Written { stdout, markdown, picture, lines }
}

#[test]
fn every_registered_method_is_in_the_list() {
    let (mut listed, mut registered) = (METHODS.to_vec(), kinfolk_methods::names().collect::<Vec<_>>());
    // The networks of the paper are trained by two recipes.
    registered.extend(["gcn-v-paper", "gcn-ve-paper"]);
    listed.sort_unstable();
    registered.sort_unstable();
    assert_eq!(listed, registered);
}

#[test]
fn table1_has_every_method_at_every_size() {
    let tiny = ["--rows-per-part", "700", "--parts", "2,1", "-k", "20", "--epochs", "1", "--quick"];
    let written = table("table1", &[&tiny[..], &["--limit", "60"]].concat());
    assert_eq!(written.column("method"), METHODS.repeat(2));
    let mut parts = vec!["1"; METHODS.len()];
    parts.extend(["2"; METHODS.len()]);
    assert_eq!(written.column("parts"), parts);
    assert!(written.column("ended").iter().all(|ended| *ended == "done"), "{:?}", written.column("ended"));
    written.check_values();
    let rows: Vec<usize> = written.column("rows").iter().map(|rows| rows.parse().unwrap()).collect();
    assert!(rows[METHODS.len()] > rows[0] * 3 / 2, "{rows:?}");
    for method in METHODS {
        assert!(written.picture.contains(&format!(">{method}<")), "{method}");
        assert!(written.markdown.contains(&format!("| {method} |")), "{method}");
        assert!(written.stdout.contains(method), "{method}");
    }
    assert!(written.markdown.contains("quadratic") && written.markdown.contains("| N^2 D |"));
    for fitted in [
        "GCN-V and GCN-E were fitted to",
        "were fitted by the recipe of the paper",
        "L-GCN was fitted",
        "LTC was fitted",
    ] {
        assert!(written.markdown.contains(fitted), "{}", written.markdown);
    }
    // All methods with settings choose from the same number of settings.
    let chosen = written.markdown.lines().filter(|line| line.contains("| 12 |")).count();
    assert_eq!(chosen, 16, "{}", written.markdown);
}

#[test]
fn methods_that_take_too_long_are_stopped_and_reported() {
    let arguments =
        ["--rows-per-part", "1400", "--parts", "1,2", "-k", "20", "--methods", "meanshift,kin,density"];
    let written = table("table1", &[&arguments[..], &["--limit", "0.000001"]].concat());
    // In the order of the table, not in that of the option.
    assert_eq!(written.column("method"), ["meanshift", "density", "kin"].repeat(2));
    let ended = ["not run", "not run", "over the limit", "not run", "not run", "not run"];
    assert_eq!(written.column("ended"), ended);
    written.check_values();
    assert_eq!(written.stdout.matches("> 0.000001").count(), 7, "{}", written.stdout);
    assert!(written.stdout.contains("the first setting took more than 0.000001 s"), "{}", written.stdout);
}

#[test]
fn table2_has_every_method() {
    let written = table("table2", &["--identities", "100", "--epochs", "1", "--quick", "--limit", "60"]);
    assert_eq!(written.column("method"), METHODS);
    written.check_values();
    assert!(written.stdout.contains("K = 5"), "{}", written.stdout);
    assert!(written.markdown.contains("38.5 / 60.1"), "the figures of the paper: {}", written.markdown);
    for method in METHODS {
        assert!(written.picture.contains(&format!(">{method}<")), "{method}");
    }
}

/// All seven methods would take a quarter of an hour; these have no setting to choose and take seconds.
#[test]
fn the_fashion_profile_is_as_hard_as_its_model() {
    let written = table("calibrate", &["--methods", "kmeans,hac", "--limit", "300"]);
    assert_eq!(written.column("method"), ["kmeans", "hac"]);
    assert_eq!(written.column("paper_clusters"), ["3991", "17410"]);
    assert!(written.stdout.contains("2 of 2 methods are within 3 points"), "{}", written.stdout);
    assert!(
        written.markdown.contains("single linkage, the paper's number of clusters"),
        "{}",
        written.markdown
    );
}

#[test]
fn calibration_reports_methods_that_take_too_long() {
    let written = table("calibrate", &["--quick", "--methods", "kmeans,hac", "--limit", "0.000001"]);
    assert_eq!(written.column("ended"), ["over the limit", "over the limit"]);
    assert!(written.stdout.contains("0 of 2 methods are within 3 points"), "{}", written.stdout);
}

#[test]
fn table2_of_an_own_set() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    synthetic_parts(&at.join("set"), 16, 16);
    let [train, test] =
        ["train", "test"].map(|part| ["features", "labels"].map(|what| format!("set/{part}_{what}.npy")));
    let sets = ["table2", "--train", &train[0], &train[1], "--test", &test[0], &test[1]];
    let more = ["-k", "10", "--methods", "infomap,density,kin", "-o", "out"];
    let (code, stdout, stderr) = lab(at, &[&sets[..], &more].concat());
    assert_eq!(code, 0, "{stderr}");
    let written = read(&at.join("out"), "table2", stdout);
    assert_eq!(written.column("method"), ["infomap", "density", "kin"]);
    assert!(written.stdout.starts_with("set/train_features.npy: "), "{}", written.stdout);
    assert!(!written.markdown.contains("fitted to the training part"), "{}", written.markdown);
    let (code, _, stderr) = lab(at, &[&sets[..4], &more].concat());
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn runtime_sweeps_batches_and_thresholds() {
    let methods = "kmeans,minibatch-kmeans,ltc,infomap,kin";
    let arguments = ["--rows", "900", "-k", "20", "--methods", methods, "--quick", "--limit", "60"];
    let written = table("runtime", &arguments);
    let (mini, ltc) = ("minibatch-kmeans", "ltc");
    let expected = ["kmeans", mini, mini, mini, mini, ltc, ltc, ltc, ltc, "infomap", "kin"];
    assert_eq!(written.column("method"), expected);
    let swept = ["", "256", "1024", "4096", "16384", "1", "2", "4", "8", "", ""];
    assert_eq!(written.column("swept"), swept);
    written.check_values();
    assert_eq!(written.picture.matches("<circle").count(), 2 * 11);
    assert!(written.picture.contains("seconds from rows to labels"));
}

#[test]
fn bad_arguments() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    fs::write(at.join("file"), "").unwrap();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["table1", "--methods", "guessing"], 2, "invalid value 'guessing'"),
        (&["table1", "--limit", "0"], 2, "expected a number of seconds above 0"),
        (&["table1", "--parts", "0"], 2, "0 is not in 1.."),
        (&["table1", "--full", "--rows-per-part", "9"], 2, "cannot be used with"),
        (&["table2", "--quick", "-o", "file"], 1, "file: expected a directory to write to, found a file"),
        (&["all", "--quick", "-o", "file"], 1, "file: expected a directory to write to, found a file"),
    ];
    for (arguments, code, message) in cases {
        let (found, _, stderr) = lab(at, arguments);
        assert_eq!(found, code, "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
}

/// Writes a part as the authors of the paper publish them, with or without its graph.
fn published(data: &Path, name: &str, k: usize, graph: bool, part: &kinfolk::synth::Part) {
    for folder in ["features", "labels", "knns"] {
        fs::create_dir_all(data.join(folder).join(if folder == "knns" { name } else { "" })).unwrap();
    }
    let (rows, labels) = part.to_embeddings().unwrap();
    let bytes: Vec<u8> = (0..rows.len()).flat_map(|i| rows.row(i)).flat_map(|v| v.to_le_bytes()).collect();
    fs::write(data.join(format!("features/{name}.bin")), bytes).unwrap();
    let lines: String = labels.iter().map(|label| format!("{label}\n")).collect();
    fs::write(data.join(format!("labels/{name}.meta")), lines).unwrap();
    if graph {
        let params = kinfolk::KnnParams { k: k - 1, ..kinfolk::KnnParams::default() };
        let (graph, _) = kinfolk::knn_graph(&rows, &params, &()).unwrap();
        let file = data.join(format!("knns/{name}/faiss_k_{k}.npz"));
        kinfolk::io::write_graph(&file, &graph, kinfolk::io::GraphLayout::Published).unwrap();
    }
}

#[test]
fn published_data_gives_both_tables() {
    let directory = TempDir::new().unwrap();
    let (at, data) = (directory.path(), directory.path().join("data"));
    let faces = SynthParams { identities: 80, dim: 128, ..SynthParams::default() };
    let faces = Synth::new(faces).unwrap();
    published(&data, "part0_train", 80, true, &faces.part(0..20).unwrap());
    published(&data, "part1_test", 80, true, &faces.part(20..40).unwrap());
    published(&data, "part3_test", 80, false, &faces.part(20..80).unwrap());
    let clothes = SynthParams { identities: 200, dim: 128, ..Profile::Fashion.params() };
    let clothes = Synth::new(clothes).unwrap();
    published(&data, "deepfashion_train", 5, true, &clothes.part(0..100).unwrap());
    published(&data, "deepfashion_test", 5, true, &clothes.part(100..200).unwrap());
    let mut methods = vec!["cdp", "kin", "gcn-v-paper"];
    let run = ["published", "data", "--methods", "cdp,kin,gcn-v-paper", "--epochs", "1", "-o", "out"];
    let weights = fixture::directory();
    if let Some(weights) = &weights {
        for (network, set) in [("v", "ms1m"), ("e", "ms1m"), ("v", "deepfashion")] {
            let name = data.join(format!("pretrained_gcn_{network}_{set}.pth"));
            fs::copy(weights.join(format!("gcn_{network}.pth")), name).unwrap();
        }
        methods.push("gcn-v-published");
    }
    let (code, stdout, stderr) = lab(at, &run);
    assert_eq!(code, 0, "{stderr}");
    let table2 = read(&at.join("out"), "table2", stdout.clone());
    assert_eq!(table2.column("method"), methods);
    table2.check_values();
    if weights.is_some() {
        methods.push("gcn-ve-published");
    }
    let table1 = read(&at.join("out"), "table1", stdout);
    assert_eq!(table1.column("method"), methods.repeat(2));
    let mut parts = vec!["1"; methods.len()];
    parts.extend(vec!["3"; methods.len()]);
    assert_eq!(table1.column("parts"), parts);
    table1.check_values();
    for shown in ["MS-Celeb-1M, data", "paper, 584K rows", "87.1 / 85.8", "70.8 / 75.8"] {
        assert!(table1.markdown.contains(shown), "{shown}: {}", table1.markdown);
    }
    assert!(
        table2.markdown.contains("33.1 / 57.3") && table2.markdown.contains("K = 4"),
        "{}",
        table2.markdown
    );

    // What is missing is named.
    fs::remove_file(data.join("labels/part0_train.meta")).unwrap();
    let (code, _, stderr) = lab(at, &run);
    assert!(code == 1 && stderr.contains("part0_train"), "{stderr}");
    fs::remove_dir_all(data.join("features")).unwrap();
    let (code, _, stderr) = lab(at, &run);
    assert!(
        code == 1 && stderr.contains("data: expected features/part1_test.bin or another part"),
        "{stderr}"
    );
}
