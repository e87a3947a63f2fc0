//! `people`, `person`, `history`, `export` and `verify`: what an album has.

use super::arguments::Where;
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

/// Write labels.npy and clusters.csv, rows in the order in which items were added
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album export faces -o clusters
          kinfolk explain clusters 17")]
pub struct Export {
    #[command(flatten)]
    place: Where,
    /// Directory to write to
    #[arg(short, value_name = "DIR")]
    output: PathBuf,
}

impl Export {
    pub fn run(self) -> Result<(), Failure> {
        let bars = Bars::default();
        let (rows, clusters) = self.place.open()?.export(&self.output, &bars)?;
        drop(bars);
        if self.place.json {
            return print_json(&json!({ "rows": rows, "clusters": clusters, "directory": self.output }));
        }
        println!("{rows} rows, {clusters} clusters -> {}", self.output.display());
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
