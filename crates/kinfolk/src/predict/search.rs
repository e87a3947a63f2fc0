//! The nearest clustered rows of new ones, exactly: every new row is compared with every clustered one.

use crate::incremental::{Added, AddedNeighbours};
use crate::{Embeddings, Error, Progress, Result};

/// Rows of this cosine are copies of each other.
const COPY: f32 = 1.0 - 1e-6;
/// Neighbours among which a copy is looked for: of several near-copies it may not be the first.
pub(super) const FOUND: usize = 8;
/// Rows of a list, which is coded and searched at a time.
const LIST: usize = 16_384;

/// The `k` nearest rows of each new one; and the rows to which a new one is more similar than their `last`. The numbers of new rows
/// follow those of `rows`, of which coding loses at most `loss`.
pub(super) fn nearest(
    rows: &Embeddings,
    loss: f32,
    new: &Embeddings,
    k: usize,
    last: impl Fn(u32) -> f32 + Sync,
    progress: &dyn Progress,
) -> Result<AddedNeighbours> {
    if rows.dim() != new.dim() {
        let (place, what) = ("embeddings".to_owned(), "columns, as the clustered rows have".to_owned());
        return Err(Error::Length { place, what, expected: rows.dim(), found: new.dim() });
    }
    let n = rows.len() as u32;
    let row = |id: u32| match id.checked_sub(n) {
        Some(at) => new.row(at as usize),
        None => rows.row(id as usize),
    };
    let numbers: Vec<u32> = (n..n + new.len() as u32).collect();
    let lists: Vec<Vec<u32>> =
        (0..n).step_by(LIST).map(|first| (first..n.min(first + LIST as u32)).collect()).collect();
    let all: Vec<u32> = (0..new.len() as u32).collect();
    let visits = vec![all; lists.len()];
    let added = Added { dim: rows.dim(), row: &row, new: &numbers, lists: &lists, visits: &visits, loss };
    added.neighbours(k, last, progress)
}

/// The neighbour that is a copy of the row: the first of the same bits, or else the nearest.
pub(super) fn copied(rows: &Embeddings, ids: &[u32], similarities: &[f32], row: &[f32]) -> Option<u32> {
    let near = similarities.iter().take_while(|&&similarity| similarity >= COPY).count();
    ids[..near].iter().find(|&&id| rows.row(id as usize) == row).or(ids[..near].first()).copied()
}
