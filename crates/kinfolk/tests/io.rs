//! Files in and out. `tests/data` holds files written by numpy and pyarrow; everything else is made here.
//!
//! Not tested: files above 4 GiB (zip64 is exercised by hand), big-endian machines, and files that change
//! while mapped.

use half::f16;
use kinfolk::io::*;
use kinfolk::{Embeddings, KnnGraph, Result};
use proptest::prelude::*;
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The matrix of every feature file in `tests/data`.
const MATRIX: [f32; 12] = [3.0, 4.0, 0.0, 0.0, 1.0, 2.0, 2.0, 4.0, -0.5, 0.5, -0.5, 0.5];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(path: &Path) -> Result<Embeddings> {
    read_embeddings(path, &ReadOptions::default())
}

/// A directory with one file in it.
fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, bytes).unwrap();
    (directory, path)
}

/// The message of an error, without the directory of the file.
fn message<T: std::fmt::Debug>(result: Result<T>, path: &Path) -> String {
    let directory = format!("{}/", path.parent().unwrap().display());
    result.unwrap_err().to_string().replace(&directory, "")
}

/// What reading embeddings from such a file says.
fn complaint(name: &str, bytes: &[u8]) -> String {
    let (_directory, path) = file(name, bytes);
    message(read(&path), &path)
}

fn npy(descr: &str, fortran: bool, shape: &str, values: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    bytes
}

fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn npy_f32(rows: usize, dim: usize, values: &[f32]) -> Vec<u8> {
    npy("<f4", false, &format!("({rows}, {dim})"), &f32_bytes(values))
}

fn npz(method: CompressionMethod, arrays: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = SimpleFileOptions::default().compression_method(method);
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The slow obvious twin of every reader: rows divided by their length.
fn normalised(values: &[f64], dim: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for row in values.chunks(dim) {
        let squares: f64 = row.iter().map(|v| v * v).sum();
        let norm = if (squares - 1.0).abs() <= 1e-6 { 1.0 } else { squares.sqrt() };
        out.extend(row.iter().map(|v| (v / norm) as f32));
    }
    out
}

fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        // The order of a sum may move its last bit, and with it that of a value.
        assert!((found - expected).abs() <= f32::EPSILON, "{found} is not {expected}");
    }
}

// Embeddings that others wrote.

#[test]
fn every_npy_of_numpy_reads_alike() {
    let expected = normalised(&MATRIX.map(f64::from), 4);
    for name in ["f2", "f4", "f8", "big_f4", "big_f8", "fortran", "version_2", "version_3"] {
        let embeddings = read(&data(&format!("{name}.npy"))).unwrap();
        assert_eq!((embeddings.len(), embeddings.dim()), (3, 4), "{name}");
        assert_eq!(embeddings.as_slice(), expected, "{name}");
        assert!(!embeddings.is_mapped(), "{name}");
    }
}

#[test]
fn every_npz_of_numpy_reads_alike() {
    let expected = normalised(&MATRIX.map(f64::from), 4);
    let opposite: Vec<_> = expected.iter().map(|v| -v).collect();
    for name in ["stored.npz", "deflated.npz", "deflated_fortran.npz"] {
        assert_eq!(read(&data(name)).unwrap().as_slice(), expected, "{name}");
    }
    for name in ["stored.npz", "deflated.npz"] {
        for array in ["other", "other.npy"] {
            let options = ReadOptions { array: Some(array.to_owned()), ..ReadOptions::default() };
            assert_eq!(read_embeddings(&data(name), &options).unwrap().as_slice(), opposite, "{name}");
        }
    }
}

#[test]
fn raw_files_read_with_their_number_of_columns() {
    let options = ReadOptions { dim: Some(4), ..ReadOptions::default() };
    let embeddings = read_embeddings(&data("raw.bin"), &options).unwrap();
    assert_eq!(embeddings.as_slice(), normalised(&MATRIX.map(f64::from), 4));
}

#[test]
fn unit_rows_of_numpy_stay_in_the_file() {
    let embeddings = read(&data("unit.npy")).unwrap();
    assert!(embeddings.is_mapped());
    assert_eq!(embeddings.row(1), [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(embeddings.clone().as_slice(), embeddings.as_slice());
}

#[test]
fn one_row_is_fine() {
    let (_directory, path) = file("a.NPY", &npy_f32(1, 2, &[3.0, 4.0]));
    assert_eq!(read(&path).unwrap().as_slice(), [0.6, 0.8]);
}

#[test]
fn what_follows_the_last_value_is_ignored() {
    let mut bytes = npy_f32(1, 2, &[3.0, 4.0]);
    bytes.extend(b"more");
    let (_directory, path) = file("a.npy", &bytes);
    assert_eq!(read(&path).unwrap().as_slice(), [0.6, 0.8]);
}

#[cfg(feature = "parquet")]
mod parquet {
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
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_needs_its_feature() {
    let path = data("nan.parquet");
    assert_eq!(
        message(read(&path), &path),
        "nan.parquet: expected kinfolk built with the cargo feature `parquet` to read this file, \
         found a build without it"
    );
}

// What is wrong with a file of embeddings, one message each.

#[test]
fn file_not_there() {
    let path = data("nowhere.npy");
    assert_eq!(message(read(&path), &path), "nowhere.npy: no such file");
}

#[test]
fn unknown_extension() {
    let expected = "expected a feature file: .npy, .npz, .bin or .parquet";
    assert_eq!(complaint("faces.csv", b"1,2"), format!("faces.csv: {expected}, found .csv"));
    assert_eq!(complaint("faces", b"1,2"), format!("faces: {expected}, found no extension"));
}

#[test]
fn directory_instead_of_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("faces.npy");
    fs::create_dir(&path).unwrap();
    assert_eq!(message(read(&path), &path), "faces.npy: expected a file, found a directory");
}

#[test]
fn empty_file() {
    assert_eq!(complaint("a.npy", b""), "a.npy: expected a file with something in it, found an empty file");
}

#[test]
fn wrong_magic() {
    assert_eq!(
        complaint("a.npy", b"PK\x03\x04abcdef"),
        r#"a.npy: expected a file that starts with "\x93NUMPY", found "PK\x03\x04abcd""#
    );
}

#[test]
fn unknown_version() {
    assert_eq!(
        complaint("a.npy", b"\x93NUMPY\x09\x00\x00\x00"),
        "a.npy: expected .npy version 1, 2 or 3, found version 9"
    );
}

#[test]
fn header_cut_short() {
    let bytes = npy_f32(1, 1, &[1.0]);
    assert_eq!(
        complaint("a.npy", &bytes[..6]),
        "a.npy: expected a .npy version, found the end of the file after 6 bytes"
    );
    assert_eq!(
        complaint("a.npy", &bytes[..9]),
        "a.npy: expected a .npy header, found the end of the file after 9 bytes"
    );
    assert_eq!(
        complaint("a.npy", &bytes[..30]),
        "a.npy: expected a .npy header of 60 bytes, found the end of the file after 20 bytes"
    );
}

#[test]
fn header_too_long() {
    assert_eq!(
        complaint("a.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'"),
        "a.npy: expected a .npy header of at most 65535 bytes, found 4294967295 bytes"
    );
}

#[test]
fn malformed_header() {
    assert_eq!(
        complaint("a.npy", b"\x93NUMPY\x01\x00\x05\x00hello"),
        "a.npy: expected a header like {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, found hello"
    );
}

#[test]
fn truncated_values() {
    let bytes = npy_f32(3, 4, &MATRIX);
    assert_eq!(
        complaint("a.npy", &bytes[..bytes.len() - 5]),
        "a.npy: expected 48 bytes of data (shape (3, 4), dtype '<f4'), found 43 bytes"
    );
}

#[test]
fn shape_larger_than_memory() {
    let shape = "(4611686018427387904, 4611686018427387904)";
    assert_eq!(
        complaint("a.npy", &npy("<f4", false, shape, b"")),
        format!("a.npy: expected a shape that fits in memory, found {shape}")
    );
}

#[test]
fn unsupported_dtype() {
    for descr in ["<i8", "<c8", "|V2", "<U3", "|b1"] {
        assert_eq!(
            complaint("a.npy", &npy(descr, false, "(3, 4)", b"")),
            format!("a.npy: expected dtype float16, float32 or float64, found dtype '{descr}'")
        );
    }
}

#[test]
fn structured_dtype() {
    let path = data("structured.npy");
    let message = message(read(&path), &path);
    let start =
        "structured.npy: expected dtype float16, float32 or float64, found [('x', '<f4'), ('y', '<f4')]";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn neither_a_vector_nor_a_cube_is_a_matrix() {
    for shape in ["()", "(3,)", "(3, 2, 2)"] {
        assert_eq!(
            complaint("a.npy", &npy("<f4", false, shape, &f32_bytes(&MATRIX))),
            format!("a.npy: expected a matrix of shape (rows, columns), found shape {shape}")
        );
    }
}

#[test]
fn zero_rows() {
    assert_eq!(
        complaint("a.npy", &npy_f32(0, 4, &[])),
        "a.npy: expected at least one row and one column, found shape (0, 4)"
    );
}

#[test]
fn zero_columns() {
    assert_eq!(
        complaint("a.npy", &npy_f32(3, 0, &[])),
        "a.npy: expected at least one row and one column, found shape (3, 0)"
    );
}

#[test]
fn nan_and_infinity() {
    for (value, text) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        let mut values = MATRIX;
        values[6] = value;
        values[9] = value;
        assert_eq!(
            complaint("a.npy", &npy_f32(3, 4, &values)),
            format!("a.npy: row 1, column 2: expected a finite number, found {text}")
        );
    }
}

#[test]
fn zero_row() {
    let mut values = MATRIX;
    values[8..].fill(0.0);
    assert_eq!(
        complaint("a.npy", &npy_f32(3, 4, &values)),
        "a.npy: row 2: expected a row of non-zero length, found 4 zeros"
    );
}

#[test]
fn raw_file_without_columns() {
    assert_eq!(
        complaint("a.bin", &f32_bytes(&MATRIX)),
        "a.bin: expected the number of columns to be given (--dim), or features/NAME.bin with labels/NAME.meta beside \
         it: a raw file does not say, found none"
    );
}

#[test]
fn raw_file_with_impossible_columns() {
    let (_directory, path) = file("a.bin", &f32_bytes(&MATRIX));
    let complaint = |dim| {
        message(read_embeddings(&path, &ReadOptions { dim: Some(dim), ..ReadOptions::default() }), &path)
    };
    assert_eq!(complaint(0), "a.bin: expected a number of columns (--dim) of at least 1, found 0");
    assert_eq!(complaint(5), "a.bin: expected whole rows of 5 float32 (5 x 4 bytes), found 48 bytes");
    let huge = usize::MAX / 2;
    assert_eq!(
        complaint(huge),
        format!("a.bin: expected whole rows of {huge} float32 ({huge} x 4 bytes), found 48 bytes")
    );
}

#[test]
fn not_an_archive() {
    let message = complaint("a.npz", b"\x93NUMPY\x01\x00 and so on");
    assert!(
        message.starts_with(r#"a.npz: expected a zip archive (.npz), found "\x93NUMPY\x01\x00" ("#),
        "{message}"
    );
}

#[test]
fn archive_without_arrays() {
    assert_eq!(
        complaint("a.npz", &npz(CompressionMethod::Stored, &[])),
        "a.npz: expected at least one array, found arrays: none"
    );
}

#[test]
fn named_array_is_not_there() {
    let path = data("stored.npz");
    let options = ReadOptions { array: Some("faces".to_owned()), ..ReadOptions::default() };
    assert_eq!(
        message(read_embeddings(&path, &options), &path),
        "stored.npz: expected an array named faces, found arrays: features, other"
    );
}

#[test]
fn damaged_archive() {
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let values = [1.0, 0.0, 0.0, 0.0].repeat(8);
        let mut bytes = npz(method, &[("features", &npy_f32(8, 4, &values))]);
        // The checksum follows 16 bytes after the start of the directory, which has the second "PK" of the
        // file.
        let directory = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
        bytes[directory + 16] ^= 1;
        assert_eq!(
            complaint("a.npz", &bytes),
            "a.npz (array features): the archive is damaged: its checksum does not match"
        );
    }
}

#[test]
fn truncated_member() {
    let bytes = npy_f32(3, 4, &MATRIX);
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        assert_eq!(
            complaint("a.npz", &npz(method, &[("features", &bytes[..bytes.len() - 5])])),
            "a.npz (array features): expected 48 bytes of data (shape (3, 4), dtype '<f4'), found 43 bytes"
        );
    }
}

#[test]
fn small_archive_cannot_ask_for_much_memory() {
    let huge = npy_f32(1 << 40, 1 << 10, &MATRIX);
    let message = complaint("a.npz", &npz(CompressionMethod::Deflated, &[("features", &huge)]));
    let start = "a.npz (array features): expected 4503599627370496 bytes of data \
                 (shape (1099511627776, 1024), dtype '<f4'), found at most ";
    assert!(message.starts_with(start), "{message}");
}

// Labels.

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

// Graphs.

fn small_graph() -> KnnGraph {
    let ids = vec![1, 2, 0, 2, 0, 1];
    KnnGraph::from_parts(3, 2, ids, vec![0.9, 0.3, 0.9, -0.1, 0.3, -0.1], "g").unwrap()
}

fn graph_complaint(arrays: &[(&str, &[u8])], expected_rows: Option<usize>) -> String {
    let (_directory, path) = file("g.npz", &npz(CompressionMethod::Deflated, arrays));
    message(read_graph(&path, expected_rows), &path)
}

fn u32_bytes(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn published_graph_reads_without_the_vertices_themselves() {
    for name in ["published_f4.npz", "published_fortran_f8.npz"] {
        let graph = read_graph(&data(name), Some(4)).unwrap();
        assert_eq!((graph.len(), graph.k()), (4, 2), "{name}");
        assert_eq!(graph.neighbours(0), (&[1, 2][..], &[1.0, 0.75][..]), "{name}");
        assert_eq!(graph.neighbours(1), (&[0, 2][..], &[1.0, 0.75][..]), "{name}");
        assert_eq!(graph.neighbours(2), (&[0, 1][..], &[0.75, 0.75][..]), "{name}");
        // It is not among its own: the farthest, and of the two the last, gave way.
        assert_eq!(graph.neighbours(3), (&[2, 1][..], &[0.5, 0.25][..]), "{name}");
    }
}

#[test]
fn graphs_survive_both_layouts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("g.npz");
    for graph in [small_graph(), KnnGraph::from_parts(1, 0, vec![], vec![], "g").unwrap()] {
        write_graph(&path, &graph, GraphLayout::Kinfolk).unwrap();
        assert_eq!(read_graph(&path, Some(graph.len())).unwrap(), graph);

        write_graph(&path, &graph, GraphLayout::Published).unwrap();
        let back = read_graph(&path, None).unwrap();
        assert_eq!((back.len(), back.k()), (graph.len(), graph.k()));
        for i in 0..graph.len() {
            assert_eq!(back.neighbours(i).0, graph.neighbours(i).0);
            assert_close(back.neighbours(i).1, graph.neighbours(i).1);
        }
    }
}

#[test]
fn published_ids_beyond_float32_are_refused() {
    let graph = KnnGraph::from_parts((1 << 24) + 1, 0, vec![], vec![], "g").unwrap();
    let path = Path::new("g.npz");
    assert_eq!(
        write_graph(path, &graph, GraphLayout::Published).unwrap_err().to_string(),
        "g.npz: expected at most 16777216 vertices, whose ids float32 can hold, found 16777217 vertices"
    );
}

#[test]
fn published_ids_that_their_type_cannot_hold_are_refused() {
    let data = npy("<f2", false, "(2049, 2, 1)", &[0; 2049 * 4]);
    assert_eq!(
        graph_complaint(&[("data", &data)], None),
        "g.npz (array data): expected at most 2048 vertices, whose ids dtype '<f2' can hold, found 2049 vertices"
    );
}

#[test]
fn graph_without_known_arrays() {
    assert_eq!(
        graph_complaint(&[("ids", &npy("<u4", false, "(1, 0)", b""))], None),
        "g.npz: expected arrays \"ids\" and \"similarities\", or \"data\", found arrays: ids"
    );
}

#[test]
fn graph_about_other_embeddings() {
    let (ids, similarities) = (npy("<u4", false, "(2, 1)", &u32_bytes(&[1, 0])), npy_f32(2, 1, &[0.5, 0.5]));
    let arrays: [(&str, &[u8]); 2] = [("ids", &ids), ("similarities", &similarities)];
    assert_eq!(graph_complaint(&arrays, Some(3)), "g.npz: expected 3 vertices (one per embedding), found 2");
}

#[test]
fn graph_with_unequal_arrays() {
    let (ids, similarities) = (npy("<u4", false, "(2, 1)", &u32_bytes(&[1, 0])), npy_f32(2, 2, &[0.5; 4]));
    assert_eq!(
        graph_complaint(&[("ids", &ids), ("similarities", &similarities)], None),
        "g.npz (array similarities): expected shape (2, 1), that of ids, found shape (2, 2)"
    );
}

#[test]
fn graph_with_an_id_that_is_no_vertex() {
    let similarities = npy_f32(2, 1, &[0.5; 2]);
    let ids = npy("<i4", false, "(2, 1)", &u32_bytes(&[1, u32::MAX]));
    assert_eq!(
        graph_complaint(&[("ids", &ids), ("similarities", &similarities)], None),
        "g.npz (array ids): row 1, column 0: expected the id of a vertex, 0 to 1, found -1"
    );
    for (id, text) in [(2.0, "2"), (0.5, "0.5"), (f32::NAN, "NaN")] {
        let data = npy("<f4", false, "(2, 2, 2)", &f32_bytes(&[0.0, 1.0, 0.0, 0.5, 1.0, id, 0.0, 0.5]));
        assert_eq!(
            graph_complaint(&[("data", &data)], None),
            format!("g.npz (array data): row 1, column 1: expected the id of a vertex, 0 to 1, found {text}")
        );
    }
}

#[test]
fn graph_with_a_vertex_as_its_own_neighbour() {
    let (ids, similarities) = (npy("<u4", false, "(2, 1)", &u32_bytes(&[1, 1])), npy_f32(2, 1, &[0.5; 2]));
    assert_eq!(
        graph_complaint(&[("ids", &ids), ("similarities", &similarities)], None),
        "g.npz: row 1, column 0: expected a neighbour other than the vertex itself, found 1"
    );
}

#[test]
fn graph_with_nan() {
    let data = npy("<f4", false, "(2, 2, 2)", &f32_bytes(&[0.0, 1.0, 0.0, f32::NAN, 1.0, 0.0, 0.0, 0.5]));
    assert_eq!(
        graph_complaint(&[("data", &data)], None),
        "g.npz (array data): row 0, column 1: expected a finite number, found NaN"
    );
    let (ids, similarities) =
        (npy("<u4", false, "(2, 1)", &u32_bytes(&[1, 0])), npy_f32(2, 1, &[0.5, f32::INFINITY]));
    assert_eq!(
        graph_complaint(&[("ids", &ids), ("similarities", &similarities)], None),
        "g.npz: row 1, column 0: expected a finite similarity, found inf"
    );
}

#[test]
fn graph_of_another_shape() {
    for shape in ["(2, 4)", "(2, 1, 4)", "(4, 2, 0)"] {
        assert_eq!(
            graph_complaint(&[("data", &npy("<f4", false, shape, &[0; 32]))], None),
            format!("g.npz (array data): expected shape (vertices, 2, neighbours), found shape {shape}")
        );
    }
    assert_eq!(
        graph_complaint(&[("data", &npy("<f4", false, "(0, 2, 3)", b""))], None),
        "g.npz: expected a graph of 1 to 2^32 vertices, found 0 vertices"
    );
}

#[test]
fn unknown_graph_extension() {
    let path = data("raw.bin");
    assert_eq!(message(read_graph(&path, None), &path), "raw.bin: expected a graph file: .npz, found .bin");
}

// Writing.

#[test]
fn written_matrices_and_labels_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    write_npy_i64(&path, &[i64::MIN, 0, i64::MAX]).unwrap();
    assert_eq!(read_labels(&path).unwrap(), [i64::MIN, 0, i64::MAX]);

    write_npy_f32(&path, &[0.6, 0.8, -1.0, 0.0], 2).unwrap();
    let embeddings = read(&path).unwrap();
    assert!(embeddings.is_mapped());
    assert_eq!(embeddings.as_slice(), [0.6, 0.8, -1.0, 0.0]);
}

#[test]
fn rows_can_be_written_a_few_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    let mut writer = NpyF32Writer::create(&path, 3, 2).unwrap();
    writer.write_rows(&[1.0, 0.0]).unwrap();
    writer.write_rows(&[0.0, 1.0, -1.0, 0.0]).unwrap();
    assert!(!path.exists());
    writer.finish().unwrap();
    assert_eq!(read(&path).unwrap().as_slice(), [1.0, 0.0, 0.0, 1.0, -1.0, 0.0]);
}

#[test]
fn missing_rows_leave_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    let mut writer = NpyF32Writer::create(&path, 3, 2).unwrap();
    writer.write_rows(&[1.0, 0.0]).unwrap();
    assert_eq!(
        message(writer.finish(), &path),
        "a.npy: expected 6 floats to write (3 rows x 2 columns), found 2"
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn writing_where_there_is_no_directory() {
    let directory = tempfile::tempdir().unwrap();
    let parent = directory.path().join("nowhere");
    let path = parent.join("a.npy");
    assert_eq!(
        write_npy_i64(&path, &[1]).unwrap_err().to_string(),
        format!(
            "{}: expected the directory {} to write it in, found no such directory",
            path.display(),
            parent.display()
        )
    );
}

#[test]
fn writing_onto_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    fs::create_dir(&path).unwrap();
    assert_eq!(
        message(write_npy_i64(&path, &[1]), &path),
        "a.npy: expected a file to write, found a directory"
    );
}

// Any matrix, in every way it can be written.

/// Rows of values that are exact in float16, none of them all zero.
fn matrices() -> impl Strategy<Value = (usize, usize, Vec<f64>)> {
    let value = (-2000_i32..2000).prop_map(|v| f64::from(v) / 16.0);
    (1..40_usize, 1..20_usize)
        .prop_flat_map(move |(rows, dim)| {
            (Just(rows), Just(dim), prop::collection::vec(value.clone(), rows * dim))
        })
        .prop_map(|(rows, dim, mut values)| {
            for row in values.chunks_mut(dim).filter(|row| row.iter().all(|&v| v == 0.0)) {
                row[0] = 1.0;
            }
            (rows, dim, values)
        })
}

fn encode(descr: &str, values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|&v| match descr {
            "<f2" => f16::from_f64(v).to_le_bytes().to_vec(),
            ">f2" => f16::from_f64(v).to_be_bytes().to_vec(),
            "<f4" => (v as f32).to_le_bytes().to_vec(),
            ">f4" => (v as f32).to_be_bytes().to_vec(),
            "<f8" => v.to_le_bytes().to_vec(),
            _ => v.to_be_bytes().to_vec(),
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_encoding_gives_the_rows_of_the_obvious_twin((rows, dim, values) in matrices()) {
        let expected = normalised(&values, dim);
        let transposed = (0..dim).flat_map(|j| (0..rows).map(move |i| i * dim + j));
        let columns: Vec<f64> = transposed.map(|at| values[at]).collect();
        let shape = format!("({rows}, {dim})");
        let options = ReadOptions::default();
        let mut first: Option<Vec<f32>> = None;
        for descr in ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"] {
            for (fortran, values) in [(false, &values), (true, &columns)] {
                let array = npy(descr, fortran, &shape, &encode(descr, values));
                let stored = npz(CompressionMethod::Stored, &[("a", &array)]);
                let deflated = npz(CompressionMethod::Deflated, &[("a", &array)]);
                use EmbeddingFormat::{Npy, Npz};
                for (format, bytes) in [(Npy, array), (Npz, stored), (Npz, deflated)] {
                    let found = parse_embeddings(bytes, format, &options, "a").unwrap();
                    prop_assert_eq!(found.dim(), dim);
                    assert_close(found.as_slice(), &expected);
                    // To the last bit, all encodings are one.
                    let first = first.get_or_insert_with(|| found.as_slice().to_vec());
                    prop_assert_eq!(found.as_slice(), first.as_slice());
                }
            }
        }
        let raw = parse_embeddings(
            encode("<f4", &values),
            EmbeddingFormat::Bin,
            &ReadOptions { dim: Some(dim), ..options },
            "a",
        )
        .unwrap();
        prop_assert_eq!(Some(raw.as_slice()), first.as_deref());
    }

    #[test]
    fn a_map_and_a_copy_hold_the_same_floats((rows, dim, values) in matrices()) {
        let unit = normalised(&values, dim);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        write_npy_f32(&path, &unit, dim).unwrap();
        let mapped = read(&path).unwrap();
        let owned = Embeddings::from_rows(unit, dim, "a").unwrap();
        prop_assert!(mapped.is_mapped() && !owned.is_mapped());
        prop_assert_eq!((mapped.len(), owned.len()), (rows, rows));
        prop_assert_eq!(mapped.as_slice(), owned.as_slice());
        for i in 0..rows {
            prop_assert_eq!(mapped.row(i), owned.row(i));
        }
    }

    #[test]
    fn any_graph_survives_the_file(
        n in 1..30_usize,
        k in 0..8_usize,
        similarities in prop::collection::vec(-1.0_f32..1.0, 240),
    ) {
        let k = k.min(n - 1);
        let ids = (0..n).flat_map(|i| (1..=k).map(move |j| ((i + j) % n) as u32)).collect();
        let graph = KnnGraph::from_parts(n, k, ids, similarities[..n * k].to_vec(), "g").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("g.npz");
        write_graph(&path, &graph, GraphLayout::Kinfolk).unwrap();
        prop_assert_eq!(read_graph(&path, Some(n)).unwrap(), graph);
    }

    #[test]
    fn any_labels_survive_the_file(labels in prop::collection::vec(any::<i64>(), 1..50)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("labels.npy");
        write_npy_i64(&path, &labels).unwrap();
        prop_assert_eq!(&read_labels(&path).unwrap(), &labels);
        let text: String = labels.iter().map(|label| format!("{label}\n")).collect();
        prop_assert_eq!(parse_labels(text.as_bytes(), LabelFormat::Text, "a").unwrap(), labels);
    }
}
