//! People and items, as they are read.

use crate::album::Album;
use crate::database::{At, DATABASE};
use kinfolk::{Error, Result};
use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use std::path::Path;

/// A person of an album.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Person {
    /// The id, which is never used for anybody else.
    pub id: i64,
    /// The name, if somebody gave one.
    pub name: Option<String>,
    /// The number of items.
    pub size: usize,
}

/// Something that happened to a person in a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// `created`, `grew`, `merged`, `split`, `removed` or `renamed`.
    pub kind: String,
    /// The person that has the items now, or had them if they were removed.
    pub person: i64,
    /// The person that had the items before: it was merged, or it still exists and these were split from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<i64>,
    /// The name before, if the name changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The name after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The keys of the items.
    pub items: Vec<String>,
}

impl Person {
    pub(crate) fn read(connection: &Connection, directory: &Path, id: i64) -> Result<Self> {
        let path = directory.join(DATABASE);
        let mut statement = connection
            .prepare_cached(
                "SELECT name, (SELECT count(*) FROM items WHERE person = ?1) FROM people WHERE id = ?1",
            )
            .at(&path)?;
        let person = statement.query_row([id], |row| {
            Ok(Person { id, name: row.get(0)?, size: row.get::<_, i64>(1)? as usize })
        });
        person
            .optional()
            .at(&path)?
            .ok_or_else(|| unknown(directory, &format!("person {id}"), "nobody of this id"))
    }

    /// The items, in the order in which they were added.
    pub(crate) fn slots(&self, connection: &Connection, directory: &Path) -> Result<Vec<u32>> {
        let path = directory.join(DATABASE);
        let mut statement =
            connection.prepare_cached("SELECT slot FROM items WHERE person = ?1 ORDER BY slot").at(&path)?;
        let slots = statement.query_map([self.id], |row| row.get(0)).at(&path)?;
        slots.collect::<rusqlite::Result<_>>().at(&path)
    }
}

fn unknown(directory: &Path, expected: &str, found: &str) -> Error {
    let place = directory.display().to_string();
    Error::Unknown { place, expected: expected.to_owned(), found: found.to_owned() }
}

/// The person of this id or name.
pub(crate) fn find_person(connection: &Connection, directory: &Path, word: &str) -> Result<Person> {
    let path = directory.join(DATABASE);
    let id = match word.parse::<i64>() {
        Ok(id) => Some(id),
        Err(_) => connection
            .query_row("SELECT id FROM people WHERE name = ?1", [word], |row| row.get(0))
            .optional()
            .at(&path)?,
    };
    match id {
        Some(id) => Person::read(connection, directory, id),
        None => Err(unknown(directory, "the id or the name of a person", word)),
    }
}

/// The slot and the person of an item.
pub(crate) fn find_item(connection: &Connection, directory: &Path, key: &str) -> Result<(u32, i64)> {
    let path = directory.join(DATABASE);
    let mut statement =
        connection.prepare_cached("SELECT slot, person FROM items WHERE key = ?1").at(&path)?;
    let found = statement.query_row([key], |row| Ok((row.get(0)?, row.get(1)?))).optional().at(&path)?;
    found.ok_or_else(|| unknown(directory, "the key of an item of the album", key))
}

/// The key of an item.
pub(crate) fn key_of(connection: &Connection, directory: &Path, slot: u32) -> Result<String> {
    let path = directory.join(DATABASE);
    connection.query_row("SELECT key FROM items WHERE slot = ?1", [slot], |row| row.get(0)).at(&path)
}

impl Album {
    /// All people, the largest first, ties by id.
    pub fn people(&self) -> Result<Vec<Person>> {
        let path = self.directory.join(DATABASE);
        let mut statement = self
            .connection
            .prepare(
                "SELECT id, name, size FROM people JOIN (SELECT person, count(*) AS size FROM items GROUP BY person)
                 ON person = id ORDER BY size DESC, id",
            )
            .at(&path)?;
        let people = statement.query_map([], |row| {
            Ok(Person { id: row.get(0)?, name: row.get(1)?, size: row.get::<_, i64>(2)? as usize })
        });
        people.at(&path)?.collect::<rusqlite::Result<_>>().at(&path)
    }

    /// The person of this id or name.
    pub fn find(&self, person: &str) -> Result<Person> {
        find_person(&self.connection, &self.directory, person)
    }

    /// The keys of the items of a person, an id or a name, in the order in which they were added.
    pub fn person(&self, person: &str) -> Result<Vec<String>> {
        let found = self.find(person)?;
        let path = self.directory.join(DATABASE);
        let mut statement = self
            .connection
            .prepare_cached("SELECT key FROM items WHERE person = ?1 ORDER BY slot")
            .at(&path)?;
        let keys = statement.query_map([found.id], |row| row.get(0)).at(&path)?;
        keys.collect::<rusqlite::Result<_>>().at(&path)
    }

    /// The id of the person of an item.
    pub fn person_of(&self, key: &str) -> Result<i64> {
        Ok(find_item(&self.connection, &self.directory, key)?.1)
    }

    /// The key and the person of every item, in the order in which they were added.
    pub fn items(&self) -> Result<Vec<(String, i64)>> {
        let path = self.directory.join(DATABASE);
        let mut statement =
            self.connection.prepare("SELECT key, person FROM items ORDER BY slot").at(&path)?;
        let items = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).at(&path)?;
        items.collect::<rusqlite::Result<_>>().at(&path)
    }
}
