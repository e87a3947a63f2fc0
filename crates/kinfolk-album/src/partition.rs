//! Which items are which person: found anew for some people, or for all, and written.
//!
//! The items of some people and new items are a region of the graph (`region`). Its modules are made to keep all corrections
//! (`enforce`), then improved by the moves of the map equation, which keep to them: people who have a name or were corrected move as
//! one, what is apart stays apart, and no two named people meet. Modules are named after the people whose items they have
//! (`matching`).

use crate::change::Change;
use crate::corrections::Corrections;
use crate::database::At;
use crate::enforce::{Law, enforce};
use crate::matching::kept_people;
use crate::records::{Records, UNIT};
use crate::region::Region;
use kinfolk::incremental::PAIR;
use kinfolk::stages::{MapParams, Region as Part, regional_modules};
use kinfolk::{Context, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// New items: the first slot, their keys and groups.
pub(crate) struct NewItems<'a> {
    pub first: u32,
    pub keys: &'a [String],
    pub groups: &'a [Option<String>],
}

/// What moves of items may do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Moves<'a> {
    /// The map equation moves items, then corrections are kept.
    Free,
    /// These items leave their person; the others stay but for what corrections need.
    Of(&'a [u32]),
}

/// The people of some items.
pub(crate) fn people_of(change: &Change<'_>, slots: &BTreeSet<u32>) -> Result<BTreeSet<i64>> {
    let path = change.database();
    let mut statement =
        change.transaction.prepare_cached("SELECT person FROM items WHERE slot = ?1").at(&path)?;
    let mut people = BTreeSet::new();
    for slot in slots {
        let mut rows = statement.query([slot]).at(&path)?;
        if let Some(row) = rows.next().at(&path)? {
            people.insert(row.get(0).at(&path)?);
        }
    }
    Ok(people)
}

/// Finds the people of the items of `people` and of new ones anew, and writes them. `total` and `entered` are those of the graph.
pub(crate) fn repartition(
    change: &Change<'_>,
    records: &Records,
    people: &BTreeSet<i64>,
    new: Option<&NewItems<'_>>,
    moves: Moves<'_>,
    context: &Context,
) -> Result<()> {
    let path = change.database();
    let mut person_of: HashMap<u32, i64> = HashMap::new();
    {
        let mut statement =
            change.transaction.prepare_cached("SELECT slot FROM items WHERE person = ?1").at(&path)?;
        for &person in people {
            let slots = statement.query_map([person], |row| row.get::<_, u32>(0)).at(&path)?;
            for slot in slots {
                person_of.insert(slot.at(&path)?, person);
            }
        }
    }
    let mut slots: Vec<u32> = person_of.keys().copied().collect();
    if let Some(new) = new {
        slots.extend((0..new.keys.len() as u32).map(|at| new.first + at));
    }
    if slots.is_empty() {
        return Ok(());
    }
    let region = Region::of(records, slots);
    let before: Vec<Option<i64>> = region.slots.iter().map(|slot| person_of.get(slot).copied()).collect();
    // Modules as they are: people, and new items on their own.
    let mut number_of: HashMap<i64, u32> = HashMap::new();
    let mut modules = Vec::with_capacity(region.len());
    let mut count = 0;
    for &person in &before {
        let module = match person {
            Some(person) => *number_of.entry(person).or_insert_with(|| {
                count += 1;
                count - 1
            }),
            None => {
                count += 1;
                count - 1
            }
        };
        modules.push(module);
    }
    let entered_before = region.entered(&modules);
    if let Moves::Of(slots) = moves {
        slots.iter().filter_map(|&slot| region.place(slot)).for_each(|place| modules[place as usize] = count);
    }
    let names = names(change, people)?;
    let law = law(change, &region, &before, &names)?;
    let entered: i64 = crate::view::meta(&change.transaction, &change.directory, "entered")?;
    let total: i64 = crate::view::meta(&change.transaction, &change.directory, "total")?;
    let outside = (entered - entered_before + new_entered(&region, &before)).max(0);
    // What new items are said to be holds before anything moves, so that moves only need to keep it.
    enforce(&region, &law, &mut modules);
    if moves == Moves::Free {
        modules = dense(&modules);
        let units = units(&law, &modules);
        // Two items of one group in one photograph are two people, unless their edge says otherwise.
        let mut apart = law.apart.clone();
        apart.extend(grouped(change, &region, &before, new)?);
        apart.retain(|&[a, b]| modules[a as usize] != modules[b as usize]);
        let strengths: Vec<f64> = region.strengths.iter().map(|&strength| strength as f64 / UNIT).collect();
        let part = Part {
            graph: &region.graph()?,
            strengths: &strengths,
            total: total as f64 / UNIT,
            outside: outside as f64 / UNIT,
            modules: &modules,
            apart: &apart,
            colours: &law.named,
            units: Some(&units),
        };
        let params = MapParams { seed: context.seed(), pair_weight: Some(PAIR), ..MapParams::default() };
        modules = context.timed("partition", || regional_modules(&part, &params, context.progress()))?;
    }
    change.set("entered", outside + region.entered(&modules))?;
    write(change, &region.slots, &before, &modules, &names, new)
}

/// The same modules, numbered 0, 1, 2 ... without gaps.
fn dense(modules: &[u32]) -> Vec<u32> {
    let mut number_of: HashMap<u32, u32> = HashMap::new();
    let number = |module: &u32| {
        let next = number_of.len() as u32;
        *number_of.entry(*module).or_insert(next)
    };
    modules.iter().map(number).collect()
}

/// The unit of each item. People who have a name, or about whom somebody said something, lose nothing by moves: each is one unit.
/// Where a correction joined two clusters, or divided one, moves would otherwise take that back but for the items it names.
fn units(law: &Law, modules: &[u32]) -> Vec<u32> {
    let named = law.named.iter().zip(0..).filter(|(name, _)| name.is_some()).map(|(_, place)| place);
    let corrected = law.same.iter().flatten().chain(law.apart.iter().flatten()).copied();
    let settled: HashSet<u32> = named.chain(corrected).map(|place: u32| modules[place as usize]).collect();
    let of_item = |(place, module): (usize, &u32)| match settled.contains(module) {
        true => *module,
        // Beyond the numbers of modules.
        false => (modules.len() + place) as u32,
    };
    dense(&modules.iter().enumerate().map(of_item).collect::<Vec<u32>>())
}

/// What the edges of new items add to what modules are entered, if each is on its own: they were not part of the graph before.
fn new_entered(region: &Region, before: &[Option<i64>]) -> i64 {
    let new = (0..region.len() as u32).filter(|&place| before[place as usize].is_none());
    let old = |link: &&(u32, i64)| before[link.0 as usize].is_some();
    let of_place = |place: u32| {
        let to_old: i64 = region.links(place).iter().filter(old).map(|link| link.1).sum();
        region.strengths[place as usize] + to_old
    };
    new.map(of_place).sum()
}

/// The names of people, for those that have one.
fn names(change: &Change<'_>, people: &BTreeSet<i64>) -> Result<BTreeMap<i64, String>> {
    let path = change.database();
    let mut statement =
        change.transaction.prepare_cached("SELECT name FROM people WHERE id = ?1").at(&path)?;
    let mut names = BTreeMap::new();
    for &person in people {
        let name: Option<String> = statement.query_row([person], |row| row.get(0)).at(&path)?;
        names.extend(name.map(|name| (person, name)));
    }
    Ok(names)
}

/// The corrections within a region, and which items belong to somebody with a name.
fn law(
    change: &Change<'_>,
    region: &Region,
    before: &[Option<i64>],
    names: &BTreeMap<i64, String>,
) -> Result<Law> {
    let corrections = Corrections::read(&change.transaction, &change.directory)?;
    let places =
        |slots: &[u32]| -> Vec<u32> { slots.iter().filter_map(|&slot| region.place(slot)).collect() };
    let same =
        corrections.groups().iter().map(|group| places(group)).filter(|group| group.len() > 1).collect();
    let apart =
        corrections.apart().iter().map(|pair| places(pair)).filter_map(|pair| pair.try_into().ok()).collect();
    let number: BTreeMap<i64, u32> = names.keys().copied().zip(0..).collect();
    let named = before.iter().map(|person| number.get(person.as_ref()?).copied()).collect();
    Ok(Law { same, apart, named })
}

/// Pairs of a new item and another of its group without a probable edge.
fn grouped(
    change: &Change<'_>,
    region: &Region,
    before: &[Option<i64>],
    new: Option<&NewItems<'_>>,
) -> Result<Vec<[u32; 2]>> {
    let (Some(new), path) = (new, change.database()) else { return Ok(Vec::new()) };
    let mut members: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (group, slot) in new.groups.iter().zip(new.first..) {
        if let Some(group) = group {
            members.entry(group).or_default().extend(region.place(slot));
        }
    }
    let mut statement =
        change.transaction.prepare_cached("SELECT slot FROM items WHERE grouped = ?1").at(&path)?;
    let mut pairs = Vec::new();
    for (group, places) in &mut members {
        for slot in statement.query_map([group], |row| row.get::<_, u32>(0)).at(&path)? {
            places.extend(region.place(slot.at(&path)?));
        }
        places.sort_unstable();
        places.dedup();
        for (at, &a) in places.iter().enumerate() {
            for &b in &places[at + 1..] {
                let newcomer = before[a as usize].is_none() || before[b as usize].is_none();
                let weight = region.links(a).iter().find(|link| link.0 == b).map_or(0, |link| link.1);
                if newcomer && (weight as f64) <= f64::from(PAIR) * UNIT {
                    pairs.push([a, b]);
                }
            }
        }
    }
    Ok(pairs)
}

/// Clusters of all items, by their natural labels, made to keep people with names and all corrections, and written.
pub(crate) fn write_whole(
    change: &Change<'_>,
    records: &Records,
    slots: &[u32],
    labels: &[i64],
    new: Option<&NewItems<'_>>,
) -> Result<()> {
    let path = change.database();
    let mut person_of: HashMap<u32, i64> = HashMap::new();
    {
        let mut statement = change.transaction.prepare("SELECT slot, person FROM items").at(&path)?;
        let items =
            statement.query_map([], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, i64>(1)?))).at(&path)?;
        for item in items {
            let (slot, person) = item.at(&path)?;
            person_of.insert(slot, person);
        }
    }
    let people: BTreeSet<i64> = person_of.values().copied().collect();
    let names = names(change, &people)?;
    let before: Vec<Option<i64>> = slots.iter().map(|slot| person_of.get(slot).copied()).collect();
    let mut modules: Vec<u32> = labels.iter().map(|&label| label as u32).collect();
    keep_named(&before, &mut modules, &names);
    let corrections = Corrections::read(&change.transaction, &change.directory)?;
    if !names.is_empty() || !corrections.0.is_empty() {
        // Only clusters that a correction or a name is about can need a change.
        let place_of: HashMap<u32, usize> = slots.iter().copied().zip(0..).collect();
        let mut touched: BTreeSet<u32> = BTreeSet::new();
        for slot in corrections.slots() {
            touched.extend(place_of.get(&slot).map(|&place| modules[place]));
        }
        let of_named = |place: &usize| before[*place].is_some_and(|person| names.contains_key(&person));
        touched.extend((0..slots.len()).filter(of_named).map(|place| modules[place]));
        let some: Vec<u32> = (0..slots.len())
            .filter(|&place| touched.contains(&modules[place]))
            .map(|place| slots[place])
            .collect();
        let region = Region::of(records, some);
        let places: Vec<usize> = region.slots.iter().map(|slot| place_of[slot]).collect();
        let part_before: Vec<Option<i64>> = places.iter().map(|&place| before[place]).collect();
        let law = law(change, &region, &part_before, &names)?;
        let mut part: Vec<u32> = places.iter().map(|&place| modules[place]).collect();
        enforce(&region, &law, &mut part);
        // Modules that were divided get numbers that no other cluster has.
        let after_all = modules.iter().max().map_or(0, |&last| last + 1);
        let known: BTreeSet<u32> = touched;
        for (&place, &module) in places.iter().zip(&part) {
            modules[place] = if known.contains(&module) { module } else { after_all + module };
        }
    }
    let module_of: HashMap<u32, u32> = slots.iter().copied().zip(modules.iter().copied()).collect();
    let mut entered = 0;
    for &slot in slots {
        for (other, weight) in records.weighted(slot) {
            if module_of.get(&other) != module_of.get(&slot) {
                entered += 2 * weight;
            }
        }
    }
    change.set("entered", entered)?;
    write(change, slots, &before, &modules, &names, new)
}

/// Brings the items of people with names back to them: whoever gave a name has looked at the items.
fn keep_named(before: &[Option<i64>], modules: &mut [u32], names: &BTreeMap<i64, String>) {
    if names.is_empty() {
        return;
    }
    let mut next = modules.iter().max().map_or(0, |&last| last + 1);
    let kept = kept_people(before, modules, |person| names.contains_key(&person));
    let mut module_of: HashMap<i64, u32> =
        kept.into_iter().map(|(module, person)| (person, module)).collect();
    for (module, person) in modules.iter_mut().zip(before) {
        if let Some(person) = person.filter(|person| names.contains_key(person)) {
            *module = *module_of.entry(person).or_insert_with(|| {
                next += 1;
                next - 1
            });
        }
    }
}

/// Writes the people of items; modules of people that there were keep their ids.
fn write(
    change: &Change<'_>,
    slots: &[u32],
    before: &[Option<i64>],
    modules: &[u32],
    names: &BTreeMap<i64, String>,
    new: Option<&NewItems<'_>>,
) -> Result<()> {
    let mut person_of: HashMap<u32, i64> =
        kept_people(before, modules, |person| names.contains_key(&person)).into_iter().collect();
    for (place, &slot) in slots.iter().enumerate() {
        let person = match person_of.get(&modules[place]) {
            Some(&person) => person,
            None => {
                change.execute("INSERT INTO people(name) VALUES(NULL)", ())?;
                let person = change.transaction.last_insert_rowid();
                person_of.insert(modules[place], person);
                person
            }
        };
        match (before[place], new) {
            (None, Some(new)) => {
                let at = (slot - new.first) as usize;
                let values = (slot, &new.keys[at], person, new.groups[at].as_deref());
                change.execute(
                    "INSERT INTO items(slot, key, person, grouped) VALUES(?1, ?2, ?3, ?4)",
                    values,
                )?;
            }
            (Some(was), _) if was == person => {}
            _ => drop(change.execute("UPDATE items SET person = ?1 WHERE slot = ?2", (person, slot))?),
        }
    }
    Ok(())
}
