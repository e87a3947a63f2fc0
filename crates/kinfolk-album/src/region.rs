//! Some items of an album, the edges between them, and what surrounds them.
//!
//! Cost: K looks for each item.

use crate::records::{Records, UNIT};
use kinfolk::stages::WeightedGraph;
use kinfolk::{NeighbourLists as _, Result};
use rayon::prelude::*;

/// Edges to other places, with their weights in units.
type Links = Vec<(u32, i64)>;

/// Some items, known by their places here.
pub(crate) struct Region {
    /// The slot of each place, ascending.
    pub slots: Vec<u32>,
    /// The weights are of both directions.
    links: Vec<Links>,
    /// The weight of all edges of each place, also of those that leave the region, in units.
    pub strengths: Vec<i64>,
    /// For each slot its place, counted from 1; 0 for slots that are not here.
    places: Vec<u32>,
}

impl Region {
    pub(crate) fn of(records: &Records, mut slots: Vec<u32>) -> Self {
        slots.sort_unstable();
        slots.dedup();
        let mut places = vec![0; records.len()];
        (1..).zip(&slots).for_each(|(place, &slot)| places[slot as usize] = place);
        let of_slot = |&slot: &u32| -> Links {
            let inside = records.weighted(slot).filter(|edge| places[edge.0 as usize] > 0);
            inside.map(|(other, weight)| (places[other as usize] - 1, weight)).collect()
        };
        let leaving: Vec<Links> = slots.par_iter().map(of_slot).collect();
        let mut arriving: Vec<Links> = vec![Vec::new(); slots.len()];
        for (place, links) in (0..).zip(&leaving) {
            links.iter().for_each(|&(other, weight)| arriving[other as usize].push((place, weight)));
        }
        let both = |(mut links, arriving): (Links, Links)| {
            links.extend(arriving);
            links.sort_unstable();
            links.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 += if same { next.1 } else { 0 };
                same
            });
            links
        };
        let links = leaving.into_par_iter().zip(arriving).map(both).collect();
        let strengths = slots.par_iter().map(|&slot| records.strength(slot)).collect();
        Self { slots, links, strengths, places }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The place of a slot, if it is here.
    pub(crate) fn place(&self, slot: u32) -> Option<u32> {
        self.places[slot as usize].checked_sub(1)
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
        let of_place = |(place, links): (usize, &Links)| {
            let inside = links.iter().filter(|link| modules[link.0 as usize] == modules[place]);
            self.strengths[place] - inside.map(|link| link.1).sum::<i64>()
        };
        self.links.par_iter().enumerate().map(of_place).sum()
    }
}
