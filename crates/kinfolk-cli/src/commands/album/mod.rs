//! `kinfolk album`: albums that live.

mod arguments;
mod ask;
mod correct;
mod fill;
mod look;

use crate::failure::Failure;
use clap::{Args, Subcommand};
use kinfolk_album::Summary;

/// Keep a set that grows: people with ids that last, corrections that hold, and every change undone
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album create faces faces.npy --keys names.txt
          kinfolk album add faces new.npy --keys new.txt
          kinfolk album people faces")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Create(fill::Create),
    Add(fill::Add),
    Remove(fill::Remove),
    Same(correct::Same),
    Apart(correct::Apart),
    Name(correct::Name),
    Merge(correct::Merge),
    People(look::People),
    Person(look::Person),
    Questions(ask::Questions),
    Assign(ask::Assign),
    Refresh(fill::Refresh),
    History(look::History),
    Undo(fill::Undo),
    Export(look::Export),
    Verify(look::Verify),
}

pub fn run(arguments: Arguments) -> Result<u8, Failure> {
    match arguments.command {
        Command::Create(a) => a.run(),
        Command::Add(a) => a.run(),
        Command::Remove(a) => a.run(),
        Command::Same(a) => a.run(),
        Command::Apart(a) => a.run(),
        Command::Name(a) => a.run(),
        Command::Merge(a) => a.run(),
        Command::People(a) => a.run(),
        Command::Person(a) => a.run(),
        Command::Questions(a) => a.run(),
        Command::Assign(a) => a.run(),
        Command::Refresh(a) => a.run(),
        Command::History(a) => a.run(),
        Command::Undo(a) => a.run(),
        Command::Export(a) => a.run(),
        Command::Verify(a) => return a.run(),
    }?;
    Ok(0)
}

/// Prints a value as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| kinfolk::Error::format("output", "what JSON can say", e.to_string()))?;
    println!("{text}");
    Ok(())
}

/// Prints what a change did.
fn report(summary: &Summary, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(summary);
    }
    println!("change {}: {} items, {} people", summary.change, summary.items, summary.people);
    const SHOWN: usize = 20;
    for event in summary.events.iter().take(SHOWN) {
        println!("{}", look::words(event));
    }
    if summary.events.len() > SHOWN {
        println!("and {} more events (--json lists them)", summary.events.len() - SHOWN);
    }
    Ok(())
}
