//! A change of an album: all of it, or nothing.
//!
//! 1. The lock of the writer is taken and a transaction begun.
//! 2. What belongs into files is appended, or written as a new file, and synchronised.
//! 3. The transaction, which says how long the files are and what the new ones are called, is committed. From here on the
//!    change is made, and readers that begin see it.
//! 4. Files that nobody can ask for any more are removed.
//!
//! A process that dies before 3 leaves bytes and files that nobody counts.

use crate::database::{At, DATABASE, execute};
use crate::faults::before_write;
use crate::files::append;
use crate::lock::WriteLock;
use crate::schema::{EVENTS, RENAMED};
use crate::state::State;
use crate::view::{View, length, meta};
use kinfolk::{Error, Result};
use rusqlite::types::ToSql;
use rusqlite::{Connection, Params, Transaction, TransactionBehavior};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A change that is being made.
pub(crate) struct Change<'a> {
    pub transaction: Transaction<'a>,
    pub directory: PathBuf,
    pub id: i64,
    _lock: WriteLock,
}

impl<'a> Change<'a> {
    /// Begins a change of an album.
    pub(crate) fn begin(
        connection: &'a mut Connection,
        directory: &Path,
        operation: &str,
        arguments: &Value,
    ) -> Result<Self> {
        let lock = WriteLock::take(directory)?;
        let path = directory.join(DATABASE);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).at(&path)?;
        let state: String = meta(&transaction, directory, "state")?;
        execute(
            &transaction,
            &path,
            "INSERT INTO changes(operation, arguments, state) VALUES(?1, ?2, ?3)",
            (operation, arguments.to_string(), state),
        )?;
        let id = transaction.last_insert_rowid();
        let clear = "DELETE FROM recording; DELETE FROM moved; DELETE FROM born; DELETE FROM renamed;";
        transaction.execute_batch(clear).at(&path)?;
        execute(&transaction, &path, "INSERT INTO recording VALUES(?1)", [id])?;
        Ok(Change { transaction, directory: directory.to_owned(), id, _lock: lock })
    }

    /// Begins the change that creates an album.
    pub(crate) fn create(connection: &'a mut Connection, directory: &Path, lock: WriteLock) -> Result<Self> {
        let path = directory.join(DATABASE);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).at(&path)?;
        Ok(Change { transaction, directory: directory.to_owned(), id: 1, _lock: lock })
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.directory.join(DATABASE)
    }

    /// Runs a statement.
    pub(crate) fn execute(&self, statement: &str, values: impl Params) -> Result<usize> {
        execute(&self.transaction, &self.database(), statement, values)
    }

    /// The album as this change has left it so far.
    pub(crate) fn view(&self) -> Result<View> {
        View::open(&self.transaction, &self.directory)
    }

    /// Sets a value of the table `meta`.
    pub(crate) fn set(&self, name: &str, value: impl ToSql) -> Result<()> {
        let statement = "INSERT INTO meta VALUES(?1, ?2) ON CONFLICT(name) DO UPDATE SET value = excluded.value WHERE value IS NOT excluded.value";
        self.execute(statement, (name, value)).map(drop)
    }

    /// Appends to a file; the bytes count with the commit.
    pub(crate) fn append(&self, name: &str, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let first = length(&self.transaction, &self.directory, name)?;
        let end = append(&self.directory.join(name), first, bytes)?;
        self.execute("INSERT OR REPLACE INTO files VALUES(?1, ?2)", (name, end as i64))?;
        let crc = i64::from(crc32fast::hash(bytes));
        let values = (name, first as i64, bytes.len() as i64, crc);
        self.execute("INSERT INTO segments VALUES(?1, ?2, ?3, ?4)", values).map(drop)
    }

    /// Writes the state of all rows into a new file.
    pub(crate) fn set_state(&self, state: &State) -> Result<()> {
        let name = format!("state-{}", self.id);
        state.write(&self.directory.join(&name))?;
        self.set("state", name)
    }

    /// Makes the change that creates an album.
    pub(crate) fn commit_created(self) -> Result<i64> {
        let path = self.database();
        self.execute(
            "INSERT INTO events(change, kind, person, items) SELECT ?1, 'created', person, json_group_array(key)
             FROM (SELECT person, key FROM items ORDER BY person, slot) GROUP BY person ORDER BY person",
            [self.id],
        )?;
        before_write().map_err(|e| Error::io(&path, e))?;
        self.transaction.commit().at(&path)?;
        Ok(self.id)
    }

    /// Makes the change, and removes files that nobody can ask for any more.
    pub(crate) fn commit(self) -> Result<i64> {
        let path = self.database();
        self.execute(
            "DELETE FROM people WHERE id IN (SELECT before FROM moved)
             AND NOT EXISTS (SELECT 1 FROM items WHERE person = people.id)",
            (),
        )?;
        self.execute(EVENTS, [self.id])?;
        self.execute(RENAMED, [self.id])?;
        self.execute("DELETE FROM recording", ())?;
        let kept = self.referenced()?;
        before_write().map_err(|e| Error::io(&path, e))?;
        self.transaction.commit().at(&path)?;
        remove_others(&self.directory, &kept);
        Ok(self.id)
    }

    /// The files of the present state, and of those that an undo can bring back.
    fn referenced(&self) -> Result<HashSet<String>> {
        let path = self.database();
        let mut kept: HashSet<String> = HashSet::new();
        kept.insert(meta(&self.transaction, &self.directory, "state")?);
        // The state before a change that did not say what it changed, because it began an epoch.
        let mut states = self
            .transaction
            .prepare_cached(
                "SELECT state FROM changes WHERE undone_by IS NULL AND final = 0 AND id IN
                 (SELECT change FROM undo WHERE statement LIKE 'UPDATE meta SET value = % WHERE name = ''epoch''')",
            )
            .at(&path)?;
        let states = states.query_map([], |row| row.get(0)).at(&path)?;
        kept.extend(states.collect::<rusqlite::Result<Vec<String>>>().at(&path)?);
        let mut files = self.transaction.prepare_cached("SELECT name FROM files").at(&path)?;
        let files = files.query_map([], |row| row.get(0)).at(&path)?;
        kept.extend(files.collect::<rusqlite::Result<Vec<String>>>().at(&path)?);
        Ok(kept)
    }
}

/// Removes files of states and epochs that are not among `kept`. What cannot be removed now is removed after the next change.
fn remove_others(directory: &Path, kept: &HashSet<String>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = ["state-", "centred-", "medians-", "spreads-", "centroids-", "edges-"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        if ours && !kept.contains(&name) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
