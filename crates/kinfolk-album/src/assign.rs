//! Who would these rows be? Nothing is changed.
//!
//! The rows are put beside the album as if they were added (`extension`). The probabilities of people, and of somebody new, follow
//! from those of a row's edges ([`kinfolk::assign`]).
//!
//! Cost: that of adding the rows, without writing.

use crate::album::Album;
use crate::database::{At, DATABASE};
use crate::extension::Extension;
use crate::people::Person;
use crate::view::View;
use kinfolk::{Embeddings, Error, Progress, Result, assign};
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

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
        let mut edges: Vec<(i64, f32)> = Vec::new();
        let mut people: BTreeMap<i64, Person> = BTreeMap::new();
        let mut statement =
            self.connection.prepare_cached("SELECT person FROM items WHERE slot = ?1").at(&path)?;
        for (other, p) in extension.records.edges(slot).filter(|(other, _)| (*other as usize) < view.slots())
        {
            let id = statement.query_row([other], |row| row.get(0)).at(&path)?;
            edges.push((id, p));
            if let Entry::Vacant(place) = people.entry(id) {
                place.insert(Person::read(&self.connection, &self.directory, id)?);
            }
        }
        let found = assign(edges, |id| people[&id].size);
        let candidate = |(person, probability)| {
            let name = people.get(&person).and_then(|person| person.name.clone());
            Candidate { person, name, probability }
        };
        let people = found.candidates.into_iter().take(top).map(candidate).collect();
        Ok(Assignment { people, new: found.none })
    }
}
