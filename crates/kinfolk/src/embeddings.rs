//! Embeddings as unit rows, the input of all later stages.
//!
//! Row x becomes x / |x|, with |x| accumulated in f64. A row that already has unit length, | |x|^2 - 1 | <= 1e-6, is not
//! changed. So normalising is idempotent, and a file of unit rows can be memory-mapped instead of copied: both give the same
//! floats.

use crate::values::Values;
use crate::{Context, Error, Result};
use bytes::Bytes;
use memmap2::Mmap;
use rayon::prelude::*;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The tolerance of |x|^2 for rows of unit length, which are not changed. Rounding a unit row to f32 changes |x|^2 by about
/// 1e-7.
const UNIT_TOLERANCE: f64 = 1e-6;

/// Rows of one task, so that its scratch row is allocated once for many.
const ROWS_PER_TASK: usize = 64;
/// Rows that are written to a file at a time.
const ROWS_PER_PIECE: usize = 16_384;

/// N rows of D floats, each of unit length, so that the dot product of two rows is their cosine.
///
/// Cloning embeddings that were mapped from a file shares the map.
#[derive(Debug, Clone)]
pub struct Embeddings {
    rows: Values<f32>,
    dim: usize,
}

impl Embeddings {
    /// Normalises the rows of a row-major matrix. `place` names the matrix in errors.
    pub fn from_rows(mut data: Vec<f32>, dim: usize, place: &str) -> Result<Self> {
        check_shape(data.len(), dim, place)?;
        normalise_rows(&mut data, dim, 0, place, |_, row, values| {
            values.iter_mut().zip(row).for_each(|(value, &v)| *value = v.into());
        })?;
        Ok(Self::from_unit_rows(data, dim))
    }

    /// Normalises `rows` rows of any source: `read(i, values)` puts row `i` into `values`, from many threads.
    pub fn from_fn(
        rows: usize,
        dim: usize,
        place: &str,
        read: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Result<Self> {
        let mut data = vec![0.0; rows * dim];
        check_shape(data.len(), dim, place)?;
        normalise_rows(&mut data, dim, 0, place, |i, _, values| read(i, values))?;
        Ok(Self::from_unit_rows(data, dim))
    }

    /// The same in a file without a name, which is mapped: the system may drop it from memory, and removes it when it is no longer
    /// used. Where files cannot be without a name, the rows are in memory.
    pub(crate) fn in_file(
        directory: &Path,
        rows: usize,
        dim: usize,
        place: &str,
        read: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Result<Self> {
        let Some((path, file)) = nameless(directory)? else { return Self::from_fn(rows, dim, place, read) };
        check_shape(rows * dim, dim, place)?;
        // Written and not mapped, so that a full disk is an error and not a signal.
        let mut piece = vec![0.0f32; rows.min(ROWS_PER_PIECE) * dim];
        for first in (0..rows).step_by(ROWS_PER_PIECE) {
            let piece = &mut piece[..(rows - first).min(ROWS_PER_PIECE) * dim];
            normalise_rows(piece, dim, first, place, |i, _, values| read(first + i, values))?;
            (&file).write_all(bytemuck::cast_slice(piece)).map_err(|e| Error::io(&path, e))?;
        }
        map_nameless(&path, &file, dim)
    }

    /// Unit rows that are read piece by piece, in a file without a name; none where an open file keeps its name.
    pub(crate) fn of_pieces(
        directory: &Path,
        rows: usize,
        dim: usize,
        read: impl Fn(Range<usize>) -> Result<Vec<f32>>,
    ) -> Result<Option<Self>> {
        let Some((path, mut file)) = nameless(directory)? else { return Ok(None) };
        for first in (0..rows).step_by(ROWS_PER_PIECE) {
            let piece = read(first..rows.min(first + ROWS_PER_PIECE))?;
            file.write_all(bytemuck::cast_slice(&piece)).map_err(|e| Error::io(&path, e))?;
        }
        map_nameless(&path, &file, dim).map(Some)
    }

    /// Rows of native f32 in memory that something else owns, such as a NumPy array. They are used in place
    /// ([`is_mapped`](Self::is_mapped)) if all have unit length; otherwise they are copied and normalised.
    pub fn from_bytes(bytes: impl Into<Bytes>, dim: usize, place: &str) -> Result<Self> {
        let bytes = bytes.into();
        let data: &[f32] = match bytemuck::try_cast_slice(&bytes) {
            Ok(data) => data,
            Err(e) => return Err(Error::format(place, "whole floats, aligned", e.to_string())),
        };
        check_shape(data.len(), dim, place)?;
        if are_unit_rows(data, dim) {
            return Ok(Self::from_unit_bytes(bytes, dim));
        }
        Self::from_fn(data.len() / dim, dim, place, |i, values| {
            values.iter_mut().zip(&data[i * dim..]).for_each(|(value, &v)| *value = v.into());
        })
    }

    /// Takes rows that went through [`normalise_rows`].
    pub(crate) fn from_unit_rows(data: Vec<f32>, dim: usize) -> Self {
        Self { rows: data.into(), dim }
    }

    /// Uses rows that are normalised, wherever they are stored.
    pub(crate) fn from_unit_values(rows: Values<f32>, dim: usize) -> Self {
        Self { rows, dim }
    }

    /// Uses rows in place, for which [`are_unit_rows`] is true.
    pub(crate) fn from_unit_bytes(bytes: Bytes, dim: usize) -> Self {
        Self { rows: Values::Mapped(bytes), dim }
    }

    /// Number of rows, at least one.
    pub fn len(&self) -> usize {
        self.as_slice().len() / self.dim
    }

    /// Always false: a matrix without rows is refused.
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Row `i`, of unit length.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.as_slice()[i * self.dim..][..self.dim]
    }

    /// All rows, one after the other.
    pub fn as_slice(&self) -> &[f32] {
        &self.rows
    }

    /// True if the rows are used in place, such as in a memory-mapped file, and not copied.
    pub fn is_mapped(&self) -> bool {
        matches!(self.rows, Values::Mapped(_))
    }
}

/// Embeddings whose rows are found in any order. They are those of [`Embeddings::from_rows`], but large ones are never in memory as
/// a whole: they go to a file without a name in the directory of [`Context::scratch`].
#[derive(Debug)]
pub struct ScatteredRows {
    dim: usize,
    place: &'static str,
    storage: Storage,
    values: Vec<f64>,
    unit: Vec<f32>,
}

#[derive(Debug)]
enum Storage {
    Memory(Vec<f32>),
    File(PathBuf, File),
}

impl ScatteredRows {
    /// For so many rows, at least one of each number of which must be [`put`](Self::put). `place` names them in errors.
    pub fn new(rows: usize, dim: usize, place: &'static str, context: &Context) -> Result<Self> {
        check_shape(rows * dim, dim, place)?;
        let file = match context.scratch() {
            Some(directory) if context.memory().is_large(4 * (rows * dim) as u64) => nameless(directory)?,
            _ => None,
        };
        let storage = match file {
            Some((path, file)) => Storage::File(path, file),
            None => Storage::Memory(vec![0.0; rows * dim]),
        };
        Ok(Self { dim, place, storage, values: vec![0.0; dim], unit: vec![0.0; dim] })
    }

    /// Normalises a row and keeps it as row `i`.
    pub fn put(&mut self, i: usize, row: &[f32]) -> Result<()> {
        self.values.iter_mut().zip(row).for_each(|(value, &v)| *value = v.into());
        match &mut self.storage {
            Storage::Memory(rows) => {
                normalise_row(&mut self.values, &mut rows[i * self.dim..][..self.dim], i, self.place)
            }
            Storage::File(path, file) => {
                normalise_row(&mut self.values, &mut self.unit, i, self.place)?;
                file.seek(SeekFrom::Start((i * size_of_val(&*self.unit)) as u64))
                    .and_then(|_| file.write_all(bytemuck::cast_slice(&self.unit)))
                    .map_err(|e| Error::io(path, e))
            }
        }
    }

    /// The embeddings, once every row was put.
    pub fn finish(self) -> Result<Embeddings> {
        match self.storage {
            Storage::Memory(rows) => Ok(Embeddings::from_unit_rows(rows, self.dim)),
            Storage::File(path, file) => map_nameless(&path, &file, self.dim),
        }
    }
}

/// Embeddings whose rows arrive one after the other and are counted at the end, such as those of a database. They are those of
/// [`Embeddings::from_rows`].
#[derive(Debug)]
pub struct ArrivingRows {
    dim: usize,
    place: String,
    rows: Vec<f32>,
}

impl ArrivingRows {
    /// For rows of so many columns. `place` names them in errors.
    pub fn new(dim: usize, place: &str) -> Result<Self> {
        check_shape(dim, dim, place)?;
        Ok(Self { dim, place: place.to_owned(), rows: Vec::new() })
    }

    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Normalises a row of [`dim`](Self::dim) values, which is scratch space afterwards, and keeps it.
    pub fn push(&mut self, row: &mut [f64]) -> Result<()> {
        let first = self.rows.len();
        self.rows.resize(first + self.dim, 0.0);
        normalise_row(row, &mut self.rows[first..], first / self.dim, &self.place)
    }

    /// The embeddings, of at least one row.
    pub fn finish(self) -> Result<Embeddings> {
        check_shape(self.rows.len(), self.dim, &self.place)?;
        Ok(Embeddings::from_unit_rows(self.rows, self.dim))
    }
}

/// Maps unit rows that were written to a file without a name.
fn map_nameless(path: &Path, file: &File, dim: usize) -> Result<Embeddings> {
    // SAFETY: without a name, no other process can change the file.
    let map = unsafe { Mmap::map(file) }.map_err(|e| Error::io(path, e))?;
    Ok(Embeddings::from_unit_bytes(Bytes::from_owner(map), dim))
}

/// A new file whose name is removed again, and what it was called; none where an open file keeps its name.
fn nameless(directory: &Path) -> Result<Option<(PathBuf, File)>> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    if !cfg!(unix) {
        return Ok(None);
    }
    loop {
        let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!(".kinfolk-{}-{unique}.tmp", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
                return Ok(Some((path, file)));
            }
            // A process of the same number left it.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io(&path, e)),
        }
    }
}

/// Refuses a matrix that cannot be embeddings: no row, no column, or a last row cut short.
fn check_shape(count: usize, dim: usize, place: &str) -> Result<()> {
    if dim == 0 {
        return Err(Error::format(place, "at least one column", "0 columns"));
    }
    if count == 0 {
        return Err(Error::format(place, "at least one row", "0 rows"));
    }
    if !count.is_multiple_of(dim) {
        return Err(Error::format(place, format!("rows of {dim} floats"), format!("{count} floats")));
    }
    Ok(())
}

/// True if all rows have unit length.
pub(crate) fn are_unit_rows(data: &[f32], dim: usize) -> bool {
    data.par_chunks_exact(dim).with_min_len(ROWS_PER_TASK).all(|row| {
        // NaN fails the comparison; the conversion then reports it.
        (sum_of_squares(row) - 1.0).abs() <= UNIT_TOLERANCE
    })
}

/// Fills `out` with unit rows, in parallel. `read(i, out_row, values)` puts row `i` of the source into
/// `values`; it may take it from `out_row`. `first` is the number of the first row in errors; the error is
/// that of the first bad row, whichever thread met it.
pub(crate) fn normalise_rows(
    out: &mut [f32],
    dim: usize,
    first: usize,
    place: &str,
    read: impl Fn(usize, &[f32], &mut [f64]) + Sync,
) -> Result<()> {
    out.par_chunks_exact_mut(dim)
        .enumerate()
        .with_min_len(ROWS_PER_TASK)
        .map_init(
            || vec![0.0; dim],
            |values, (i, row)| {
                read(i, row, values);
                normalise_row(values, row, first + i, place)
            },
        )
        .find_map_first(Result::err)
        .map_or(Ok(()), Err)
}

/// Writes `values` into `out`, divided by their length.
fn normalise_row(values: &mut [f64], out: &mut [f32], row: usize, place: &str) -> Result<()> {
    let mut squares = sum_of_squares(values);
    if !squares.is_normal() {
        if let Some(column) = values.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { place: place.to_owned(), row, column, found: values[column] });
        }
        let largest = values.iter().fold(0.0_f64, |max, v| max.max(v.abs()));
        if largest == 0.0 {
            return Err(Error::ZeroRow { place: place.to_owned(), row, columns: values.len() });
        }
        // The squares of very large or very small f64 leave the range of f64, the row itself does not.
        values.iter_mut().for_each(|v| *v /= largest);
        squares = sum_of_squares(values);
    }
    let norm = if (squares - 1.0).abs() <= UNIT_TOLERANCE { 1.0 } else { squares.sqrt() };
    out.iter_mut().zip(values).for_each(|(out, v)| *out = (*v / norm) as f32);
    Ok(())
}

/// The squared length in f64. Eight partial sums, because one would make each addition wait for the last.
fn sum_of_squares<T: Copy + Into<f64>>(values: &[T]) -> f64 {
    let mut sums = [0.0; 8];
    let (lanes, rest) = values.as_chunks::<8>();
    for lane in lanes {
        for (sum, &v) in sums.iter_mut().zip(lane) {
            let v: f64 = v.into();
            *sum += v * v;
        }
    }
    for (sum, &v) in sums.iter_mut().zip(rest) {
        let v: f64 = v.into();
        *sum += v * v;
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_unit_length() {
        let e = Embeddings::from_rows(vec![3.0, 4.0, 0.0, -2.0], 2, "m").unwrap();
        assert_eq!(e.as_slice(), [0.6, 0.8, 0.0, -1.0]);
        assert_eq!((e.len(), e.dim(), e.row(1)), (2, 2, &[0.0, -1.0][..]));
    }

    #[test]
    fn one_row_of_one_column_is_fine() {
        let e = Embeddings::from_rows(vec![-7.0], 1, "m").unwrap();
        assert_eq!(e.as_slice(), [-1.0]);
    }

    #[test]
    fn the_smallest_and_largest_floats_have_a_direction() {
        let e = Embeddings::from_rows(vec![1e-45, 0.0, f32::MAX, f32::MAX], 2, "m").unwrap();
        assert_eq!(e.row(0), [1.0, 0.0]);
        assert_eq!(e.row(1), [0.5_f32.sqrt(); 2]);
    }

    #[test]
    fn squares_outside_f64_do_not_lose_the_row() {
        let mut out = [0.0; 2];
        for scale in [1e300, 1e-300, 5e-324] {
            normalise_row(&mut [scale, -scale], &mut out, 0, "m").unwrap();
            assert_eq!(out, [0.5_f32.sqrt(), -(0.5_f32.sqrt())]);
        }
    }

    #[test]
    fn the_first_bad_row_is_named_whatever_the_threads_do() {
        let mut data = vec![1.0_f32; 3 * 5000];
        for row in [17, 1000, 4999] {
            data[3 * row + 2] = f32::NAN;
        }
        let message = Embeddings::from_rows(data, 3, "m").unwrap_err().to_string();
        assert_eq!(message, "m: row 17, column 2: expected a finite number, found NaN");
    }

    #[test]
    fn a_zero_row_is_named() {
        let message = Embeddings::from_rows(vec![1.0, 0.0, 0.0, -0.0], 2, "m").unwrap_err().to_string();
        assert_eq!(message, "m: row 1: expected a row of non-zero length, found 2 zeros");
    }

    #[test]
    fn rows_from_anywhere_are_the_same_and_unit_rows_stay_where_they_are() {
        let rows = [3.0_f32, 4.0, 0.6, 0.8];
        let bytes = |rows: &[f32]| Bytes::from_owner(bytemuck::cast_slice::<_, u8>(rows).to_vec());
        let unit = Embeddings::from_rows(rows.to_vec(), 2, "m").unwrap();
        let made = Embeddings::from_fn(2, 2, "m", |i, values| {
            values.iter_mut().zip(&rows[2 * i..]).for_each(|(value, &v)| *value = v.into());
        });
        assert_eq!(made.unwrap().as_slice(), unit.as_slice());
        let long = Embeddings::from_bytes(bytes(&rows), 2, "m").unwrap();
        assert_eq!((long.as_slice(), long.is_mapped()), (unit.as_slice(), false));
        let in_place = Embeddings::from_bytes(bytes(&rows[2..]), 2, "m").unwrap();
        assert_eq!((in_place.as_slice(), in_place.is_mapped()), (&rows[2..], true));
        let message = Embeddings::from_bytes(vec![0; 7], 2, "m").unwrap_err().to_string();
        assert!(message.starts_with("m: expected whole floats, aligned, found"), "{message}");
    }

    #[test]
    fn rows_in_a_file_without_a_name_are_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let rows = 2 * ROWS_PER_PIECE + 5;
        let read = |i: usize, values: &mut [f64]| (values[0], values[1]) = (1.0 + i as f64, 7.0);
        let in_memory = Embeddings::from_fn(rows, 2, "m", read).unwrap();
        let in_file = Embeddings::in_file(directory.path(), rows, 2, "m", read).unwrap();
        assert_eq!(in_file.is_mapped(), cfg!(unix));
        assert!(in_file.as_slice() == in_memory.as_slice());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let zeros = Embeddings::in_file(directory.path(), rows, 2, "m", |i, values| {
            values[0] = f64::from(u8::from(i != ROWS_PER_PIECE + 1));
        });
        let row = ROWS_PER_PIECE + 1;
        assert_eq!(
            zeros.unwrap_err().to_string(),
            format!("m: row {row}: expected a row of non-zero length, found 2 zeros")
        );
        let nowhere = Embeddings::in_file(&directory.path().join("none"), rows, 2, "m", read);
        assert!(nowhere.unwrap_err().to_string().contains("none/.kinfolk-"));
    }

    #[test]
    fn arriving_rows_are_those_of_a_matrix_and_the_first_bad_one_is_named() {
        let data: Vec<f32> = (0..300).map(|at| (at * at % 31) as f32 - 7.5).collect();
        let expected = Embeddings::from_rows(data.clone(), 3, "m").unwrap();
        let mut arriving = ArrivingRows::new(3, "m").unwrap();
        for row in data.chunks_exact(3) {
            arriving.push(&mut [0, 1, 2].map(|at| row[at].into())).unwrap();
        }
        let message = ArrivingRows::new(3, "m").unwrap().finish().unwrap_err().to_string();
        assert_eq!(message, "m: expected at least one row, found 0 rows");
        assert_eq!(arriving.finish().unwrap().as_slice(), expected.as_slice());
        let mut arriving = ArrivingRows::new(2, "m").unwrap();
        arriving.push(&mut [1.0, 0.0]).unwrap();
        let message = arriving.push(&mut [0.0, f64::NAN]).unwrap_err().to_string();
        assert_eq!(message, "m: row 1, column 1: expected a finite number, found NaN");
    }

    #[test]
    fn scattered_rows_are_those_in_order_in_memory_and_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let (rows, dim) = (100, 3);
        let data: Vec<f32> = (0..rows * dim).map(|at| (at * at % 31) as f32 - 7.5).collect();
        let expected = Embeddings::from_rows(data.clone(), dim, "m").unwrap();
        let in_memory = Context::default().with_memory(Some(1 << 20));
        let in_file = Context::default().with_memory(Some(100)).with_scratch(Some(directory.path()));
        for (context, mapped) in [(in_memory, false), (in_file, cfg!(unix))] {
            let mut scattered = ScatteredRows::new(rows, dim, "m", &context).unwrap();
            for i in (0..rows).map(|i| i * 37 % rows) {
                scattered.put(i, &data[i * dim..][..dim]).unwrap();
            }
            let message = scattered.put(7, &[0.0; 3]).unwrap_err().to_string();
            assert_eq!(message, "m: row 7: expected a row of non-zero length, found 3 zeros");
            let found = scattered.finish().unwrap();
            assert_eq!((found.is_mapped(), found.as_slice()), (mapped, expected.as_slice()));
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let message =
            |data: &[f32], dim| Embeddings::from_rows(data.to_vec(), dim, "m").unwrap_err().to_string();
        assert_eq!(message(&[1.0], 0), "m: expected at least one column, found 0 columns");
        assert_eq!(message(&[], 2), "m: expected at least one row, found 0 rows");
        assert_eq!(message(&[1.0; 5], 2), "m: expected rows of 2 floats, found 5 floats");
    }
}
