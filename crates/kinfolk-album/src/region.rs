//! Some items of an album, the edges between them, and what surrounds them.
//!
//! Cost: K looks for each item.

use crate::records::{Records, UNIT, units};
use kinfolk::Result;
use kinfolk::stages::WeightedGraph;
use std::collections::HashMap;

/// Some items, known by their places here.
pub(crate) struct Region {
    /// The slot of each place, ascending.
    pub slots: Vec<u32>,
    /// Edges to other places: the place, and the weight of both directions in units.
    links: Vec<Vec<(u32, i64)>>,
    /// The weight of all edges of each place, also of those that leave the region, in units.
    pub strengths: Vec<i64>,
    places: HashMap<u32, u32>,
}

impl Region {
    pub(crate) fn of(records: &Records, mut slots: Vec<u32>) -> Self {
        slots.sort_unstable();
        slots.dedup();
        let places: HashMap<u32, u32> = slots.iter().copied().zip(0..).collect();
        let mut links: Vec<Vec<(u32, i64)>> = vec![Vec::new(); slots.len()];
        for (place, &slot) in slots.iter().enumerate() {
            for (other, p) in records.edges(slot) {
                if let (Some(&other), weight @ 1..) = (places.get(&other), units(p)) {
                    links[place].push((other, weight));
                    links[other as usize].push((place as u32, weight));
                }
            }
        }
        for links in &mut links {
            links.sort_unstable();
            links.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 += if same { next.1 } else { 0 };
                same
            });
        }
        let strengths = slots.iter().map(|&slot| records.strength(slot)).collect();
        Self { slots, links, strengths, places }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The place of a slot, if it is here.
    pub(crate) fn place(&self, slot: u32) -> Option<u32> {
        self.places.get(&slot).copied()
    }

    /// The edges of a place.
    pub(crate) fn links(&self, place: u32) -> &[(u32, i64)] {
        &self.links[place as usize]
    }

    /// The graph of these edges, each once, for the map equation.
    pub(crate) fn graph(&self) -> Result<WeightedGraph> {
        let (mut offsets, mut targets, mut weights) = (vec![0], Vec::new(), Vec::new());
        for (place, links) in self.links.iter().enumerate() {
            for &(other, weight) in links.iter().filter(|link| link.0 as usize > place) {
                targets.push(other);
                weights.push((weight as f64 / UNIT) as f32);
            }
            offsets.push(targets.len());
        }
        WeightedGraph::from_parts(offsets, targets, weights)
    }

    /// The weight of the edges that leave each of these modules, summed: what the modules are entered, in units.
    pub(crate) fn entered(&self, modules: &[u32]) -> i64 {
        let of_place = |(place, links): (usize, &Vec<(u32, i64)>)| {
            let inside = links.iter().filter(|link| modules[link.0 as usize] == modules[place]);
            self.strengths[place] - inside.map(|link| link.1).sum::<i64>()
        };
        self.links.iter().enumerate().map(of_place).sum()
    }
}
