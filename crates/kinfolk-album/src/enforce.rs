//! Makes modules keep the corrections.
//!
//! 1. A module with items of several named people is divided among them: every other item goes to the one to which its edges are
//!    strongest, the strongest edge first.
//! 2. A module with two items that are apart is divided along its weakest structure (`divide`), until there is none.
//! 3. Modules with items that are the same become one. Where that would bring together what is apart, or two named people, only
//!    the items that are the same move, to the module that has most of them and may have all; if none may, to one of their own.
//!
//! Items that are the same are on one side in 2, and what is apart is looked at in 3, so afterwards all corrections hold. They
//! can: contradictions were refused.
//!
//! Cost: nothing for modules without corrections but to look.

use crate::divide::divide;
use crate::region::Region;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What modules must keep to, by places of a region.
pub(crate) struct Law {
    /// Items that are the same.
    pub same: Vec<Vec<u32>>,
    /// Pairs that are apart.
    pub apart: Vec<[u32; 2]>,
    /// The named person of each item, if it has one.
    pub named: Vec<Option<u32>>,
}

impl Law {
    fn others(&self) -> HashMap<u32, Vec<u32>> {
        let mut others: HashMap<u32, Vec<u32>> = HashMap::new();
        for &[a, b] in &self.apart {
            others.entry(a).or_default().push(b);
            others.entry(b).or_default().push(a);
        }
        others
    }
}

/// Changes the modules of a region so that they keep to the law.
pub(crate) fn enforce(region: &Region, law: &Law, modules: &mut [u32]) {
    let mut next = modules.iter().max().map_or(0, |&last| last + 1);
    separate_names(region, law, modules, &mut next);
    separate_pairs(region, law, modules, &mut next);
    unite(law, modules, &mut next);
}

/// The members of each module.
pub(crate) fn members(modules: &[u32]) -> BTreeMap<u32, Vec<u32>> {
    let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    modules.iter().zip(0..).for_each(|(&m, place)| members.entry(m).or_default().push(place));
    members
}

fn separate_names(region: &Region, law: &Law, modules: &mut [u32], next: &mut u32) {
    for (module, members) in members(modules) {
        let names: BTreeSet<u32> = members.iter().filter_map(|&member| law.named[member as usize]).collect();
        if names.len() < 2 {
            continue;
        }
        let mut name_of: HashMap<u32, u32> = HashMap::new();
        let mut open: BTreeSet<(std::cmp::Reverse<i64>, u32, u32)> = BTreeSet::new();
        for &member in &members {
            if let Some(name) = law.named[member as usize] {
                open.insert((std::cmp::Reverse(i64::MAX), member, name));
            }
        }
        while let Some((_, member, name)) = open.pop_first() {
            if name_of.contains_key(&member) || modules[member as usize] != module {
                continue;
            }
            name_of.insert(member, name);
            for &(other, weight) in region.links(member) {
                if !name_of.contains_key(&other) && law.named[other as usize].is_none() {
                    open.insert((std::cmp::Reverse(weight), other, name));
                }
            }
        }
        // What no edge leads to stays with the first.
        let mut module_of: BTreeMap<u32, u32> = BTreeMap::new();
        for &name in names.iter().skip(1) {
            module_of.insert(name, *next);
            *next += 1;
        }
        for (member, name) in name_of {
            if let Some(&to) = module_of.get(&name) {
                modules[member as usize] = to;
            }
        }
    }
}

fn separate_pairs(region: &Region, law: &Law, modules: &mut [u32], next: &mut u32) {
    let mut group_of: HashMap<u32, usize> = HashMap::new();
    for (number, group) in law.same.iter().enumerate() {
        group_of.extend(group.iter().map(|&place| (place, number)));
    }
    for &[a, b] in &law.apart {
        let module = modules[a as usize];
        if modules[b as usize] != module {
            continue;
        }
        let members: Vec<u32> =
            (0..region.len() as u32).filter(|&place| modules[place as usize] == module).collect();
        let side = |place: u32| -> Vec<u32> {
            let group = group_of.get(&place).map_or(std::slice::from_ref(&place), |&group| &law.same[group]);
            group.iter().copied().filter(|&place| modules[place as usize] == module).collect()
        };
        let (first, second) = (side(a), side(b));
        let sides = divide(region, &members, &first, &second);
        for (&member, in_first) in members.iter().zip(sides) {
            if in_first {
                modules[member as usize] = *next;
            }
        }
        *next += 1;
    }
}

fn unite(law: &Law, modules: &mut [u32], next: &mut u32) {
    let others = law.others();
    let mut all = members(modules);
    for group in &law.same {
        let mut count: BTreeMap<u32, usize> = BTreeMap::new();
        group.iter().for_each(|&place| *count.entry(modules[place as usize]).or_default() += 1);
        // The module with most of them first; of equals the larger one.
        let mut targets: Vec<u32> = count.keys().copied().collect();
        targets.sort_by_key(|m| std::cmp::Reverse((count[m], all[m].len(), std::cmp::Reverse(*m))));
        if targets.len() < 2 {
            continue;
        }
        let may_meet = |one: &[u32], other: &[u32], modules: &[u32], target: u32| {
            let apart = other.iter().any(|place| {
                others.get(place).is_some_and(|them| {
                    them.iter().any(|&them| modules[them as usize] == target && !other.contains(&them))
                })
            });
            let name = |places: &[u32]| places.iter().find_map(|&place| law.named[place as usize]);
            let names = [name(one), name(other)];
            !apart && (names[0].is_none() || names[1].is_none() || names[0] == names[1])
        };
        // The group alone must fit; the first module where it does is its own.
        let target = targets.iter().copied().find(|target| may_meet(&all[target], group, modules, *target));
        let target = target.unwrap_or_else(|| {
            *next += 1;
            all.insert(*next - 1, Vec::new());
            *next - 1
        });
        for from in targets.into_iter().filter(|from| *from != target) {
            let whole = all[&from].clone();
            let fits = may_meet(&all[&target], &whole, modules, target);
            let moving: Vec<u32> = if fits {
                whole
            } else {
                group.iter().copied().filter(|&place| modules[place as usize] == from).collect()
            };
            moving.iter().for_each(|&place| modules[place as usize] = target);
            if let Some(left) = all.get_mut(&from) {
                left.retain(|place| modules[*place as usize] == from);
            }
            if let Some(joined) = all.get_mut(&target) {
                joined.extend(moving);
                joined.sort_unstable();
            }
            all.retain(|_, members| !members.is_empty());
            all.entry(target).or_default();
        }
    }
}
