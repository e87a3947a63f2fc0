//! The mapped files beside the database.
//!
//! The database says how long each file is. A change appends behind that length, synchronises the file, and then commits the new
//! length together with everything else, so a change that dies leaves bytes that nobody counts and the next change overwrites.
//! Bytes that were ever counted are never written again: who read the database before maps what belongs to it. What changes in
//! the middle of an array (`state`) is a new file of a new name in every change, and named in the database.

use crate::faults::before_write;
use bytemuck::Pod;
use bytes::Bytes;
use kinfolk::{Error, Result};
use memmap2::Mmap;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::ops::Deref;
use std::path::Path;

/// Appends to a file of which `length` bytes count, and returns how many count then.
pub(crate) fn append(path: &Path, length: u64, bytes: &[u8]) -> Result<u64> {
    let write = || -> std::io::Result<()> {
        before_write()?;
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        before_write()?;
        file.write_all(bytes)?;
        before_write()?;
        file.sync_data()
    };
    write().map_err(|e| Error::io(path, e))?;
    Ok(length + bytes.len() as u64)
}

/// Maps the first `length` bytes of a file.
pub(crate) fn map(path: &Path, length: u64) -> Result<Bytes> {
    if length == 0 {
        return Ok(Bytes::new());
    }
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let found = file.metadata().map_err(|e| Error::io(path, e))?.len();
    if found < length {
        return Err(Error::format(path, format!("{length} bytes, as the album counts"), found.to_string()));
    }
    // SAFETY: bytes that the database counts are never written again, and files are not cut below that.
    let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io(path, e))?;
    Ok(Bytes::from_owner(map).slice(..length as usize))
}

/// Numbers in memory or in a mapped file.
pub(crate) enum Array<T> {
    Owned(Vec<T>),
    Mapped(Bytes),
}

impl<T: Pod> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Array::Owned(values) => values,
            Array::Mapped(bytes) => bytemuck::cast_slice(bytes),
        }
    }
}

impl<T: Pod> Array<T> {
    /// The numbers, to be changed; those of a file are copied first.
    pub(crate) fn to_mut(&mut self) -> &mut Vec<T> {
        if let Array::Mapped(_) = self {
            *self = Array::Owned(self.to_vec());
        }
        match self {
            Array::Owned(values) => values,
            Array::Mapped(_) => unreachable!("just copied"),
        }
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(values: Vec<T>) -> Self {
        Array::Owned(values)
    }
}

impl<T: Pod> Clone for Array<T> {
    fn clone(&self) -> Self {
        match self {
            Array::Owned(values) => Array::Owned(values.clone()),
            Array::Mapped(bytes) => Array::Mapped(bytes.clone()),
        }
    }
}
