//! Albums that live: what changes cost, what batches lose, what answers gain, and whether everything stays whole.
//!
//! | part | contents |
//! |---|---|
//! | `speed` | opening, adding 1,000 rows, corrections and creation, for albums of two sizes |
//! | `batches` | rows that arrive in 100 batches, compared with clustering them at once; what named people keep |
//! | `corrections` | questions answered by the true labels, asked in three orders |
//! | `assignments` | whether the probabilities of `assign` mean what they say |
//! | `operations` | random operations, after which `verify` must find nothing |
//!
//! Cost: with the defaults an hour on two cores, nearly all of it for the album of a million rows.

mod assignments;
mod batches;
mod corrections;
mod operations;
mod speed;

use crate::labelled::Labelled;
use clap::{Args, ValueEnum};
use kinfolk::random::Stream;
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{Embeddings, Error};
use kinfolk_cli::failure::Failure;
use kinfolk_cli::{make_directory, write_text};
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench album --data faces/
          where faces/ contains facepool_test_feat.npy, facepool_test_label.npy, lfw_feat.npy and
          lfw_label.npy. Without --data the parts batches, corrections and assignments use synthetic rows.
          kinfolk bench album --parts speed --rows 100000
          measures one size")]
pub struct Arguments {
    /// Directory with the real faces
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The parts to run
    #[arg(long, value_name = "PART", value_delimiter = ',', value_enum, default_values = ["speed", "batches", "corrections", "assignments", "operations"])]
    parts: Vec<Part>,
    /// Rows of the synthetic albums whose changes are timed
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [100_000, 1_000_000])]
    rows: Vec<usize>,
    /// Number of random operations
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    operations: usize,
    /// Rows of the synthetic set that arrives in batches
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    batched: usize,
    /// Seed of the sets and of the order of rows
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Directory for the tables; albums are made there, too, and removed
    #[arg(short, value_name = "DIR", default_value = "bench-album")]
    output: PathBuf,
}

/// A part of the measurements.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    Speed,
    Batches,
    Corrections,
    Assignments,
    Operations,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    make_directory(&arguments.output)?;
    let mut text = String::new();
    for part in &arguments.parts {
        text += &match part {
            Part::Speed => speed::run(&arguments)?,
            Part::Batches => batches::run(&arguments)?,
            Part::Corrections => corrections::run(&arguments)?,
            Part::Assignments => assignments::run(&arguments)?,
            Part::Operations => operations::run(&arguments)?,
        };
        text.push('\n');
        write_text(&arguments.output.join("album.md"), &text)?;
    }
    Ok(())
}

impl Arguments {
    /// A directory for one album, without what an earlier run left there.
    fn directory(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.output.join(name);
        if path.exists() {
            remove(&path)?;
        }
        Ok(path)
    }

    /// The real faces of this name, if they are there.
    fn faces(&self, name: &str) -> Result<Option<Labelled>, Failure> {
        let Some(data) = &self.data else { return Ok(None) };
        let file = |what: &str| data.join(format!("{name}_{what}.npy"));
        Labelled::read(&file("feat"), &file("label")).map(Some)
    }

    /// About this many synthetic rows of 256 columns, in random order.
    fn synthetic(&self, rows: usize) -> Result<Labelled, Failure> {
        let params =
            SynthParams { identities: rows.div_ceil(68).max(3), seed: self.seed, ..SynthParams::default() };
        let all = Synth::new(params)?.whole().to_embeddings()?.into();
        shuffled(&all, self.seed)
    }
}

fn remove(directory: &Path) -> Result<(), Failure> {
    std::fs::remove_dir_all(directory).map_err(|e| Error::io(directory, e).into())
}

/// The rows at some places.
fn some(rows: &Embeddings, places: impl Iterator<Item = usize>) -> Result<Embeddings, Failure> {
    let data: Vec<f32> = places.flat_map(|place| rows.row(place)).copied().collect();
    Ok(Embeddings::from_rows(data, rows.dim(), "some rows")?)
}

/// The rows in random order: as photographs arrive, and not one identity after the other.
fn shuffled(all: &Labelled, seed: u64) -> Result<Labelled, Failure> {
    let mut order: Vec<usize> = (0..all.labels.len()).collect();
    Stream::from_state(seed).shuffle(&mut order);
    let labels = order.iter().map(|&row| all.labels[row]).collect();
    Ok(Labelled { features: some(&all.features, order.iter().copied())?, labels })
}

/// The labels of all items in the order in which they were added: their people.
fn labels(album: &kinfolk_album::Album) -> Result<Vec<i64>, Failure> {
    Ok(album.items()?.into_iter().map(|(_, person)| person).collect())
}
