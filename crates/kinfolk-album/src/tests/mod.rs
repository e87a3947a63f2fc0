//! Tests of whole albums.

mod damage;
mod operations;
mod twin;
mod writes;

use crate::{AddOptions, Album};
use kinfolk::Embeddings;
use kinfolk::synth::{Synth, SynthParams};
use std::collections::BTreeMap;
use tempfile::TempDir;

/// Rows of synthetic identities in random order, and which identity each is.
pub fn faces(identities: usize, seed: u64) -> (Embeddings, Vec<i64>) {
    let params =
        SynthParams { identities, dim: 32, mean_size: 12.0, noise: 0.55, seed, ..SynthParams::default() };
    let (rows, truth) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
    let n = rows.len();
    // A stride that has no factor in common with the number of rows visits each once.
    let stride =
        (n / 3..).find(|stride| (2..n).all(|f| !stride.is_multiple_of(f) || !n.is_multiple_of(f))).unwrap();
    let order: Vec<usize> = (0..n).map(|at| at * stride % n).collect();
    (some(&rows, &order), order.iter().map(|&at| truth[at]).collect())
}

/// Some rows.
pub fn some(rows: &Embeddings, order: &[usize]) -> Embeddings {
    let data = order.iter().flat_map(|&at| rows.row(at)).copied().collect();
    Embeddings::from_rows(data, rows.dim(), "some").unwrap()
}

/// Consecutive rows.
pub fn part(rows: &Embeddings, range: std::ops::Range<usize>) -> Embeddings {
    some(rows, &range.collect::<Vec<_>>())
}

pub fn keys(range: std::ops::Range<usize>) -> AddOptions {
    AddOptions { keys: Some(range.map(|at| format!("k{at}")).collect()), ..AddOptions::default() }
}

/// An album of the first rows.
pub fn album(rows: &Embeddings, count: usize) -> (TempDir, Album) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("album");
    let (album, _) = Album::create(&path, &part(rows, 0..count), &keys(0..count), 0, &()).unwrap();
    (directory, album)
}

/// Items with people, people with names, and corrections.
type Contents = (BTreeMap<String, i64>, BTreeMap<i64, Option<String>>, Vec<String>);

/// Everything that a reader sees.
pub fn contents(album: &Album) -> Contents {
    let people = album.people().unwrap().into_iter().map(|person| (person.id, person.name)).collect();
    let mut statement =
        album.connection.prepare("SELECT kind || a || ' ' || b FROM corrections ORDER BY id").unwrap();
    let corrections =
        statement.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap();
    (album.items().unwrap().into_iter().collect(), people, corrections)
}

/// Fails with what is damaged.
pub fn sound(album: &Album) {
    let found = album.verify().unwrap();
    assert!(found.damages.is_empty(), "{:#?}", found.damages);
}

/// The person of an item.
pub fn person(album: &Album, key: &str) -> i64 {
    album.items().unwrap().into_iter().find(|item| item.0 == key).unwrap().1
}
