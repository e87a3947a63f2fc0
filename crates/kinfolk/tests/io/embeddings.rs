//! Embeddings that others wrote, and what is wrong with a file of embeddings, one message each.

use super::*;

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
fn large_rows_that_must_be_converted_go_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let beside = |name: &str, memory| {
        read_embeddings_beside(&data(name), &ReadOptions::default(), directory.path(), Some(memory))
    };
    let expected = normalised(&MATRIX.map(f64::from), 4);
    for name in ["f2", "f4", "f8", "big_f4", "fortran"].map(|name| format!("{name}.npy")) {
        // An eighth of 300 bytes is less than the 48 of the rows.
        for (memory, mapped) in [(300, cfg!(unix)), (1000, false)] {
            let embeddings = beside(&name, memory).unwrap();
            assert_eq!((embeddings.as_slice(), embeddings.is_mapped()), (&*expected, mapped), "{name}");
        }
    }
    assert!(beside("unit.npy", 300).unwrap().is_mapped());
    assert_eq!(beside("stored.npz", 300).unwrap().as_slice(), expected);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    // Rows are named as without a file, in later pieces, too.
    let mut values = vec![3.0; 2 * 20_000];
    values[2 * 17_000] = f32::NAN;
    let (_bad, path) = file("a.npy", &npy_f32(20_000, 2, &values));
    let found = read_embeddings_beside(&path, &ReadOptions::default(), directory.path(), Some(300));
    assert_eq!(message(found, &path), "a.npy: row 17000, column 0: expected a finite number, found NaN");
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
