//! The rows of a query: a key, an embedding and, if there is a third column, a group.
//!
//! They are read as they arrive, in a read-only transaction and so of one state of the database.
//!
//! Memory: 4 D bytes for each row, its key and its group.

use super::Database;
use super::values::{Bytes, Key, Row, type_name};
use crate::album::{AddOptions, Album};
use kinfolk::{ArrivingRows, Embeddings, Error, Progress, Result};
use postgres::error::ErrorPosition;
use postgres::fallible_iterator::FallibleIterator;
use postgres::{Client, Statement};

/// Rows between two looks at the progress.
const PIECE: usize = 1024;

/// What the columns of a query are.
struct Columns {
    key: Key,
    row: Row,
    group: Option<Key>,
}

impl Database {
    /// Reads the rows of a query, to be added to an album if one is given: they must then have its columns.
    ///
    /// The first column is the key: text, varchar, bigint, integer, smallint or uuid. The second is the embedding: `vector` or
    /// `halfvec` of pgvector, real\[\] or double precision\[\]. A third one may be the group, of the types of a key or NULL.
    pub fn read(
        &self,
        query: &str,
        album: Option<&Album>,
        progress: &dyn Progress,
    ) -> Result<(Embeddings, AddOptions)> {
        let dim = album.map(|album| Ok::<_, Error>(album.view()?.dim)).transpose()?;
        self.work(progress, |client| self.read_rows(client, query, dim, progress))
    }

    fn read_rows(
        &self,
        client: &mut Client,
        query: &str,
        dim: Option<usize>,
        progress: &dyn Progress,
    ) -> Result<(Embeddings, AddOptions)> {
        let not_run = |error: postgres::Error| {
            let failed = self.failed("a query that the server can run", &error);
            match (failed, error.as_db_error().and_then(|said| said.position())) {
                (Error::Format { place, expected, found }, Some(ErrorPosition::Original(at))) => {
                    Error::Format { place, expected, found: format!("{found}, at character {at} of it") }
                }
                (failed, _) => failed,
            }
        };
        client.batch_execute("START TRANSACTION READ ONLY").map_err(not_run)?;
        let statement = client.prepare(query).map_err(not_run)?;
        let columns = self.columns(&statement)?;
        // What the server expects, because nobody knows the number before the last row.
        let plan = client.query_one(&format!("EXPLAIN (FORMAT JSON) {query}"), &[]).map_err(not_run)?;
        let plan = plan.try_get::<_, Bytes>(0).ok();
        let plan = plan.and_then(|plan| serde_json::from_slice::<serde_json::Value>(plan.0).ok());
        let expected = plan.and_then(|plan| plan[0]["Plan"]["Plan Rows"].as_u64());
        progress.begin("rows", expected.unwrap_or(0));
        let mut found = client.query_raw(&statement, std::iter::empty::<&str>()).map_err(not_run)?;
        let mut embeddings: Option<ArrivingRows> = None;
        let (mut keys, mut groups): (Vec<String>, Vec<Option<String>>) = Default::default();
        let mut values = Vec::new();
        loop {
            let number = keys.len();
            let next = found.next().map_err(|error| match number {
                0 => not_run(error),
                _ => self.failed(format!("all rows of the query; {number} came"), &error),
            })?;
            let Some(next) = next else { break };
            let refuse = |column: usize, expected: &str, found: String| {
                let place = format!("{} (column {})", self.place, statement.columns()[column].name());
                Error::Row { place, row: number, expected: expected.to_owned(), found }
            };
            let cell = |column: usize| next.try_get::<_, Option<Bytes>>(column).ok().flatten();
            let key = cell(0).ok_or_else(|| refuse(0, "a key", "NULL".to_owned()))?;
            let key =
                columns.key.decode(key.0).ok_or_else(|| refuse(0, "a key", "other bytes".to_owned()))?;
            if key.is_empty() {
                return Err(refuse(0, "a key", "an empty text".to_owned()));
            }
            let of_key = |found: &str| format!("{found} (key {key})");
            let row = cell(1).ok_or_else(|| refuse(1, "an embedding", of_key("NULL")))?;
            columns
                .row
                .decode(row.0, &mut values)
                .map_err(|found| refuse(1, "an embedding", of_key(found)))?;
            let wanted = embeddings.as_ref().map(ArrivingRows::dim).or(dim);
            if wanted.unwrap_or(values.len()) != values.len() || values.is_empty() {
                let expected = match (wanted, dim) {
                    (Some(wanted), Some(_)) => format!("{wanted} columns, as the album has"),
                    (Some(wanted), None) => format!("{wanted} columns, as the first row has"),
                    (None, _) => "at least one column".to_owned(),
                };
                return Err(refuse(1, &expected, of_key(&values.len().to_string())));
            }
            let rows = match &mut embeddings {
                Some(rows) => rows,
                none => none.insert(ArrivingRows::new(values.len(), &self.place)?),
            };
            rows.push(&mut values).map_err(|error| match error {
                Error::NotFinite { column, found, .. } => {
                    refuse(1, "finite numbers", of_key(&format!("{found} at position {column}")))
                }
                Error::ZeroRow { columns, .. } => {
                    refuse(1, "a row of non-zero length", of_key(&format!("{columns} zeros")))
                }
                other => other,
            })?;
            if let Some(group) = columns.group {
                let text = |bytes: Bytes| {
                    group.decode(bytes.0).ok_or_else(|| refuse(2, "a group", of_key("other bytes")))
                };
                groups.push(cell(2).map(text).transpose()?.filter(|group| !group.is_empty()));
            }
            keys.push(key);
            if keys.len() % PIECE == 0 {
                progress.check()?;
                progress.advance(PIECE as u64);
                progress.note(&format!("{} rows", keys.len()));
            }
        }
        let Some(embeddings) = embeddings else {
            return Err(Error::format(&self.place, "a query with rows", "no rows"));
        };
        let groups = columns.group.map(|_| groups);
        Ok((embeddings.finish()?, AddOptions { keys: Some(keys), groups, model: None }))
    }

    /// What the columns are, if they are what they must be.
    fn columns(&self, statement: &Statement) -> Result<Columns> {
        if !statement.params().is_empty() {
            let found = format!("{} of them", statement.params().len());
            return Err(Error::format(&self.place, "a query without parameters such as $1", found));
        }
        let found = statement.columns();
        if !(2..=3).contains(&found.len()) {
            let names: Vec<&str> = found.iter().map(|column| column.name()).collect();
            let expected = "a query of the columns key and embedding, and group if there are groups";
            let columns = match names.len() {
                0 => "no columns".to_owned(),
                1 => format!("one column: {}", names[0]),
                count => format!("{count} columns: {}", names.join(", ")),
            };
            return Err(Error::format(&self.place, expected, columns));
        }
        let refuse = |at: usize, what: &str, expected: &str| {
            let place = format!("{} (column {})", self.place, found[at].name());
            Error::format(place, format!("{what}: {expected}"), type_name(found[at].type_()))
        };
        let key = Key::of(found[0].type_()).ok_or_else(|| refuse(0, "a key", Key::EXPECTED))?;
        let row = Row::of(found[1].type_()).ok_or_else(|| refuse(1, "an embedding", Row::EXPECTED))?;
        let group = match found.get(2) {
            Some(group) => Some(Key::of(group.type_()).ok_or_else(|| refuse(2, "a group", Key::EXPECTED))?),
            None => None,
        };
        Ok(Columns { key, row, group })
    }
}
