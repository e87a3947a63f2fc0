//! `album.sqlite`: opening it, and errors that name it.

use crate::faults::before_write;
use crate::schema::{APPLICATION, SCHEMA, record_changes};
use kinfolk::{Error, Result};
use rusqlite::{Connection, OpenFlags, Params};
use std::path::Path;
use std::time::Duration;

/// The name of the database in the directory of an album.
pub(crate) const DATABASE: &str = "album.sqlite";

/// Names the file in errors of SQLite.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for rusqlite::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|e| Error::Io { path: path.to_owned(), source: std::io::Error::other(e) })
    }
}

/// Opens the database of an album, which must be one.
pub(crate) fn open(directory: &Path) -> Result<Connection> {
    let path = directory.join(DATABASE);
    if !path.is_file() {
        let found = if directory.exists() { "no album.sqlite in it" } else { "no such directory" };
        return Err(Error::format(directory, "an album (kinfolk album create makes one)", found));
    }
    let connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let number =
        |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0)).at(&path);
    let (application, version) = (number("application_id")?, number("user_version")?);
    if version == 0 && application == 0 {
        let found = "one whose creation did not finish; create it again";
        return Err(Error::format(directory, "a whole album", found));
    }
    if application != APPLICATION {
        return Err(Error::format(&path, "the database of an album", "another database"));
    }
    if version > SCHEMA {
        let expected = format!("schema {SCHEMA} or older; a newer kinfolk wrote this album");
        return Err(Error::format(&path, expected, format!("schema {version}")));
    }
    record_changes(&connection).at(&path)?;
    Ok(connection)
}

/// A connection to a file.
pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let connect = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        // Who has the lock of the writer waits only for a reader that begins, or for what a killed process left.
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    };
    connect().at(path)
}

/// Runs a statement that changes something.
pub(crate) fn execute(
    connection: &Connection,
    path: &Path,
    statement: &str,
    values: impl Params,
) -> Result<usize> {
    before_write().map_err(|e| Error::io(path, e))?;
    let mut prepared = connection.prepare_cached(statement).at(path)?;
    prepared.execute(values).at(path)
}
