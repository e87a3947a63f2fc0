//! A directory that keeps finished stages, so that a run that died goes on from the last one.
//!
//! | file | contents |
//! |---|---|
//! | `STAGE.kept` | the result of a stage; `file` |
//! | `STAGE.part` | finished blocks of a stage that is not finished; `journal` |
//! | `lock` | locked by the run that uses the directory |
//!
//! Every file names what its content depends on, its [`Key`]: the rows, the parameters and the version of the program. One that
//! depends on something else is refused, and never overwritten, because it may have taken hours. `docs/formats.md` describes the
//! bytes.

mod file;
mod journal;
mod key;

pub(crate) use file::{Arrays, Facts, Stage};
pub(crate) use journal::Journal;
pub(crate) use key::Key;

use crate::{Error, Result};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// A directory of finished stages, which one run at a time uses.
///
/// ```
/// use kinfolk::{Clusterer, Work};
/// # fn main() -> kinfolk::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = &directory.path().join("work");
/// # let params = kinfolk::synth::SynthParams { identities: 40, dim: 64, ..Default::default() };
/// # let (embeddings, _) = kinfolk::synth::Synth::new(params)?.whole().to_embeddings()?;
/// let work = Work::open(path)?;
/// let found = Clusterer::new().work(&work).fit(&embeddings)?;
/// // The second time all stages are there.
/// assert_eq!(Clusterer::new().work(&work).fit(&embeddings)?.labels, found.labels);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Work {
    directory: PathBuf,
    /// Unlocked when it is closed.
    _lock: File,
}

impl Work {
    /// Opens a directory, which is created if it is not there. Refuses one that another run uses.
    pub fn open(directory: &Path) -> Result<Self> {
        if directory.exists() && !directory.is_dir() {
            return Err(Error::format(directory, "a directory to work in", "a file"));
        }
        fs::create_dir_all(directory).map_err(|e| Error::io(directory, e))?;
        let path = directory.join("lock");
        let lock = File::create(&path).map_err(|e| Error::io(&path, e))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory: directory.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                Err(Error::format(directory, "a directory that no other run uses", "one in use"))
            }
            Err(TryLockError::Error(e)) => Err(Error::io(&path, e)),
        }
    }

    /// The result of a stage that was finished before, or else of `run`, which is then kept.
    pub(crate) fn keep<T: Stage>(
        &self,
        stage: &str,
        key: &Key,
        run: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let path = self.directory.join(format!("{stage}.kept"));
        if path.exists() {
            return file::read(&path, stage, key);
        }
        let result = run()?;
        file::write(&path, stage, key, &result)?;
        let part = self.part(stage);
        if part.exists() {
            fs::remove_file(&part).map_err(|e| Error::io(&part, e))?;
        }
        Ok(result)
    }

    /// The blocks of a stage so far.
    pub(crate) fn journal(&self, stage: &str, key: &Key) -> Result<Journal> {
        Journal::open(&self.part(stage), stage, key)
    }

    fn part(&self, stage: &str) -> PathBuf {
        self.directory.join(format!("{stage}.part"))
    }
}

/// Runs a stage, or takes its result from the directory if there is one.
pub(crate) fn kept<T: Stage>(
    work: Option<&Work>,
    stage: &str,
    key: impl FnOnce() -> Key,
    run: impl FnOnce() -> Result<T>,
) -> Result<T> {
    match work {
        Some(work) => work.keep(stage, &key(), run),
        None => run(),
    }
}

#[cfg(test)]
mod tests;
