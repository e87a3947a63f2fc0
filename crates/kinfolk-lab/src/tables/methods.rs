//! The registry in the order of the tables.

use kinfolk::MethodInfo;
use kinfolk_methods::{METHODS, MethodEntry};

/// The methods that the tables compare with the others; they are listed last.
const LAST: [&str; 4] = ["density", "kin", "gcn-v", "gcn-ve"];

/// A method of the tables.
#[derive(Clone, Copy)]
pub struct Listed {
    pub entry: &'static MethodEntry,
    pub info: &'static MethodInfo,
    /// Whether its lines are dashed and its dots hollow. Every other method is drawn so, because this many colours are hard
    /// to distinguish and gcn-ve often covers gcn-v.
    pub dashed: bool,
}

/// Every registered method: those of the paper's tables, the others, then [`LAST`]; those with a model after those without.
pub fn listed() -> Vec<Listed> {
    let mut listed: Vec<Listed> =
        METHODS.iter().map(|entry| Listed { entry, info: entry.info(), dashed: false }).collect();
    let place = |info: &MethodInfo| {
        let last = LAST.iter().position(|&name| name == info.name).map_or(0, |at| 1 + at);
        (last, !info.in_paper, info.needs_model)
    };
    listed.sort_by_key(|listed| place(listed.info));
    for (at, listed) in listed.iter_mut().enumerate() {
        listed.dashed = at % 2 == 1;
    }
    listed
}

/// The names of all methods, in the order of the tables.
pub fn names() -> impl Iterator<Item = &'static str> {
    listed().into_iter().map(|listed| listed.info.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registered_method_is_listed_once() {
        let (mut listed, mut registered): (Vec<_>, Vec<_>) =
            (names().collect(), kinfolk_methods::names().collect());
        assert_eq!(listed[listed.len() - LAST.len()..], LAST);
        listed.sort_unstable();
        registered.sort_unstable();
        assert_eq!(listed, registered);
    }

    #[test]
    fn what_covers_gcn_v_is_dashed() {
        let dashed = |name: &str| listed().iter().find(|listed| listed.info.name == name).unwrap().dashed;
        assert!(!dashed("gcn-v") && dashed("gcn-ve"));
    }
}
