//! The ablations of `kinfolk-lab` on small sets: the files they write, and their errors.

mod common;

use common::{lab, synthetic, synthetic_parts};
use std::fs;
use tempfile::TempDir;

const TINY: [&str; 6] = ["--identities", "12", "-k", "8", "--epochs", "1"];

/// Runs an ablation on a tiny set; returns its table, without the heading, and the picture.
fn ablation(name: &str, columns: &str) -> (Vec<Vec<String>>, String) {
    let directory = TempDir::new().unwrap();
    let trains_gcn_e = !["confidence-designs", "layers"].contains(&name);
    let epochs_e: &[&str] = if trains_gcn_e { &["--epochs-e", "1"] } else { &[] };
    let (code, stdout, stderr) = lab(directory.path(), &[&[name][..], &TINY, epochs_e].concat());
    assert_eq!(code, 0, "{name}: {stderr}");
    let epochs = if trains_gcn_e { "epochs 1 and 1, rotated, seed 0" } else { "epochs 1, rotated, seed 0" };
    for said in ["synth, faces: ", "K = 8", epochs, "kinfolk 0.", "held-out identities"] {
        assert!(stdout.contains(said), "{said}: {stdout}");
    }
    let file =
        |end: &str| fs::read_to_string(directory.path().join(format!("bench-{name}/{name}.{end}"))).unwrap();
    let csv = file("csv");
    let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(lines.next().unwrap().join(","), columns);
    let lines: Vec<Vec<String>> = lines.collect();
    assert!(lines.iter().all(|line| line.len() == columns.split(',').count()), "{csv}");
    let picture = file("svg");
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"), "{picture}");
    assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    (lines, picture)
}

/// The values of one column.
fn column(lines: &[Vec<String>], at: usize) -> Vec<&str> {
    lines.iter().map(|line| line[at].as_str()).collect()
}

fn all_within(lines: &[Vec<String>], at: usize, most: f64) {
    for value in column(lines, at) {
        assert!((0.0..=most).contains(&value.parse().unwrap()), "{value}");
    }
}

#[test]
fn confidence_designs() {
    let columns = "confidence,graph,radius,pairwise_f,bcubed_f,tau,seconds,fitting_seconds";
    let (lines, picture) = ablation("confidence-designs", columns);
    let names = ["u_num", "u_weight", "s_avg", "s_center", "s_nbr", "s_nbr^F", "oracle: true s_nbr"];
    assert_eq!(column(&lines, 0), names);
    let rebuilt = column(&lines, 1).iter().filter(|graph| **graph == "rebuilt").count();
    assert_eq!((rebuilt, lines[5][1].as_str()), (1, "rebuilt"));
    all_within(&lines, 3, 100.0);
    all_within(&lines, 4, 100.0);
    all_within(&lines, 5, 1.0);
    assert!(names.iter().all(|name| picture.contains(&format!(">{name}<"))), "{picture}");
}

#[test]
fn rho() {
    let (lines, picture) = ablation("rho", "rho,pairwise_f,bcubed_f,tau,seconds");
    assert_eq!(lines.len(), 11);
    assert_eq!((lines[0][0].as_str(), lines[10][0].as_str()), ("0.0", "1.0"));
    all_within(&lines, 1, 100.0);
    assert!(picture.contains("rho, the share") && picture.contains("Seconds"));
}

#[test]
fn m() {
    let columns =
        "m,pairwise_f,bcubed_f,tau,rho,clusters,pairwise_f_at_tau_of_1,bcubed_f_at_tau_of_1,seconds";
    let (lines, picture) = ablation("m", columns);
    assert_eq!(column(&lines, 0), ["-1", "1", "2", "3"]);
    assert_eq!(lines[1][1..3], lines[1][6..8], "M = 1 has its own tau");
    assert!(picture.contains("M = -1, its own tau"));
}

#[test]
fn tau() {
    let columns = "tau,density_pairwise_f,density_bcubed_f,gcn_v_pairwise_f,gcn_v_bcubed_f,gcn_ve_pairwise_f,\
                   gcn_ve_bcubed_f";
    let (lines, picture) = ablation("tau", columns);
    assert_eq!(lines.len(), 20);
    assert_eq!((lines[0][0].as_str(), lines[19][0].as_str()), ("0.00", "0.95"));
    // Three methods in two charts, each with the tau that was chosen, and one ring in the legend.
    assert_eq!(picture.matches("<circle").count(), 7);
}

#[test]
fn layers() {
    let columns =
        "convolutions,sampled,fitted_loss,held_out_loss,pairwise_f,bcubed_f,tau,fitting_seconds,seconds";
    let (lines, picture) = ablation("layers", columns);
    assert_eq!(column(&lines, 0), ["1", "2", "2", "2", "2", "3", "3"]);
    let sampled = ["-", "5 neighbours", "5 neighbours in F_1", "320 vertices", "1024 vertices"];
    assert_eq!(column(&lines, 1)[..5], sampled);
    all_within(&lines, 3, 4.0);
    assert!(picture.contains(">3 convolutions, 1024 vertices<"));
}

#[test]
fn own_files_and_an_own_directory() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    synthetic_parts(&at.join("set"), 12, 16);
    let files = |part: &str| ["features", "labels"].map(|what| format!("set/{part}_{what}.npy"));
    let (train, test) = (files("train"), files("test"));
    let layers = |train: &[String; 2], test: &[String; 2], more: &[&str]| {
        let sets = ["layers", "--train", &train[0], &train[1], "--test", &test[0], &test[1]];
        lab(at, &[&sets[..], &["-k", "8", "--epochs", "1", "-o", "out"], more].concat())
    };
    let (code, stdout, stderr) = layers(&train, &test, &[]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("set/train_features.npy: ") && stdout.contains("16 columns"), "{stdout}");
    assert!(at.join("out/layers.csv").exists() && at.join("out/layers.svg").exists());

    let refused = |run: (i32, String, String), code: i32, message: &str| {
        assert_eq!(run.0, code, "{}", run.2);
        assert!(run.2.starts_with("error: ") && run.2.contains(message), "{}", run.2);
    };
    let mixed = [test[0].clone(), train[1].clone()];
    refused(layers(&train, &mixed, &[]), 1, "labels (one per row of set/test_features.npy), found");
    let gone = ["gone.npy".to_owned(), train[1].clone()];
    refused(layers(&gone, &test, &[]), 1, "gone.npy: no such file");
    refused(layers(&train, &test, &["--identities", "9"]), 2, "cannot be used with");
    refused(lab(at, &["layers", "--train", &train[0], &train[1]]), 2, "--test <FEATURES> <LABELS>");
    refused(lab(at, &["layers", "--train", &train[0]]), 2, "2 values");
    synthetic(&at.join("narrow"), 6, 8);
    let narrow = ["features", "labels"].map(|what| format!("narrow/{what}.npy"));
    let message = "narrow/features.npy: expected 16 columns, as set/train_features.npy has, found 8";
    refused(layers(&train, &narrow, &[]), 1, message);
}

#[test]
fn the_fashion_profile_has_its_own_neighbours() {
    let directory = TempDir::new().unwrap();
    let arguments = ["m", "--profile", "fashion", "--identities", "60", "--epochs", "1", "--rotate", "false"];
    let (code, stdout, stderr) = lab(directory.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("synth, fashion: ") && stdout.contains("K = 5"), "{stdout}");
    assert!(stdout.contains("of 30 identities to train on") && stdout.contains("not rotated"), "{stdout}");
}

#[test]
fn bad_arguments() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    fs::write(at.join("file"), "").unwrap();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["rho", "--identities", "12", "-k", "0"], 2, "-k: expected at least 1, found 0"),
        (&["rho", "--epochs", "0"], 2, "--epochs: expected at least 1, found 0"),
        (&["layers", "--epochs-e", "3"], 2, "--epochs-e: no effect, because GCN-E is not trained here"),
        (&["calibrate", "--methods", "kin"], 2, "--methods: expected some of kmeans, hac,"),
        (&["calibrate", "--epochs", "3"], 2, "--epochs: no effect, because no network is trained here"),
        (&["rho", "--epochs-e", "0"], 2, "--epochs-e: expected at least 1, found 0"),
        (
            &["rho", "--identities", "1"],
            2,
            "expected a share between 0 and 1 that leaves each part an identity",
        ),
        (
            &["rho", "--identities", "12", "-o", "file"],
            1,
            "file: expected a directory to write to, found a file",
        ),
        (&["roh"], 2, "unrecognized subcommand 'roh'"),
    ];
    for (arguments, code, message) in cases {
        let (found, _, stderr) = lab(at, &[arguments, &["--threads", "1"]].concat());
        assert_eq!(found, code, "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
}

#[test]
fn the_default_is_compared_with_other_methods_on_every_set() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    synthetic(&here.join("set"), 30, 32);
    fs::create_dir(here.join("data")).unwrap();
    fs::copy(here.join("set/features.npy"), here.join("data/mine_feat.npy")).unwrap();
    fs::copy(here.join("set/labels.npy"), here.join("data/mine_label.npy")).unwrap();
    let sets = ["default", "--data", "data", "--random", "0", "--identities", "20", "--worlds", "3"];
    let (code, stdout, stderr) = lab(here, &sets);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("points of either F"), "{stdout}");
    // Edge probabilities, on both sets and on worlds.
    let bins = fs::read_to_string(here.join("bench-default/reliability.csv")).unwrap();
    assert!(stdout.contains(" worlds: ") && bins.contains(" worlds: "), "{stdout}{bins}");
    assert!(bins.contains("\"mine\",") && bins.contains("\"synth\","), "{bins}");
    let csv = fs::read_to_string(here.join("bench-default/default.csv")).unwrap();
    let lines: Vec<Vec<String>> =
        csv.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect();
    // The synthetic set has other identities to learn from.
    assert_eq!(column(&lines, 0), ["mine"; 6].iter().chain(&["synth"; 7]).copied().collect::<Vec<_>>());
    let rivals = ["Infomap", "density tree", "HDBSCAN", "FaceMap", "FC-ES"];
    let methods = [&["kin"][..], &rivals, &["kin", "kin trained"], &rivals].concat();
    assert_eq!(column(&lines, 3), methods);
    assert!(stdout.contains("against Infomap"), "{stdout}");
    all_within(&lines, 6, 100.0);
    all_within(&lines, 7, 100.0);
    let (code, _, stderr) = lab(here, &["default", "--data", "data", "--python", "false"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("expected a Python with numpy, infomap and evoc"), "{stderr}");
    let (code, _, stderr) = lab(here, &["default", "--data", "set"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("expected files NAME_feat.npy and NAME_label.npy"), "{stderr}");
}
