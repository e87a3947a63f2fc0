//! The neighbours of every row: records of K ids, K similarities and K probabilities, 12 K bytes.
//!
//! Records are never changed. A row whose neighbours change gets a new record at the end of the file, and `State::records` says
//! which is the present one. So a change costs what it changes, and to undo it is to point back. What has been replaced stays in
//! the file until the album is clustered anew.

use crate::state::State;
use bytes::Bytes;
use kinfolk::NeighbourLists;
use kinfolk::incremental::weight;

/// Weights are whole numbers of this unit, so that sums do not depend on the order.
pub(crate) const UNIT: f64 = 16_777_216.0;

/// The weight of an edge of this probability, in units.
pub(crate) fn units(probability: f32) -> i64 {
    // Rounded: weights are not negative.
    (f64::from(weight(probability)) * UNIT + 0.5) as i64
}

/// The records of all rows, and which are the present ones.
pub(crate) struct Records {
    pub k: usize,
    /// Those in the file.
    mapped: Bytes,
    /// Those behind them that are not written yet.
    pub fresh: Vec<u32>,
    pub state: State,
}

impl Records {
    pub(crate) fn new(k: usize, mapped: Bytes, state: State) -> Self {
        Self { k, mapped, fresh: Vec::new(), state }
    }

    /// The same records, to be changed in memory.
    pub(crate) fn copied(&self) -> Self {
        Self { k: self.k, mapped: self.mapped.clone(), fresh: Vec::new(), state: self.state.clone() }
    }

    /// Words of a record.
    fn words(&self) -> usize {
        3 * self.k
    }

    /// Records in the file.
    fn written(&self) -> usize {
        self.mapped.len().checked_div(4 * self.words()).unwrap_or(0)
    }

    fn record(&self, slot: u32) -> &[u32] {
        let (at, words) = (self.state.records[slot as usize] as usize, self.words());
        match at.checked_sub(self.written()) {
            Some(at) => &self.fresh[at * words..][..words],
            None => &bytemuck::cast_slice(&self.mapped)[at * words..][..words],
        }
    }

    /// The neighbours of a row.
    pub(crate) fn ids(&self, slot: u32) -> &[u32] {
        &self.record(slot)[..self.k]
    }

    /// Their similarities.
    pub(crate) fn similarities(&self, slot: u32) -> &[f32] {
        bytemuck::cast_slice(&self.record(slot)[self.k..2 * self.k])
    }

    /// The probabilities of the edges to them.
    pub(crate) fn probabilities(&self, slot: u32) -> &[f32] {
        bytemuck::cast_slice(&self.record(slot)[2 * self.k..])
    }

    /// The neighbours that are in the album, with probabilities.
    pub(crate) fn edges(&self, slot: u32) -> impl Iterator<Item = (u32, f32)> {
        let edges = self.ids(slot).iter().copied().zip(self.probabilities(slot).iter().copied());
        edges.filter(|&(other, _)| self.state.is_alive(other))
    }

    /// The neighbours that are in the album and have edges of some weight, with their weights in units.
    pub(crate) fn weighted(&self, slot: u32) -> impl Iterator<Item = (u32, i64)> {
        let edges = self.ids(slot).iter().copied().zip(self.probabilities(slot));
        // Most edges have none, and looking at the state of what they lead to costs more than their weight.
        let weighted = edges.map(|(other, &p)| (other, units(p))).filter(|edge| edge.1 > 0);
        weighted.filter(|edge| self.state.is_alive(edge.0))
    }

    /// Gives a row another record.
    pub(crate) fn replace(&mut self, slot: u32, ids: &[u32], similarities: &[f32], probabilities: &[f32]) {
        let words = self.words();
        let at = self.state.records.get(slot as usize).map(|&at| at as usize);
        // One that is not written yet is changed where it is.
        let place = match at.and_then(|at| at.checked_sub(self.written())) {
            Some(at) if (at + 1) * words <= self.fresh.len() => at,
            _ => {
                let at = self.fresh.len() / words.max(1);
                self.fresh.resize(self.fresh.len() + words, 0);
                self.state.records.to_mut()[slot as usize] = (self.written() + at) as u32;
                at
            }
        };
        let record = &mut self.fresh[place * words..][..words];
        record[..self.k].copy_from_slice(ids);
        record[self.k..2 * self.k].copy_from_slice(bytemuck::cast_slice(similarities));
        record[2 * self.k..].copy_from_slice(bytemuck::cast_slice(probabilities));
        self.state.last.to_mut()[slot as usize] = similarities.last().copied().unwrap_or(f32::INFINITY);
    }

    /// The weight of all edges of a row, in both directions, in units.
    pub(crate) fn strength(&self, slot: u32) -> i64 {
        self.weighted(slot).map(|edge| edge.1).sum::<i64>() + self.state.arriving[slot as usize]
    }
}

impl NeighbourLists for Records {
    fn len(&self) -> usize {
        self.state.len()
    }

    fn k(&self) -> usize {
        self.k
    }

    fn neighbours(&self, i: usize) -> (&[u32], &[f32]) {
        (self.ids(i as u32), self.similarities(i as u32))
    }
}
