//! `.npy`: one numpy array.
//!
//! The magic `\x93NUMPY`, two version bytes, the header's length (2 bytes in version 1, 4 in 2 and 3,
//! little-endian), the header, a Python dictionary such as `{'descr': '<f4', 'fortran_order': False, 'shape':
//! (3, 4), }`, then the values. Source: `numpy/lib/_format_impl.py`. As numpy does, bytes after the last
//! value are ignored.

use super::AtomicFile;
use super::array::{Array, Block, UnitRows};
use super::element::{Accept, Element};
use crate::{Error, Result};
use std::io::{Read, Write};
use std::path::Path;

const MAGIC: &[u8] = b"\x93NUMPY";

/// A header of numbers takes about 100 bytes; version 1 cannot hold more than this.
const LONGEST_HEADER: usize = u16::MAX as usize;

/// What a `.npy` file says about its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// The type as the file spells it.
    pub descr: String,
    pub element: Element,
    /// True when the first index, not the last, varies fastest.
    pub fortran: bool,
    pub shape: Vec<usize>,
}

impl Header {
    /// Reads up to the first value.
    pub fn read(reader: &mut impl Read, accept: Accept, place: &str) -> Result<Self> {
        let start = read_up_to(reader, 8, place)?;
        if !start.starts_with(MAGIC) {
            let found = format!("\"{}\"", start.escape_ascii());
            return Err(Error::format(place, "a file that starts with \"\\x93NUMPY\"", found));
        }
        let length_size = match start.get(6) {
            Some(1) => 2,
            Some(2 | 3) => 4,
            Some(version) => {
                return Err(Error::format(place, ".npy version 1, 2 or 3", format!("version {version}")));
            }
            None => return Err(cut_short(place, "a .npy version", start.len())),
        };
        let mut length = [0; 4];
        let raw = read_up_to(reader, length_size, place)?;
        if start.len() < 8 || raw.len() < length_size {
            return Err(cut_short(place, "a .npy header", start.len() + raw.len()));
        }
        length[..length_size].copy_from_slice(&raw);
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST_HEADER {
            let expected = format!("a .npy header of at most {LONGEST_HEADER} bytes");
            return Err(Error::format(place, expected, format!("{length} bytes")));
        }
        let header = read_up_to(reader, length, place)?;
        if header.len() < length {
            return Err(cut_short(place, &format!("a .npy header of {length} bytes"), header.len()));
        }
        Dictionary { rest: &String::from_utf8_lossy(&header), place }.parse(accept)
    }

    /// Number of rows, and of values in each: all indices but the first count as one.
    pub fn rows_and_width(&self) -> (usize, usize) {
        match self.shape.split_first() {
            Some((&rows, rest)) => (rows, rest.iter().product()),
            None => (1, 1),
        }
    }

    /// Number of bytes the values take; the shape was checked to allow it.
    pub fn data_size(&self) -> usize {
        let (rows, width) = self.rows_and_width();
        rows * width * self.element.size()
    }

    /// An error for a shape that is not `expected`.
    pub fn wrong_shape(&self, expected: &str, place: &str) -> Error {
        Error::format(place, expected, format!("shape {}", shape_text(&self.shape)))
    }

    /// An error for values that end after `found` bytes.
    pub fn truncated(&self, found: impl std::fmt::Display, place: &str) -> Error {
        let (shape, descr) = (shape_text(&self.shape), &self.descr);
        let expected = format!("{} bytes of data (shape {shape}, dtype '{descr}')", self.data_size());
        Error::format(place, expected, format!("{found} bytes"))
    }
}

/// The matrix in a whole file.
pub(crate) fn unit_rows<'a>(bytes: &'a [u8], place: &str) -> Result<UnitRows<'a>> {
    Array::from_slice(bytes, Accept::Floats, place.to_owned())?.into_unit_rows()
}

/// The matrix in a whole file, as it is.
pub(crate) fn block<'a>(bytes: &'a [u8], place: &str) -> Result<Block<'a>> {
    Array::from_slice(bytes, Accept::Floats, place.to_owned())?.into_block()
}

/// Reads `count` bytes, or fewer where the file ends.
fn read_up_to(reader: &mut impl Read, count: usize, place: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count);
    reader.take(count as u64).read_to_end(&mut bytes).map_err(|e| Error::io(place, e))?;
    Ok(bytes)
}

fn cut_short(place: &str, expected: &str, found: usize) -> Error {
    Error::format(place, expected, format!("the end of the file after {found} bytes"))
}

/// A shape as Python writes it.
fn shape_text(shape: &[usize]) -> String {
    let numbers: Vec<_> = shape.iter().map(usize::to_string).collect();
    format!("({}{})", numbers.join(", "), if shape.len() == 1 { "," } else { "" })
}

/// The part of Python's literal syntax that numpy writes in headers.
struct Dictionary<'a> {
    rest: &'a str,
    place: &'a str,
}

impl<'a> Dictionary<'a> {
    fn parse(mut self, accept: Accept) -> Result<Header> {
        let (text, place) = (self.rest, self.place);
        let malformed = || {
            let expected = "a header like {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
            Error::format(place, expected, shorten(text))
        };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.symbol('{').ok_or_else(malformed)?;
        while self.symbol('}').is_none() {
            let key = self.string().ok_or_else(malformed)?;
            self.symbol(':').ok_or_else(malformed)?;
            match key {
                "descr" => match self.string() {
                    Some(text) => descr = Some(text),
                    // A list of fields: no structured type is a number, so how it goes on does not matter.
                    None => return Err(Error::format(place, accept.describe(), shorten(self.rest))),
                },
                "fortran_order" => fortran = Some(self.boolean().ok_or_else(malformed)?),
                "shape" => shape = Some(self.tuple().ok_or_else(malformed)?),
                _ => return Err(malformed()),
            }
            if self.symbol(',').is_none() && !self.rest.starts_with('}') {
                return Err(malformed());
            }
        }
        let (Some(descr), Some(fortran), Some(shape)) = (descr, fortran, shape) else {
            return Err(malformed());
        };
        let element = Element::from_descr(descr)
            .filter(|element| accept.admits(element.scalar))
            .ok_or_else(|| Error::format(place, accept.describe(), format!("dtype '{descr}'")))?;
        // Zeros count as ones here, so that no product of part of the shape can overflow either.
        if shape.iter().try_fold(element.size(), |size, &n| size.checked_mul(n.max(1))).is_none() {
            return Err(Error::format(place, "a shape that fits in memory", shape_text(&shape)));
        }
        Ok(Header { descr: descr.to_owned(), element, fortran, shape })
    }

    fn symbol(&mut self, symbol: char) -> Option<()> {
        self.rest = self.rest.trim_start();
        self.rest = self.rest.strip_prefix(symbol)?;
        self.rest = self.rest.trim_start();
        Some(())
    }

    fn string(&mut self) -> Option<&'a str> {
        let quote = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (text, rest) = self.rest[1..].split_once(quote)?;
        self.rest = rest;
        Some(text)
    }

    fn boolean(&mut self) -> Option<bool> {
        for (text, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(text) {
                self.rest = rest;
                return Some(value);
            }
        }
        None
    }

    fn tuple(&mut self) -> Option<Vec<usize>> {
        self.symbol('(')?;
        let mut numbers = Vec::new();
        while self.symbol(')').is_none() {
            let end = self.rest.find(|c: char| !c.is_ascii_digit())?;
            numbers.push(self.rest[..end].parse().ok()?);
            self.rest = &self.rest[end..];
            // Python 2 wrote long integers as `3L`.
            let _ = self.symbol('L');
            if self.symbol(',').is_none() && !self.rest.starts_with(')') {
                return None;
            }
        }
        Some(numbers)
    }
}

/// Enough of `text` to recognise it.
fn shorten(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The bytes before the values of a C-ordered array of this machine's byte order; `kind` is numpy's, "f4".
pub(crate) fn header_bytes(kind: &str, shape: &[usize]) -> Vec<u8> {
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let shape = shape_text(shape);
    let header = format!("{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    // Magic, version, length and final newline take 11 bytes; values start at a multiple of 64, so that a map
    // of the file is aligned.
    let padded = (header.len() + 11).next_multiple_of(64) - 11;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((padded as u16 + 1).to_le_bytes());
    bytes.extend(format!("{header:padded$}\n").as_bytes());
    bytes
}

/// Writes labels, one int64 per row, as `.npy`.
pub fn write_npy_i64(path: &Path, values: &[i64]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    write_npy_i64_to(&mut file, values).map_err(|e| Error::io(path, e))?;
    file.commit()
}

/// The same up to [`AtomicFile::commit`], which makes it appear: written and synchronised under a temporary name.
pub fn start_npy_i64(path: &Path, values: &[i64]) -> Result<AtomicFile> {
    let mut file = AtomicFile::create(path)?;
    write_npy_i64_to(&mut file, values).and_then(|()| file.sync()).map_err(|e| Error::io(path, e))?;
    Ok(file)
}

/// Writes the bytes of such a file.
pub(crate) fn write_npy_i64_to(file: &mut AtomicFile, values: &[i64]) -> std::io::Result<()> {
    file.write_all(&header_bytes("i8", &[values.len()]))?;
    file.write_all(bytemuck::cast_slice(values))
}

/// Writes a row-major matrix of `dim` columns as float32 `.npy`.
pub fn write_npy_f32(path: &Path, rows: &[f32], dim: usize) -> Result<()> {
    let count = rows.len().checked_div(dim).unwrap_or(0);
    let mut writer = NpyF32Writer::create(path, count, dim)?;
    writer.write_rows(rows)?;
    writer.finish()
}

/// Writes a float32 `.npy` matrix a few rows at a time, so that it need not fit in memory. The file appears
/// when [`finish`](Self::finish) succeeds; dropping the writer before leaves nothing.
#[derive(Debug)]
pub struct NpyF32Writer {
    file: AtomicFile,
    rows: usize,
    dim: usize,
    written: usize,
}

impl NpyF32Writer {
    /// Starts a file of `rows` rows of `dim` columns.
    pub fn create(path: &Path, rows: usize, dim: usize) -> Result<Self> {
        let mut file = AtomicFile::create(path)?;
        file.write_all(&header_bytes("f4", &[rows, dim])).map_err(|e| Error::io(path, e))?;
        Ok(Self { file, rows, dim, written: 0 })
    }

    /// Appends rows, one after the other; part of a row is fine if the rest of it follows.
    pub fn write_rows(&mut self, rows: &[f32]) -> Result<()> {
        self.written += rows.len();
        self.file.write_all(bytemuck::cast_slice(rows)).map_err(|e| Error::io(self.file.path(), e))
    }

    /// Checks that every row was written, and puts the file in place.
    pub fn finish(self) -> Result<()> {
        let expected = self.rows * self.dim;
        if self.written != expected {
            return Err(Error::Length {
                place: self.file.path().display().to_string(),
                what: format!("floats to write ({} rows x {} columns)", self.rows, self.dim),
                expected,
                found: self.written,
            });
        }
        self.file.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header> {
        Dictionary { rest: text, place: "f" }.parse(Accept::Numbers)
    }

    #[test]
    fn keys_come_in_any_order_and_spacing() {
        let header = parse("{ \"shape\":(3L, 4 ,),'fortran_order' : True , 'descr':'>f8'} \n").unwrap();
        assert_eq!((header.shape.as_slice(), header.fortran), (&[3, 4][..], true));
        assert!(header.element.big_endian);
        assert_eq!(parse("{'descr': '|i1', 'fortran_order': False, 'shape': ()}").unwrap().data_size(), 1);
    }

    #[test]
    fn malformed_dictionaries_are_refused() {
        for text in [
            "",
            "{",
            "}",
            "{'descr': '<f4'}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)",
            "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3, 4), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, -4), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (, ), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, ), }",
            "{'descr': '<f4' 'fortran_order': False, 'shape': (3, 4), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), 'more': 1}",
            "{'é",
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.starts_with("f: expected a header like {'descr'"), "{text}: {message}");
        }
    }

    #[test]
    fn shapes_that_overflow_are_refused() {
        for shape in ["(9223372036854775807, 9223372036854775807)", "(0, 9223372036854775807, 4)"] {
            let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
            let message = parse(&text).unwrap_err().to_string();
            assert_eq!(message, format!("f: expected a shape that fits in memory, found {shape}"));
        }
    }

    #[test]
    fn written_headers_are_aligned_and_read_back() {
        for shape in [vec![], vec![7], vec![3, 4], vec![5_000_000, 2, 80], vec![1; 30]] {
            let bytes = header_bytes("f4", &shape);
            assert_eq!(bytes.len() % 64, 0);
            assert_eq!(bytes.last(), Some(&b'\n'));
            let mut rest = bytes.as_slice();
            let header = Header::read(&mut rest, Accept::Floats, "f").unwrap();
            assert_eq!((header.shape, header.fortran, rest), (shape, false, &[][..]));
        }
    }
}
