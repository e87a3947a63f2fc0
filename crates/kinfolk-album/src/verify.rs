//! Looks at everything in an album, and names what is damaged.
//!
//! Cost: every byte of every file is read once.

use crate::album::Album;
use crate::corrections::Corrections;
use crate::database::{At, DATABASE};
use crate::files::map;
use crate::records::units;
use crate::state::{NOWHERE, State};
use crate::view::{View, meta};
use kinfolk::Result;
use kinfolk::incremental::similarity;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Rows whose similarities are computed again.
const COMPARED: usize = 2000;
/// Damages of one kind that are listed.
const LISTED: usize = 10;

/// What is wrong in an album.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// What was expected and what was found.
    pub what: String,
}

/// What a look at everything found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verification {
    /// Items that were looked at.
    pub items: usize,
    /// What is wrong, at most ten of a kind; nothing in a sound album.
    pub damages: Vec<Damage>,
}

struct Report(Vec<Damage>);

impl Report {
    /// Adds a damage, unless many of its kind are listed.
    fn add(&mut self, file: &str, what: String, listed: &mut usize) {
        *listed += 1;
        if *listed <= LISTED {
            self.0.push(Damage { file: file.to_owned(), what });
        }
    }
}

impl Album {
    /// Checks all files and invariants.
    pub fn verify(&self) -> Result<Verification> {
        let mut report = Report(Vec::new());
        self.check_database(&mut report)?;
        self.check_files(&mut report)?;
        let mut items = 0;
        // What cannot be read has just been named.
        if report.0.is_empty() {
            let view = self.view()?;
            items = view.alive().len();
            self.check_items(&view, &mut report)?;
            check_records(&view, &mut report);
            check_sums(&view, &mut report);
            self.check_corrections(&mut report)?;
        }
        Ok(Verification { items, damages: report.0 })
    }

    fn check_database(&self, report: &mut Report) -> Result<()> {
        let path = self.directory.join(DATABASE);
        let mut statement = self.connection.prepare("PRAGMA integrity_check(10)").at(&path)?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0)).at(&path)?;
        let mut listed = 0;
        for line in lines {
            let line = line.at(&path)?;
            if line != "ok" {
                report.add(DATABASE, format!("expected a sound database, found: {line}"), &mut listed);
            }
        }
        Ok(())
    }

    /// Lengths and checksums of the mapped files.
    fn check_files(&self, report: &mut Report) -> Result<()> {
        let path = self.directory.join(DATABASE);
        let mut statement = self
            .connection
            .prepare("SELECT name, first, bytes, crc FROM segments ORDER BY name, first")
            .at(&path)?;
        let segments = statement.query_map([], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, i64>(2)?,
                row.get::<_, i64>(3)?,
            ))
        });
        let mut missing: HashSet<String> = HashSet::new();
        let mut listed = 0;
        for segment in segments.at(&path)? {
            let (name, first, bytes, crc) = segment.at(&path)?;
            if missing.contains(&name) {
                continue;
            }
            let end = first + bytes;
            match map(&self.directory.join(&name), end as u64) {
                Err(e) => {
                    report.add(&name, e.to_string(), &mut listed);
                    missing.insert(name);
                }
                Ok(mapped) => {
                    let found = i64::from(crc32fast::hash(&mapped[first as usize..]));
                    if found != crc {
                        let what = format!(
                            "bytes {first} to {}: expected checksum {crc:08x}, found {found:08x}{}",
                            end - 1,
                            self.about(&name, first, end)?
                        );
                        report.add(&name, what, &mut listed);
                    }
                }
            }
        }
        let state: String = meta(&self.connection, &self.directory, "state")?;
        let columns: i64 = meta(&self.connection, &self.directory, "columns")?;
        let rows = crate::view::length(&self.connection, &self.directory, crate::view::ROWS)? as usize
            / (4 * columns as usize);
        if let Err(e) = State::check(&self.directory.join(&state), rows) {
            report.add(&state, e.to_string(), &mut 0);
        }
        Ok(())
    }

    /// Which items the bytes of a file are about, if that can be said.
    fn about(&self, name: &str, first: i64, end: i64) -> Result<String> {
        let columns: i64 = meta(&self.connection, &self.directory, "columns")?;
        let width = match name.split('-').next() {
            Some("rows.f32" | "centred") => 4 * columns,
            Some("medians" | "spreads") => 4,
            _ => return Ok(String::new()),
        };
        let path = self.directory.join(DATABASE);
        let mut statement = self
            .connection
            .prepare_cached("SELECT key FROM items WHERE slot >= ?1 AND slot < ?2 ORDER BY slot")
            .at(&path)?;
        let keys =
            statement.query_map([first / width, end / width], |row| row.get::<_, String>(0)).at(&path)?;
        let keys: Vec<String> = keys.collect::<rusqlite::Result<_>>().at(&path)?;
        Ok(match (keys.first(), keys.last()) {
            (Some(one), Some(last)) => format!(" ({} items, from {one} to {last})", keys.len()),
            _ => String::new(),
        })
    }

    fn check_items(&self, view: &View, report: &mut Report) -> Result<()> {
        let path = self.directory.join(DATABASE);
        let mut statement = self.connection.prepare("SELECT slot FROM items ORDER BY slot").at(&path)?;
        let slots = statement.query_map([], |row| row.get::<_, u32>(0)).at(&path)?;
        let slots: Vec<u32> = slots.collect::<rusqlite::Result<_>>().at(&path)?;
        if slots != view.alive() {
            let what = format!(
                "expected the {} items of the state of rows, found {} others",
                view.alive().len(),
                slots.len()
            );
            report.add(DATABASE, what, &mut 0);
        }
        for (statement, what) in [
            (
                "SELECT count(*) FROM items WHERE person NOT IN (SELECT id FROM people)",
                "items of people that there are not",
            ),
            (
                "SELECT count(*) FROM people WHERE id NOT IN (SELECT person FROM items)",
                "people without items",
            ),
            (
                "SELECT count(*) FROM people WHERE id > (SELECT seq FROM sqlite_sequence WHERE name = 'people')",
                "ids that could be used again",
            ),
        ] {
            let count: i64 = self.connection.query_row(statement, [], |row| row.get(0)).at(&path)?;
            if count > 0 {
                report.add(DATABASE, format!("expected no {what}, found {count}"), &mut 0);
            }
        }
        Ok(())
    }

    fn check_corrections(&self, report: &mut Report) -> Result<()> {
        let corrections = Corrections::read(&self.connection, &self.directory)?;
        let path = self.directory.join(DATABASE);
        let mut items: HashMap<u32, (String, i64)> = HashMap::new();
        let mut statement =
            self.connection.prepare("SELECT key, person FROM items WHERE slot = ?1").at(&path)?;
        for slot in corrections.0.iter().flat_map(|correction| correction.slots).flatten() {
            let found = statement.query_map([slot], |row| Ok((row.get(0)?, row.get(1)?))).at(&path)?;
            for item in found {
                items.insert(slot, item.at(&path)?);
            }
        }
        let mut listed = 0;
        for correction in &corrections.0 {
            for (key, slot) in correction.keys.iter().zip(correction.slots) {
                if slot.is_some_and(|slot| items.get(&slot).is_none_or(|item| item.0 != *key)) {
                    report.add(
                        DATABASE,
                        format!("correction {}: expected the item {key}, found another", correction.id),
                        &mut listed,
                    );
                }
            }
        }
        let person = |slot: &u32| items.get(slot).map(|item| item.1);
        for group in corrections.groups() {
            if group.windows(2).any(|pair| person(&pair[0]) != person(&pair[1])) {
                report.add(
                    DATABASE,
                    format!("expected one person of items that are the same, found several: {group:?}"),
                    &mut listed,
                );
            }
        }
        for pair in corrections.apart() {
            if person(&pair[0]).is_some() && person(&pair[0]) == person(&pair[1]) {
                report.add(
                    DATABASE,
                    format!("expected two people of items that are apart, found one: {pair:?}"),
                    &mut listed,
                );
            }
        }
        Ok(())
    }
}

/// Neighbours are in order, and as similar as their rows.
fn check_records(view: &View, report: &mut Report) {
    let name = crate::view::of_epoch("edges", view.epoch);
    let alive = view.alive();
    let step = alive.len().div_ceil(COMPARED).max(1);
    let mut listed = 0;
    for (at, &slot) in alive.iter().enumerate() {
        let (ids, similarities) = (view.records.ids(slot), view.records.similarities(slot));
        let in_order = |a: (f32, u32), b: (f32, u32)| a.0 > b.0 || (a.0 == b.0 && a.1 < b.1);
        let pairs: Vec<(f32, u32)> = similarities.iter().copied().zip(ids.iter().copied()).collect();
        let sound = ids.iter().all(|&id| (id as usize) < view.slots() && id != slot)
            && pairs.windows(2).all(|pair| in_order(pair[0], pair[1]))
            && view.records.probabilities(slot).iter().all(|p| (0.0..=1.0).contains(p));
        if !sound {
            report.add(
                &name,
                format!("row {slot}: expected neighbours in order and probabilities, found others"),
                &mut listed,
            );
            continue;
        }
        if at % step == 0 {
            let row = view.centred.row(slot as usize);
            let wrong = pairs
                .iter()
                .find(|pair| (similarity(row, view.centred.row(pair.1 as usize)) - pair.0).abs() > 1e-5);
            if let Some((found, id)) = wrong {
                let expected = similarity(row, view.centred.row(*id as usize));
                report.add(
                    &name,
                    format!("rows {slot} and {id}: expected similarity {expected}, found {found}"),
                    &mut listed,
                );
            }
        }
    }
}

/// What is kept of other rows' edges is what they add up to.
fn check_sums(view: &View, report: &mut Report) {
    let state = &view.records.state;
    let (mut arriving, mut arrivals) = (vec![0i64; view.slots()], vec![0u32; view.slots()]);
    let mut total = 0;
    for slot in (0..view.slots() as u32).filter(|&slot| state.records[slot as usize] != NOWHERE) {
        view.records.ids(slot).iter().for_each(|&id| arrivals[id as usize] += 1);
        if state.is_alive(slot) {
            for (other, p) in view.records.edges(slot) {
                arriving[other as usize] += units(p);
                total += units(p);
            }
        }
    }
    let mut listed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut compare = |what: &'static str, slot: u32, expected: i64, found: i64| {
        if expected != found {
            let text = format!("row {slot}: expected {what} {expected}, found {found}");
            report.add("state", text, listed.entry(what).or_default());
        }
    };
    for slot in view.alive() {
        let at = slot as usize;
        compare("arriving weight", slot, arriving[at], state.arriving[at]);
        compare("arrivals", slot, i64::from(arrivals[at]), i64::from(state.arrivals[at]));
        let last = view.records.similarities(slot).last().copied().unwrap_or(f32::INFINITY);
        compare(
            "bits of the last similarity",
            slot,
            i64::from(last.to_bits()),
            i64::from(state.last[at].to_bits()),
        );
    }
    if total != view.total {
        report.add(
            DATABASE,
            format!("expected the weight {total} of all edges, found {}", view.total),
            &mut 0,
        );
    }
}
