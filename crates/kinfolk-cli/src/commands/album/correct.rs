//! `same`, `apart`, `name` and `merge`: what people say.

use super::arguments::Where;
use super::report;
use crate::failure::Failure;
use clap::Args;

/// Say that two items are one person; it holds from now on
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album same faces img_0017#2 img_0018#1")]
pub struct Same {
    #[command(flatten)]
    place: Where,
    /// Key of an item
    #[arg(value_name = "KEY")]
    a: String,
    /// Key of another
    #[arg(value_name = "KEY")]
    b: String,
}

impl Same {
    pub fn run(self) -> Result<(), Failure> {
        let summary = self.place.open()?.same(&self.a, &self.b, &())?;
        report(&summary, self.place.json)
    }
}

/// Say that two items are not one person; a person with both is divided at once
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album apart faces img_0017#2 img_0018#1")]
pub struct Apart {
    #[command(flatten)]
    place: Where,
    /// Key of an item
    #[arg(value_name = "KEY")]
    a: String,
    /// Key of another
    #[arg(value_name = "KEY")]
    b: String,
}

impl Apart {
    pub fn run(self) -> Result<(), Failure> {
        let summary = self.place.open()?.apart(&self.a, &self.b, &())?;
        report(&summary, self.place.json)
    }
}

/// Give a person a name
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album name faces 12 \"Ada Lovelace\"")]
pub struct Name {
    #[command(flatten)]
    place: Where,
    /// Id or name of the person
    #[arg(value_name = "PERSON")]
    person: String,
    /// The name
    #[arg(value_name = "NAME")]
    name: String,
}

impl Name {
    pub fn run(self) -> Result<(), Failure> {
        let summary = self.place.open()?.name(&self.person, &self.name)?;
        report(&summary, self.place.json)
    }
}

/// Make two people one, with the name of the first or else of the second
#[derive(Args)]
#[command(after_help = "Example:  kinfolk album merge faces 12 40")]
pub struct Merge {
    #[command(flatten)]
    place: Where,
    /// Id or name of a person
    #[arg(value_name = "PERSON")]
    one: String,
    /// Id or name of another
    #[arg(value_name = "PERSON")]
    other: String,
}

impl Merge {
    pub fn run(self) -> Result<(), Failure> {
        let summary = self.place.open()?.merge(&self.one, &self.other, &())?;
        report(&summary, self.place.json)
    }
}
