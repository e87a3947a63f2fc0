//! `create`, `add`, `remove`, `refresh` and `undo`: what is in an album.

use super::arguments::{Rows, Where};
use super::report;
use crate::bars::Bars;
use crate::failure::Failure;
use clap::Args;
use kinfolk_album::Album;
use std::path::PathBuf;

/// Cluster rows and keep them as an album
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album create faces faces.npy --keys names.txt
          clusters as kinfolk cluster does; ids of people last from here on")]
pub struct Create {
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    rows: Rows,
    /// Seed of all random numbers
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

impl Create {
    pub fn run(self) -> Result<(), Failure> {
        let (rows, options) = self.rows.read(None)?;
        let bars = Bars::default();
        let created = Album::create(&self.place.album, &rows, &options, self.seed, &bars);
        let (_, summary) = created.map_err(|e| self.rows.name(e, None))?;
        drop(bars);
        report(&summary, self.place.json)
    }
}

/// Add rows: they join people, or become new ones
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album add faces new.npy --keys new.txt --group photographs.txt
          costs what is added; two faces of one photograph are rarely one person")]
pub struct Add {
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    rows: Rows,
    /// Text file with the group of each row, such as its photograph, one per line; empty for none. Items of one group are
    /// rarely one person
    #[arg(long, value_name = "FILE")]
    group: Option<PathBuf>,
}

impl Add {
    pub fn run(self) -> Result<(), Failure> {
        let mut album = self.place.open()?;
        let (rows, options) = self.rows.read(self.group.as_deref())?;
        let bars = Bars::default();
        let summary =
            album.add(&rows, &options, &bars).map_err(|e| self.rows.name(e, self.group.as_deref()))?;
        drop(bars);
        report(&summary, self.place.json)
    }
}

/// Remove items; corrections about them are kept
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album remove faces img_0017#2 img_0018#1")]
pub struct Remove {
    #[command(flatten)]
    place: Where,
    /// Keys of the items
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
}

impl Remove {
    pub fn run(self) -> Result<(), Failure> {
        let summary = self.place.open()?.remove(&self.keys, &())?;
        report(&summary, self.place.json)
    }
}

/// Cluster everything anew; corrections hold, and people keep their ids
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album refresh faces")]
pub struct Refresh {
    #[command(flatten)]
    place: Where,
}

impl Refresh {
    pub fn run(self) -> Result<(), Failure> {
        let mut album = self.place.open()?;
        let bars = Bars::default();
        let summary = album.refresh(&bars)?;
        drop(bars);
        report(&summary, self.place.json)
    }
}

/// Take the last change back
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album undo faces")]
pub struct Undo {
    #[command(flatten)]
    place: Where,
}

impl Undo {
    pub fn run(self) -> Result<(), Failure> {
        let summary = self.place.open()?.undo()?;
        report(&summary, self.place.json)
    }
}
