//! One writer at a time.
//!
//! The file `lock` is locked by the system, which unlocks it when the process ends, however it ends. SQLite's own lock begins
//! later and says less: here the message names the process that writes.

use kinfolk::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

/// The right to write, until it is dropped.
pub(crate) struct WriteLock {
    _file: File,
}

impl WriteLock {
    /// Refused at once if another process, or another handle of this one, writes.
    pub(crate) fn take(directory: &Path) -> Result<Self> {
        let path = directory.join("lock");
        let io = |e| Error::io(&path, e);
        let mut file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Who it is is a courtesy.
                let _ = file.read_to_string(&mut holder);
                let process = match holder.trim() {
                    "" => "one".to_owned(),
                    number => format!("process {number}"),
                };
                let found = format!("{process} that is changing it; try again when it has finished");
                let place = directory.display().to_string();
                let expected = "no other process that changes the album".to_owned();
                return Err(Error::Busy { place, expected, found });
            }
            Err(TryLockError::Error(e)) => return Err(io(e)),
        }
        // As wide as any number, so that one replaces another whole: who looks meanwhile finds this one or that before.
        let number = format!("{:<20}", std::process::id());
        file.rewind().and_then(|()| file.write_all(number.as_bytes())).map_err(io)?;
        Ok(Self { _file: file })
    }
}
