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
//! Cost: O(N K), and some passes over the edges of the [`DIVIDED`] largest people.

use crate::album::Album;
use crate::corrections::Corrections;
use crate::database::{At, DATABASE};
use crate::divide::weakest;
use crate::people::key_of;
use crate::records::Records;
use crate::region::Region;
use kinfolk::Result;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

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

/// Two sides that may be one person.
struct Candidate {
    sides: [Vec<u32>; 2],
    people: Vec<i64>,
    probability: f64,
    best: f32,
}

/// The probability that the items of two sides are one person, and that of their most probable edge.
pub(crate) fn one_person(records: &Records, sides: [&[u32]; 2]) -> (f64, f32) {
    let sets: [HashSet<u32>; 2] = sides.map(|side| side.iter().copied().collect());
    let mut of_item: HashMap<u32, f32> = HashMap::new();
    for (side, other) in [(0, 1), (1, 0)] {
        for &slot in sides[side] {
            for (there, p) in records.edges(slot).filter(|(there, _)| sets[other].contains(there)) {
                for end in [slot, there] {
                    let best = of_item.entry(end).or_default();
                    *best = best.max(p);
                }
            }
        }
    }
    let mean = |side: &[u32]| {
        let sum: f64 = side.iter().map(|slot| f64::from(of_item.get(slot).copied().unwrap_or(0.0))).sum();
        sum / side.len().max(1) as f64
    };
    (mean(sides[0]).max(mean(sides[1])), of_item.values().copied().fold(0.0, f32::max))
}

impl Album {
    /// The `count` questions that are worth most, the best first.
    pub fn questions(&self, count: usize) -> Result<Vec<Question>> {
        let path = self.directory.join(DATABASE);
        let view = self.view()?;
        let mut members: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
        let mut person_of: HashMap<u32, i64> = HashMap::new();
        {
            let mut statement =
                self.connection.prepare("SELECT slot, person FROM items ORDER BY slot").at(&path)?;
            let items = statement
                .query_map([], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, i64>(1)?)))
                .at(&path)?;
            for item in items {
                let (slot, person) = item.at(&path)?;
                members.entry(person).or_default().push(slot);
                person_of.insert(slot, person);
            }
        }
        let corrections = Corrections::read(&self.connection, &self.directory)?;
        let answered: BTreeSet<[i64; 2]> = corrections
            .apart()
            .iter()
            .filter_map(|pair| {
                let [a, b] = pair.map(|slot| person_of.get(&slot).copied());
                Some([a?.min(b?), a?.max(b?)])
            })
            .collect();
        let mut pairs: BTreeSet<[i64; 2]> = BTreeSet::new();
        for (&slot, &person) in &person_of {
            for (other, _) in view.records.edges(slot).filter(|&(_, p)| p > LEAST) {
                if let Some(&there) = person_of.get(&other).filter(|there| **there != person) {
                    pairs.insert([person.min(there), person.max(there)]);
                }
            }
        }
        let mut candidates: Vec<Candidate> = Vec::new();
        for pair in pairs.difference(&answered) {
            let sides = pair.map(|person| members[&person].clone());
            let (probability, best) = one_person(&view.records, [&sides[0], &sides[1]]);
            candidates.push(Candidate { sides, people: pair.to_vec(), probability, best });
        }
        let mut by_size: Vec<(&i64, &Vec<u32>)> =
            members.iter().filter(|(_, slots)| slots.len() > 1).collect();
        by_size.sort_by_key(|(person, slots)| (std::cmp::Reverse(slots.len()), **person));
        let groups = corrections.groups();
        for (&person, slots) in by_size.into_iter().take(DIVIDED) {
            let region = Region::of(&view.records, slots.clone());
            let places: Vec<u32> = (0..region.len() as u32).collect();
            let Some(sides) = weakest(&region, &places) else { continue };
            let side = |first: bool| -> Vec<u32> {
                region
                    .slots
                    .iter()
                    .zip(&sides)
                    .filter(|(_, side)| **side == first)
                    .map(|(&slot, _)| slot)
                    .collect()
            };
            let sides = [side(true), side(false)];
            let holds = |group: &Vec<u32>| {
                sides.iter().all(|side| side.iter().any(|slot| group.binary_search(slot).is_ok()))
            };
            // Somebody said already that the two parts are one.
            if !groups.iter().any(holds) {
                let (probability, best) = one_person(&view.records, [&sides[0], &sides[1]]);
                candidates.push(Candidate { sides, people: vec![person], probability, best });
            }
        }
        let shift = shift(&corrections);
        let items = person_of.len().max(1) as f64;
        let mut worth: Vec<(f64, f64, Candidate)> = candidates
            .into_iter()
            .map(|candidate| {
                let p = shifted(candidate.probability, shift);
                let [a, b] = [0, 1].map(|side| candidate.sides[side].len() as f64);
                let changes = if candidate.people.len() == 1 { 1.0 - p } else { p };
                (changes * a * b / ((a + b) * items), p, candidate)
            })
            .collect();
        worth.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.2.sides.cmp(&b.2.sides)));
        worth.truncate(count);
        let question = |(gain, probability, candidate): (f64, f64, Candidate)| -> Result<Question> {
            let anchor = |side: &Vec<u32>| {
                let strongest = |slot: &u32| (view.records.strength(*slot), std::cmp::Reverse(*slot));
                side.iter().copied().max_by_key(strongest).unwrap_or(0)
            };
            let items = [&candidate.sides[0], &candidate.sides[1]].map(anchor);
            let items = [0, 1].map(|end| key_of(&self.connection, &self.directory, items[end]));
            let [a, b] = items;
            let items = [a?, b?];
            let sizes = [candidate.sides[0].len(), candidate.sides[1].len()];
            let text = self.words(&candidate, &items, sizes, probability)?;
            Ok(Question { items, people: candidate.people, sizes, probability, gain, text })
        };
        worth.into_iter().map(question).collect()
    }

    /// The question in words.
    fn words(
        &self,
        candidate: &Candidate,
        [a, b]: &[String; 2],
        sizes: [usize; 2],
        p: f64,
    ) -> Result<String> {
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
