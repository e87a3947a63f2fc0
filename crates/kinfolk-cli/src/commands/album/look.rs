//! `people`, `person`, `history`, `export` and `verify`: what an album has.

use super::arguments::{Where, database, directory};
use super::print_json;
use crate::bars::Bars;
use crate::failure::Failure;
use crate::table;
use clap::Args;
use kinfolk_album::Event;
use serde_json::json;
use std::path::PathBuf;

/// List all people, the largest first
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album people faces")]
pub struct People {
    #[command(flatten)]
    place: Where,
}

impl People {
    pub fn run(self) -> Result<(), Failure> {
        let people = self.place.open()?.people()?;
        if self.place.json {
            return print_json(&people);
        }
        let line = |person: &kinfolk_album::Person| {
            vec![person.id.to_string(), person.size.to_string(), person.name.clone().unwrap_or_default()]
        };
        table::print(&["person", "items", "name"], &people.iter().map(line).collect::<Vec<_>>());
        Ok(())
    }
}

/// List the items of a person
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album person faces \"Ada Lovelace\"")]
pub struct Person {
    #[command(flatten)]
    place: Where,
    /// Id or name of the person
    #[arg(value_name = "PERSON")]
    person: String,
}

impl Person {
    pub fn run(self) -> Result<(), Failure> {
        let album = self.place.open()?;
        let (person, items) = (album.find(&self.person)?, album.person(&self.person)?);
        if self.place.json {
            return print_json(
                &json!({ "id": person.id, "name": person.name, "size": person.size, "items": items }),
            );
        }
        items.iter().for_each(|key| println!("{key}"));
        Ok(())
    }
}

/// List all changes, the last first, and what they did to people
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album history faces")]
pub struct History {
    #[command(flatten)]
    place: Where,
}

impl History {
    pub fn run(self) -> Result<(), Failure> {
        let history = self.place.open()?.history()?;
        if self.place.json {
            return print_json(&history);
        }
        for entry in history {
            let undone = entry.undone_by.map_or(String::new(), |by| format!(" (undone by change {by})"));
            println!(
                "change {}, {}: {} {}{undone}",
                entry.change, entry.time, entry.operation, entry.arguments
            );
            const SHOWN: usize = 5;
            entry.events.iter().take(SHOWN).for_each(|event| println!("    {}", words(event)));
            if entry.events.len() > SHOWN {
                println!("    and {} more events", entry.events.len() - SHOWN);
            }
        }
        Ok(())
    }
}

/// Write labels.npy and clusters.csv, rows in the order in which items were added, or a table of PostgreSQL
#[derive(Args)]
#[command(override_usage = "kinfolk album export [OPTIONS] -o <DIR> <ALBUM>
       kinfolk album export [OPTIONS] --to <URL> --table <TABLE> <ALBUM>")]
#[command(after_help = "Example:  kinfolk album export faces -o clusters
          kinfolk explain clusters 17

          kinfolk album export faces --to postgres://ada@localhost/photos --table people_faces
          replaces the rows of a table with the columns id, person and name; the password is in PGPASSWORD")]
pub struct Export {
    #[command(flatten)]
    place: Where,
    /// Directory to write to
    #[arg(short, value_name = "DIR", value_parser = directory(), conflicts_with = "to", required_unless_present = "to")]
    output: Option<PathBuf>,
    /// PostgreSQL database to write to instead, postgres://USER@HOST:5432/DATABASE. The password may be in the URL, where
    /// other users of this machine see it, or in the environment as PGPASSWORD. The connection is not encrypted
    #[arg(long, value_name = "URL", requires = "table")]
    to: Option<String>,
    /// Table in it, TABLE or SCHEMA.TABLE, whose rows are replaced, all or none; it is made if it does not exist
    #[arg(long, value_name = "TABLE", requires = "to", conflicts_with = "output")]
    table: Option<String>,
}

impl Export {
    pub fn run(self) -> Result<(), Failure> {
        let album = self.place.open()?;
        let bars = Bars::default();
        if let (Some(url), Some(table)) = (&self.to, &self.table) {
            let database = database("--to", url)?;
            let (rows, people) = album.export_to(&database, table, &bars)?;
            drop(bars);
            let place = database.to_string();
            if self.place.json {
                return print_json(
                    &json!({ "rows": rows, "people": people, "database": place, "table": table }),
                );
            }
            println!("{rows} rows, {people} people -> {place}, table {table}");
            return Ok(());
        }
        let directory = self.output.unwrap_or_default();
        let (rows, clusters) = album.export(&directory, &bars)?;
        drop(bars);
        if self.place.json {
            return print_json(&json!({ "rows": rows, "clusters": clusters, "directory": directory }));
        }
        println!("{rows} rows, {clusters} clusters -> {}", directory.display());
        Ok(())
    }
}

/// Check all files and say what is damaged
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album verify faces")]
pub struct Verify {
    #[command(flatten)]
    place: Where,
}

impl Verify {
    /// The exit code is 1 if something is damaged.
    pub fn run(self) -> Result<u8, Failure> {
        let found = self.place.open()?.verify()?;
        let code = u8::from(!found.damages.is_empty());
        if self.place.json {
            print_json(&found)?;
            return Ok(code);
        }
        for damage in &found.damages {
            println!("{}: {}", damage.file, damage.what);
        }
        if found.damages.is_empty() {
            println!("{} items, nothing is damaged", found.items);
        }
        Ok(code)
    }
}

/// An event in words.
pub fn words(event: &Event) -> String {
    let count = match event.items.len() {
        1 => "1 item".to_owned(),
        count => format!("{count} items"),
    };
    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "no name".to_owned());
    match (event.kind.as_str(), event.other) {
        ("created", _) => format!("person {}: new, {count}", event.person),
        ("grew", _) => format!("person {}: grew by {count}", event.person),
        ("removed", _) => format!("person {}: {count} removed", event.person),
        ("merged", Some(other)) => {
            format!("person {}: {count} of person {other}, which was merged", event.person)
        }
        ("split", Some(other)) => format!("person {}: {count}, split from person {other}", event.person),
        ("renamed", _) => {
            format!("person {}: {} -> {}", event.person, name(&event.before), name(&event.after))
        }
        (kind, _) => format!("person {}: {kind}, {count}", event.person),
    }
}
