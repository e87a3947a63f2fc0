//! Questions whose answers are worth most.
//!
//! If two people of a and b items are one, merging them raises the BCubed recall of their items by 2 a b / (a + b) in sum; if the
//! two parts of a person are two, dividing it raises the precision by as much. So a question is worth
//!
//! ```text
//! P(the answer changes something) a b / ((a + b) N)
//! ```
//!
//! of BCubed F, nearly. The probability that two sides are one person is the mean, over the items of the side where it is larger,
//! of each item's most probable edge to the other side: one strong edge of a large side proves little, that of a single item
//! everything. Answers shift it for all questions, by the logistic regression of the answers so far with a normal prior.
//! Of every person the weakest structure is one candidate (`divide`), of every pair of people with an edge the pair. The items to
//! compare are those with the strongest edges on either side: the question is about people, not about a stray item.
//!
//! Cost: one pass over all edges, 24 bytes for each end of an edge between two people, and some passes over the edges of the
//! [`DIVIDED`] largest people.

use crate::album::Album;
use crate::corrections::Corrections;
use crate::database::{At, DATABASE};
use crate::divide::weakest;
use crate::people::key_of;
use crate::records::Records;
use crate::region::Region;
use kinfolk::Result;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::{BTreeSet, HashSet};

/// Edges of less probability are no reason for a question.
const LEAST: f32 = 0.02;
/// The largest people that are looked at for parts.
const DIVIDED: usize = 2000;

/// A question about two items.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question {
    /// The keys of the two items: are they one person?
    pub items: [String; 2],
    /// Their people; one if they are together now.
    pub people: Vec<i64>,
    /// How many items are on either side.
    pub sizes: [usize; 2],
    /// The probability that they are one person.
    pub probability: f64,
    /// What the answer is expected to add to BCubed F.
    pub gain: f64,
    /// The question and its evidence.
    pub text: String,
}

/// Two sides that may be one person: two people, or the parts of one.
struct Candidate {
    people: Vec<i64>,
    /// The items of the parts; those of two people are known.
    parts: Option<[Vec<u32>; 2]>,
    sizes: [usize; 2],
    probability: f64,
    best: f32,
}

/// The probability that the items of two sides are one person, and that of their most probable edge.
pub(crate) fn one_person(records: &Records, sides: [&[u32]; 2]) -> (f64, f32) {
    let sets: [HashSet<u32>; 2] = sides.map(|side| side.iter().copied().collect());
    let mut ends = Vec::new();
    for (side, other) in [(0, 1), (1, 0)] {
        for &slot in sides[side] {
            for (there, p) in
                records.edges(slot).filter(|(there, p)| *p > LEAST && sets[other].contains(there))
            {
                ends.extend([(slot, p), (there, p)]);
            }
        }
    }
    ends.sort_unstable_by(most_probable_last);
    of_ends(&ends, |slot| sets[1].contains(&slot), sides.map(<[u32]>::len))
}

fn most_probable_last(a: &(u32, f32), b: &(u32, f32)) -> std::cmp::Ordering {
    a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
}

/// The same from the ends of all edges between the sides, each with its probability, in order.
fn of_ends(ends: &[(u32, f32)], is_second: impl Fn(u32) -> bool, sizes: [usize; 2]) -> (f64, f32) {
    let (mut sums, mut best) = ([0.0; 2], 0.0f32);
    for of_item in ends.chunk_by(|a, b| a.0 == b.0) {
        let (slot, p) = of_item[of_item.len() - 1];
        sums[usize::from(is_second(slot))] += f64::from(p);
        best = best.max(p);
    }
    let mean = |side: usize| sums[side] / sizes[side].max(1) as f64;
    (mean(0).max(mean(1)), best)
}

/// The people of an album, by places.
struct People {
    /// Their ids, ascending.
    ids: Vec<i64>,
    /// The items of each, ascending.
    members: Vec<Vec<u32>>,
    /// The place of the person of each slot.
    of_slot: Vec<Option<u32>>,
}

impl People {
    fn read(album: &Album, slots: usize) -> Result<Self> {
        let path = album.directory.join(DATABASE);
        let mut this = Self { ids: Vec::new(), members: Vec::new(), of_slot: vec![None; slots] };
        let mut statement =
            album.connection.prepare("SELECT slot, person FROM items ORDER BY person, slot").at(&path)?;
        let items =
            statement.query_map([], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, i64>(1)?))).at(&path)?;
        for item in items {
            let (slot, person) = item.at(&path)?;
            if this.ids.last() != Some(&person) {
                this.ids.push(person);
                this.members.push(Vec::new());
            }
            let place = this.ids.len() - 1;
            this.members[place].push(slot);
            this.of_slot[slot as usize] = Some(place as u32);
        }
        Ok(this)
    }

    /// Two people with an edge between them.
    fn pairs(&self, records: &Records, answered: &BTreeSet<[i64; 2]>) -> Vec<Candidate> {
        let of_person = |(place, members): (usize, &Vec<u32>)| {
            let mut ends: Vec<([u32; 2], (u32, f32))> = Vec::new();
            for &slot in members {
                for (other, p) in records.edges(slot).filter(|edge| edge.1 > LEAST) {
                    if let Some(there) = self.of_slot[other as usize].filter(|&there| there as usize != place)
                    {
                        let pair = [there.min(place as u32), there.max(place as u32)];
                        ends.extend([(pair, (slot, p)), (pair, (other, p))]);
                    }
                }
            }
            ends
        };
        let mut ends: Vec<_> = self.members.par_iter().enumerate().flat_map_iter(of_person).collect();
        ends.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| most_probable_last(&a.1, &b.1)));
        let mut found = Vec::new();
        for of_pair in ends.chunk_by(|a, b| a.0 == b.0) {
            let pair = of_pair[0].0;
            let people = pair.map(|place| self.ids[place as usize]);
            if answered.contains(&people) {
                continue;
            }
            let sizes = pair.map(|place| self.members[place as usize].len());
            let ends: Vec<(u32, f32)> = of_pair.iter().map(|end| end.1).collect();
            let is_second = |slot: u32| self.of_slot[slot as usize] == Some(pair[1]);
            let (probability, best) = of_ends(&ends, is_second, sizes);
            found.push(Candidate { people: people.to_vec(), parts: None, sizes, probability, best });
        }
        found
    }

    /// The largest people with their weakest structure, unless somebody said that it is one.
    fn parts(&self, records: &Records, groups: &[Vec<u32>]) -> Vec<Candidate> {
        let mut largest: Vec<usize> =
            (0..self.ids.len()).filter(|&place| self.members[place].len() > 1).collect();
        largest.sort_by_key(|&place| (std::cmp::Reverse(self.members[place].len()), place));
        largest.truncate(DIVIDED);
        let of_person = |place: usize| {
            let region = Region::of(records, self.members[place].clone());
            let places: Vec<u32> = (0..region.len() as u32).collect();
            let first = weakest(&region, &places)?;
            let part = |wanted: bool| -> Vec<u32> {
                let members = region.slots.iter().zip(&first).filter(|(_, first)| **first == wanted);
                members.map(|(&slot, _)| slot).collect()
            };
            let parts = [part(true), part(false)];
            let holds = |group: &Vec<u32>| {
                parts.iter().all(|part| part.iter().any(|slot| group.binary_search(slot).is_ok()))
            };
            if groups.iter().any(holds) {
                return None;
            }
            let (probability, best) = one_person(records, [&parts[0], &parts[1]]);
            let sizes = [parts[0].len(), parts[1].len()];
            Some(Candidate { people: vec![self.ids[place]], parts: Some(parts), sizes, probability, best })
        };
        largest.into_par_iter().filter_map(of_person).collect()
    }

    /// The items of the sides of a candidate.
    fn sides<'a>(&'a self, candidate: &'a Candidate) -> [&'a [u32]; 2] {
        let of_person = |at: usize| match self.ids.binary_search(&candidate.people[at]) {
            Ok(place) => &self.members[place][..],
            Err(_) => &[],
        };
        match &candidate.parts {
            Some([first, second]) => [first, second],
            None => [of_person(0), of_person(1)],
        }
    }
}

impl Album {
    /// The `count` questions that are worth most, the best first.
    pub fn questions(&self, count: usize) -> Result<Vec<Question>> {
        let view = self.view()?;
        let people = People::read(self, view.slots())?;
        let corrections = Corrections::read(&self.connection, &self.directory)?;
        let id_of = |slot: u32| Some(people.ids[people.of_slot[slot as usize]? as usize]);
        let answered: BTreeSet<[i64; 2]> = corrections
            .apart()
            .iter()
            .filter_map(|pair| {
                let [a, b] = pair.map(id_of);
                Some([a?.min(b?), a?.max(b?)])
            })
            .collect();
        let mut candidates = people.pairs(&view.records, &answered);
        candidates.extend(people.parts(&view.records, &corrections.groups()));
        let shift = shift(&corrections);
        let items = people.members.iter().map(Vec::len).sum::<usize>().max(1) as f64;
        let mut worth: Vec<(f64, f64, Candidate)> = candidates
            .into_iter()
            .map(|candidate| {
                let p = shifted(candidate.probability, shift);
                let [a, b] = candidate.sizes.map(|size| size as f64);
                let changes = if candidate.people.len() == 1 { 1.0 - p } else { p };
                (changes * a * b / ((a + b) * items), p, candidate)
            })
            .collect();
        worth.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.2.people.cmp(&b.2.people)));
        worth.truncate(count);
        let question = |(gain, probability, candidate): (f64, f64, Candidate)| -> Result<Question> {
            let anchor = |side: &[u32]| {
                let strongest = |slot: &u32| (view.records.strength(*slot), std::cmp::Reverse(*slot));
                side.iter().copied().max_by_key(strongest).unwrap_or(0)
            };
            let [a, b] =
                people.sides(&candidate).map(|side| key_of(&self.connection, &self.directory, anchor(side)));
            let items = [a?, b?];
            let text = self.words(&candidate, &items, probability)?;
            let Candidate { people, sizes, .. } = candidate;
            Ok(Question { items, people, sizes, probability, gain, text })
        };
        worth.into_iter().map(question).collect()
    }

    /// The question in words.
    fn words(&self, candidate: &Candidate, [a, b]: &[String; 2], p: f64) -> Result<String> {
        let sizes = candidate.sizes;
        let name = |id: i64| -> Result<String> {
            let person = self.find(&id.to_string())?;
            Ok(person.name.unwrap_or_else(|| format!("person {id}")))
        };
        let count = |size: usize| if size == 1 { "1 item".to_owned() } else { format!("{size} items") };
        let best = if candidate.best > 0.0 {
            format!("the most probable edge between them has {:.0} %", 100.0 * candidate.best)
        } else {
            "no edge leads from one to the other".to_owned()
        };
        let percent = format!("{:.0} %", 100.0 * p);
        Ok(match candidate.people[..] {
            [one, other] => format!(
                "Are {a} and {b} one person? They are in {} ({}) and {} ({}), which are one with {percent}: {best}.",
                name(one)?,
                count(sizes[0]),
                name(other)?,
                count(sizes[1])
            ),
            _ => format!(
                "Are {a} and {b} one person? They are together in {}, which falls into parts of {} and {} that are one with {percent}: {best}.",
                name(candidate.people[0])?,
                count(sizes[0]),
                count(sizes[1])
            ),
        })
    }
}

fn logit(p: f64) -> f64 {
    let p = p.clamp(1e-4, 1.0 - 1e-4);
    (p / (1.0 - p)).ln()
}

fn shifted(p: f64, shift: f64) -> f64 {
    1.0 / (1.0 + (-(logit(p) + shift)).exp())
}

/// What the answers so far add to logits: the maximum of sum log P(answer) - shift^2 / 2, by Newton's method.
fn shift(corrections: &Corrections) -> f64 {
    let answers: Vec<(f64, f64)> = corrections
        .0
        .iter()
        .filter_map(|correction| Some((correction.expected?, f64::from(u8::from(correction.same)))))
        .collect();
    let mut shift = 0.0;
    for _ in 0..20 {
        let (mut slope, mut bend) = (-shift, 1.0);
        for &(expected, answer) in &answers {
            let p = shifted(expected, shift);
            slope += answer - p;
            bend += p * (1.0 - p);
        }
        shift += slope / bend;
    }
    shift
}
