//! An album as one transaction sees it: the database, and the files that belong to this state of it.

use crate::database::{At, DATABASE};
use crate::files::map;
use crate::records::Records;
use crate::state::State;
use bytes::Bytes;
use kinfolk::incremental::{Knowledge, stored_rows};
use kinfolk::{Embeddings, Error, Result};
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension};
use std::path::{Path, PathBuf};

/// The file of all rows as they were given, of unit length, in the order in which they were added.
pub(crate) const ROWS: &str = "rows.f32";

/// The name of a file of an epoch: from one clustering of the whole to the next.
pub(crate) fn of_epoch(name: &str, epoch: i64) -> String {
    format!("{name}-{epoch}")
}

/// One state of an album.
pub(crate) struct View {
    pub directory: PathBuf,
    pub dim: usize,
    pub k: usize,
    pub epoch: i64,
    /// The weight of all edges, in units.
    pub total: i64,
    /// Lists that a new row searches, and what coding loses of any row.
    pub probes: usize,
    pub loss: f32,
    /// Items when the whole was clustered last.
    pub clustered: usize,
    pub rows: Embeddings,
    pub centred: Embeddings,
    pub medians: Bytes,
    pub spreads: Bytes,
    pub centroids: Bytes,
    pub records: Records,
}

/// A value of the table `meta`.
pub(crate) fn meta<T: FromSql>(connection: &Connection, directory: &Path, name: &str) -> Result<T> {
    let path = directory.join(DATABASE);
    let mut statement = connection.prepare_cached("SELECT value FROM meta WHERE name = ?1").at(&path)?;
    let value = statement.query_row([name], |row| row.get(0)).optional().at(&path)?;
    value.ok_or_else(|| Error::format(&path, format!("a value for {name} in the table meta"), "none"))
}

/// How many bytes of a file count.
pub(crate) fn length(connection: &Connection, directory: &Path, name: &str) -> Result<u64> {
    let path = directory.join(DATABASE);
    let mut statement = connection.prepare_cached("SELECT bytes FROM files WHERE name = ?1").at(&path)?;
    let bytes: Option<i64> = statement.query_row([name], |row| row.get(0)).optional().at(&path)?;
    Ok(bytes.unwrap_or(0) as u64)
}

impl View {
    /// The state that a transaction sees.
    pub(crate) fn open(connection: &Connection, directory: &Path) -> Result<Self> {
        let number = |name: &str| meta::<i64>(connection, directory, name);
        let (dim, k, epoch) = (number("columns")? as usize, number("k")? as usize, number("epoch")?);
        let counted = |name: &str| map(&directory.join(name), length(connection, directory, name)?);
        let of_epoch = |name: &str| counted(&of_epoch(name, epoch));
        let rows = stored_rows(counted(ROWS)?, dim);
        let state: String = meta(connection, directory, "state")?;
        let state = State::open(&directory.join(state), rows.len())?;
        Ok(View {
            directory: directory.to_owned(),
            dim,
            k,
            epoch,
            total: number("total")?,
            probes: number("probes")? as usize,
            loss: meta::<f64>(connection, directory, "loss")? as f32,
            clustered: number("clustered")? as usize,
            centred: stored_rows(of_epoch("centred")?, dim),
            medians: of_epoch("medians")?,
            spreads: of_epoch("spreads")?,
            centroids: of_epoch("centroids")?,
            records: Records::new(k, of_epoch("edges")?, state),
            rows,
        })
    }

    /// What the last clustering of the whole found out.
    pub(crate) fn knowledge(&self, connection: &Connection) -> Result<Knowledge> {
        let text: String = meta(connection, &self.directory, "knowledge")?;
        let wrong = |e: serde_json::Error| {
            Error::format(self.directory.join(DATABASE), "knowledge of a set", e.to_string())
        };
        serde_json::from_str(&text).map_err(wrong)
    }

    /// Rows that were ever added.
    pub(crate) fn slots(&self) -> usize {
        self.records.state.len()
    }

    /// The rows that are in the album, in the order in which they were added.
    pub(crate) fn alive(&self) -> Vec<u32> {
        (0..self.slots() as u32).filter(|&slot| self.records.state.is_alive(slot)).collect()
    }

    /// The centroid of each list.
    pub(crate) fn centroids(&self) -> impl Iterator<Item = &[f32]> {
        bytemuck::cast_slice::<u8, f32>(&self.centroids).chunks_exact(self.dim)
    }
}
