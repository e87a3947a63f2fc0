//! Parquet, as pyarrow writes it.

use super::*;

#[test]
fn every_list_of_pyarrow_reads_alike() {
    let expected = normalised(&MATRIX.map(f64::from), 4);
    for name in ["list_f4_snappy", "large_list_f8_gzip", "fixed_f2_zstd"] {
        let path = data(&format!("{name}.parquet"));
        let named = ReadOptions { array: Some("face".to_owned()), ..ReadOptions::default() };
        for options in [ReadOptions::default(), named] {
            let embeddings = read_embeddings(&path, &options).unwrap();
            assert_eq!((embeddings.len(), embeddings.dim()), (3, 4), "{name}");
            assert_eq!(embeddings.as_slice(), expected, "{name}");
        }
    }
}

fn complaint(name: &str, column: Option<&str>) -> String {
    let path = data(name);
    let options = ReadOptions { array: column.map(str::to_owned), ..ReadOptions::default() };
    message(read_embeddings(&path, &options), &path)
}

#[test]
fn lists_of_different_lengths() {
    assert_eq!(
        complaint("ragged.parquet", None),
        "ragged.parquet (column face): row 2: expected a list of 2 values, as in row 0, found 1"
    );
}

#[test]
fn null_row() {
    assert_eq!(
        complaint("null_row.parquet", None),
        "null_row.parquet (column face): row 1: expected a list of floats, found null"
    );
}

#[test]
fn null_value() {
    assert_eq!(
        complaint("null_value.parquet", None),
        "null_value.parquet (column face): row 1, column 1: expected a number, found null"
    );
}

#[test]
fn nan() {
    assert_eq!(
        complaint("nan.parquet", None),
        "nan.parquet (column face): row 2, column 1: expected a finite number, found NaN"
    );
}

#[test]
fn empty_lists() {
    assert_eq!(
        complaint("empty_lists.parquet", None),
        "empty_lists.parquet (column face): expected at least one column, found empty lists"
    );
}

#[test]
fn no_rows() {
    assert_eq!(
        complaint("no_rows.parquet", None),
        "no_rows.parquet (column face): expected at least one row, found 0 rows"
    );
}

#[test]
fn no_column_of_lists() {
    assert_eq!(
        complaint("no_lists.parquet", None),
        "no_lists.parquet: expected a column of lists of float16, float32 or float64, found columns: id (Utf8)"
    );
}

#[test]
fn named_column_is_not_there() {
    assert_eq!(
        complaint("nan.parquet", Some("x")),
        "nan.parquet: expected a column named x, found columns: face (List(Float32, field: 'element'))"
    );
}

#[test]
fn named_column_does_not_hold_lists() {
    assert_eq!(
        complaint("list_f4_snappy.parquet", Some("id")),
        "list_f4_snappy.parquet: expected column id to hold lists of float16, float32 or float64, found Utf8"
    );
}

#[test]
fn files_that_a_fuzzer_found() {
    let message = complaint("huge_dictionary.parquet", None);
    assert!(message.contains("expected a parquet file, found"), "{message}");
    assert!(message.contains("dictionary values in"), "{message}");
    let message = complaint("damaged_page.parquet", None);
    assert!(message.ends_with("expected a parquet file, found a damaged one"), "{message}");
}

#[test]
fn not_parquet() {
    let message = super::complaint("a.parquet", b"hello, I am not parquet");
    assert!(message.starts_with("a.parquet: expected a parquet file, found \""), "{message}");
}

#[test]
fn truncated() {
    let bytes = fs::read(data("list_f4_snappy.parquet")).unwrap();
    let message = super::complaint("a.parquet", &bytes[..bytes.len() / 2]);
    assert!(message.starts_with("a.parquet: expected a parquet file, found \""), "{message}");
}
