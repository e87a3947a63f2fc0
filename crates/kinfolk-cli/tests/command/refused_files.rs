//! Files that cannot be used: one clear error, and nothing left behind.

use super::*;

#[test]
fn a_missing_file() {
    let directory = TempDir::new().unwrap();
    let run = kinfolk(directory.path(), &["cluster", "faces.npy"]);
    assert_eq!(run.stderr(), "error: faces.npy: no such file\n");
    assert_eq!(run.code(), 1);
    assert!(files(directory.path()).is_empty());
}

#[test]
fn a_truncated_file() {
    let message = "x.npy: expected 32 bytes of data (shape (4, 2), dtype '<f4'), found 31 bytes";
    refused("x.npy", &npy("<f4", "(4, 2)", &f32s(&FOUR_ROWS)[..31]), &[], 1, message);
}

#[test]
fn a_wrong_magic() {
    let message = r#"x.npy: expected a file that starts with "\x93NUMPY", found "PK\x03\x04 not""#;
    refused("x.npy", b"PK\x03\x04 not an array", &[], 1, message);
}

#[test]
fn a_value_that_is_not_finite() {
    for (value, name) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut rows = FOUR_ROWS;
        rows[5] = value;
        let message = format!("x.npy: row 2, column 1: expected a finite number, found {name}");
        refused("x.npy", &npy("<f4", "(4, 2)", &f32s(&rows)), &[], 1, &message);
    }
}

#[test]
fn a_zero_row() {
    let mut rows = FOUR_ROWS;
    rows[4..6].fill(0.0);
    let message = "x.npy: row 2: expected a row of non-zero length, found 2 zeros";
    refused("x.npy", &npy("<f4", "(4, 2)", &f32s(&rows)), &[], 1, message);
}

#[test]
fn a_dim_that_does_not_divide_the_size() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("x.bin"), f32s(&FOUR_ROWS)).unwrap();
    succeeds(directory.path(), &["cluster", "x.bin", "--dim", "2"]);
    let run = kinfolk(directory.path(), &["cluster", "x.bin", "--dim", "3", "-o", "out"]);
    assert!(
        run.stderr()
            .starts_with("error: x.bin: expected whole rows of 3 float32 (3 x 4 bytes), found 32 bytes"),
        "{}",
        run.stderr()
    );
    assert_eq!(run.code(), 1);
    assert!(!directory.path().join("out").exists());
}

#[test]
fn labels_of_another_set() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    fs::write(directory.path().join("l.meta"), "0\n1\n1\n").unwrap();
    let run = kinfolk(directory.path(), &["cluster", "x.npy", "--labels", "l.meta", "-o", "out"]);
    assert_eq!(run.stderr(), "error: l.meta: expected 4 labels (one per row of x.npy), found 3\n");
    assert_eq!(run.code(), 1);
    assert!(!directory.path().join("out").exists());
}

#[test]
fn no_rows() {
    refused(
        "x.npy",
        &npy("<f4", "(0, 2)", &[]),
        &[],
        1,
        "x.npy: expected at least one row and one column, found shape (0, 2)",
    );
}
