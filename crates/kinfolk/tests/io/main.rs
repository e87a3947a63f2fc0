//! Files in and out. `tests/data` holds files written by numpy and pyarrow; everything else is made here.
//!
//! Not tested: files above 4 GiB (zip64 is exercised by hand), big-endian machines, and files that change
//! while mapped.

mod any_matrix;
mod embeddings;
mod graphs;
mod labels;
#[cfg(feature = "parquet")]
mod parquet;
mod writing;

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

/// The error of reading embeddings from such a file.
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

/// The slow reference of every reader: rows divided by their length.
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
