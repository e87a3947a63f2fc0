//! Atomic writing of files.

use crate::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file that is written under a temporary name and renamed by [`commit`](Self::commit), so that no other process reads a
/// part of it and a failed run does not destroy an old file. If it is dropped before, the temporary file is removed.
///
/// This protects against a failure of the process. Protection against a power failure needs [`sync`](Self::sync).
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<File>,
    temporary: PathBuf,
    path: PathBuf,
    committed: bool,
}

impl AtomicFile {
    /// Starts a file that will be at `path`.
    pub fn create(path: &Path) -> Result<Self> {
        // Renaming onto a device such as /dev/null would replace it for everybody.
        match fs::metadata(path) {
            Ok(existing) if existing.is_dir() => {
                return Err(Error::format(path, "a file to write", "a directory"));
            }
            Ok(existing) if !existing.is_file() => {
                return Err(Error::format(path, "a file to write", "something that is not a regular file"));
            }
            _ => {}
        }
        let Some(name) = path.file_name() else {
            return Err(Error::format(path, "the name of a file to write", "none"));
        };
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        if !directory.is_dir() {
            let expected = format!("the directory {} to write it in", directory.display());
            return Err(Error::format(path, expected, "no such directory"));
        }
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        loop {
            let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
            let mut temporary = std::ffi::OsString::from(".");
            temporary.push(name);
            temporary.push(format!(".{}-{unique}.tmp", std::process::id()));
            let temporary = directory.join(temporary);
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    let file = BufWriter::with_capacity(1 << 20, file);
                    return Ok(Self { file, temporary, path: path.to_owned(), committed: false });
                }
                // A process of the same number left it; the next name is free or the one after.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(Error::io(path, e)),
            }
        }
    }

    /// Where the file will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Synchronises the file to disk. A full disk is detected here, before the file is renamed.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_data()
    }

    /// Renames the file to its destination.
    pub fn commit(mut self) -> Result<()> {
        self.file.flush().map_err(|e| Error::io(&self.path, e))?;
        fs::rename(&self.temporary, &self.path).map_err(|e| Error::io(&self.path, e))?;
        self.committed = true;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing more can be done about a file that cannot be removed, least of all in a drop.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn commit_replaces_the_old_file_and_leaves_only_the_new() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("labels.npy");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["labels.npy"]);
    }

    #[test]
    fn drop_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = AtomicFile::create(&directory.path().join("labels.npy")).unwrap();
        file.write_all(&vec![1; 3 << 20]).unwrap();
        assert_eq!(names(directory.path()).len(), 1);
        drop(file);
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn two_writers_of_one_path_do_not_meet() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("labels.npy");
        let (mut first, mut second) =
            (AtomicFile::create(&path).unwrap(), AtomicFile::create(&path).unwrap());
        first.write_all(b"first").unwrap();
        second.write_all(b"second").unwrap();
        second.commit().unwrap();
        first.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
    }
}
