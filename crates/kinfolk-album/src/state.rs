//! What changes about a row when others come and go: 32 bytes for each.
//!
//! | array | contents |
//! |---|---|
//! | `arriving` | the weight of the edges of other rows that lead here, in units of 2^-24: whole numbers, so that what is added can be taken away again exactly |
//! | `records` | where its neighbours are (`records`) |
//! | `arrivals` | how many rows list it |
//! | `lists` | the list in which new rows look for it; [`GONE`] for a row that was removed |
//! | `stale` | how many of its neighbours have changed since its edges were estimated |
//! | `relatives` | the expected number of its relatives, before the correction |
//! | `last` | the similarity of its last neighbour, which a new row must exceed to be listed |
//!
//! The file begins with the number of rows (8 bytes) and the CRC-32 of what follows (8 bytes); all numbers are native, which is
//! little-endian wherever kinfolk is tested.

use crate::files::{Array, append, map};
use kinfolk::{Error, Result};
use std::path::Path;

/// The list of rows that were removed.
pub(crate) const GONE: u32 = u32::MAX;

/// The record of rows that had been removed before the whole was clustered: they have none, and nobody lists them.
pub(crate) const NOWHERE: u32 = u32::MAX;

const HEADER: usize = 16;
const PER_ROW: usize = 32;

#[derive(Clone)]
pub(crate) struct State {
    pub arriving: Array<i64>,
    pub records: Array<u32>,
    pub arrivals: Array<u32>,
    pub lists: Array<u32>,
    pub stale: Array<u32>,
    pub relatives: Array<f32>,
    pub last: Array<f32>,
}

impl State {
    /// The state in a file, which is mapped.
    pub(crate) fn open(path: &Path, rows: usize) -> Result<Self> {
        let bytes = map(path, (HEADER + rows * PER_ROW) as u64)?;
        let counted =
            bytes.get(..8).map_or(0, |count| u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| count[i])));
        if counted != rows as u64 {
            return Err(Error::format(path, format!("{rows} rows"), counted.to_string()));
        }
        let mut at = HEADER;
        let mut next = |size: usize| {
            let part = bytes.slice(at..at + size * rows);
            at += size * rows;
            part
        };
        Ok(Self {
            arriving: Array::Mapped(next(8)),
            records: Array::Mapped(next(4)),
            arrivals: Array::Mapped(next(4)),
            lists: Array::Mapped(next(4)),
            stale: Array::Mapped(next(4)),
            relatives: Array::Mapped(next(4)),
            last: Array::Mapped(next(4)),
        })
    }

    /// Writes a new file.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let rows = self.len();
        let mut bytes = Vec::with_capacity(HEADER + rows * PER_ROW);
        bytes.extend((rows as u64).to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend_from_slice(bytemuck::cast_slice(&self.arriving));
        for numbers in [&self.records, &self.arrivals, &self.lists, &self.stale] {
            bytes.extend_from_slice(bytemuck::cast_slice(numbers));
        }
        bytes.extend_from_slice(bytemuck::cast_slice(&self.relatives));
        bytes.extend_from_slice(bytemuck::cast_slice(&self.last));
        let crc = u64::from(crc32fast::hash(&bytes[HEADER..]));
        bytes[8..HEADER].copy_from_slice(&crc.to_ne_bytes());
        append(path, 0, &bytes).map(drop)
    }

    /// Refuses a file whose contents are not what was written.
    pub(crate) fn check(path: &Path, rows: usize) -> Result<()> {
        let bytes = map(path, (HEADER + rows * PER_ROW) as u64)?;
        let [expected, found] =
            [u64::from(crc32fast::hash(&bytes[HEADER..])), bytemuck::pod_read_unaligned(&bytes[8..HEADER])];
        if expected != found {
            return Err(Error::format(
                path,
                format!("contents of checksum {found:08x}"),
                format!("{expected:08x}"),
            ));
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether a row is in the album.
    pub(crate) fn is_alive(&self, slot: u32) -> bool {
        self.lists[slot as usize] != GONE
    }
}
