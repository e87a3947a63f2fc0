//! Questions whose answers are worth most.
//!
//! If two people of a and b items are one, merging them raises the BCubed recall of their items by 2 a b / (a + b) in sum; if the
//! two parts of a person are two, dividing it raises the precision by as much. So a question is worth
//!
//! ```text
//! P(the answer changes something) a b / ((a + b) N)
//! ```
//!
//! of BCubed F, nearly; `evidence` says how probable it is. Candidates are every pair of people with an edge between them, of the
//! largest people those that are most similar, edges or not, and of every person the two parts of its weakest structure
//! (`divide`). The items to compare are those with the strongest edges on either side: the question is about people, not about a
//! stray item.
//!
//! Cost: one pass over all edges and rows, 24 bytes for each end of an edge between two people, and some passes over the edges of
//! the [`LARGEST`] people.

use crate::album::Album;
use crate::corrections::Corrections;
use crate::database::{At, DATABASE};
use crate::divide::weakest;
use crate::doubt::anchor;
use crate::evidence::{Asked, Evidence, LEAST, between, most_probable_last, of_ends, shift, sum};
use crate::people::key_of;
use crate::region::Region;
use crate::view::{View, meta};
use kinfolk::Result;
use kinfolk::incremental::similarity;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeSet;

/// The largest people, which are looked at for parts and compared with each other.
const LARGEST: usize = 2000;
/// People of at least so many items are compared, ...
const ALIKE_FROM: usize = 3;
/// ... and so many of those with the most similar means are candidates.
const ALIKE: usize = 2;

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
    people: Vec<i64>,
    /// The items of the parts; those of two people are known.
    parts: Option<[Vec<u32>; 2]>,
    evidence: Evidence,
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

    /// Pairs of people with an edge between them, or with similar means.
    fn pairs(&self, view: &View, cohesion: f64, answered: &BTreeSet<[i64; 2]>) -> Vec<Candidate> {
        let sums: Vec<Vec<f32>> = self.members.par_iter().map(|slots| sum(&view.centred, slots)).collect();
        let of_person = |(place, members): (usize, &Vec<u32>)| {
            let mut ends: Vec<([u32; 2], (u32, f32))> = Vec::new();
            for &slot in members {
                for (other, p) in view.records.edges(slot).filter(|edge| edge.1 > LEAST) {
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
        // A pair without an edge has an end of no probability.
        ends.extend(
            self.similar(&sums).into_iter().map(|pair| (pair, (self.members[pair[0] as usize][0], 0.0))),
        );
        ends.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| most_probable_last(&a.1, &b.1)));
        let of_pair = |of_pair: &[([u32; 2], (u32, f32))]| {
            let pair = of_pair[0].0;
            let people = pair.map(|place| self.ids[place as usize]);
            if answered.contains(&people) {
                return None;
            }
            let sizes = pair.map(|place| self.members[place as usize].len());
            let ends: Vec<(u32, f32)> = of_pair.iter().map(|end| end.1).collect();
            let is_second = |slot: u32| self.of_slot[slot as usize] == Some(pair[1]);
            let (edges, best) = of_ends(&ends, is_second, sizes);
            let similarity = between(pair.map(|place| &sums[place as usize][..]), sizes, cohesion);
            let evidence = Evidence { asked: Asked::People, sizes, edges, best, similarity };
            Some(Candidate { people: people.to_vec(), parts: None, evidence })
        };
        ends.chunk_by(|a, b| a.0 == b.0).filter_map(of_pair).collect()
    }

    /// Of the largest people each with those whose means are most similar to its own.
    fn similar(&self, sums: &[Vec<f32>]) -> BTreeSet<[u32; 2]> {
        let largest = self.largest(ALIKE_FROM);
        let lengths: Vec<f32> =
            largest.iter().map(|&place| similarity(&sums[place], &sums[place]).sqrt()).collect();
        let of_person = |at: usize| {
            let cosine = |other: usize| {
                similarity(&sums[largest[at]], &sums[largest[other]])
                    / (lengths[at] * lengths[other]).max(1e-12)
            };
            let mut others: Vec<(f32, usize)> =
                (0..largest.len()).filter(|&other| other != at).map(|other| (cosine(other), other)).collect();
            let count = ALIKE.min(others.len());
            if count < others.len() {
                others.select_nth_unstable_by(count, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            }
            others.truncate(count);
            let pair = |(_, other): (f32, usize)| {
                let [a, b] = [largest[at], largest[other]];
                [a.min(b) as u32, a.max(b) as u32]
            };
            others.into_iter().map(pair).collect::<Vec<_>>()
        };
        (0..largest.len()).into_par_iter().flat_map_iter(of_person).collect()
    }

    /// The places of the [`LARGEST`] people of at least so many items.
    fn largest(&self, least: usize) -> Vec<usize> {
        let mut largest: Vec<usize> =
            (0..self.ids.len()).filter(|&place| self.members[place].len() >= least).collect();
        largest.sort_by_key(|&place| (std::cmp::Reverse(self.members[place].len()), place));
        largest.truncate(LARGEST);
        largest
    }

    /// The largest people with their weakest structure, unless somebody said that it is one.
    fn parts(&self, view: &View, cohesion: f64, groups: &[Vec<u32>]) -> Vec<Candidate> {
        let of_person = |place: usize| {
            let region = Region::of(&view.records, self.members[place].clone());
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
            let sides = [&parts[0][..], &parts[1]];
            let evidence = Evidence::of(Asked::Parts, &view.records, &view.centred, cohesion, sides);
            Some(Candidate { people: vec![self.ids[place]], parts: Some(parts), evidence })
        };
        self.largest(2).into_par_iter().filter_map(of_person).collect()
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
        let cohesion: f64 = meta(&self.connection, &self.directory, "cohesion")?;
        let mut candidates = people.pairs(&view, cohesion, &answered);
        candidates.extend(people.parts(&view, cohesion, &corrections.groups()));
        let shifts = [Asked::People, Asked::Parts].map(|asked| shift(&corrections, asked));
        let items = people.members.iter().map(Vec::len).sum::<usize>().max(1) as f64;
        let worth = |candidate: Candidate| {
            let [a, b] = candidate.evidence.sizes.map(|size| size as f64);
            let probability = |shift| candidate.evidence.probability(shift);
            let (p, changes) = match candidate.evidence.asked {
                Asked::People => (probability(shifts[0]), probability(shifts[0])),
                Asked::Parts => (probability(shifts[1]), 1.0 - probability(shifts[1])),
            };
            (changes * a * b / ((a + b) * items), p, candidate)
        };
        let mut worth: Vec<(f64, f64, Candidate)> = candidates.into_iter().map(worth).collect();
        worth.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.2.people.cmp(&b.2.people)));
        worth.truncate(count);
        let question = |(gain, probability, candidate): (f64, f64, Candidate)| -> Result<Question> {
            let [a, b] = people
                .sides(&candidate)
                .map(|side| key_of(&self.connection, &self.directory, anchor(&view.records, side)));
            let items = [a?, b?];
            let text = self.words(&candidate, &items, probability)?;
            let Candidate { people, evidence, .. } = candidate;
            Ok(Question { items, people, sizes: evidence.sizes, probability, gain, text })
        };
        worth.into_iter().map(question).collect()
    }

    /// The question in words.
    fn words(&self, candidate: &Candidate, [a, b]: &[String; 2], p: f64) -> Result<String> {
        let Evidence { sizes, best, .. } = candidate.evidence;
        let name = |id: i64| -> Result<String> {
            let person = self.find(&id.to_string())?;
            Ok(person.name.unwrap_or_else(|| format!("person {id}")))
        };
        let count = |size: usize| if size == 1 { "1 item".to_owned() } else { format!("{size} items") };
        let best = if best > 0.0 {
            format!("the most probable edge between them has {:.0} %", 100.0 * best)
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
