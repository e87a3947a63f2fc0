//! Random operations against a slow, obvious album in memory.
//!
//! The twin knows what was said: which items there are, corrections and what they imply, names, and every former state. What
//! the map equation finds it takes from the album, and checks that it keeps to what was said.

use super::{contents, faces, keys, part, sound};
use crate::Album;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tempfile::TempDir;

#[derive(Debug, Clone)]
enum Operation {
    Add(usize),
    Remove(usize),
    Same(usize, usize),
    Apart(usize, usize),
    Merge(usize, usize),
    Name(usize, u8),
    Refresh,
    Undo,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let any = || any::<prop::sample::Index>().prop_map(|index| index.index(1 << 20));
    let one = prop_oneof![
        3 => (1usize..30).prop_map(Operation::Add),
        2 => any().prop_map(Operation::Remove),
        3 => (any(), any()).prop_map(|(a, b)| Operation::Same(a, b)),
        3 => (any(), any()).prop_map(|(a, b)| Operation::Apart(a, b)),
        1 => (any(), any()).prop_map(|(a, b)| Operation::Merge(a, b)),
        2 => (any(), 0u8..4).prop_map(|(a, name)| Operation::Name(a, name)),
        1 => Just(Operation::Refresh),
        3 => Just(Operation::Undo),
    ];
    prop::collection::vec(one, 1..14)
}

/// What was said.
#[derive(Debug, Clone, Default, PartialEq)]
struct Twin {
    items: BTreeSet<String>,
    said: Vec<(bool, String, String)>,
}

impl Twin {
    /// Whether two keys are the same by what was said, by trying all chains.
    fn same(&self, a: &str, b: &str) -> bool {
        let mut reached = BTreeSet::from([a.to_owned()]);
        loop {
            let before = reached.len();
            for (_, x, y) in self.said.iter().filter(|said| said.0) {
                if reached.contains(x) || reached.contains(y) {
                    reached.extend([x.clone(), y.clone()]);
                }
            }
            if reached.len() == before {
                return reached.contains(b);
            }
        }
    }

    fn apart(&self, a: &str, b: &str) -> bool {
        self.said
            .iter()
            .filter(|said| !said.0)
            .any(|(_, x, y)| (self.same(a, x) && self.same(b, y)) || (self.same(a, y) && self.same(b, x)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 40, ..ProptestConfig::default() })]
    #[test]
    fn an_album_does_what_was_said(operations in operations(), seed in 0u64..4, small in any::<bool>()) {
        let (rows, _) = faces(30, 20 + seed);
        let first = if small { 20 } else { 200 };
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("album");
        let mut album = Album::create(&path, &part(&rows, 0..first), &keys(0..first), 0, &()).unwrap().0;
        let mut twin = Twin { items: (0..first).map(|at| format!("k{at}")).collect(), ..Twin::default() };
        let mut former = Vec::new();
        let mut used: BTreeSet<i64> = contents(&album).1.into_keys().collect();
        let mut next = first;
        for operation in operations {
            let before = contents(&album);
            let was = twin.clone();
            let items: Vec<String> = twin.items.iter().cloned().collect();
            let item = |at: usize| items[at % items.len()].clone();
            let people: Vec<i64> = before.1.keys().copied().collect();
            let person = |at: usize| people[at % people.len()].to_string();
            let named = |key: &str| before.1[&before.0[key]].clone();
            let mut undone = false;
            let done = match operation {
                _ if items.len() < 5 => break,
                Operation::Add(count) => {
                    let range = next..(next + count).min(rows.len());
                    if range.is_empty() { continue; }
                    next = range.end;
                    twin.items.extend(range.clone().map(|at| format!("k{at}")));
                    album.add(&part(&rows, range.clone()), &keys(range), &()).unwrap();
                    true
                }
                Operation::Remove(at) => {
                    twin.items.remove(&item(at));
                    album.remove(&[item(at)], &()).unwrap();
                    true
                }
                Operation::Same(a, b) => {
                    let [a, b] = [item(a), item(b)];
                    let two_names = before.0[&a] != before.0[&b] && named(&a).is_some() && named(&b).is_some();
                    let refused = a == b || twin.apart(&a, &b) || two_names;
                    prop_assert_eq!(album.same(&a, &b, &()).is_err(), refused);
                    if !refused { twin.said.push((true, a, b)); }
                    !refused
                }
                Operation::Apart(a, b) => {
                    let [a, b] = [item(a), item(b)];
                    let refused = a == b || twin.same(&a, &b);
                    prop_assert_eq!(album.apart(&a, &b, &()).is_err(), refused);
                    if !refused { twin.said.push((false, a, b)); }
                    !refused
                }
                Operation::Merge(a, b) => {
                    let (a, b) = (person(a), person(b));
                    let [ours, theirs] = [&a, &b].map(|person| album.person(person).unwrap());
                    let apart = ours.iter().any(|x| theirs.iter().any(|y| twin.apart(x, y)));
                    let merged = album.merge(&a, &b, &());
                    prop_assert_eq!(merged.is_err(), a == b || apart);
                    if merged.is_ok() {
                        let now = contents(&album);
                        // The correction that was made joins the two.
                        if let Some(said) = now.2.iter().find(|said| !before.2.contains(said)) {
                            let (a, b) = said["same".len()..].split_once(' ').unwrap();
                            twin.said.push((true, a.to_owned(), b.to_owned()));
                        }
                        let people: BTreeSet<i64> = ours.iter().chain(&theirs).map(|key| now.0[key]).collect();
                        prop_assert_eq!(people.len(), 1);
                    }
                    merged.is_ok()
                }
                Operation::Name(at, name) => {
                    let (id, name) = (person(at), format!("name {name}"));
                    let taken = before.1.iter().any(|(other, has)| other.to_string() != id && has.as_deref() == Some(&name));
                    prop_assert_eq!(album.name(&id, &name).is_err(), taken);
                    !taken
                }
                Operation::Refresh => {
                    album.refresh(&()).unwrap();
                    true
                }
                Operation::Undo => {
                    undone = true;
                    let last = former.pop();
                    let found = album.undo();
                    match last {
                        Some((state, said)) if found.is_ok() => {
                            twin = said;
                            prop_assert_eq!(&contents(&album), &state);
                        }
                        None => prop_assert!(found.is_err()),
                        // Further back than the last but one clustering of the whole.
                        Some(_) => former.clear(),
                    }
                    true
                }
            };
            let now = contents(&album);
            if !done {
                twin = was;
                prop_assert_eq!(&now, &before);
            } else if !undone {
                former.push((before.clone(), was));
            }
            prop_assert_eq!(now.0.keys().cloned().collect::<BTreeSet<_>>(), twin.items.clone());
            for (same, a, b) in &twin.said {
                if let (Some(one), Some(other)) = (now.0.get(a), now.0.get(b)) {
                    prop_assert_eq!(one == other, *same, "{} {}", a, b);
                }
            }
            // Nobody gets the id of somebody else: who is new has one that was never used, unless an undo brought it back.
            for &id in now.1.keys().filter(|id| !before.1.contains_key(*id)) {
                prop_assert_eq!(used.insert(id), !undone);
            }
            // Names stay with the items they had.
            if !undone {
                for (id, name) in before.1.iter().filter_map(|(id, name)| Some((id, name.as_ref()?))) {
                    let there: BTreeMap<_, _> = now.0.iter().filter(|(key, _)| before.0.get(*key) == Some(id)).collect();
                    let merged = now.1.values().all(|other| other.as_ref() != Some(name));
                    let asked = matches!(operation, Operation::Merge(..) | Operation::Name(..));
                    prop_assert!(there.is_empty() || asked || !merged, "{} lost the name {}", id, name);
                }
            }
            sound(&album);
        }
    }
}
