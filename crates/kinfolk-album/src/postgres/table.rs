//! The table that people are written to: its name, and whether it has the columns it must have.
//!
//! A table with other columns is refused, because its rows would be replaced.

use super::Database;
use super::values::Key;
use kinfolk::{Error, Result};
use postgres::Client;
use std::fmt;

/// The name of a table, quoted: whatever it contains, it is a name.
pub(super) struct Table(String);

impl Table {
    /// TABLE or SCHEMA.TABLE, taken as they are, with capitals and spaces.
    pub fn new(name: &str) -> Result<Self> {
        /// Of longer names the server cuts the end off.
        const MOST: usize = 63;
        let parts: Vec<&str> = name.split('.').collect();
        if parts.len() > 2 || parts.iter().any(|part| !(1..=MOST).contains(&part.len())) {
            let expected = "TABLE or SCHEMA.TABLE, of at most 63 bytes each";
            return Err(Error::Parameter { field: "table", expected, found: format!("{name:?}") });
        }
        let quoted = |part: &&str| format!("\"{}\"", part.replace('"', "\"\""));
        Ok(Self(parts.iter().map(quoted).collect::<Vec<_>>().join(".")))
    }

    /// Makes the table if there is none, for keys of this type, and locks it against other writers: readers go on reading. The type
    /// of its keys.
    pub fn prepare(&self, client: &mut Client, database: &Database, key: Option<Key>) -> Result<Key> {
        let failed = |error: postgres::Error| database.failed(format!("a table {self} to write to"), &error);
        let query = "SELECT oid, relkind IN ('r', 'p') FROM pg_class WHERE oid = to_regclass($1::text)";
        let Some(found) = client.query_opt(query, &[&self.0]).map_err(failed)? else {
            let key = key.unwrap_or(Key::Whole);
            let columns = format!("id {} PRIMARY KEY, person bigint NOT NULL, name text", key.name());
            client.batch_execute(&format!("CREATE TABLE {self} ({columns})")).map_err(failed)?;
            return Ok(key);
        };
        let (oid, is_table): (u32, bool) = (found.get(0), found.get(1));
        if !is_table {
            let place = format!("{database} ({self})");
            return Err(Error::format(place, "a table", "a view, an index or something else of this name"));
        }
        let lock = format!("LOCK TABLE {self} IN SHARE ROW EXCLUSIVE MODE");
        client.batch_execute(&lock).map_err(failed)?;
        let query = "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute
                     WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
        let columns = client.query(query, &[&oid]).map_err(failed)?;
        let columns: Vec<(String, String)> = columns.iter().map(|row| (row.get(0), row.get(1))).collect();
        let refuse = |column: &str, expected: String, found: &str| {
            Err(Error::format(format!("{database} ({self}, column {column})"), expected, found))
        };
        let found = |name: &str| columns.iter().find(|(column, _)| column == name).map(|(_, found)| &**found);
        let keys = [Key::Text, Key::Whole, Key::Uuid];
        let id = found("id").unwrap_or("no such column");
        let Some(&id) = keys.iter().find(|key| key.name() == id) else {
            return refuse("id", "bigint, uuid or text".to_owned(), id);
        };
        for (name, expected) in [("person", "bigint"), ("name", "text")] {
            match found(name) {
                Some(found) if found == expected => {}
                other => return refuse(name, expected.to_owned(), other.unwrap_or("no such column")),
            }
        }
        match columns.iter().find(|(column, _)| !["id", "person", "name"].contains(&&**column)) {
            Some((column, _)) => refuse(column, "only the columns id, person and name".to_owned(), column),
            None => match key {
                Some(key) if id != key && id != Key::Text => {
                    refuse("id", format!("{}, as the keys of the album are", key.name()), id.name())
                }
                _ => Ok(id),
            },
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_name() {
        let quoted = |name: &str| Table::new(name).map(|table| table.to_string());
        assert_eq!(quoted("people_faces").unwrap(), "\"people_faces\"");
        assert_eq!(quoted("My Schema.Faces").unwrap(), "\"My Schema\".\"Faces\"");
        assert_eq!(quoted("x\"; DROP TABLE y; --").unwrap(), "\"x\"\"; DROP TABLE y; --\"");
        for name in ["", ".", "a.", ".b", "a.b.c", &"x".repeat(64)] {
            let message = quoted(name).unwrap_err().to_string();
            assert!(message.starts_with("table: expected TABLE or SCHEMA.TABLE"), "{message}");
        }
    }
}
