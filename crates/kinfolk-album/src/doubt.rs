//! What an answer about two items is about: their people, or two parts of one; and which of the items is a stray.
//!
//! That two items are the same need not mean that their people are: one of the items may have been with the wrong person all along.
//! With m the probability that the people are one, b(i) the most probable edge of item i to the rest of its person, and t(i) that
//! to the other person, these are compared:
//!
//! ```text
//! the people are one    m b(1) b(2)
//! item 1 is a stray     (1 - m) (1 - b(1)) t(1) b(2)
//! item 2 is a stray     (1 - m) (1 - b(2)) t(2) b(1)
//! ```
//!
//! A stray leaves its person with the part that clings to it (`divide`), and only that part joins the other person.
//!
//! Cost: the edges and the rows of both people.

use crate::change::Change;
use crate::divide::divide;
use crate::evidence::{Asked, Evidence, edges_between};
use crate::people::Person;
use crate::records::Records;
use crate::region::Region;
use crate::view::{View, meta};
use kinfolk::Result;

/// An item that was asked about is with the other person at least this probably: the answer says that they are the same.
const ELSEWHERE: f64 = 0.05;
/// Their people are one at least this probably: who is asked looks at people, and says it of items that stand for them.
const ONE: f64 = 0.05;

/// Two items and the sides that they stand for.
pub(crate) struct Doubt {
    items: [u32; 2],
    sides: [Vec<u32>; 2],
    evidence: Evidence,
}

impl Doubt {
    /// That about two items, each a slot and its person.
    pub(crate) fn of(change: &Change<'_>, view: &View, [one, other]: [(u32, i64); 2]) -> Result<Self> {
        let (connection, directory) = (&change.transaction, &change.directory);
        let slots = |id: i64| Person::read(connection, directory, id)?.slots(connection, directory);
        let (asked, sides) = if one.1 == other.1 {
            let all = slots(one.1)?;
            let (first, second) = part_with(&view.records, &all, one.0, other.0);
            (Asked::Parts, [first, second])
        } else {
            (Asked::People, [slots(one.1)?, slots(other.1)?])
        };
        let cohesion: f64 = meta(connection, directory, "cohesion")?;
        let evidence = Evidence::of(asked, &view.records, &view.centred, cohesion, [&sides[0], &sides[1]]);
        Ok(Self { items: [one.0, other.0], sides, evidence })
    }

    /// What it is about, and the probability that the sides are one person.
    pub(crate) fn expected(&self) -> (Asked, f64) {
        (self.evidence.asked, self.evidence.probability(0.0))
    }

    /// The items that leave their person if the two items are the same; none if the people are one.
    pub(crate) fn stray(&self, records: &Records) -> Vec<u32> {
        if self.evidence.asked == Asked::Parts {
            return Vec::new();
        }
        let people = self.evidence.probability(0.0).max(ONE);
        let rests = [0, 1].map(|side| -> Vec<u32> {
            self.sides[side].iter().copied().filter(|&slot| slot != self.items[side]).collect()
        });
        let belongs = [0, 1].map(|side| match &rests[side][..] {
            [] => 1.0,
            rest => edges_between(records, [&[self.items[side]], rest]).0.clamp(0.01, 0.99),
        });
        let stray = |side: usize| {
            let elsewhere = edges_between(records, [&[self.items[side]], &self.sides[1 - side]]).0;
            (1.0 - people) * (1.0 - belongs[side]) * elsewhere.max(ELSEWHERE) * belongs[1 - side]
        };
        let strays = [stray(0), stray(1)];
        let side = usize::from(strays[1] > strays[0]);
        let anchor = anchor(records, &rests[side]);
        if strays[side] <= people * belongs[0] * belongs[1] {
            return Vec::new();
        }
        part_with(records, &self.sides[side], self.items[side], anchor).0
    }
}

/// The parts of some items in which two of them come apart; the part of the first, and the other.
fn part_with(records: &Records, slots: &[u32], first: u32, second: u32) -> (Vec<u32>, Vec<u32>) {
    let region = Region::of(records, slots.to_vec());
    let places: Vec<u32> = (0..region.len() as u32).collect();
    let place = |slot: u32| -> Vec<u32> { region.place(slot).into_iter().collect() };
    let sides = divide(&region, &places, &place(first), &place(second));
    let (ours, theirs): (Vec<_>, Vec<_>) = region.slots.iter().zip(sides).partition(|(_, first)| *first);
    let slots = |part: Vec<(&u32, bool)>| part.into_iter().map(|(&slot, _)| slot).collect();
    (slots(ours), slots(theirs))
}

/// The item with the strongest edges.
pub(crate) fn anchor(records: &Records, slots: &[u32]) -> u32 {
    let strongest =
        slots.iter().copied().max_by_key(|&slot| (records.strength(slot), std::cmp::Reverse(slot)));
    strongest.unwrap_or(0)
}
