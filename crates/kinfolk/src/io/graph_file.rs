//! kNN graphs as `.npz`, in two layouts.
//!
//! kinfolk's: `ids` (uint32, N x K) then `similarities` (float32, N x K), neighbours other than the vertex
//! itself.
//!
//! The published one (`knns/NAME/faiss_k_80.npz` of learn-to-cluster): `data` (float32, N x 2 x K), of which
//! `[i, 0]` are the ids and `[i, 1]` the distances, 1 - similarity. The vertex itself is one of its K:
//! usually the first, later if duplicates come before it, absent if enough of them do. Reading drops it, or
//! else the farthest, so that K - 1 remain.

use super::element::{Accept, Scalar};
use super::npz::Archive;
use super::{AtomicFile, extension, map_file, npy};
use crate::knn::once_each;
use crate::{Error, KnnGraph, Result};
use rayon::prelude::*;
use std::io::Write;
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// float32 holds each whole number up to this one exactly, and none above without doubt.
const MOST_F32_ROWS: usize = 1 << 24;

/// Vertices decoded by one task.
const ROWS_PER_TASK: usize = 64;

/// How a graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GraphLayout {
    /// `ids` and `similarities`.
    #[default]
    Kinfolk,
    /// `data`, as learn-to-cluster reads it: the vertex itself first, with distance 0. Its ids are float32,
    /// which is exact up to 16,777,216 vertices; larger graphs are refused.
    Published,
}

/// Reads a graph of either layout; `expected_rows` is the number of embeddings it must be about.
pub fn read_graph(path: &Path, expected_rows: Option<usize>) -> Result<KnnGraph> {
    match extension(path).as_str() {
        "npz" => parse_graph(&map_file(path)?, expected_rows, &path.display().to_string()),
        other => Err(super::unknown_extension(path, "a graph file: .npz", other)),
    }
}

/// Reads a graph from the bytes of a `.npz` file; `place` names it in errors.
pub fn parse_graph(bytes: &[u8], expected_rows: Option<usize>, place: &str) -> Result<KnnGraph> {
    let mut archive = Archive::open(bytes, place)?;
    if archive.contains("ids") && archive.contains("similarities") {
        parse_kinfolk(&mut archive, expected_rows, place)
    } else if archive.contains("data") {
        parse_published(&mut archive, expected_rows, place)
    } else {
        Err(archive.lacks("arrays \"ids\" and \"similarities\", or \"data\""))
    }
}

fn parse_kinfolk(archive: &mut Archive, expected_rows: Option<usize>, place: &str) -> Result<KnnGraph> {
    let array = archive.array(Some("ids"), Accept::Integers)?;
    let &[n, k] = array.header.shape.as_slice() else {
        return Err(array.header.wrong_shape("ids of shape (vertices, neighbours)", array.place()));
    };
    check_rows(n, expected_rows, place)?;
    let ids_place = array.place().to_owned();
    let mut ids = vec![0; n * k];
    array.for_each_block(|first, block| {
        let rows = ids[first * k..][..block.rows * k].par_chunks_exact_mut(k.max(1));
        first_error(rows.enumerate().with_min_len(ROWS_PER_TASK).map_init(
            || vec![0.0; k],
            |values, (i, ids)| {
                block.read_row(i, values);
                for (column, (id, &value)) in ids.iter_mut().zip(&*values).enumerate() {
                    *id = vertex(value, n, first + i, column, &ids_place)?;
                }
                Ok(())
            },
        ))
    })?;

    let array = archive.array(Some("similarities"), Accept::Floats)?;
    if array.header.shape != [n, k] {
        return Err(array.header.wrong_shape(&format!("shape ({n}, {k}), that of ids"), array.place()));
    }
    let mut similarities = vec![0.0; n * k];
    array.for_each_block(|first, block| {
        let rows = similarities[first * k..][..block.rows * k].par_chunks_exact_mut(k.max(1));
        rows.enumerate().with_min_len(ROWS_PER_TASK).for_each_init(
            || vec![0.0; k],
            |values, (i, similarities)| {
                block.read_row(i, values);
                similarities
                    .iter_mut()
                    .zip(values)
                    .for_each(|(similarity, value)| *similarity = *value as f32);
            },
        );
        Ok(())
    })?;
    KnnGraph::from_parts(n, k, ids, similarities, place)
}

fn parse_published(archive: &mut Archive, expected_rows: Option<usize>, place: &str) -> Result<KnnGraph> {
    let array = archive.array(Some("data"), Accept::Numbers)?;
    let header = &array.header;
    let (n, with_self) = match header.shape.as_slice() {
        &[n, 2, with_self] if with_self > 0 => (n, with_self),
        _ => return Err(header.wrong_shape("shape (vertices, 2, neighbours)", array.place())),
    };
    check_rows(n, expected_rows, place)?;
    let exact = match header.element.scalar {
        Scalar::F16 => 1 << 11,
        Scalar::F32 => MOST_F32_ROWS,
        _ => usize::MAX,
    };
    if n > exact {
        let expected = format!("at most {exact} vertices, whose ids dtype '{}' can hold", header.descr);
        return Err(Error::format(array.place(), expected, format!("{n} vertices")));
    }
    let k = with_self - 1;
    // Flattening a Fortran-ordered row puts each distance right after its id.
    let (distances, step) = if header.fortran { (1, 2) } else { (with_self, 1) };
    let data_place = array.place().to_owned();
    let (mut ids, mut similarities) = (vec![0; n * k], vec![0.0; n * k]);
    array.for_each_block(|first, block| {
        // Without neighbours there are no chunks to visit, and nothing but the vertices themselves to read.
        let chunk = |at: usize| at * k..(at + block.rows) * k;
        let rows = ids[chunk(first)].par_chunks_exact_mut(k.max(1));
        let rows = rows.zip(similarities[chunk(first)].par_chunks_exact_mut(k.max(1)));
        first_error(rows.enumerate().with_min_len(ROWS_PER_TASK).map_init(
            || (vec![0.0; 2 * with_self], vec![(0, 0.0); with_self], Vec::new(), Vec::new()),
            |(values, entries, listed, scratch), (i, (ids, similarities))| {
                let row = first + i;
                block.read_row(i, values);
                for (column, entry) in entries.iter_mut().enumerate() {
                    let id = vertex(values[column * step], n, row, column, &data_place)?;
                    let distance = values[distances + column * step];
                    if !distance.is_finite() {
                        let place = data_place.clone();
                        return Err(Error::NotFinite { place, row, column, found: distance });
                    }
                    *entry = (id, distance);
                }
                // Before one is dropped, so that the column is that of the file.
                listed.clear();
                listed.extend(entries.iter().map(|&(id, _)| id));
                once_each(listed, row, scratch, &data_place)?;
                let itself = entries.iter().position(|&(id, _)| id as usize == row);
                let dropped = itself.unwrap_or_else(|| farthest(entries));
                let others = entries.iter().enumerate().filter(|&(column, _)| column != dropped);
                for (j, (_, &(id, distance))) in others.enumerate() {
                    (ids[j], similarities[j]) = (id, (1.0 - distance) as f32);
                }
                Ok(())
            },
        ))
    })?;
    KnnGraph::from_parts(n, k, ids, similarities, place)
}

/// The column of the largest distance, the last of equals.
fn farthest(entries: &[(u32, f64)]) -> usize {
    (0..entries.len()).max_by(|&a, &b| entries[a].1.total_cmp(&entries[b].1)).unwrap_or(0)
}

/// The vertex that `value` stands for.
fn vertex(value: f64, n: usize, row: usize, column: usize, place: &str) -> Result<u32> {
    // n is at most 2^32, so that below it each cast is exact; NaN fails the comparison.
    if value >= 0.0 && value < n as f64 && value.fract() == 0.0 {
        return Ok(value as u32);
    }
    let (place, expected) = (place.to_owned(), format!("the id of a vertex, 0 to {}", n - 1));
    Err(Error::Value { place, row, column, expected, found: value.to_string() })
}

fn first_error(results: impl ParallelIterator<Item = Result<()>>) -> Result<()> {
    results.find_map_first(Result::err).map_or(Ok(()), Err)
}

fn check_rows(n: usize, expected: Option<usize>, place: &str) -> Result<()> {
    if n == 0 || n as u64 > 1 << 32 {
        return Err(Error::format(place, "a graph of 1 to 2^32 vertices", format!("{n} vertices")));
    }
    match expected {
        Some(expected) if expected != n => Err(Error::Length {
            place: place.to_owned(),
            what: "vertices (one per embedding)".to_owned(),
            expected,
            found: n,
        }),
        _ => Ok(()),
    }
}

/// Writes a graph as `.npz` that `numpy.load` reads. Nothing is compressed: floats of this kind do not
/// shrink.
pub fn write_graph(path: &Path, graph: &KnnGraph, layout: GraphLayout) -> Result<()> {
    if layout == GraphLayout::Published && graph.len() > MOST_F32_ROWS {
        let expected = format!("at most {MOST_F32_ROWS} vertices, whose ids float32 can hold");
        return Err(Error::format(path, expected, format!("{} vertices", graph.len())));
    }
    let mut zip = ZipWriter::new(AtomicFile::create(path)?);
    let written = match layout {
        GraphLayout::Kinfolk => write_kinfolk(&mut zip, graph),
        GraphLayout::Published => write_published(&mut zip, graph),
    };
    written.map_err(|e| Error::io(path, e))?;
    zip.finish().map_err(|e| Error::io(path, e.into()))?.commit()
}

fn write_kinfolk(zip: &mut ZipWriter<AtomicFile>, graph: &KnnGraph) -> std::io::Result<()> {
    let shape = [graph.len(), graph.k()];
    start_array(zip, "ids", "u4", &shape)?;
    for i in 0..graph.len() {
        zip.write_all(bytemuck::cast_slice(graph.neighbours(i).0))?;
    }
    start_array(zip, "similarities", "f4", &shape)?;
    for i in 0..graph.len() {
        zip.write_all(bytemuck::cast_slice(graph.neighbours(i).1))?;
    }
    Ok(())
}

fn write_published(zip: &mut ZipWriter<AtomicFile>, graph: &KnnGraph) -> std::io::Result<()> {
    start_array(zip, "data", "f4", &[graph.len(), 2, graph.k() + 1])?;
    let mut row: Vec<f32> = Vec::new();
    for i in 0..graph.len() {
        let (ids, similarities) = graph.neighbours(i);
        row.clear();
        row.push(i as f32);
        row.extend(ids.iter().map(|&id| id as f32));
        row.push(0.0);
        row.extend(similarities.iter().map(|similarity| 1.0 - similarity));
        zip.write_all(bytemuck::cast_slice(&row))?;
    }
    Ok(())
}

/// Starts a member whose values are four bytes each.
fn start_array(
    zip: &mut ZipWriter<AtomicFile>,
    name: &str,
    kind: &str,
    shape: &[usize],
) -> std::io::Result<()> {
    let header = npy::header_bytes(kind, shape);
    let size = header.len() as u64 + 4 * shape.iter().map(|&n| n as u64).product::<u64>();
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(size >= u32::MAX.into());
    zip.start_file(format!("{name}.npy"), options)?;
    zip.write_all(&header)
}
