//! What changed, and taking the last change back.
//!
//! The database is undone by the statements that were recorded (`schema`), the state of rows by what it was before, of the rows
//! where it changed. Rows that were added keep their places in the files and are as if removed, so that no place is ever
//! used twice. Where a change clustered the whole album, its state before is still a file.
//!
//! Cost: what the change cost to write.

use crate::album::Album;
use crate::album::Summary;
use crate::change::Change;
use crate::database::{At, DATABASE};
use crate::files::Array;
use crate::people::Event;
use crate::state::{GONE, NOWHERE, State};
use crate::view::{ROWS, length, meta, of_epoch};
use kinfolk::{Error, Result};
use rusqlite::OptionalExtension;
use serde::Serialize;
use serde_json::{Value, json};

/// A change of an album.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The number of the change.
    pub change: i64,
    /// When it was made, UTC.
    pub time: String,
    /// What it was: `create`, `add`, ...
    pub operation: String,
    /// Its arguments.
    pub arguments: Value,
    /// The change that took it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<i64>,
    /// What happened to people.
    pub events: Vec<Event>,
}

/// Bytes of a row in [`difference`].
const PER_ROW: usize = 36;

/// The rows of `before` whose state is another one after, with their state before.
pub(crate) fn difference(before: &State, after: &State) -> Vec<u8> {
    let mut changed = Vec::new();
    for at in 0..before.len() {
        let same = before.arriving[at] == after.arriving[at]
            && before.records[at] == after.records[at]
            && before.arrivals[at] == after.arrivals[at]
            && before.lists[at] == after.lists[at]
            && before.stale[at] == after.stale[at]
            && before.relatives[at].to_bits() == after.relatives[at].to_bits()
            && before.last[at].to_bits() == after.last[at].to_bits();
        if !same {
            changed.extend((at as u32).to_ne_bytes());
            changed.extend(before.arriving[at].to_ne_bytes());
            for number in [before.records[at], before.arrivals[at], before.lists[at], before.stale[at]] {
                changed.extend(number.to_ne_bytes());
            }
            changed.extend(before.relatives[at].to_ne_bytes());
            changed.extend(before.last[at].to_ne_bytes());
        }
    }
    changed
}

/// Puts back what [`difference`] noted.
fn put_back(state: &mut State, changed: &[u8]) {
    for row in changed.chunks_exact(PER_ROW) {
        let number = |at: usize| -> u32 { bytemuck::pod_read_unaligned(&row[at..at + 4]) };
        let at = number(0) as usize;
        state.arriving.to_mut()[at] = bytemuck::pod_read_unaligned(&row[4..12]);
        state.records.to_mut()[at] = number(12);
        state.arrivals.to_mut()[at] = number(16);
        state.lists.to_mut()[at] = number(20);
        state.stale.to_mut()[at] = number(24);
        state.relatives.to_mut()[at] = f32::from_bits(number(28));
        state.last.to_mut()[at] = f32::from_bits(number(32));
    }
}

impl Album {
    /// All changes, the last first.
    pub fn history(&self) -> Result<Vec<Entry>> {
        let path = self.directory.join(DATABASE);
        let mut statement = self
            .connection
            .prepare("SELECT id, time, operation, arguments, undone_by FROM changes ORDER BY id DESC")
            .at(&path)?;
        let entries = statement.query_map([], |row| {
            let arguments: String = row.get(3)?;
            Ok(Entry {
                change: row.get(0)?,
                time: row.get(1)?,
                operation: row.get(2)?,
                arguments: serde_json::from_str(&arguments).unwrap_or(Value::Null),
                undone_by: row.get(4)?,
                events: Vec::new(),
            })
        });
        let mut entries: Vec<Entry> = entries.at(&path)?.collect::<rusqlite::Result<_>>().at(&path)?;
        for entry in &mut entries {
            entry.events = self.events_of(entry.change)?;
        }
        Ok(entries)
    }

    pub(crate) fn events_of(&self, change: i64) -> Result<Vec<Event>> {
        let path = self.directory.join(DATABASE);
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT kind, person, other, before, after, items FROM events WHERE change = ?1 ORDER BY id",
            )
            .at(&path)?;
        let events = statement.query_map([change], |row| {
            let items: String = row.get(5)?;
            Ok(Event {
                kind: row.get(0)?,
                person: row.get(1)?,
                other: row.get(2)?,
                before: row.get(3)?,
                after: row.get(4)?,
                items: serde_json::from_str(&items).unwrap_or_default(),
            })
        });
        events.at(&path)?.collect::<rusqlite::Result<_>>().at(&path)
    }

    /// Takes the last change back that has not been taken back. Changes up to the last but one clustering of the whole
    /// cannot be.
    pub fn undo(&mut self) -> Result<Summary> {
        let path = self.directory.join(DATABASE);
        let last = self
            .connection
            .query_row(
                "SELECT id, final, operation FROM changes WHERE undone_by IS NULL AND operation <> 'undo' ORDER BY id DESC LIMIT 1",
                [],
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?, row.get::<_, String>(2)?)),
            )
            .optional()
            .at(&path)?;
        let Some((target, false, _)) = last else {
            let found =
                last.map_or("none".to_owned(), |(id, _, operation)| format!("change {id} ({operation})"));
            return Err(Error::format(&self.directory, "a change that can be undone", found));
        };
        self.change("undo", json!({ "change": target }), |change| {
            let before = change.view()?;
            let slots = before.slots();
            let statements: Vec<String> = {
                let mut statement = change
                    .transaction
                    .prepare("SELECT statement FROM undo WHERE change = ?1 ORDER BY id DESC")
                    .at(&path)?;
                let found = statement.query_map([target], |row| row.get(0)).at(&path)?;
                found.collect::<rusqlite::Result<_>>().at(&path)?
            };
            for statement in &statements {
                change.execute(statement, ())?;
            }
            let noted: Option<(i64, Vec<u8>)> = change
                .transaction
                .query_row("SELECT rows, changed FROM undo_state WHERE change = ?1", [target], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()
                .at(&path)?;
            let name: String = meta(&change.transaction, &change.directory, "state")?;
            let epoch: i64 = meta(&change.transaction, &change.directory, "epoch")?;
            if let Some((rows, changed)) = noted {
                let mut state = before.records.state.clone();
                put_back(&mut state, &changed);
                state.lists.to_mut()[rows as usize..].fill(GONE);
                state.records.to_mut()[rows as usize..].fill(NOWHERE);
                change.set_state(&state)?;
            } else if epoch != before.epoch {
                let rows =
                    length(&change.transaction, &change.directory, &of_epoch("medians", epoch))? as usize / 4;
                let mut state = State::open(&change.directory.join(name), rows)?;
                extend(&mut state, slots);
                change.set_state(&state)?;
                fill_up(change, epoch, before.dim, slots)?;
            }
            // An undo is not undone.
            change.execute("DELETE FROM undo WHERE change IN (?1, ?2)", (change.id, target))?;
            change.execute("DELETE FROM undo_state WHERE change = ?1", [target])?;
            change.execute("UPDATE changes SET undone_by = ?1 WHERE id = ?2", (change.id, target))?;
            change.execute("DELETE FROM recording", ()).map(drop)
        })
    }
}

/// Rows that were added since are gone.
fn extend(state: &mut State, slots: usize) {
    state.arriving.to_mut().resize(slots, 0);
    for (numbers, value) in [
        (&mut state.records, NOWHERE),
        (&mut state.arrivals, 0),
        (&mut state.lists, GONE),
        (&mut state.stale, 0),
    ] {
        let numbers: &mut Array<u32> = numbers;
        numbers.to_mut().resize(slots, value);
    }
    state.relatives.to_mut().resize(slots, 0.0);
    state.last.to_mut().resize(slots, f32::INFINITY);
}

/// Rows that were added since have a place in every file of the epoch.
fn fill_up(change: &Change<'_>, epoch: i64, dim: usize, slots: usize) -> Result<()> {
    debug_assert_eq!(length(&change.transaction, &change.directory, ROWS)? as usize, 4 * dim * slots);
    for (name, width) in [("centred", dim), ("medians", 1), ("spreads", 1)] {
        let name = of_epoch(name, epoch);
        let missing = 4 * width * slots - length(&change.transaction, &change.directory, &name)? as usize;
        change.append(&name, &vec![0; missing])?;
    }
    Ok(())
}
