//! What the result of a stage depends on.

use crate::knn::hash;
use crate::{Embeddings, KnnGraph};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// Named values on which the result of a stage depends, each as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Key(Vec<(String, String)>);

impl Key {
    /// Depends on the version of the program.
    pub(crate) fn new() -> Self {
        Self(Vec::new()).with("kinfolk", env!("CARGO_PKG_VERSION"))
    }

    /// Depends on one more value.
    pub(crate) fn with(mut self, name: &str, value: impl Display) -> Self {
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// Depends on rows: their number, columns and values.
    pub(crate) fn with_rows(self, rows: &Embeddings) -> Self {
        // Each row with its place, so that the sum depends on the order and not on the threads.
        let hashes = (0..rows.len()).into_par_iter().map(|i| mixed(hash(rows.row(i)), i));
        let hash = hashes.reduce(|| 0, u64::wrapping_add);
        self.with("rows", format!("{} x {}, hash {hash:016x}", rows.len(), rows.dim()))
    }

    /// Depends on a graph: its neighbours and similarities.
    pub(crate) fn with_graph(self, graph: &KnnGraph) -> Self {
        let of_row = |i: usize| {
            let (ids, similarities) = graph.neighbours(i);
            let ids = ids.iter().fold(0, |sum, &id| mixed(sum, id as usize));
            mixed(hash(similarities) ^ ids, i)
        };
        let hash = (0..graph.len()).into_par_iter().map(of_row).reduce(|| 0, u64::wrapping_add);
        self.with("graph", format!("{} x {}, hash {hash:016x}", graph.len(), graph.k()))
    }

    /// Depends on numbers such as the weights of a model.
    pub(crate) fn with_numbers(self, name: &str, numbers: &[f32]) -> Self {
        self.with(name, format!("{} numbers, hash {:016x}", numbers.len(), hash(numbers)))
    }

    /// What differs from another key: what this one has, and what the other has instead.
    pub(crate) fn difference(&self, other: &Self) -> Option<(String, String)> {
        let value = |key: &Self, name: &str| {
            let found = key.0.iter().find(|(own, _)| own == name);
            found.map_or_else(|| format!("no {name}"), |(_, value)| format!("{name} {value}"))
        };
        let names = self.0.iter().chain(&other.0).map(|(name, _)| name.as_str());
        let mut pairs = names.map(|name| (value(self, name), value(other, name)));
        pairs.find(|(own, others)| own != others)
    }
}

fn mixed(hash: u64, place: usize) -> u64 {
    let product = u128::from(hash ^ 0x2545_F491_4F6C_DD1D) * (2 * place as u128 + 0x9E37_79B9_7F4A_7C15);
    (product >> 64) as u64 ^ product as u64
}
