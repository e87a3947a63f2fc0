//! Labels.

use super::*;

fn label_complaint(name: &str, bytes: &[u8]) -> String {
    let (_directory, path) = file(name, bytes);
    message(read_labels(&path), &path)
}

#[test]
fn every_integer_of_numpy_is_a_label() {
    for name in ["labels_i1", "labels_big_i2", "labels_i8", "labels_column"] {
        assert_eq!(read_labels(&data(&format!("{name}.npy"))).unwrap(), [7, -1, 7, 100], "{name}");
    }
    assert_eq!(read_labels(&data("labels_bool.npy")).unwrap(), [1, 0]);
}

#[test]
fn text_labels_read_with_any_line_ends() {
    for text in ["3\n-1\n3", "3\n-1\n3\n", "3\r\n-1\r\n3\r\n\r\n", " 3 \n -1\n3\n\n\n"] {
        for name in ["labels.meta", "labels.txt"] {
            let (_directory, path) = file(name, text.as_bytes());
            assert_eq!(read_labels(&path).unwrap(), [3, -1, 3], "{text:?}");
        }
    }
}

#[test]
fn label_above_i64() {
    let values: Vec<u8> = [1, 1_u64 << 63].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(
        label_complaint("a.npy", &npy("<u8", false, "(2,)", &values)),
        "a.npy: row 1: expected a label of at most 9223372036854775807, found 9223372036854775808"
    );
}

#[test]
fn float_labels() {
    assert_eq!(
        label_complaint("a.npy", &npy("<f4", false, "(1,)", &[0; 4])),
        "a.npy: expected an integer dtype (int8 to int64, uint8 to uint64, bool), found dtype '<f4'"
    );
}

#[test]
fn label_matrix() {
    assert_eq!(
        label_complaint("a.npy", &npy("|i1", false, "(2, 2)", &[0; 4])),
        "a.npy: expected labels of shape (rows,) or (rows, 1), found shape (2, 2)"
    );
}

#[test]
fn line_without_an_integer() {
    assert_eq!(
        label_complaint("a.meta", b"1\ntwo\n3\n"),
        "a.meta: line 2: expected an integer, found \"two\""
    );
    assert_eq!(
        label_complaint("a.txt", b"1\n\n3\n"),
        "a.txt: line 2: expected an integer, found an empty line"
    );
    assert_eq!(
        label_complaint("a.txt", b"\xff9223372036854775808\n"),
        r#"a.txt: line 1: expected an integer, found "\xff9223372036854775808""#
    );
}

#[test]
fn no_labels() {
    assert_eq!(label_complaint("a.txt", b"\n\n"), "a.txt: expected at least one label, found 0 labels");
    assert_eq!(
        label_complaint("a.npy", &npy("<i8", false, "(0,)", b"")),
        "a.npy: expected at least one label, found 0 labels"
    );
}

#[test]
fn unknown_label_extension() {
    assert_eq!(
        label_complaint("a.csv", b"1"),
        "a.csv: expected a label file: .npy, .meta or .txt, found .csv"
    );
}

#[test]
fn label_count() {
    let (labels, features) = (Path::new("a.meta"), Path::new("faces.npy"));
    assert!(check_label_count(&[1, 2], 2, labels, features).is_ok());
    assert_eq!(
        check_label_count(&[1, 2], 3, labels, features).unwrap_err().to_string(),
        "a.meta: expected 3 labels (one per row of faces.npy), found 2"
    );
}
