//! [`Album`]: the operations.

use crate::change::Change;
use crate::corrections::{Corrections, resolve};
use crate::database::{self, At, DATABASE};
use crate::doubt::{Doubt, anchor};
use crate::evidence::Asked;
use crate::extension::Extension;
use crate::lock::WriteLock;
use crate::partition::{Moves, NewItems, people_of, repartition, write_whole};
use crate::people::{Event, Person, find_item, find_person};
use crate::records::Records;
use crate::schema::{APPLICATION, SCHEMA, TABLES, record_changes};
use crate::state::{GONE, State};
use crate::view::{ROWS, View, meta, of_epoch};
use crate::whole::{cluster_whole, has_outgrown, strangers};
use kinfolk::{Context, Embeddings, Error, Progress, Result};
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// What is said of rows that are added.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AddOptions {
    /// The user's key of each row; the number of the row otherwise.
    pub keys: Option<Vec<String>>,
    /// The group of each row, such as a photograph, whose items are rarely one person.
    pub groups: Option<Vec<Option<String>>>,
    /// The name of the model that made the embeddings. Those of another model than the album's are refused.
    pub model: Option<String>,
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The number of the change.
    pub change: i64,
    /// Items in the album now.
    pub items: usize,
    /// People in it.
    pub people: usize,
    /// What happened to people.
    pub events: Vec<Event>,
}

/// A directory of items, their people and all that was said about them.
///
/// Reading never waits. One process writes at a time; a second one gets an error at once.
pub struct Album {
    pub(crate) connection: Connection,
    pub(crate) directory: PathBuf,
}

impl Album {
    /// Creates an album: clusters all rows as `kinfolk cluster` does, and keeps what later changes need. The directory must not
    /// exist, be empty or hold an album whose creation did not finish.
    pub fn create(
        directory: &Path,
        rows: &Embeddings,
        options: &AddOptions,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<(Self, Summary)> {
        Self::check_new(directory)?;
        let keys = keys_of(options, rows.len(), 0)?;
        let groups = groups_of(options, rows.len())?;
        std::fs::create_dir_all(directory).map_err(|e| Error::io(directory, e))?;
        let lock = WriteLock::take(directory)?;
        Self::check_new(directory)?;
        remove_leftovers(directory)?;
        let path = directory.join(DATABASE);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut connection = database::connect(&path, flags)?;
        // The tables are part of the first change, so until it is committed there is no album.
        let change = Change::create(&mut connection, directory, lock)?;
        change.transaction.execute_batch(TABLES).at(&path)?;
        let arguments =
            json!({ "rows": rows.len(), "columns": rows.dim(), "model": options.model, "seed": seed });
        change.execute(
            "INSERT INTO changes(operation, arguments, state, final) VALUES('create', ?1, '', 1)",
            [arguments.to_string()],
        )?;
        for (name, value) in [("columns", json!(rows.dim())), ("seed", json!(seed)), ("entered", json!(0))] {
            change.set(name, value.as_i64())?;
        }
        change.set("model", options.model.as_deref())?;
        let context = Context::new(progress).with_seed(seed);
        change.append(ROWS, bytemuck::cast_slice(rows.as_slice()))?;
        let slots: Vec<u32> = (0..rows.len() as u32).collect();
        let new = NewItems { first: 0, keys: &keys, groups: &groups };
        let labels = cluster_whole(&change, rows.dim(), &slots, Some(&new), &context)?;
        let view = change.view()?;
        write_whole(&change, &view.records, &slots, &labels, Some(&new))?;
        change.transaction.pragma_update(None, "application_id", APPLICATION).at(&path)?;
        change.transaction.pragma_update(None, "user_version", SCHEMA).at(&path)?;
        let id = change.commit_created()?;
        record_changes(&connection).at(&path)?;
        let album = Self { connection, directory: directory.to_owned() };
        let summary = album.summary(id)?;
        Ok((album, summary))
    }

    /// Refuses a directory that [`create`](Self::create) refuses: with something in it that is not an unfinished album.
    pub fn check_new(directory: &Path) -> Result<()> {
        if !directory.exists() {
            return Ok(());
        }
        let expected = "a directory that does not exist or is empty";
        if !directory.is_dir() {
            return Err(Error::format(directory, expected, "a file"));
        }
        match database::open(directory) {
            Ok(_) => return Err(Error::format(directory, expected, "an album")),
            Err(_) if directory.join(DATABASE).exists() => {
                let version = Connection::open(directory.join(DATABASE)).and_then(|connection| {
                    connection.pragma_query_value(None, "application_id", |row| row.get::<_, u32>(0))
                });
                if version.is_ok_and(|version| version == 0) {
                    return Ok(());
                }
                return Err(Error::format(directory, expected, DATABASE));
            }
            Err(_) => {}
        }
        let mut entries = std::fs::read_dir(directory).map_err(|e| Error::io(directory, e))?;
        let other = entries.find_map(|entry| Some(entry.ok()?.file_name()).filter(|name| name != "lock"));
        match other {
            Some(name) => Err(Error::format(directory, expected, name.to_string_lossy())),
            None => Ok(()),
        }
    }

    /// Opens an album.
    pub fn open(directory: &Path) -> Result<Self> {
        let connection = database::open(directory)?;
        let album = Self { connection, directory: directory.to_owned() };
        album.view()?;
        Ok(album)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The album as it is now. A change that ends in between may remove a file before it is mapped: then the next state is read.
    pub(crate) fn view(&self) -> Result<View> {
        let path = self.directory.join(DATABASE);
        let mut attempts = 0;
        loop {
            let transaction = self.connection.unchecked_transaction().at(&path)?;
            let view = View::open(&transaction, &self.directory);
            drop(transaction);
            attempts += 1;
            match view {
                Err(Error::Missing { .. }) if attempts < 10 => {}
                view => return view,
            }
        }
    }

    pub(crate) fn context<'a>(&self, progress: &'a dyn Progress) -> Result<Context<'a>> {
        let seed: i64 = meta(&self.connection, &self.directory, "seed")?;
        Ok(Context::new(progress).with_seed(seed as u64))
    }

    /// Adds rows. Only people to whom an edge of a new row leads may change, unless the album has doubled since it was clustered
    /// as a whole: then it is clustered anew, as by [`refresh`](Self::refresh).
    pub fn add(
        &mut self,
        rows: &Embeddings,
        options: &AddOptions,
        progress: &dyn Progress,
    ) -> Result<Summary> {
        let context = self.context(progress)?;
        let arguments = json!({ "rows": rows.len(), "model": options.model });
        self.change("add", arguments, |change| {
            let view = change.view()?;
            check_space(change, &view, rows, options)?;
            let first = view.slots() as u32;
            let keys = keys_of(options, rows.len(), first as usize)?;
            let groups = groups_of(options, rows.len())?;
            check_keys(change, &keys)?;
            let mut alive = view.alive();
            let new = NewItems { first, keys: &keys, groups: &groups };
            if has_outgrown(&view, alive.len() + rows.len()) {
                change.append(ROWS, bytemuck::cast_slice(rows.as_slice()))?;
                resolve(change, rows, &keys, first)?;
                alive.extend(first..first + rows.len() as u32);
                let labels = cluster_whole(change, view.dim, &alive, Some(&new), &context)?;
                return write_whole(change, &change.view()?.records, &alive, &labels, Some(&new));
            }
            let knowledge = view.knowledge(&change.transaction)?;
            let extension = Extension::of(&view, &knowledge, rows, &groups, progress)?;
            check_background(change, &view, &knowledge.cohort, rows)?;
            change.append(ROWS, bytemuck::cast_slice(rows.as_slice()))?;
            for (name, values) in [
                ("centred", extension.centred.as_slice()),
                ("medians", &extension.medians[..]),
                ("spreads", &extension.spreads[..]),
            ] {
                change.append(&of_epoch(name, view.epoch), bytemuck::cast_slice(values))?;
            }
            change.append(&of_epoch("edges", view.epoch), bytemuck::cast_slice(&extension.records.fresh))?;
            change.replace_state(&view.records.state, &extension.records.state)?;
            change.set("total", extension.total)?;
            change.set(
                "loss",
                f64::from(view.loss.max(kinfolk::incremental::coding_loss(&extension.centred))),
            )?;
            let mut touched: BTreeSet<u32> = resolve(change, rows, &keys, first)?.into_iter().collect();
            for slot in first..first + rows.len() as u32 {
                touched.extend(extension.records.weighted(slot).map(|edge| edge.0));
            }
            for &(old, new) in &extension.listed {
                let mut edges = extension.records.weighted(old);
                if edges.any(|edge| edge.0 == new) && view.records.state.is_alive(old) {
                    touched.insert(old);
                }
            }
            let people = people_of(change, &touched)?;
            repartition(change, &extension.records, &people, Some(&new), Moves::Free, &context)
        })
    }

    /// Removes items. Corrections about them stay, and hold again if they are added again.
    pub fn remove(&mut self, keys: &[String], progress: &dyn Progress) -> Result<Summary> {
        let context = self.context(progress)?;
        self.change("remove", json!({ "keys": keys }), |change| {
            let view = change.view()?;
            let mut slots = BTreeSet::new();
            for key in keys {
                slots.insert(find_item(&change.transaction, &change.directory, key)?.0);
            }
            let people = people_of(change, &slots)?;
            let mut records = view.records.copied();
            let total = view.total - take_away(&mut records, &slots);
            change.replace_state(&view.records.state, &records.state)?;
            change.set("total", total)?;
            for slot in &slots {
                change.execute("DELETE FROM items WHERE slot = ?1", [slot])?;
                change.execute("UPDATE corrections SET a_slot = NULL WHERE a_slot = ?1", [slot])?;
                change.execute("UPDATE corrections SET b_slot = NULL WHERE b_slot = ?1", [slot])?;
            }
            repartition(change, &records, &people, None, Moves::Free, &context)
        })
    }

    /// Says that two items are one person. Their people become one, unless one of the items is more likely a stray of its person: then
    /// it joins the other person with what clings to it. Refused for two people with names, which
    /// [`merge`](Self::merge) merges, and where other corrections say otherwise.
    pub fn same(&mut self, a: &str, b: &str, progress: &dyn Progress) -> Result<Summary> {
        self.correct(true, [a, b], progress)
    }

    /// Says that two items are not one person. If they are in one, it is divided at once along its weakest structure.
    pub fn apart(&mut self, a: &str, b: &str, progress: &dyn Progress) -> Result<Summary> {
        self.correct(false, [a, b], progress)
    }

    fn correct(&mut self, same: bool, keys: [&str; 2], progress: &dyn Progress) -> Result<Summary> {
        let context = self.context(progress)?;
        let operation = if same { "same" } else { "apart" };
        self.change(operation, json!({ "keys": keys }), |change| {
            let [a, b] = keys;
            if a == b {
                return Err(Error::format(operation, "two items", format!("{a} twice")));
            }
            let (connection, directory) = (&change.transaction, &change.directory);
            let [one, other] = [find_item(connection, directory, a)?, find_item(connection, directory, b)?];
            let corrections = Corrections::read(connection, directory)?;
            corrections.check(same, keys)?;
            if same && one.1 != other.1 {
                let people = [one.1, other.1].map(|id| Person::read(connection, directory, id));
                let [first, second] = people;
                if let (Some(first), Some(second)) = (first?.name, second?.name) {
                    let expected = "items of which at most one belongs to a person with a name (kinfolk album merge merges people)";
                    return Err(Error::format(format!("same {a} {b}"), expected, format!("{first} and {second}")));
                }
            }
            if !corrections.has(same, keys) {
                let view = change.view()?;
                let doubt = Doubt::of(change, &view, [one, other])?;
                let stray = if same { doubt.stray(&view.records) } else { Vec::new() };
                note(change, &view, same, keys, [one.0, other.0], Some(doubt.expected()))?;
                let moves = Moves::Of(&stray);
                repartition(change, &view.records, &[one.1, other.1].into(), None, moves, &context)?;
            }
            Ok(())
        })
    }

    /// Gives a person a name; a person is an id or a name.
    pub fn name(&mut self, person: &str, name: &str) -> Result<Summary> {
        self.change("name", json!({ "person": person, "name": name }), |change| {
            let (connection, directory) = (&change.transaction, &change.directory);
            let found = find_person(connection, directory, person)?;
            if name.trim().is_empty() || name.parse::<i64>().is_ok() {
                let expected = "a name that is not empty and no number";
                return Err(Error::format("name", expected, format!("{name:?}")));
            }
            if let Ok(other) = find_person(connection, directory, name)
                && other.id != found.id
            {
                let expected = format!("a name that nobody has; {name} is person {}, to be merged", other.id);
                return Err(Error::format("name", expected, format!("person {}", found.id)));
            }
            change
                .execute("UPDATE people SET name = ?1 WHERE id = ?2 AND name IS NOT ?1", (name, found.id))?;
            Ok(())
        })
    }

    /// Makes two people one, with the name of the first, or else that of the second.
    pub fn merge(&mut self, one: &str, other: &str, progress: &dyn Progress) -> Result<Summary> {
        let context = self.context(progress)?;
        self.change("merge", json!({ "people": [one, other] }), |change| {
            let (connection, directory) = (&change.transaction, &change.directory);
            let [first, second] =
                [find_person(connection, directory, one)?, find_person(connection, directory, other)?];
            if first.id == second.id {
                return Err(Error::format("merge", "two people", format!("person {} twice", first.id)));
            }
            let view = change.view()?;
            let corrections = Corrections::read(connection, directory)?;
            let [ours, theirs] = [&first, &second].map(|person| person.slots(connection, directory));
            let (ours, theirs) = (ours?, theirs?);
            let [left, right]: [HashSet<u32>; 2] =
                [&ours, &theirs].map(|slots| slots.iter().copied().collect());
            let crosses = |[a, b]: &[u32; 2]| {
                (left.contains(a) && right.contains(b)) || (left.contains(b) && right.contains(a))
            };
            if let Some(pair) = corrections.apart().into_iter().find(crosses) {
                let [a, b] = [
                    crate::people::key_of(connection, directory, pair[0])?,
                    crate::people::key_of(connection, directory, pair[1])?,
                ];
                let expected = "people of whom no items are apart";
                return Err(Error::format(
                    format!("merge {one} {other}"),
                    expected,
                    format!("{a} apart from {b}"),
                ));
            }
            if first.name.is_some() && second.name.is_some() {
                change.execute("UPDATE people SET name = NULL WHERE id = ?1", [second.id])?;
            }
            let anchors = [anchor(&view.records, &ours), anchor(&view.records, &theirs)];
            let keys = [
                crate::people::key_of(connection, directory, anchors[0])?,
                crate::people::key_of(connection, directory, anchors[1])?,
            ];
            let keys = [keys[0].as_str(), keys[1].as_str()];
            corrections.check(true, keys)?;
            if !corrections.has(true, keys) {
                note(change, &view, true, keys, anchors, None)?;
            }
            repartition(change, &view.records, &[first.id, second.id].into(), None, Moves::Of(&[]), &context)
        })
    }

    /// Clusters everything anew, keeps all corrections, and keeps the ids of people.
    pub fn refresh(&mut self, progress: &dyn Progress) -> Result<Summary> {
        let context = self.context(progress)?;
        self.change("refresh", json!({}), |change| {
            let view = change.view()?;
            let alive = view.alive();
            if alive.is_empty() {
                return Ok(());
            }
            let labels = cluster_whole(change, view.dim, &alive, None, &context)?;
            write_whole(change, &change.view()?.records, &alive, &labels, None)
        })
    }

    /// Makes a change, all of it or nothing.
    pub(crate) fn change(
        &mut self,
        operation: &str,
        arguments: Value,
        work: impl FnOnce(&Change<'_>) -> Result<()>,
    ) -> Result<Summary> {
        let change = Change::begin(&mut self.connection, &self.directory, operation, &arguments)?;
        work(&change)?;
        let id = change.commit()?;
        self.summary(id)
    }

    pub(crate) fn summary(&self, change: i64) -> Result<Summary> {
        let path = self.directory.join(DATABASE);
        let count =
            |statement: &str| self.connection.query_row(statement, [], |row| row.get::<_, i64>(0)).at(&path);
        Ok(Summary {
            change,
            items: count("SELECT count(*) FROM items")? as usize,
            people: count("SELECT count(*) FROM people")? as usize,
            events: self.events_of(change)?,
        })
    }
}

/// Takes rows out of the graph; the weight that is gone.
fn take_away(records: &mut Records, slots: &BTreeSet<u32>) -> i64 {
    let mut gone = 0;
    for &slot in slots {
        // An edge between two rows that go is counted with the first.
        gone += records.strength(slot);
        let edges: Vec<(u32, i64)> = records.weighted(slot).collect();
        for (other, weight) in edges {
            records.state.arriving.to_mut()[other as usize] -= weight;
        }
        records.state.lists.to_mut()[slot as usize] = GONE;
    }
    gone
}

/// Writes a correction, with what it was about and the probability that was expected of it.
fn note(
    change: &Change<'_>,
    view: &View,
    same: bool,
    keys: [&str; 2],
    slots: [u32; 2],
    expected: Option<(Asked, f64)>,
) -> Result<()> {
    let [a, b] = slots.map(|slot| bytemuck::cast_slice::<f32, u8>(view.rows.row(slot as usize)).to_vec());
    let kind = if same { "same" } else { "apart" };
    change.execute(
        "INSERT INTO corrections(kind, a, b, a_slot, b_slot, a_row, b_row, asked, expected)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            kind,
            keys[0],
            keys[1],
            slots[0],
            slots[1],
            a,
            b,
            expected.map(|expected| expected.0.name()),
            expected.map(|expected| expected.1),
        ),
    )?;
    Ok(())
}

/// Removes what an interrupted creation left.
fn remove_leftovers(directory: &Path) -> Result<()> {
    for entry in std::fs::read_dir(directory).map_err(|e| Error::io(directory, e))?.flatten() {
        if entry.file_name() != "lock" {
            std::fs::remove_file(entry.path()).map_err(|e| Error::io(entry.path(), e))?;
        }
    }
    Ok(())
}

/// The key of every row.
fn keys_of(options: &AddOptions, rows: usize, first: usize) -> Result<Vec<String>> {
    let Some(keys) = &options.keys else {
        return Ok((first..first + rows).map(|row| row.to_string()).collect());
    };
    check_count("keys", keys.len(), rows)?;
    if let Some(row) = keys.iter().position(String::is_empty) {
        let (place, expected) = ("keys".to_owned(), "a key".to_owned());
        return Err(Error::Row { place, row, expected, found: "nothing".to_owned() });
    }
    let mut seen = HashSet::new();
    match keys.iter().enumerate().find(|(_, key)| !seen.insert(key.as_str())) {
        Some((row, key)) => Err(repeated(row, key)),
        None => Ok(keys.clone()),
    }
}

fn repeated(row: usize, key: &str) -> Error {
    let (place, expected) = ("keys".to_owned(), "a key that no other item has".to_owned());
    Error::Row { place, row, expected, found: key.to_owned() }
}

fn groups_of(options: &AddOptions, rows: usize) -> Result<Vec<Option<String>>> {
    let Some(groups) = &options.groups else { return Ok(vec![None; rows]) };
    check_count("groups", groups.len(), rows)?;
    Ok(groups.clone())
}

fn check_count(place: &str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Length { place: place.to_owned(), what: format!("{place} (one per row)"), expected, found })
}

/// Refuses keys that are in the album.
fn check_keys(change: &Change<'_>, keys: &[String]) -> Result<()> {
    let path = change.database();
    let mut statement = change.transaction.prepare_cached("SELECT 1 FROM items WHERE key = ?1").at(&path)?;
    for (row, key) in keys.iter().enumerate() {
        if statement.exists([key]).at(&path)? {
            return Err(repeated(row, key));
        }
    }
    Ok(())
}

/// Refuses rows of another embedding space: other columns, or another model.
fn check_space(change: &Change<'_>, view: &View, rows: &Embeddings, options: &AddOptions) -> Result<()> {
    if rows.dim() != view.dim {
        let (place, what) = ("embeddings".to_owned(), "columns, as the album has".to_owned());
        return Err(Error::Length { place, what, expected: view.dim, found: rows.dim() });
    }
    let model: Option<String> = meta(&change.transaction, &change.directory, "model")?;
    match (model, &options.model) {
        (Some(ours), Some(theirs)) if ours != *theirs => {
            let expected = format!("embeddings of the model {ours}, as the album has");
            Err(Error::format("embeddings", expected, format!("those of {theirs}")))
        }
        _ => Ok(()),
    }
}

/// Fewer new rows say nothing about their space; of more these are looked at.
const LOOKED_AT: std::ops::RangeInclusive<usize> = 16..=256;
/// The similarities of new rows to random rows of the album may differ from those of its own rows by so many spreads, ...
const MOST_SPREADS: f64 = 1.0;
/// ... and their spread by this factor.
const MOST_RATIO: f64 = 1.6;

/// Refuses rows whose similarities to random rows of the album are not like those of its own rows.
fn check_background(change: &Change<'_>, view: &View, cohort: &[u32], rows: &Embeddings) -> Result<()> {
    if rows.len() < *LOOKED_AT.start() {
        return Ok(());
    }
    let [median, spread] = ["space_median", "space_spread"]
        .map(|name| meta::<f64>(&change.transaction, &change.directory, name));
    let (median, spread) = (median?, spread?);
    let step = rows.len().div_ceil(*LOOKED_AT.end());
    let some = (0..rows.len()).step_by(step).map(|at| rows.row(at));
    let (found, found_spread) =
        strangers(some, |at| view.rows.row(cohort[at] as usize), cohort.len(), |_, _| true);
    let ratio = found_spread / spread;
    if (found - median).abs() > MOST_SPREADS * spread || !(1.0 / MOST_RATIO..MOST_RATIO).contains(&ratio) {
        let expected = format!(
            "embeddings of the space of {}, with similarities to random rows around {median:.3}, spread {spread:.3}",
            change.directory.display()
        );
        return Err(Error::format(
            "embeddings",
            expected,
            format!("around {found:.3}, spread {found_spread:.3}"),
        ));
    }
    Ok(())
}

impl Change<'_> {
    /// Replaces the state of all rows, and notes what it was.
    fn replace_state(&self, before: &State, after: &State) -> Result<()> {
        let changed = crate::history::difference(before, after);
        self.execute("INSERT INTO undo_state VALUES(?1, ?2, ?3)", (self.id, before.len() as i64, changed))?;
        self.set_state(after)
    }
}
