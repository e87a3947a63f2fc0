//! The rows of a job: shards of any length, normalised and centred.

use super::{Blocks, Spec, Store};
use crate::centre::{PART, offset, sum_of_part, without_offset};
use crate::io::{ReadOptions, RowFile, read_embeddings};
use crate::knn::by_blocks::hashes;
use crate::values::Values;
use crate::{Embeddings, Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;

/// The array of all rows, each of unit length.
pub(super) const ROWS: &str = "rows";
/// The same without what all rows share.
pub(super) const CENTRED: &str = "centred";

/// The shape of a file, and whether some of its rows can be read without the others.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Shape {
    rows: usize,
    dim: usize,
    by_rows: bool,
}

/// All shards.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Shards {
    pub rows: usize,
    pub dim: usize,
    shapes: Vec<Shape>,
}

impl Shards {
    /// Finds the shape of a shard. One of a format that can only be read as a whole is read.
    pub fn measure(store: &Store, spec: &Spec, shard: usize) -> Result<()> {
        let (path, options) = source(spec, shard);
        let shape = match RowFile::open(path, &options)? {
            Some(file) => {
                let (rows, dim) = file.shape()?;
                Shape { rows, dim, by_rows: true }
            }
            None => {
                let whole = read_embeddings(path, &options)?;
                Shape { rows: whole.len(), dim: whole.dim(), by_rows: false }
            }
        };
        let text = serde_json::to_vec(&shape).map_err(|e| Error::format(path, "a shape", e.to_string()))?;
        store.set_part("shapes", shard, &text)
    }

    /// Collects the shapes, which must have the same number of columns.
    pub fn join(store: &Store, spec: &Spec) -> Result<()> {
        let mut shapes: Vec<Shape> = Vec::new();
        for (shard, path) in spec.paths.iter().enumerate() {
            let shape: Shape = serde_json::from_slice(&store.part("shapes", shard)?)
                .map_err(|e| Error::format(path, "a shape", e.to_string()))?;
            if let Some(first) = shapes.first()
                && first.dim != shape.dim
            {
                let what = format!("columns, as in {}", spec.paths[0].display());
                let place = path.display().to_string();
                return Err(Error::Length { place, what, expected: first.dim, found: shape.dim });
            }
            shapes.push(shape);
        }
        let rows: usize = shapes.iter().map(|shape| shape.rows).sum();
        if rows > u32::MAX as usize {
            let found = rows.to_string();
            return Err(Error::Parameter { field: "features", expected: "at most 2^32 - 1 rows", found });
        }
        let dim = shapes.first().map_or(0, |shape| shape.dim);
        store.set_facts("shards", &Shards { rows, dim, shapes })
    }

    pub fn open(store: &Store) -> Result<Self> {
        store.known("shards")
    }

    /// The shard of each block, and its rows there.
    pub fn blocks(&self, blocks: Blocks) -> Vec<(usize, Range<usize>)> {
        let of_shard = |(shard, shape): (usize, &Shape)| -> Vec<(usize, Range<usize>)> {
            if !shape.by_rows {
                return vec![(shard, 0..shape.rows)];
            }
            (0..blocks.count(shape.rows)).map(|block| (shard, blocks.range(block, shape.rows))).collect()
        };
        self.shapes.iter().enumerate().flat_map(of_shard).collect()
    }

    /// Reads the rows of a block.
    pub fn read(&self, store: &Store, spec: &Spec, block: usize) -> Result<()> {
        let (shard, rows) = self.blocks(spec.blocks)[block].clone();
        let (path, options) = source(spec, shard);
        let before: usize = self.shapes[..shard].iter().map(|shape| shape.rows).sum();
        let at = (before + rows.start) * self.dim;
        let changed = |found: usize| {
            let (place, what) = (path.display().to_string(), "rows, as at the start of the job".to_owned());
            Error::Length { place, what, expected: self.shapes[shard].rows, found }
        };
        match RowFile::open(path, &options)? {
            Some(file) => {
                let (found, dim) = file.shape()?;
                if found != self.shapes[shard].rows || dim != self.dim {
                    return Err(changed(found));
                }
                store.put(ROWS, at, &file.unit_rows(rows)?)
            }
            None => {
                let whole = read_embeddings(path, &options)?;
                if whole.len() != rows.len() || whole.dim() != self.dim {
                    return Err(changed(whole.len()));
                }
                store.put(ROWS, at, whole.as_slice())
            }
        }
    }

    /// Blocks of whole parts, whose sums are added up in order.
    pub fn blocks_of_parts(blocks: Blocks) -> Blocks {
        Blocks { rows: blocks.rows.next_multiple_of(PART) }
    }

    /// Sums the rows of a block, for the offset.
    pub fn sum(&self, store: &Store, blocks: Blocks, block: usize) -> Result<()> {
        let rows = self.embeddings(store, ROWS)?;
        let range = Self::blocks_of_parts(blocks).range(block, self.rows);
        let values = &rows.as_slice()[range.start * self.dim..range.end * self.dim];
        let sums: Vec<f64> =
            values.chunks(PART * self.dim).flat_map(|part| sum_of_part(part, self.dim)).collect();
        store.put("sums", range.start / PART * self.dim, &sums)
    }

    /// Finds what all rows share.
    pub fn find_offset(&self, store: &Store, seed: u64) -> Result<()> {
        let sums = store.array_of::<f64>("sums", self.rows.div_ceil(PART) * self.dim)?;
        let rows = self.embeddings(store, ROWS)?;
        store.write("offset", &offset(sums.chunks_exact(self.dim), &rows, seed))
    }

    /// Centres the rows of a block.
    pub fn centre(&self, store: &Store, blocks: Blocks, block: usize) -> Result<()> {
        let rows = self.embeddings(store, ROWS)?;
        let offset = store.array_of::<f64>("offset", self.dim)?;
        let range = blocks.range(block, self.rows);
        let without =
            |i: usize, values: &mut [f64]| without_offset(rows.row(range.start + i), &offset, values);
        let centred = Embeddings::from_fn(range.len(), self.dim, "centred embeddings", without)?;
        store.put(CENTRED, range.start * self.dim, centred.as_slice())?;
        store.put("hashes", range.start, &hashes(centred.as_slice(), self.dim))
    }

    /// One of the arrays of rows.
    pub fn embeddings(&self, store: &Store, name: &str) -> Result<Embeddings> {
        let values: Values<f32> = store.array_of(name, self.rows * self.dim)?;
        Ok(Embeddings::from_unit_values(values, self.dim))
    }
}

fn source(spec: &Spec, shard: usize) -> (&PathBuf, ReadOptions) {
    (&spec.paths[shard], ReadOptions { dim: spec.dim, array: spec.array.clone() })
}
