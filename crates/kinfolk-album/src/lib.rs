//! Albums that live: clusters of embeddings that are added to, corrected, undone and explained, with ids that last.
//!
//! ```
//! use kinfolk::synth::{Synth, SynthParams};
//! use kinfolk_album::{AddOptions, Album};
//! # fn main() -> kinfolk::Result<()> {
//! # let directory = std::env::temp_dir().join(format!("kinfolk-album-{}", std::process::id()));
//! # std::fs::remove_dir_all(&directory).ok();
//! let params = SynthParams { identities: 20, dim: 32, ..SynthParams::default() };
//! let (rows, _) = Synth::new(params)?.whole().to_embeddings()?;
//! let (mut album, _) = Album::create(&directory, &rows, &AddOptions::default(), 0, &())?;
//! let first = &album.people()?[0];
//! album.name(&first.id.to_string(), "Ada")?;
//! assert_eq!(album.find("Ada")?.size, first.size);
//! album.undo()?;
//! assert!(album.find("Ada").is_err());
//! # std::fs::remove_dir_all(&directory).ok();
//! # Ok(())
//! # }
//! ```
//!
//! # How it is kept
//!
//! An album is a directory: an SQLite database for what is said and found of items and people, and mapped files for embeddings,
//! neighbours and probabilities. SQLite decides what counts. Files only grow, and their lengths are part of its transactions, so
//! whatever happens to the process the album is as after its last finished change ([`Album`], `docs/formats.md`).
//!
//! | module | contents |
//! |---|---|
//! | `album` | the operations |
//! | `change`, `lock` | a change: all of it or nothing; one writer |
//! | `schema`, `database` | the tables, and how they are undone |
//! | `files`, `state`, `records`, `view` | the mapped files, and an album as one transaction sees it |
//! | `whole` | the whole, clustered anew |
//! | `extension` | new rows: neighbours and probabilities of what changes |
//! | `partition`, `region` | which items are which person, for some people |
//! | `corrections`, `enforce`, `divide` | what people said, and modules that keep to it |
//! | `evidence`, `doubt` | how probable it is that two sides are one person |
//! | `matching` | ids that are kept by the overlap of members |
//! | `postgres` | rows from a table of PostgreSQL, and people into one (feature `postgres`) |
//! | `people`, `history`, `questions`, `assign`, `export`, `verify` | what is asked of an album |

mod album;
mod assign;
mod change;
mod corrections;
mod database;
mod divide;
mod doubt;
mod enforce;
mod evidence;
mod export;
mod extension;
mod faults;
mod files;
mod history;
mod lock;
mod matching;
mod partition;
mod people;
#[cfg(feature = "postgres")]
mod postgres;
mod questions;
mod records;
mod region;
mod schema;
mod state;
#[cfg(test)]
mod tests;
mod verify;
mod view;
mod whole;

#[cfg(feature = "postgres")]
pub use crate::postgres::Database;
pub use album::{AddOptions, Album, Summary};
pub use assign::{Assignment, Candidate};
pub use history::Entry;
pub use people::{Event, Person};
pub use questions::Question;
pub use schema::SCHEMA;
pub use verify::{Damage, Verification};
