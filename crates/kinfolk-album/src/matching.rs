//! Which module is which person: ids are kept by the overlap of members.
//!
//! Pairs of a person and a module are taken in this order: named people first, then the larger overlap, then the smaller id of the
//! person, then the first module. Each person and each module is taken once. Modules that are left are new people, people that
//! are left have been merged.
//!
//! Cost: O(N log N) for N items.

use std::collections::{BTreeMap, BTreeSet};

/// The person of each module, where one is kept; `before` and `modules` are those of every item.
pub(crate) fn kept_people(
    before: &[Option<i64>],
    modules: &[u32],
    is_named: impl Fn(i64) -> bool,
) -> BTreeMap<u32, i64> {
    let mut overlap: BTreeMap<(i64, u32), usize> = BTreeMap::new();
    let mut first: BTreeMap<u32, usize> = BTreeMap::new();
    for (item, (&person, &module)) in before.iter().zip(modules).enumerate() {
        first.entry(module).or_insert(item);
        if let Some(person) = person {
            *overlap.entry((person, module)).or_default() += 1;
        }
    }
    let mut pairs: Vec<((i64, u32), usize)> = overlap.into_iter().collect();
    pairs.sort_by_key(|&((person, module), count)| {
        (!is_named(person), std::cmp::Reverse(count), person, first[&module])
    });
    let (mut taken, mut kept) = (BTreeSet::new(), BTreeMap::new());
    for ((person, module), _) in pairs {
        if !kept.contains_key(&module) && taken.insert(person) {
            kept.insert(module, person);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What decides, the person and the module.
    type Pair = ((bool, usize, i64, i64), i64, u32);

    #[test]
    fn a_named_person_comes_before_a_larger_one() {
        let before = [Some(1), Some(1), Some(1), Some(2), None];
        assert_eq!(kept_people(&before, &[0; 5], |_| false), [(0, 1)].into());
        assert_eq!(kept_people(&before, &[0; 5], |person| person == 2), [(0, 2)].into());
        assert_eq!(kept_people(&before, &[0, 0, 1, 2, 2], |_| false), [(0, 1), (2, 2)].into());
    }

    proptest! {
        #[test]
        fn the_best_pair_that_is_left_is_always_next(items in prop::collection::vec((prop::option::of(1i64..6), 0u32..6), 0..40), named in 0i64..6) {
            let (before, modules): (Vec<_>, Vec<_>) = items.into_iter().unzip();
            let kept = kept_people(&before, &modules, |person| person < named);
            // The obvious way: look at all pairs again and again.
            let (mut people, mut open): (Vec<i64>, Vec<u32>) = ((1..6).collect(), (0..6).collect());
            let mut slow = BTreeMap::new();
            loop {
                let mut best: Option<Pair> = None;
                for &person in &people {
                    for &module in &open {
                        let count = before.iter().zip(&modules).filter(|(p, m)| **p == Some(person) && **m == module).count();
                        if count == 0 { continue; }
                        let first = modules.iter().position(|&m| m == module).unwrap() as i64;
                        let key = (person < named, count, -person, -first);
                        if best.is_none_or(|best| key > best.0) {
                            best = Some((key, person, module));
                        }
                    }
                }
                let Some((_, person, module)) = best else { break };
                slow.insert(module, person);
                people.retain(|&p| p != person);
                open.retain(|&m| m != module);
            }
            prop_assert_eq!(kept, slow);
        }
    }
}
