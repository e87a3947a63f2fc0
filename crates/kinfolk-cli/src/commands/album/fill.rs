//! `create`, `add`, `remove`, `refresh` and `undo`: what is in an album.

use super::arguments::{Rows, Where};
use super::report;
use crate::bars::Bars;
use crate::failure::Failure;
use clap::Args;
use kinfolk_album::Album;

/// Cluster rows and keep them as an album
#[derive(Args)]
#[command(override_usage = "kinfolk album create [OPTIONS] <ALBUM> <FEATURES>
       kinfolk album create [OPTIONS] <ALBUM> --from <URL> --query <SQL>")]
#[command(after_help = "Example:  kinfolk album create faces faces.npy --keys names.txt
          clusters as kinfolk cluster does; ids of people last from here on

          kinfolk album create faces --from postgres://ada@localhost/photos \\
              --query \"select id, embedding, photo from faces order by id\"
          reads a table of PostgreSQL; the password is in PGPASSWORD")]
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
        Album::check_new(&self.place.album)?;
        let bars = Bars::default();
        let given = self.rows.read(None, &bars)?;
        let created = Album::create(&self.place.album, &given.rows, &given.options, self.seed, &bars);
        let (_, summary) = created.map_err(|e| given.name(e))?;
        drop(bars);
        report(&summary, self.place.json)
    }
}

/// Add rows: they join people, or become new ones
#[derive(Args)]
#[command(override_usage = "kinfolk album add [OPTIONS] <ALBUM> <FEATURES>
       kinfolk album add [OPTIONS] <ALBUM> --from <URL> --query <SQL>")]
#[command(after_help = "Example:  kinfolk album add faces new.npy --keys new.txt --group photographs.txt
          costs what is added; two faces of one photograph are rarely one person

          kinfolk album add faces --from postgres://ada@localhost/photos \\
              --query \"select id, embedding, photo from faces where id > 1000 order by id\"
          reads a table of PostgreSQL; the password is in PGPASSWORD")]
pub struct Add {
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    rows: Rows,
}

impl Add {
    pub fn run(self) -> Result<(), Failure> {
        let mut album = self.place.open()?;
        let bars = Bars::default();
        let given = self.rows.read(Some(&album), &bars)?;
        let summary = album.add(&given.rows, &given.options, &bars).map_err(|e| given.name(e))?;
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
