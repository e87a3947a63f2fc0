//! The file of a finished stage: a line of JSON, arrays of numbers, a checksum.
//!
//! The line states format, stage, key, facts and the lengths of the arrays in bytes. The arrays follow in native order; the last
//! four bytes are the CRC-32 of all before.

use super::Key;
use crate::io::AtomicFile;
use crate::{Error, Result};
use bytemuck::Pod;
use crc32fast::Hasher;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

/// The version of the format.
pub(super) const FORMAT: u32 = 1;
/// Bytes that are written, read and summed at a time.
const PIECE: usize = 1 << 20;

/// What is known of a stage besides its arrays.
pub(crate) type Facts = serde_json::Value;

/// The result of a stage, as facts and arrays of numbers.
pub(crate) trait Stage: Sized {
    /// Facts, and the bytes of each array.
    fn parts(&self) -> (Facts, Vec<&[u8]>);
    /// The same from a file; `None` if it cannot be a result of this stage.
    fn from_parts(facts: Facts, arrays: &mut Arrays) -> Option<Self>;
}

/// The line at the start.
#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    pub format: u32,
    pub stage: String,
    pub key: Key,
    pub facts: Facts,
    /// The bytes of each array.
    pub arrays: Vec<u64>,
}

impl Header {
    pub fn new(stage: &str, key: &Key, facts: Facts, arrays: Vec<u64>) -> Self {
        Header { format: FORMAT, stage: stage.to_owned(), key: key.clone(), facts, arrays }
    }

    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Refuses the file of another stage, of another version or that depends on something else.
    pub fn check(&self, path: &Path, stage: &str, key: &Key) -> Result<()> {
        let refuse = |expected: String, found: String| Err(Error::format(path, expected, found));
        if self.format != FORMAT {
            return refuse(format!("format {FORMAT}"), self.format.to_string());
        }
        if self.stage != stage {
            return refuse(format!("stage {stage}"), self.stage.clone());
        }
        match key.difference(&self.key) {
            Some((expected, found)) => {
                refuse(format!("stage {stage} with {expected} (remove the file to run it again)"), found)
            }
            None => Ok(()),
        }
    }
}

/// The arrays of a file, one after the other.
pub(crate) struct Arrays {
    reader: BufReader<File>,
    sum: Hasher,
    /// The bytes of the arrays that were not taken yet, last first.
    left: Vec<u64>,
}

impl Arrays {
    /// The next array; `None` if there is none, or the file ends before it does.
    pub fn next<T: Pod>(&mut self) -> Option<Vec<T>> {
        let bytes = self.left.pop()? as usize;
        if !bytes.is_multiple_of(size_of::<T>()) {
            return None;
        }
        let mut values = vec![T::zeroed(); bytes / size_of::<T>()];
        for piece in bytemuck::cast_slice_mut::<T, u8>(&mut values).chunks_mut(PIECE) {
            self.reader.read_exact(piece).ok()?;
            self.sum.update(piece);
        }
        Some(values)
    }
}

pub(super) fn write(path: &Path, stage: &str, key: &Key, result: &impl Stage) -> Result<()> {
    let (facts, arrays) = result.parts();
    let header = Header::new(stage, key, facts, arrays.iter().map(|array| array.len() as u64).collect());
    let mut file = AtomicFile::create(path)?;
    let mut sum = Hasher::new();
    let line = header.line();
    let written =
        [line.as_bytes()].into_iter().chain(arrays).flat_map(|part| part.chunks(PIECE)).try_for_each(
            |piece| {
                sum.update(piece);
                file.write_all(piece)
            },
        );
    let sum = sum.finalize().to_le_bytes();
    written.and_then(|()| file.write_all(&sum)).and_then(|()| file.sync()).map_err(|e| Error::io(path, e))?;
    file.commit()
}

pub(super) fn read<T: Stage>(path: &Path, stage: &str, key: &Key) -> Result<T> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let length = file.metadata().map_err(|e| Error::io(path, e))?.len();
    let mut reader = BufReader::with_capacity(PIECE, file);
    let line = header_line(&mut reader).map_err(|e| Error::io(path, e))?;
    let damaged = |found: &str| {
        Error::format(path, format!("the whole stage {stage} (remove the file to run it again)"), found)
    };
    let header: Header = serde_json::from_slice(&line).map_err(|_| damaged("a damaged header"))?;
    header.check(path, stage, key)?;
    // A length is believed only if the file has it.
    let expected = header.arrays.iter().try_fold(line.len() as u64 + 4, |sum, &bytes| sum.checked_add(bytes));
    if expected != Some(length) {
        return Err(damaged(&format!("{length} bytes")));
    }
    let mut sum = Hasher::new();
    sum.update(&line);
    let mut arrays = Arrays { reader, sum, left: header.arrays.into_iter().rev().collect() };
    let result = T::from_parts(header.facts, &mut arrays);
    let mut written = [0; 4];
    let whole = arrays.left.is_empty() && arrays.reader.read_exact(&mut written).is_ok();
    if !whole || u32::from_le_bytes(written) != arrays.sum.finalize() {
        return Err(damaged("another checksum"));
    }
    result.ok_or_else(|| damaged("values that it cannot have"))
}

/// The line of the header, however long a file without one is.
pub(super) fn header_line(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(1 << 16).read_until(b'\n', &mut line)?;
    Ok(line)
}
