//! What people said of pairs of items: `same` and `apart`.
//!
//! Both are about keys and hold for what they imply: if a and b are the same and b and c are, so are a and c, and whoever is
//! apart from one of them is apart from all. A correction that contradicts what is implied is refused with the chain of
//! corrections that implies it. They stay when an item is removed, with its embedding, and hold again for an item that is added
//! with the same key and nearly the same embedding, or with the same embedding and another key.
//!
//! Cost: all corrections are read whenever people change, O(C log C); they were typed by hand.

use crate::change::Change;
use crate::database::{At, DATABASE};
use kinfolk::incremental::similarity;
use kinfolk::stages::DisjointSets;
use kinfolk::{Embeddings, Error, Result};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::Path;

/// An item that comes back under its key is the same if its embedding is this similar, ...
const SAME_KEY: f32 = 0.99;
/// ... and under another key from this similarity on.
const SAME_ROW: f32 = 0.99999;

/// A correction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Correction {
    pub id: i64,
    pub same: bool,
    pub keys: [String; 2],
    /// The items, where they are in the album.
    pub slots: [Option<u32>; 2],
    /// Whether it was about two people or about parts of one.
    pub asked: Option<String>,
    /// The probability that was expected of `same` then.
    pub expected: Option<f64>,
}

/// All corrections.
pub(crate) struct Corrections(pub Vec<Correction>);

impl Corrections {
    pub(crate) fn read(connection: &Connection, directory: &Path) -> Result<Self> {
        let path = directory.join(DATABASE);
        let mut statement = connection
            .prepare_cached(
                "SELECT id, kind, a, b, a_slot, b_slot, asked, expected FROM corrections ORDER BY id",
            )
            .at(&path)?;
        let found = statement.query_map([], |row| {
            Ok(Correction {
                id: row.get(0)?,
                same: row.get::<_, String>(1)? == "same",
                keys: [row.get(2)?, row.get(3)?],
                slots: [row.get(4)?, row.get(5)?],
                asked: row.get(6)?,
                expected: row.get(7)?,
            })
        });
        Ok(Self(found.at(&path)?.collect::<rusqlite::Result<_>>().at(&path)?))
    }

    /// For every key that is the same as this one the key before it on the shortest chain from there.
    fn paths<'a>(&'a self, key: &str) -> BTreeMap<&'a str, Option<&'a str>> {
        let mut before: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        let mut queue: VecDeque<&str> = VecDeque::new();
        let ends = self.0.iter().flat_map(|correction| &correction.keys);
        if let Some(start) = ends.map(String::as_str).find(|end| *end == key) {
            before.insert(start, None);
            queue.push_back(start);
        }
        while let Some(at) = queue.pop_front() {
            for [a, b] in
                self.0.iter().filter(|correction| correction.same).map(|correction| &correction.keys)
            {
                for (from, to) in [(a, b), (b, a)] {
                    if from == at && !before.contains_key(to.as_str()) {
                        before.insert(to, Some(at));
                        queue.push_back(to);
                    }
                }
            }
        }
        before
    }

    /// The chain of `same` from one key to another, both included; none if there is none.
    fn chain(&self, from: &str, to: &str) -> Option<Vec<String>> {
        if from == to {
            return Some(vec![from.to_owned()]);
        }
        let before = self.paths(from);
        let mut chain = vec![to.to_owned()];
        let mut at = *before.get(to)?;
        while let Some(key) = at {
            chain.push(key.to_owned());
            at = before[key];
        }
        chain.reverse();
        Some(chain)
    }

    /// Refuses what contradicts a chain of corrections.
    pub(crate) fn check(&self, same: bool, [a, b]: [&str; 2]) -> Result<()> {
        let refuse = |chain: String| {
            let (word, other) = if same { ("same", "apart") } else { ("apart", "the same") };
            let expected = format!("corrections that do not say that {a} and {b} are {other}");
            Err(Error::Format { place: format!("{word} {a} {b}"), expected, found: chain })
        };
        if !same {
            return match self.chain(a, b) {
                Some(chain) => refuse(chain.join(" = ")),
                None => Ok(()),
            };
        }
        let sameness = Sameness::of(self);
        let ends = [a, b].map(|key| sameness.set(key));
        for correction in self.0.iter().filter(|correction| !correction.same) {
            for [x, y] in [[0, 1], [1, 0]].map(|ends| ends.map(|end| correction.keys[end].as_str())) {
                if [sameness.set(x), sameness.set(y)] == ends
                    && let (Some(from), Some(to)) = (self.chain(a, x), self.chain(y, b))
                {
                    return refuse(format!("{} | {}", from.join(" = "), to.join(" = ")));
                }
            }
        }
        Ok(())
    }

    /// Whether a correction is there already.
    pub(crate) fn has(&self, same: bool, [a, b]: [&str; 2]) -> bool {
        let equal = |keys: &[String; 2]| (keys[0] == a && keys[1] == b) || (keys[0] == b && keys[1] == a);
        self.0.iter().any(|correction| correction.same == same && equal(&correction.keys))
    }

    /// The items that are the same, as slots; groups of one are left out.
    pub(crate) fn groups(&self) -> Vec<Vec<u32>> {
        let mut groups: Vec<Vec<u32>> =
            Sameness::of(self).slots.into_values().filter(|group| group.len() > 1).collect();
        groups.sort_unstable();
        groups
    }

    /// Pairs of items that are apart, as slots, with all that are the same as either.
    pub(crate) fn apart(&self) -> Vec<[u32; 2]> {
        let sameness = Sameness::of(self);
        let slots = |key: &str| sameness.set(key).map_or(&[][..], |set| &sameness.slots[&set]);
        let mut pairs = BTreeSet::new();
        for correction in self.0.iter().filter(|correction| !correction.same) {
            let [one, other] = [0, 1].map(|end| slots(&correction.keys[end]));
            for &a in one {
                pairs.extend(other.iter().map(|&b| [a.min(b), a.max(b)]));
            }
        }
        pairs.into_iter().filter(|[a, b]| a != b).collect()
    }

    /// All items that a correction is about, as slots.
    pub(crate) fn slots(&self) -> BTreeSet<u32> {
        self.0.iter().flat_map(|correction| correction.slots).flatten().collect()
    }
}

/// The keys of corrections in sets of those that are the same.
struct Sameness<'a> {
    number_of: HashMap<&'a str, u32>,
    /// The set of each number.
    sets: Vec<u32>,
    /// The items of each set, ascending.
    slots: HashMap<u32, Vec<u32>>,
}

impl<'a> Sameness<'a> {
    fn of(corrections: &'a Corrections) -> Self {
        let mut number_of: HashMap<&str, u32> = HashMap::new();
        for key in corrections.0.iter().flat_map(|correction| &correction.keys) {
            let next = number_of.len() as u32;
            number_of.entry(key).or_insert(next);
        }
        let mut joined = DisjointSets::new(number_of.len());
        for correction in corrections.0.iter().filter(|correction| correction.same) {
            let [a, b] = correction.keys.each_ref().map(|key| number_of[key.as_str()]);
            joined.join(a, b);
        }
        let mut this = Self { number_of, sets: joined.names(), slots: HashMap::new() };
        for correction in &corrections.0 {
            for (key, slot) in correction.keys.iter().zip(correction.slots) {
                let set = this.sets[this.number_of[key.as_str()] as usize];
                this.slots.entry(set).or_default().extend(slot);
            }
        }
        for slots in this.slots.values_mut() {
            slots.sort_unstable();
            slots.dedup();
        }
        this
    }

    /// The set of a key; none if no correction is about it.
    fn set(&self, key: &str) -> Option<u32> {
        self.number_of.get(key).map(|&number| self.sets[number as usize])
    }
}

/// Lets corrections hold for new items that they are about; the slots of these and of their partners.
pub(crate) fn resolve(
    change: &Change<'_>,
    rows: &Embeddings,
    keys: &[String],
    first: u32,
) -> Result<Vec<u32>> {
    let path = change.database();
    let mut touched = Vec::new();
    for [key, slot, row, other] in [["a", "a_slot", "a_row", "b_slot"], ["b", "b_slot", "b_row", "a_slot"]] {
        let missing: Vec<(i64, String, Vec<u8>)> = {
            let mut statement = change
                .transaction
                .prepare(&format!("SELECT id, {key}, {row} FROM corrections WHERE {slot} IS NULL"))
                .at(&path)?;
            let found =
                statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).at(&path)?;
            found.collect::<rusqlite::Result<_>>().at(&path)?
        };
        if missing.is_empty() {
            continue;
        }
        let place_of: HashMap<&str, usize> = keys.iter().map(String::as_str).zip(0..).collect();
        for (id, name, bytes) in missing {
            let kept: Vec<f32> = bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
            if kept.len() != rows.dim() {
                continue;
            }
            let near = |at: usize, least: f32| similarity(rows.row(at), &kept) >= least;
            let by_key = place_of.get(name.as_str()).copied().filter(|&at| near(at, SAME_KEY));
            let found = by_key.or_else(|| (0..rows.len()).find(|&at| near(at, SAME_ROW)));
            if let Some(at) = found {
                change.execute(
                    &format!("UPDATE OR IGNORE corrections SET {slot} = ?1, {key} = ?2 WHERE id = ?3"),
                    (first + at as u32, &keys[at], id),
                )?;
                touched.push(first + at as u32);
                let partner: Option<u32> = change
                    .transaction
                    .query_row(&format!("SELECT {other} FROM corrections WHERE id = ?1"), [id], |row| {
                        row.get(0)
                    })
                    .at(&path)?;
                touched.extend(partner);
            }
        }
    }
    Ok(touched)
}
