//! New rows beside an album: their neighbours, the lists of old rows in which they are, and the probabilities of the edges that
//! change. In memory; to add rows it is written, to assign them it is dropped.
//!
//! 1. Each new row searches the nearest lists, as many as the last clustering found enough. Small albums are searched whole, and so
//!    exactly.
//! 2. Old rows to which a new one is nearer than their last neighbour list it instead.
//! 3. The edges of new rows are estimated, and anew those of old rows of which [`STALE`] neighbours have changed. Until then the
//!    edge from an old row to a new one has the probability that was estimated from the new row; where that does not list the old
//!    one back, the smaller of those of the neighbours before and behind it.
//!
//! Cost: for each new row the lists it searches, some 80 lists of old rows, and the features of about ten rows.

use crate::records::Records;
use crate::state::{GONE, NOWHERE};
use crate::view::View;
use crate::whole::ranks;
use kinfolk::incremental::{Added, Correction, Edges, Knowledge, relatives};
use kinfolk::{Embeddings, Progress, Result};
use rayon::prelude::*;
use std::collections::HashSet;

/// Neighbours of a row that change before its edges are estimated anew: a tenth of 80.
const STALE: u32 = 8;
/// Rows up to which all lists are searched.
const EXACT_UP_TO: usize = 50_000;
/// What is subtracted from the logit of an edge between items of one group: they are rarely one person.
const GROUP: f32 = 3.0;

/// New rows beside an album.
pub(crate) struct Extension {
    pub records: Records,
    /// The new rows, without what all rows share.
    pub centred: Embeddings,
    pub medians: Vec<f32>,
    pub spreads: Vec<f32>,
    /// The weight of all edges, in units.
    pub total: i64,
    /// The first new slot.
    pub first: u32,
    /// The new edges from old rows to new ones.
    pub listed: Vec<(u32, u32)>,
}

impl Extension {
    /// `groups` are those of the new rows, if they have one.
    pub(crate) fn of(
        view: &View,
        knowledge: &Knowledge,
        rows: &Embeddings,
        groups: &[Option<String>],
        progress: &dyn Progress,
    ) -> Result<Self> {
        let (first, k) = (view.slots() as u32, view.k);
        let centred = knowledge.centred(rows)?;
        let (medians, spreads) = knowledge.background(&view.centred, &centred);
        let mut records = view.records.copied();
        let new: Vec<u32> = (first..first + rows.len() as u32).collect();
        let row = |slot: u32| match slot.checked_sub(first) {
            Some(at) => centred.row(at as usize),
            None => view.centred.row(slot as usize),
        };
        let searched = Searched::of(view, &centred);
        let mut lists: Vec<Vec<u32>> =
            searched.sizes.iter().map(|&size| Vec::with_capacity(size + new.len())).collect();
        for (slot, &list) in (0..).zip(view.records.state.lists.iter()).filter(|(_, list)| **list != GONE) {
            lists[list as usize].push(slot);
        }
        new.iter().zip(&searched.nearest).for_each(|(&slot, &list)| lists[list as usize].push(slot));
        let added = Added {
            dim: view.dim,
            row: &row,
            new: &new,
            lists: &lists,
            visits: &searched.visits,
            loss: view.loss.max(kinfolk::incremental::coding_loss(&centred)),
        };
        let last = |slot: u32| {
            if slot >= first { f32::INFINITY } else { view.records.state.last[slot as usize] }
        };
        let found = added.neighbours(k, last, progress)?;
        drop(lists);
        for (list, state) in [
            (&searched.nearest[..], &mut records.state.lists),
            (&vec![NOWHERE; new.len()][..], &mut records.state.records),
            (&vec![0; new.len()][..], &mut records.state.arrivals),
            (&vec![0; new.len()][..], &mut records.state.stale),
        ] {
            state.to_mut().extend_from_slice(list);
        }
        records.state.arriving.to_mut().resize(first as usize + new.len(), 0);
        records.state.relatives.to_mut().resize(first as usize + new.len(), 0.0);
        records.state.last.to_mut().resize(first as usize + new.len(), f32::INFINITY);
        let nothing = vec![0.0; k];
        for (at, &slot) in new.iter().enumerate() {
            let ids = &found.ids[at * k..][..k];
            records.replace(slot, ids, &found.similarities[at * k..][..k], &nothing);
            ids.iter().for_each(|&id| records.state.arrivals.to_mut()[id as usize] += 1);
        }
        let mut this =
            Self { records, centred, medians, spreads, total: view.total, first, listed: Vec::new() };
        for near in found.nearer.chunk_by(|a, b| a.0 == b.0) {
            this.insert(view, near[0].0, near);
        }
        this.estimate(view, knowledge, &new, groups, progress)?;
        Ok(this)
    }

    /// Lists new rows at an old one, instead of its last neighbours.
    fn insert(&mut self, view: &View, old: u32, near: &[(u32, u32, f32)]) {
        let k = view.k;
        let (ids, similarities) = (view.records.ids(old), view.records.similarities(old));
        let probabilities = view.records.probabilities(old);
        let mut all: Vec<(f32, u32, f32)> =
            (0..k).map(|at| (similarities[at], ids[at], probabilities[at])).collect();
        all.extend(near.iter().map(|&(_, new, similarity)| (similarity, new, f32::NAN)));
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let arrivals = self.records.state.arrivals.to_mut();
        all[k..]
            .iter()
            .filter(|entry| entry.1 < self.first)
            .for_each(|entry| arrivals[entry.1 as usize] -= 1);
        all.truncate(k);
        for at in 0..k {
            if all[at].2.is_nan() {
                arrivals[all[at].1 as usize] += 1;
                self.listed.push((old, all[at].1));
                self.records.state.stale.to_mut()[old as usize] += 1;
                let before = at.checked_sub(1).map(|before| all[before].2);
                let behind = all[at + 1..].iter().map(|entry| entry.2).find(|p| !p.is_nan());
                let known = [before, behind].into_iter().flatten();
                all[at].2 = known.fold(f32::NAN, f32::min);
            }
            // Only new rows are listed now.
            if all[at].2.is_nan() {
                all[at].2 = 0.0;
            }
        }
        let (ids, rest): (Vec<u32>, Vec<(f32, f32)>) = all.iter().map(|e| (e.1, (e.0, e.2))).unzip();
        let (similarities, probabilities): (Vec<f32>, Vec<f32>) = rest.into_iter().unzip();
        self.records.replace(old, &ids, &similarities, &probabilities);
    }

    /// The probabilities of what changed, and the sums that depend on them.
    fn estimate(
        &mut self,
        view: &View,
        knowledge: &Knowledge,
        new: &[u32],
        groups: &[Option<String>],
        progress: &dyn Progress,
    ) -> Result<()> {
        let (k, first) = (self.records.k, self.first);
        let changed: Vec<u32> = {
            let mut changed: Vec<u32> = self.listed.iter().map(|&(old, _)| old).collect();
            changed.dedup();
            changed
        };
        let stale = |&slot: &u32| self.records.state.stale[slot as usize] >= STALE;
        let mut asked: Vec<u32> = changed.iter().copied().filter(stale).collect();
        asked.extend(new);
        let all = |old: &[u8], new: &[f32]| [bytemuck::cast_slice::<u8, f32>(old), new].concat();
        let medians = all(&view.medians, &self.medians);
        let spreads = all(&view.spreads, &self.spreads);
        let arrivals = self.records.state.arrivals.to_vec();
        let raw = Edges::of(&self.records, knowledge, medians, spreads, arrivals)
            .probabilities(&asked, progress)?;
        let sums = relatives(k, asked.len(), &raw);
        for (&slot, sum) in asked.iter().zip(sums) {
            self.records.state.relatives.to_mut()[slot as usize] = sum;
            self.records.state.stale.to_mut()[slot as usize] = 0;
        }
        let correction: Correction = knowledge.correction()?;
        let group = |slot: u32| slot.checked_sub(first).and_then(|at| groups.get(at as usize)?.as_deref());
        let corrected = |at: usize| {
            let (slot, raw) = (asked[at], &raw[at * k..][..k]);
            let relatives = &self.records.state.relatives;
            let edge = |(&other, &p): (&u32, &f32)| {
                let p = correction.apply(relatives[slot as usize].min(relatives[other as usize]), p);
                let rarely = group(slot).is_some() && group(slot) == group(other);
                if rarely { less_probable(p) } else { p }
            };
            self.records.ids(slot).iter().zip(raw).map(edge).collect::<Vec<f32>>()
        };
        let estimated: Vec<Vec<f32>> = (0..asked.len()).into_par_iter().map(corrected).collect();
        for (&slot, probabilities) in asked.iter().zip(&estimated) {
            let (ids, similarities) =
                (self.records.ids(slot).to_vec(), self.records.similarities(slot).to_vec());
            self.records.replace(slot, &ids, &similarities, probabilities);
        }
        // An old row's edge to a new one that lists it back is the same edge.
        let is_asked: HashSet<u32> = asked.iter().copied().collect();
        for &(old, new) in self.listed.iter().filter(|(old, _)| !is_asked.contains(old)) {
            let back = self.records.ids(new).iter().position(|&id| id == old);
            if let Some(p) = back.map(|back| self.records.probabilities(new)[back]) {
                let (ids, similarities) =
                    (self.records.ids(old).to_vec(), self.records.similarities(old).to_vec());
                let mut probabilities = self.records.probabilities(old).to_vec();
                ids.iter().position(|&id| id == new).into_iter().for_each(|at| probabilities[at] = p);
                self.records.replace(old, &ids, &similarities, &probabilities);
            }
        }
        let mut arriving = std::mem::replace(&mut self.records.state.arriving, Vec::new().into());
        let mut add = |(slot, weight): (u32, i64)| {
            arriving.to_mut()[slot as usize] += weight;
            self.total += weight;
        };
        for &old in &changed {
            view.records.weighted(old).for_each(|(other, weight)| add((other, -weight)));
            self.records.weighted(old).for_each(&mut add);
        }
        new.iter().for_each(|&slot| self.records.weighted(slot).for_each(&mut add));
        self.records.state.arriving = arriving;
        Ok(())
    }
}

/// The probability of an edge between items of one group.
pub(crate) fn less_probable(p: f32) -> f32 {
    let odds = p / (1.0 - p).max(1e-6) * (-GROUP).exp();
    odds / (1.0 + odds)
}

/// The list of each new row, and those it searches.
struct Searched {
    /// Rows in each list before.
    sizes: Vec<usize>,
    nearest: Vec<u32>,
    /// For each list the places of the new rows that search it.
    visits: Vec<Vec<u32>>,
}

impl Searched {
    fn of(view: &View, centred: &Embeddings) -> Self {
        let mut sizes = vec![0usize; view.centroids().count()];
        view.records
            .state
            .lists
            .iter()
            .filter(|list| **list != GONE)
            .for_each(|&list| sizes[list as usize] += 1);
        let exact = sizes.iter().sum::<usize>() <= EXACT_UP_TO;
        let of_row = |at: usize| {
            let ranks = ranks(centred.row(at), view.centroids());
            let (mut rows, mut count) = (0, 0);
            while count < ranks.len() && (exact || count < view.probes || rows < 4 * view.k) {
                rows += sizes[ranks[count] as usize];
                count += 1;
            }
            (ranks[0], ranks[..count].to_vec())
        };
        let searched: Vec<(u32, Vec<u32>)> = (0..centred.len()).into_par_iter().map(of_row).collect();
        let mut visits = vec![Vec::new(); sizes.len()];
        for (at, (_, lists)) in searched.iter().enumerate() {
            lists.iter().for_each(|&list| visits[list as usize].push(at as u32));
        }
        Self { sizes, nearest: searched.into_iter().map(|(nearest, _)| nearest).collect(), visits }
    }
}
