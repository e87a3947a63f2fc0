//! The tables of `album.sqlite`, and how changes to them are recorded so that they can be undone.
//!
//! While a change runs, temporary triggers write for every row that is inserted, updated or deleted in the tables of
//! [`UNDONE`] the statement that takes it back ("Automatic Undo/Redo With SQLite", sqlite.org/undoredo.html), and note which
//! items moved between which people, from which events are made. Nothing that changes these tables can forget to be undone.
//!
//! Cost: one statement of text for each row that changes.

use rusqlite::Connection;

/// The version of the schema that this program writes, and the newest that it reads.
pub const SCHEMA: u32 = 1;

/// Marks the file as an album to programs such as `file`.
pub(crate) const APPLICATION: u32 = 0x6b66_616c;

pub(crate) const TABLES: &str = "
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files(name TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE segments(name TEXT NOT NULL, first INTEGER NOT NULL, bytes INTEGER NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY(name, first)) WITHOUT ROWID;
CREATE TABLE people(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE);
CREATE TABLE items(slot INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, person INTEGER NOT NULL REFERENCES people(id),
    grouped TEXT);
CREATE INDEX items_person ON items(person);
CREATE INDEX items_grouped ON items(grouped) WHERE grouped IS NOT NULL;
CREATE TABLE corrections(id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL CHECK(kind IN ('same', 'apart')),
    a TEXT NOT NULL, b TEXT NOT NULL, a_slot INTEGER, b_slot INTEGER, a_row BLOB NOT NULL, b_row BLOB NOT NULL,
    asked TEXT CHECK(asked IN ('people', 'parts')), expected REAL, UNIQUE(kind, a, b));
CREATE TABLE changes(id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL DEFAULT (datetime('now')),
    operation TEXT NOT NULL, arguments TEXT NOT NULL, state TEXT NOT NULL, final INTEGER NOT NULL DEFAULT 0,
    undone_by INTEGER);
CREATE TABLE events(id INTEGER PRIMARY KEY AUTOINCREMENT, change INTEGER NOT NULL, kind TEXT NOT NULL,
    person INTEGER NOT NULL, other INTEGER, before TEXT, after TEXT, items TEXT NOT NULL DEFAULT '[]');
CREATE INDEX events_change ON events(change);
CREATE TABLE undo(id INTEGER PRIMARY KEY AUTOINCREMENT, change INTEGER NOT NULL, statement TEXT NOT NULL);
CREATE INDEX undo_change ON undo(change);
CREATE TABLE undo_state(change INTEGER PRIMARY KEY, rows INTEGER NOT NULL, changed BLOB NOT NULL);
";

/// The tables that a change is undone in, with their columns; the first is the key.
const UNDONE: [(&str, &[&str]); 4] = [
    ("meta", &["name", "value"]),
    ("people", &["id", "name"]),
    ("items", &["slot", "key", "person", "grouped"]),
    ("corrections", &["id", "kind", "a", "b", "a_slot", "b_slot", "a_row", "b_row", "asked", "expected"]),
];

/// Temporary tables: the change that is recorded, where items were and are, people that are new, and names.
const RECORDING: &str = "
CREATE TEMP TABLE recording(change INTEGER);
CREATE TEMP TABLE moved(slot INTEGER PRIMARY KEY, key TEXT, before INTEGER, after INTEGER);
CREATE TEMP TABLE born(id INTEGER PRIMARY KEY);
CREATE TEMP TABLE renamed(id INTEGER PRIMARY KEY, before TEXT, after TEXT);
CREATE TEMP TRIGGER item_added AFTER INSERT ON items BEGIN
    INSERT INTO moved VALUES(NEW.slot, NEW.key, NULL, NEW.person)
        ON CONFLICT(slot) DO UPDATE SET after = NEW.person;
END;
CREATE TEMP TRIGGER item_removed AFTER DELETE ON items BEGIN
    INSERT INTO moved VALUES(OLD.slot, OLD.key, OLD.person, NULL)
        ON CONFLICT(slot) DO UPDATE SET after = NULL;
END;
CREATE TEMP TRIGGER item_moved AFTER UPDATE OF person ON items BEGIN
    INSERT INTO moved VALUES(NEW.slot, NEW.key, OLD.person, NEW.person)
        ON CONFLICT(slot) DO UPDATE SET after = NEW.person;
END;
CREATE TEMP TRIGGER person_born AFTER INSERT ON people BEGIN
    INSERT OR IGNORE INTO born VALUES(NEW.id);
    INSERT INTO renamed SELECT NEW.id, NULL, NEW.name WHERE NEW.name IS NOT NULL
        ON CONFLICT(id) DO UPDATE SET after = NEW.name;
END;
CREATE TEMP TRIGGER person_renamed AFTER UPDATE OF name ON people BEGIN
    INSERT INTO renamed VALUES(NEW.id, OLD.name, NEW.name)
        ON CONFLICT(id) DO UPDATE SET after = NEW.name;
END;
";

/// Makes a connection record changes.
pub(crate) fn record_changes(connection: &Connection) -> rusqlite::Result<()> {
    let mut statements = RECORDING.to_owned();
    for (table, columns) in UNDONE {
        let quoted = |columns: &[&str], separator: &str, form: &dyn Fn(&str) -> String| {
            columns.iter().map(|column| form(column)).collect::<Vec<_>>().join(separator)
        };
        let key = columns[0];
        let values = quoted(columns, " || ',' || ", &|column| format!("quote(OLD.{column})"));
        let set =
            quoted(&columns[1..], " || ', ' || ", &|column| format!("'{column} = ' || quote(OLD.{column})"));
        let record = |name: &str, when: &str, statement: &str| {
            format!(
                "CREATE TEMP TRIGGER undo_{table}_{name} AFTER {when} ON {table} BEGIN
                 INSERT INTO undo(change, statement) SELECT change, {statement} FROM recording; END;\n"
            )
        };
        statements +=
            &record("insert", "INSERT", &format!("'DELETE FROM {table} WHERE {key} = ' || quote(NEW.{key})"));
        statements += &record(
            "delete",
            "DELETE",
            &format!("'INSERT INTO {table}({}) VALUES(' || {values} || ')'", columns.join(", ")),
        );
        statements += &record(
            "update",
            "UPDATE",
            &format!("'UPDATE {table} SET ' || {set} || ' WHERE {key} = ' || quote(OLD.{key})"),
        );
    }
    connection.execute_batch(&statements)
}

/// Makes the events of a change from what was recorded.
pub(crate) const EVENTS: &str = "
INSERT INTO events(change, kind, person, other, items)
SELECT ?1, CASE
        WHEN before IS NULL AND after IN (SELECT id FROM born) THEN 'created'
        WHEN before IS NULL THEN 'grew'
        WHEN after IS NULL THEN 'removed'
        WHEN before IN (SELECT id FROM people) THEN 'split'
        ELSE 'merged' END,
    coalesce(after, before), CASE WHEN before IS NOT NULL AND after IS NOT NULL THEN before END,
    json_group_array(key)
FROM (SELECT * FROM moved WHERE before IS NOT after ORDER BY slot) GROUP BY before, after ORDER BY min(slot);
";

/// The same for names.
pub(crate) const RENAMED: &str = "
INSERT INTO events(change, kind, person, before, after)
SELECT ?1, 'renamed', id, before, after FROM renamed WHERE before IS NOT after;
";
