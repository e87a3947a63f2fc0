//! The people of an album as a table: `id`, the key of an item; `person`, the id of its person; `name`, if the person has one.
//!
//! All rows are replaced in one transaction, so readers see those before or those after. They are deleted and not truncated:
//! readers do not wait, and one that began before still sees the old rows.
//!
//! Cost: one look at all items to find the type of their keys, and one to send them. Nothing is kept in memory.

use super::Database;
use super::table::Table;
use super::values::Key;
use crate::album::Album;
use crate::database::{At, DATABASE};
use kinfolk::{Error, Progress, Result};
use postgres::{Client, CopyInWriter};
use rusqlite::Transaction;
use std::io::{self, Write};

/// Rows between two looks at the progress.
const PIECE: usize = 1024;

impl Album {
    /// Writes who every item is into a table, TABLE or SCHEMA.TABLE, which is made if there is none: its columns are `id`,
    /// `person` and `name`, and its rows are replaced, all of them or none. The number of items and of people.
    pub fn export_to(
        &self,
        database: &Database,
        table: &str,
        progress: &dyn Progress,
    ) -> Result<(usize, usize)> {
        let table = Table::new(table)?;
        // One state of the album, even if another process changes it.
        let album = self.connection.unchecked_transaction().at(&self.directory.join(DATABASE))?;
        let (key, items, people) = self.keys(&album)?;
        database.work(progress, |client| {
            let begin = client.batch_execute("START TRANSACTION");
            begin.map_err(|error| database.failed("a transaction", &error))?;
            let key = table.prepare(client, database, key)?;
            let deleted = client.batch_execute(&format!("DELETE FROM {table}"));
            deleted.map_err(|error| database.failed(format!("the rows of {table} to be deleted"), &error))?;
            progress.begin("rows", items as u64);
            self.send(&album, client, database, &table, key, progress)?;
            // Once this is sent, nobody can know what a lost connection means.
            let expected = format!("a commit; {table} has either the rows before or all new ones");
            client.batch_execute("COMMIT").map_err(|error| database.failed(expected, &error))
        })?;
        Ok((items, people))
    }

    /// The narrowest type of all keys, if there are any, and how many items and people there are.
    fn keys(&self, album: &Transaction<'_>) -> Result<(Option<Key>, usize, usize)> {
        let path = self.directory.join(DATABASE);
        let mut statement = album.prepare("SELECT key FROM items").at(&path)?;
        let mut rows = statement.query([]).at(&path)?;
        let (mut items, mut key) = (0, None);
        while let Some(row) = rows.next().at(&path)? {
            let text = row.get_ref(0).at(&path)?.as_str().unwrap_or_default();
            let fits = |key: &Key| key.encode(text).is_some();
            key = match key {
                None => [Key::Whole, Key::Uuid].into_iter().find(fits).or(Some(Key::Text)),
                Some(key) => Some(key).filter(fits).or(Some(Key::Text)),
            };
            items += 1;
        }
        let people = "SELECT count(*) FROM people";
        let people: i64 = album.query_row(people, [], |row| row.get(0)).at(&path)?;
        Ok((key, items, people as usize))
    }

    /// Sends all rows.
    fn send(
        &self,
        album: &Transaction<'_>,
        client: &mut Client,
        database: &Database,
        table: &Table,
        key: Key,
        progress: &dyn Progress,
    ) -> Result<()> {
        let path = self.directory.join(DATABASE);
        let failed =
            |error: postgres::Error| database.failed(format!("all rows of {table} to be written"), &error);
        let copy = format!("COPY {table} (id, person, name) FROM STDIN (FORMAT binary)");
        let mut writer = client.copy_in(&copy).map_err(failed)?;
        // Signature, flags, length of what else is in the header.
        let mut sent = writer.write_all(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
        let query =
            "SELECT key, person, people.name FROM items JOIN people ON people.id = person ORDER BY slot";
        let mut statement = album.prepare(query).at(&path)?;
        let mut rows = statement.query([]).at(&path)?;
        let mut count = 0;
        while let (Ok(()), Some(row)) = (&sent, rows.next().at(&path)?) {
            let text = row.get_ref(0).at(&path)?.as_str().unwrap_or_default();
            let id = key
                .encode(text)
                .ok_or_else(|| Error::format(&path, format!("keys of the type {}", key.name()), text))?;
            let person: i64 = row.get(1).at(&path)?;
            let name: Option<String> = row.get(2).at(&path)?;
            let name = name.as_ref().map(String::as_bytes);
            sent = write_row(&mut writer, [Some(&id), Some(&person.to_be_bytes()), name]);
            count += 1;
            if count % PIECE == 0 {
                progress.check()?;
                progress.advance(PIECE as u64);
            }
        }
        sent = sent.and_then(|()| writer.write_all(&(-1i16).to_be_bytes()));
        // Where a write fails, the reason is what the server says at the end.
        match (sent, writer.finish()) {
            (_, Err(error)) => Err(failed(error)),
            (Err(error), Ok(_)) => {
                Err(Error::format(database.to_string(), "all rows to be sent", error.to_string()))
            }
            (Ok(()), Ok(_)) => Ok(()),
        }
    }
}

/// A row: the number of values, and the length and the bytes of each, or -1 for NULL.
fn write_row(writer: &mut CopyInWriter<'_>, values: [Option<&[u8]>; 3]) -> io::Result<()> {
    writer.write_all(&(values.len() as i16).to_be_bytes())?;
    for value in values {
        let length = value.map_or(-1, |value| value.len() as i32);
        writer.write_all(&length.to_be_bytes())?;
        writer.write_all(value.unwrap_or_default())?;
    }
    Ok(())
}
