//! `.npz`: a zip archive of `.npy` arrays, stored (`numpy.savez`) or deflated (`numpy.savez_compressed`).
//!
//! The `zip` crate reads the directory; the members are read here, so that a stored member can be used in the memory map.
//! Checksums are verified in both cases.

use super::array::{Array, UnitRows};
use super::element::Accept;
use crate::{Error, Result};
use flate2::read::DeflateDecoder;
use std::io::{Cursor, Read};
use std::path::Path;
use zip::{CompressionMethod, ZipArchive};

/// A deflated byte stands for at most this many: one bit for a length code of 258 bytes, one for its
/// distance.
const MOST_BYTES_PER_DEFLATED: usize = 1032;

/// An archive whose directory is read.
pub(crate) struct Archive<'a> {
    bytes: &'a [u8],
    zip: ZipArchive<Cursor<&'a [u8]>>,
    /// The arrays and where the directory lists them.
    arrays: Vec<(String, usize)>,
    place: String,
}

impl<'a> Archive<'a> {
    pub fn open(bytes: &'a [u8], place: &str) -> Result<Self> {
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|e| {
            let start = bytes[..bytes.len().min(8)].escape_ascii();
            Error::format(place, "a zip archive (.npz)", format!("\"{start}\" ({e})"))
        })?;
        let arrays = zip
            .file_names_raw()
            .enumerate()
            .filter_map(|(i, name)| {
                let name = String::from_utf8_lossy(name);
                Some((name.strip_suffix(".npy")?.to_owned(), i))
            })
            .collect();
        Ok(Self { bytes, zip, arrays, place: place.to_owned() })
    }

    pub fn contains(&self, name: &str) -> bool {
        self.arrays.iter().any(|(array, _)| array == name)
    }

    /// An error for an archive without what was `expected`.
    pub fn lacks(&self, expected: &str) -> Error {
        let names: Vec<_> = self.arrays.iter().map(|(name, _)| name.as_str()).collect();
        let found = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Error::format(&self.place, expected, format!("arrays: {found}"))
    }

    /// The named array, or the first one.
    pub fn array(&mut self, name: Option<&str>, accept: Accept) -> Result<Array<'a>> {
        let (name, index) = match name {
            Some(wanted) => {
                let wanted = wanted.strip_suffix(".npy").unwrap_or(wanted);
                let found = self.arrays.iter().find(|(name, _)| name == wanted);
                found.ok_or_else(|| self.lacks(&format!("an array named {wanted}")))?
            }
            None => self.arrays.first().ok_or_else(|| self.lacks("at least one array"))?,
        };
        let place = format!("{} (array {name})", self.place);
        let unreadable = |found: String| Error::format(&place, "a readable zip member", found);
        let member = self.zip.by_index_raw(*index).map_err(|e| unreadable(e.to_string()))?;
        if member.encrypted() {
            return Err(unreadable("an encrypted one".to_owned()));
        }
        let start = member.data_start().and_then(|start| usize::try_from(start).ok());
        let size = usize::try_from(member.compressed_size()).ok();
        let (method, checksum) = (member.compression(), member.crc32());
        drop(member);
        let bytes =
            start.zip(size).and_then(|(start, size)| self.bytes.get(start..)?.get(..size)).ok_or_else(
                || unreadable(format!("one that ends after the file's {} bytes", self.bytes.len())),
            )?;
        match method {
            CompressionMethod::Stored => {
                check(crc32fast::hash(bytes), checksum).map_err(|e| Error::io(&place, e))?;
                Array::from_slice(bytes, accept, place)
            }
            CompressionMethod::Deflated => {
                let at_most = bytes.len().saturating_mul(MOST_BYTES_PER_DEFLATED);
                let inner = DeflateDecoder::new(bytes);
                let reader = Checked { inner, hasher: crc32fast::Hasher::new(), checksum };
                Array::from_stream(Box::new(reader), at_most, accept, place)
            }
            other => {
                Err(unreadable(format!("compression method {other}; stored and deflated are supported")))
            }
        }
    }
}

/// The named matrix, or the first one.
pub(crate) fn unit_rows<'a>(bytes: &'a [u8], name: Option<&str>, place: &str) -> Result<UnitRows<'a>> {
    Archive::open(bytes, place)?.array(name, Accept::Floats)?.into_unit_rows()
}

/// The shape and the values of a named array of integers, the last index fastest; `None` if the archive does not have it.
pub fn read_integers(path: &Path, name: &str) -> Result<Option<(Vec<usize>, Vec<i64>)>> {
    let (bytes, place) = (super::map_file(path)?, path.display().to_string());
    let mut archive = Archive::open(&bytes, &place)?;
    if !archive.contains(name) {
        return Ok(None);
    }
    let array = archive.array(Some(name), Accept::Integers)?;
    let (shape, place) = (array.header.shape.clone(), array.place().to_owned());
    if array.header.fortran && shape.len() > 1 {
        return Err(Error::format(place, "an array in C order", "one in Fortran order"));
    }
    let mut values = Vec::new();
    array.for_each_block(|_, block| {
        for value in block.bytes.chunks_exact(block.element.size()) {
            let value = block.element.read_integer(value);
            let fits = i64::try_from(value);
            values.push(fits.map_err(|_| Error::format(&place, "values of int64", value.to_string()))?);
        }
        Ok(())
    })?;
    Ok(Some((shape, values)))
}

/// Fails at the end if the bytes were not those that were archived.
struct Checked<R> {
    inner: R,
    hasher: crc32fast::Hasher,
    checksum: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        if count == 0 && !buffer.is_empty() {
            check(self.hasher.clone().finalize(), self.checksum)?;
        }
        Ok(count)
    }
}

/// A fuzzer cannot guess checksums, and what they guard must be safe without them.
fn check(found: u32, expected: u32) -> std::io::Result<()> {
    if found == expected || cfg!(fuzzing) {
        return Ok(());
    }
    let message = "the archive is damaged: its checksum does not match";
    Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message))
}
