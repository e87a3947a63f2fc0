//! `kinfolk-lab recognition` on a folder of small drawings: the files it writes, and that a run can be repeated.

mod common;

use common::lab;
use std::fs::{self, File};
use std::path::Path;
use tempfile::TempDir;

const SIDE: u32 = 28;

/// A folder for each identity, with images of a bar whose place and direction depend on the identity.
fn drawings(folder: &Path, identities: u32, each: u32) {
    for identity in 0..identities {
        let directory = folder.join(format!("{identity:03}"));
        fs::create_dir_all(&directory).unwrap();
        for number in 0..each {
            let mut pixels = vec![0u8; (SIDE * SIDE) as usize];
            let (shift, slope) = (3 + identity % 7 * 3 + number % 2, f64::from(identity / 7) * 0.3);
            for y in 3..25 {
                let x = (shift + (slope * f64::from(y)) as u32 % 20).min(SIDE - 2);
                pixels[(y * SIDE + x) as usize] = 255;
                pixels[(y * SIDE + x + 1) as usize] = 200 + (number * 7) as u8 % 50;
            }
            let file = File::create(directory.join(format!("{number}.png"))).unwrap();
            let mut encoder = png::Encoder::new(file, SIDE, SIDE);
            encoder.set_color(png::ColorType::Grayscale);
            encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        }
    }
}

#[test]
fn pseudo_labels_of_drawings_train_a_recogniser() {
    let folder = TempDir::new().unwrap();
    drawings(&folder.path().join("drawings"), 60, 6);
    let run = |output: &str, threads: &str| {
        let arguments = ["recognition", "drawings", "--rotations", "--quick", "--steps", "12", "-k", "10"];
        let (code, out, err) =
            lab(folder.path(), &[&arguments[..], &["--threads", threads, "-o", output]].concat());
        assert_eq!(code, 0, "{err}");
        (out, fs::read_to_string(folder.path().join(output).join("recognition.csv")).unwrap())
    };
    let (out, csv) = run("one", "1");
    // The labelled split, and three methods and the true labels with 1, 5 and 9 splits.
    assert_eq!(csv.lines().count(), 1 + 1 + 3 * 4, "{csv}");
    for method in ["labelled split", "cdp", "gcn-ve", "kin", "true labels"] {
        assert!(out.contains(method) && csv.contains(method), "{method}");
    }
    for file in ["recognition.md", "recognition.svg"] {
        assert!(fs::read_to_string(folder.path().join("one").join(file)).unwrap().contains("splits"));
    }
    // Everything but the seconds, which are the last columns, is the same on two threads.
    let values = |csv: &str| -> Vec<String> {
        csv.lines().map(|line| line.rsplitn(4, ',').last().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(values(&csv), values(&run("two", "2").1));
}

#[test]
fn too_few_identities_are_refused() {
    let folder = TempDir::new().unwrap();
    drawings(&folder.path().join("few"), 12, 2);
    let (code, _, err) = lab(folder.path(), &["recognition", "few"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("expected at least 10 identities to train on and 16 to test on"), "{err}");
    let (code, _, err) = lab(folder.path(), &["recognition", "missing.npz"]);
    assert!(code == 1 && err.contains("missing.npz"), "{err}");
}
