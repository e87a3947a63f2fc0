//! `questions` and `assign`: what an album would like to know, and what it knows of others.

use super::arguments::Where;
use super::print_json;
use crate::bars::Bars;
use crate::commands::Features;
use crate::failure::{Failure, Places};
use clap::Args;

/// Ask about pairs of items; answer with `same` or `apart`, the most valuable first
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album questions faces -n 5")]
pub struct Questions {
    #[command(flatten)]
    place: Where,
    /// Number of questions
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,
}

impl Questions {
    pub fn run(self) -> Result<(), Failure> {
        let questions = self.place.open()?.questions(self.n)?;
        if self.place.json {
            return print_json(&questions);
        }
        for question in questions {
            println!("{}", question.text);
            let [a, b] = &question.items;
            let album = self.place.album.display();
            println!("    kinfolk album same {album} {a} {b}");
            println!("    kinfolk album apart {album} {a} {b}");
        }
        Ok(())
    }
}

/// Say who rows would be; nothing is changed
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album assign faces new.npy --top 3")]
pub struct Assign {
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    features: Features,
    /// People to list for each row
    #[arg(long, value_name = "N", default_value_t = 1)]
    top: usize,
}

impl Assign {
    pub fn run(self) -> Result<(), Failure> {
        let album = self.place.open()?;
        let rows = self.features.read()?;
        let bars = Bars::default();
        let places = Places { embeddings: Some(&self.features.features), ..Places::default() };
        let found = album.assign(&rows, self.top, &bars).map_err(|e| Failure::from(e).at(&places))?;
        drop(bars);
        if self.place.json {
            return print_json(&found);
        }
        for (row, assignment) in found.iter().enumerate() {
            let person = |candidate: &kinfolk_album::Candidate| {
                let name = candidate.name.clone().unwrap_or_else(|| format!("person {}", candidate.person));
                format!("{name} {:.3}, ", candidate.probability)
            };
            let people: String = assignment.people.iter().map(person).collect();
            println!("row {row}: {people}somebody new {:.3}", assignment.new);
        }
        Ok(())
    }
}
