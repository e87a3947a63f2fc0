//! Who would these rows be? Nothing is changed.
//!
//! The rows are put beside the album as if they were added (`extension`). For each person P that a row has edges to, m(P) is the
//! mean probability of its three best edges there, or of as many as P has items. A row is one person or somebody new, so
//!
//! ```text
//! P(person) = o(P) / (1 + sum o),   P(new) = 1 / (1 + sum o),   o = m / (1 - m)
//! ```
//!
//! Cost: that of adding the rows, without writing.

use crate::album::Album;
use crate::database::{At, DATABASE};
use crate::extension::Extension;
use crate::view::View;
use kinfolk::{Embeddings, Error, Progress, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// The edges that count.
const BEST: usize = 3;

/// A person that a row may be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// The id.
    pub person: i64,
    /// The name, if there is one.
    pub name: Option<String>,
    /// The probability.
    pub probability: f64,
}

/// Who a row may be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assignment {
    /// The likeliest people, the most probable first.
    pub people: Vec<Candidate>,
    /// The probability of somebody new.
    pub new: f64,
}

impl Album {
    /// The `top` likeliest people of each row, and the probability that it is none of the album's.
    pub fn assign(&self, rows: &Embeddings, top: usize, progress: &dyn Progress) -> Result<Vec<Assignment>> {
        let view = self.view()?;
        if rows.dim() != view.dim {
            let (place, what) = ("embeddings".to_owned(), "columns, as the album has".to_owned());
            return Err(Error::Length { place, what, expected: view.dim, found: rows.dim() });
        }
        if view.k == 0 || view.alive().len() <= view.k {
            let expected = format!("an album of more than {} items", view.k.max(1));
            return Err(Error::format(&self.directory, expected, view.alive().len().to_string()));
        }
        let knowledge = view.knowledge(&self.connection)?;
        let groups = vec![None; rows.len()];
        let extension = Extension::of(&view, &knowledge, rows, &groups, progress)?;
        (0..rows.len() as u32).map(|at| self.assigned(&view, &extension, extension.first + at, top)).collect()
    }

    fn assigned(&self, view: &View, extension: &Extension, slot: u32, top: usize) -> Result<Assignment> {
        let path = self.directory.join(DATABASE);
        let mut edges: BTreeMap<i64, Vec<f32>> = BTreeMap::new();
        let mut statement =
            self.connection.prepare_cached("SELECT person FROM items WHERE slot = ?1").at(&path)?;
        for (other, p) in extension.records.edges(slot).filter(|(other, _)| (*other as usize) < view.slots())
        {
            let person = statement.query_row([other], |row| row.get(0)).at(&path)?;
            edges.entry(person).or_default().push(p);
        }
        let mut odds: Vec<(f64, i64, Option<String>)> = Vec::new();
        for (id, mut probabilities) in edges {
            let person = self.find(&id.to_string())?;
            probabilities.sort_unstable_by(|a, b| b.total_cmp(a));
            // An item that is not among the neighbours has an edge of no probability.
            let count = BEST.min(person.size);
            let mean = probabilities.iter().take(count).map(|&p| f64::from(p)).sum::<f64>() / count as f64;
            odds.push((mean / (1.0 - mean).max(1e-6), id, person.name));
        }
        odds.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let all = 1.0 + odds.iter().map(|odds| odds.0).sum::<f64>();
        let candidate = |(odds, person, name)| Candidate { person, name, probability: odds / all };
        Ok(Assignment { people: odds.into_iter().take(top).map(candidate).collect(), new: 1.0 / all })
    }
}
