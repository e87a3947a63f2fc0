//! The rows of the tables: every registered method, and the two networks of the paper by both recipes.

use kinfolk::MethodInfo;
use kinfolk_methods::{METHODS, MethodEntry};
use kinfolk_nn::Recipe;

/// The rows that the tables compare with the others; they are listed last.
const LAST: [&str; 6] = ["density", "kin", "gcn-v-paper", "gcn-ve-paper", "gcn-v", "gcn-ve"];

/// Rows of methods trained by the recipe of the paper: name, method and colour.
const PAPER: [(&str, &str, &str); 2] =
    [("gcn-v-paper", "gcn-v", "#00a878"), ("gcn-ve-paper", "gcn-ve", "#00664a")];

/// A row of the tables.
#[derive(Clone, Copy)]
pub struct Listed {
    /// The name of the row: that of the method, unless it has several.
    pub row: &'static str,
    pub entry: &'static MethodEntry,
    pub info: &'static MethodInfo,
    /// How GCN-V and GCN-E are trained.
    pub recipe: Recipe,
    pub colour: &'static str,
    /// Whether its lines are dashed and its dots hollow. Every other method is drawn so, because this many colours are hard
    /// to distinguish and gcn-ve often covers gcn-v.
    pub dashed: bool,
}

/// Every registered method: those of the paper's tables, the others, then [`LAST`]; those with a model after those without.
pub fn listed() -> Vec<Listed> {
    let tuned = METHODS.iter().map(|entry| {
        let info = entry.info();
        let (row, recipe, colour) = (info.name, Recipe::Tuned, info.color);
        Listed { row, entry, info, recipe, colour, dashed: false }
    });
    let mut listed: Vec<Listed> = tuned.collect();
    for (row, name, colour) in PAPER {
        let of = listed.iter().find(|listed| listed.row == name).copied();
        listed.extend(of.map(|of| Listed { row, recipe: Recipe::Paper, colour, ..of }));
    }
    let place = |listed: &Listed| {
        let last = LAST.iter().position(|&row| row == listed.row).map_or(0, |at| 1 + at);
        (last, !listed.info.in_paper, listed.info.needs_model)
    };
    listed.sort_by_key(place);
    // Counted from the end, so that gcn-ve, the last one, is dashed where it covers gcn-v.
    for (at, listed) in listed.iter_mut().rev().enumerate() {
        listed.dashed = at % 2 == 0;
    }
    listed
}

/// The names of all rows, in the order of the tables.
pub fn names() -> impl Iterator<Item = &'static str> {
    listed().into_iter().map(|listed| listed.row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registered_method_is_listed_once_for_each_recipe() {
        let (mut listed, mut registered): (Vec<_>, Vec<_>) =
            (names().collect(), kinfolk_methods::names().collect());
        assert_eq!(listed[listed.len() - LAST.len()..], LAST);
        registered.extend(PAPER.map(|(row, ..)| row));
        listed.sort_unstable();
        registered.sort_unstable();
        assert_eq!(listed, registered);
    }

    #[test]
    fn what_covers_gcn_v_is_dashed() {
        let dashed = |name: &str| listed().iter().find(|listed| listed.row == name).unwrap().dashed;
        assert!(!dashed("gcn-v") && dashed("gcn-ve"));
    }
}
