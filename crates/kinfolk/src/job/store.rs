//! The files of a job.
//!
//! | file | contents |
//! |---|---|
//! | `NAME.array` | numbers in native order; every block of a stage writes a part of its own |
//! | `NAME.json` | facts: the parameters of the job, its state, what a stage found for all rows |
//! | `NAME/BLOCK` | what a block found, where that has no fixed length |
//! | `NAME/BLOCK.done` | the block is done |
//!
//! A part of an array is written by position and is always the same, so a block that was cut off is simply run again. Files are not
//! forced to disk: a job survives the end of any of its processes and nodes, but not a power failure of the storage.

use crate::io::{AtomicFile, map_file};
use crate::values::Values;
use crate::{Error, Result};
use bytemuck::Pod;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A directory on storage that all processes of a job see.
#[derive(Debug, Clone)]
pub(crate) struct Store(PathBuf);

impl Store {
    /// Uses a directory, whether or not it exists.
    pub fn new(directory: &Path) -> Self {
        Self(directory.to_owned())
    }

    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// Creates the directory.
    pub fn create(&self) -> Result<()> {
        fs::create_dir_all(&self.0).map_err(|e| Error::io(&self.0, e))
    }

    /// All numbers of an array, mapped.
    pub fn array<T: Pod>(&self, name: &str) -> Result<Values<T>> {
        let path = self.array_path(name);
        let length = fs::metadata(&path).map_err(|e| Error::io(&path, e))?.len();
        let size = size_of::<T>() as u64;
        if length == 0 {
            return Ok(Values::Owned(Vec::new()));
        }
        if !length.is_multiple_of(size) {
            return Err(Error::format(&path, format!("numbers of {size} bytes"), format!("{length} bytes")));
        }
        Ok(Values::Mapped(Bytes::from_owner(map_file(&path)?)))
    }

    /// As [`array`](Self::array), refused if there are not as many numbers.
    pub fn array_of<T: Pod>(&self, name: &str, length: usize) -> Result<Values<T>> {
        let values = self.array::<T>(name)?;
        if values.len() != length {
            let (place, what) = (self.array_path(name).display().to_string(), "numbers".to_owned());
            return Err(Error::Length { place, what, expected: length, found: values.len() });
        }
        Ok(values)
    }

    /// Writes numbers into an array, from number `at` on.
    pub fn put<T: Pod>(&self, name: &str, at: usize, values: &[T]) -> Result<()> {
        let path = self.array_path(name);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| Error::io(&path, e))?;
        file.seek(SeekFrom::Start((at * size_of::<T>()) as u64))
            .and_then(|_| file.write_all(bytemuck::cast_slice(values)))
            .map_err(|e| Error::io(&path, e))
    }

    /// Writes a whole array.
    pub fn write<T: Pod>(&self, name: &str, values: &[T]) -> Result<()> {
        write(&self.array_path(name), bytemuck::cast_slice(values))
    }

    /// Removes arrays that no later stage needs, as far as they are there.
    pub fn remove(&self, names: &[String]) {
        // What cannot be removed now goes with the directory.
        names.iter().for_each(|name| _ = fs::remove_file(self.array_path(name)));
    }

    /// Facts, if they are there.
    pub fn facts<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let path = self.0.join(format!("{name}.json"));
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io(&path, e)),
        };
        let found = serde_json::from_slice(&text);
        found.map(Some).map_err(|e| Error::format(&path, "the facts of a job", e.to_string()))
    }

    /// Facts that an earlier stage must have left.
    pub fn known<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let found = self.facts(name)?;
        found.ok_or_else(|| Error::format(&self.0, format!("a job that knows its {name}"), "none"))
    }

    pub fn set_facts(&self, name: &str, facts: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec(facts).map_err(|e| Error::format(name, "facts", e.to_string()))?;
        write(&self.0.join(format!("{name}.json")), &text)
    }

    /// Creates the directory of the parts and marks of a stage.
    pub fn begin(&self, stage: &str) -> Result<()> {
        let path = self.0.join(stage);
        fs::create_dir_all(&path).map_err(|e| Error::io(&path, e))
    }

    /// Removes the parts and marks of a stage.
    pub fn end(&self, stage: &str) {
        let _ = fs::remove_dir_all(self.0.join(stage));
    }

    /// What a block found.
    pub fn part(&self, stage: &str, block: usize) -> Result<Bytes> {
        let path = self.0.join(stage).join(block.to_string());
        let length = fs::metadata(&path).map_err(|e| Error::io(&path, e))?.len();
        if length == 0 { Ok(Bytes::new()) } else { map_file(&path).map(Bytes::from_owner) }
    }

    pub fn set_part(&self, stage: &str, block: usize, bytes: &[u8]) -> Result<()> {
        write(&self.0.join(stage).join(block.to_string()), bytes)
    }

    pub fn is_done(&self, stage: &str, block: usize) -> bool {
        self.mark(stage, block).exists()
    }

    pub fn set_done(&self, stage: &str, block: usize) -> Result<()> {
        let mark = self.mark(stage, block);
        fs::File::create(&mark).map(drop).map_err(|e| Error::io(&mark, e))
    }

    fn mark(&self, stage: &str, block: usize) -> PathBuf {
        self.0.join(stage).join(format!("{block}.done"))
    }

    fn array_path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.array"))
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(|e| Error::io(path, e))?;
    file.commit()
}
