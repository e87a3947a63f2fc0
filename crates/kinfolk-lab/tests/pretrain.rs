//! `kinfolk-lab pretrain`.

mod common;

use std::fs;
use tempfile::TempDir;

#[test]
fn weights_are_made_from_a_seed() {
    let directory = TempDir::new().unwrap();
    let (code, stdout, stderr) = common::lab(directory.path(), &["pretrain", "--quick"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("held-out loss"), "{stdout}");
    let built_in = kinfolk::stages::EdgeModel::default().to_numbers().len() * 4;
    assert_eq!(fs::read(directory.path().join("weights.bin")).unwrap().len(), built_in);
}
