//! The file of a stage that is not finished: a line of JSON, then finished blocks in the order in which they were finished.
//!
//! A block is its number and the bytes of its arrays (8 bytes each, little-endian), the CRC-32 of these and of the arrays, then the
//! arrays. What follows the last whole block was being written when the run died, and is overwritten.

use super::Key;
use super::file::{Header, header_line};
use crate::{Error, Result};
use crc32fast::Hasher;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Number, bytes and checksum of a block.
const HEAD: usize = 20;

/// The finished blocks of a stage.
pub(crate) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    /// Where the arrays of each block begin, and their bytes.
    blocks: HashMap<u64, (u64, u64)>,
}

impl Journal {
    /// Opens the file, or begins one. Refuses one of other inputs.
    pub(super) fn open(path: &Path, stage: &str, key: &Key) -> Result<Self> {
        let io = |e| Error::io(path, e);
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut reader = BufReader::with_capacity(1 << 20, &file);
        let line = header_line(&mut reader).map_err(io)?;
        let mut blocks = HashMap::new();
        let mut end = line.len() as u64;
        if !line.ends_with(b"\n") {
            // The run died while it wrote the first line.
            end = 0;
        } else {
            let damaged = |_| Error::format(path, format!("unfinished stage {stage}"), "a damaged header");
            let header: Header = serde_json::from_slice(&line).map_err(damaged)?;
            header.check(path, stage, key)?;
            while let Some((number, bytes)) = whole_block(&mut reader, length - end) {
                blocks.insert(number, (end + HEAD as u64, bytes));
                end += HEAD as u64 + bytes;
            }
        }
        drop(reader);
        let mut file = file;
        file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end))).map_err(io)?;
        if end == 0 {
            let header = Header::new(stage, key, serde_json::Value::Null, Vec::new());
            file.write_all(header.line().as_bytes()).map_err(io)?;
        }
        Ok(Journal { path: path.to_owned(), file: Mutex::new(file), blocks })
    }

    /// Fills `arrays` with a block, if it is there. One of other lengths is refused.
    pub fn take(&self, number: u64, arrays: &mut [&mut [u8]]) -> Result<bool> {
        let Some(&(at, bytes)) = self.blocks.get(&number) else { return Ok(false) };
        let expected: usize = arrays.iter().map(|array| array.len()).sum();
        if bytes != expected as u64 {
            let expected = format!("block {number} of {expected} bytes");
            return Err(Error::format(&self.path, expected, format!("{bytes} bytes")));
        }
        let mut file = self.file();
        let read = file
            .seek(SeekFrom::Start(at))
            .and_then(|_| arrays.iter_mut().try_for_each(|array| file.read_exact(array)));
        let end = read.and_then(|()| file.seek(SeekFrom::End(0)));
        end.map_err(|e| Error::io(&self.path, e))?;
        Ok(true)
    }

    /// Adds a block.
    pub fn add(&self, number: u64, arrays: &[&[u8]]) -> Result<()> {
        let bytes: usize = arrays.iter().map(|array| array.len()).sum();
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&number.to_le_bytes());
        head[8..16].copy_from_slice(&(bytes as u64).to_le_bytes());
        let mut sum = Hasher::new();
        sum.update(&head[..16]);
        arrays.iter().for_each(|array| sum.update(array));
        head[16..].copy_from_slice(&sum.finalize().to_le_bytes());
        let mut file = self.file();
        let written =
            file.write_all(&head).and_then(|()| arrays.iter().try_for_each(|array| file.write_all(array)));
        written.and_then(|()| file.sync_data()).map_err(|e| Error::io(&self.path, e))
    }

    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The number and the bytes of the next block, if it is whole within `left` bytes.
fn whole_block(reader: &mut impl Read, left: u64) -> Option<(u64, u64)> {
    let mut head = [0; HEAD];
    reader.read_exact(&mut head).ok()?;
    let number =
        |from: usize| head[from..from + 8].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let (block, bytes) = (number(0), number(8));
    if bytes > left.checked_sub(HEAD as u64)? {
        return None;
    }
    let mut sum = Hasher::new();
    sum.update(&head[..16]);
    let mut rest = reader.take(bytes);
    let mut piece = vec![0; 1 << 16];
    loop {
        match rest.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => sum.update(&piece[..count]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    (rest.limit() == 0 && sum.finalize().to_le_bytes() == head[16..]).then_some((block, bytes))
}
