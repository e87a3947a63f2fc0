//! The whole of an album, clustered anew: when it is created, refreshed, or has doubled.
//!
//! Everything that `kin` knows is estimated from all rows that are in the album, and written as the files of a new epoch. Those of
//! the epoch before stay until a change to it cannot be undone any more.
//!
//! New rows will look for neighbours in the lists whose centroids are nearest to them. How many lists follows from a sample of
//! rows: so many that they find the share [`FOUND`] of the neighbours that the rows have.
//!
//! Cost: that of `kinfolk cluster`, the lists (N^1.5 D integer products), and 12 K + 8 D + 36 bytes of files for each row.

use crate::change::Change;
use crate::database::At;
use crate::evidence::cohesion;
use crate::extension::less_probable;
use crate::files::Array;
use crate::partition::NewItems;
use crate::records::units;
use crate::state::{GONE, NOWHERE, State};
use crate::view::{ROWS, View, length, of_epoch};
use kinfolk::incremental::{Found, Lists, NEIGHBOURS, cluster, coding_loss, similarity, stored_rows};
use kinfolk::{Context, Embeddings, Result};
use std::collections::HashMap;

/// Rows whose neighbours choose how many lists are searched.
const SAMPLE: usize = 256;
/// The share of their neighbours that is to be found: that of the search of `cluster`.
const FOUND: f64 = 0.98;
/// Rows that are written at a time.
const PIECE: usize = 16_384;

/// Clusters the rows at these slots and begins an epoch with the result; the label of each.
pub(crate) fn cluster_whole(
    change: &Change<'_>,
    dim: usize,
    slots: &[u32],
    new: Option<&NewItems<'_>>,
    context: &Context,
) -> Result<Vec<i64>> {
    let all = stored_rows(
        crate::files::map(
            &change.directory.join(ROWS),
            length(&change.transaction, &change.directory, ROWS)?,
        )?,
        dim,
    );
    let epoch = change.id;
    // Slots ascend: as many as rows are all of them.
    let some = (slots.len() < all.len()).then(|| gathered(&all, slots)).transpose()?;
    let rows = some.as_ref().unwrap_or(&all);
    let groups = groups(change, slots, new)?;
    let rarely = |i: u32, j: u32, p: f32| match groups[i as usize] == groups[j as usize] {
        true if groups[i as usize].is_some() => less_probable(p),
        _ => p,
    };
    let grouped = groups.iter().any(Option::is_some);
    let found = cluster(rows, grouped.then_some(&rarely), context)?;
    let lists = context.timed("lists", || Lists::of(&found.centred, context))?;
    let write = || -> Result<()> {
        let state = write_files(change, epoch, all.len(), slots, &found, &lists)?;
        let loss = coding_loss(&found.centred);
        let probes = probes(&found, &lists);
        let total: i64 = state.arriving.iter().sum();
        let mut knowledge = found.knowledge.clone();
        knowledge.cohort.iter_mut().for_each(|row| *row = slots[*row as usize]);
        change.set("knowledge", serde_json::to_string(&knowledge).unwrap_or_default())?;
        let cohort = &found.knowledge.cohort;
        let random = |at: usize| rows.row(cohort[at] as usize);
        let (median, spread) = strangers((0..cohort.len()).map(random), random, cohort.len(), |a, b| a != b);
        change.set("space_median", median)?;
        change.set("space_spread", spread)?;
        change.set("cohesion", cohesion(&found.centred, &found.labels))?;
        change.set("k", found.graph.k() as i64)?;
        change.set("epoch", epoch)?;
        change.set("total", total)?;
        change.set("probes", probes as i64)?;
        change.set("loss", f64::from(loss))?;
        change.set("clustered", slots.len() as i64)?;
        change.set_state(&state)?;
        // What came after the epoch before can be undone, and not more: files of older ones would be kept for nobody.
        change.execute(
            "UPDATE changes SET final = 1 WHERE id <= (SELECT max(change) FROM undo
             WHERE statement LIKE 'UPDATE meta SET value = % WHERE name = ''epoch''' AND change < ?1)",
            [change.id],
        )?;
        change.execute("DELETE FROM undo WHERE change IN (SELECT id FROM changes WHERE final = 1)", ())?;
        change
            .execute("DELETE FROM undo_state WHERE change IN (SELECT id FROM changes WHERE final = 1)", ())?;
        forget_epochs(change)
    };
    context.timed("write", write)?;
    Ok(found.labels)
}

/// The group of the items at these slots, if they have one, by numbers.
fn groups(change: &Change<'_>, slots: &[u32], new: Option<&NewItems<'_>>) -> Result<Vec<Option<u32>>> {
    let path = change.database();
    let mut number_of: HashMap<String, u32> = HashMap::new();
    let mut of_slot: HashMap<u32, u32> = HashMap::new();
    let mut put = |slot: u32, group: String| {
        let next = number_of.len() as u32;
        of_slot.insert(slot, *number_of.entry(group).or_insert(next));
    };
    let mut statement =
        change.transaction.prepare("SELECT slot, grouped FROM items WHERE grouped IS NOT NULL").at(&path)?;
    for item in statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).at(&path)? {
        let (slot, group) = item.at(&path)?;
        put(slot, group);
    }
    if let Some(new) = new {
        let groups = (new.first..).zip(new.groups);
        groups
            .filter_map(|(slot, group)| Some((slot, group.clone()?)))
            .for_each(|(slot, group)| put(slot, group));
    }
    Ok(slots.iter().map(|slot| of_slot.get(slot).copied()).collect())
}

/// Stops counting files of epochs that no undo brings back.
fn forget_epochs(change: &Change<'_>) -> Result<()> {
    for table in ["segments", "files"] {
        change.execute(
            &format!(
                "DELETE FROM {table} WHERE name LIKE '%-%' AND name NOT LIKE '%-' || ?1
                 AND NOT EXISTS (SELECT 1 FROM undo WHERE statement =
                     'UPDATE meta SET value = ' || substr(name, instr(name, '-') + 1) || ' WHERE name = ''epoch''')"
            ),
            [change.id],
        )?;
    }
    Ok(())
}

/// Some rows, one after the other. Rows of unit length stay as they are.
fn gathered(all: &Embeddings, slots: &[u32]) -> Result<Embeddings> {
    let rows = slots.iter().flat_map(|&slot| all.row(slot as usize)).copied().collect();
    Embeddings::from_rows(rows, all.dim(), "album")
}

/// The files of an epoch, and the state of all rows.
fn write_files(
    change: &Change<'_>,
    epoch: i64,
    all: usize,
    slots: &[u32],
    found: &Found,
    lists: &Lists,
) -> Result<State> {
    let (dim, k) = (found.centred.dim(), found.graph.k());
    let mut state = State {
        arriving: vec![0; all].into(),
        records: vec![NOWHERE; all].into(),
        arrivals: vec![0; all].into(),
        lists: vec![GONE; all].into(),
        stale: vec![0; all].into(),
        relatives: vec![0.0; all].into(),
        last: vec![f32::INFINITY; all].into(),
    };
    let State { arriving, records, arrivals, lists: list_of, relatives, last, .. } = &mut state;
    for (list, members) in (0..).zip(&lists.members) {
        members.iter().for_each(|&row| list_of.to_mut()[slots[row as usize] as usize] = list);
    }
    for (row, &slot) in slots.iter().enumerate() {
        records.to_mut()[slot as usize] = row as u32;
        relatives.to_mut()[slot as usize] = found.relatives[row];
        let similarities = found.graph.neighbours(row).1;
        last.to_mut()[slot as usize] = similarities.last().copied().unwrap_or(f32::INFINITY);
        let probabilities = &found.probabilities[row * k..][..k];
        for (&other, &p) in found.graph.neighbours(row).0.iter().zip(probabilities) {
            let other = slots[other as usize] as usize;
            arriving.to_mut()[other] += units(p);
            arrivals.to_mut()[other] += 1;
        }
    }
    let mut piece: Vec<u32> = Vec::new();
    for first in (0..slots.len()).step_by(PIECE) {
        piece.clear();
        for row in first..slots.len().min(first + PIECE) {
            let (ids, similarities) = found.graph.neighbours(row);
            piece.extend(ids.iter().map(|&id| slots[id as usize]));
            piece.extend_from_slice(bytemuck::cast_slice(similarities));
            piece.extend_from_slice(bytemuck::cast_slice(&found.probabilities[row * k..][..k]));
        }
        change.append(&of_epoch("edges", epoch), bytemuck::cast_slice(&piece))?;
    }
    // Rows that were removed keep their places.
    let scattered = |values: &[f32], width: usize| -> Array<f32> {
        let mut out = vec![0.0; all * width];
        for (values, &slot) in values.chunks_exact(width).zip(slots) {
            out[slot as usize * width..][..width].copy_from_slice(values);
        }
        out.into()
    };
    for (name, values, width) in [
        ("medians", &found.medians[..], 1),
        ("spreads", &found.spreads, 1),
        ("centred", found.centred.as_slice(), dim),
    ] {
        let name = of_epoch(name, epoch);
        let bytes: &[u8] = bytemuck::cast_slice(values);
        if slots.len() == all {
            change.append(&name, bytes)?;
        } else {
            change.append(&name, bytemuck::cast_slice(&scattered(values, width)))?;
        }
    }
    change.append(&of_epoch("centroids", epoch), bytemuck::cast_slice(&lists.centroids))?;
    Ok(state)
}

/// How many lists a new row searches.
fn probes(found: &Found, lists: &Lists) -> usize {
    let (n, dim) = (found.centred.len(), found.centred.dim());
    let mut list_of = vec![0u32; n];
    for (list, members) in (0..).zip(&lists.members) {
        members.iter().for_each(|&row| list_of[row as usize] = list);
    }
    let step = n.div_ceil(SAMPLE).max(1);
    let mut needed: Vec<usize> = Vec::new();
    for row in (0..n).step_by(step) {
        let ranks = ranks(found.centred.row(row), lists.centroids.chunks_exact(dim));
        let mut rank_of = vec![0; ranks.len()];
        ranks.iter().enumerate().for_each(|(rank, &list)| rank_of[list as usize] = rank + 1);
        needed.extend(
            found.graph.neighbours(row).0.iter().map(|&other| rank_of[list_of[other as usize] as usize]),
        );
    }
    needed.sort_unstable();
    let at = ((FOUND * needed.len() as f64).ceil() as usize).clamp(1, needed.len().max(1)) - 1;
    needed.get(at).copied().unwrap_or(1)
}

/// The lists by their centroids' similarity to a row, nearest first.
pub(crate) fn ranks<'a>(row: &[f32], centroids: impl Iterator<Item = &'a [f32]>) -> Vec<u32> {
    let mut scored: Vec<(f32, u32)> = centroids.map(|centroid| similarity(row, centroid)).zip(0..).collect();
    scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.into_iter().map(|(_, list)| list).collect()
}

/// The median of the similarities of rows to others that are `wanted`, and the root mean square deviation of those below it: the
/// upper side has rows of the same identity.
pub(crate) fn strangers<'a>(
    rows: impl Iterator<Item = &'a [f32]>,
    other: impl Fn(usize) -> &'a [f32],
    others: usize,
    wanted: impl Fn(usize, usize) -> bool,
) -> (f64, f64) {
    let mut found: Vec<f64> = Vec::new();
    for (at, row) in rows.enumerate() {
        let wanted = (0..others).filter(|&b| wanted(at, b));
        found.extend(wanted.map(|b| f64::from(similarity(row, other(b)))));
    }
    found.sort_unstable_by(f64::total_cmp);
    let median = found.get(found.len() / 2).copied().unwrap_or(0.0);
    let below = &found[..found.len() / 2];
    let squares: f64 = below.iter().map(|v| (v - median).powi(2)).sum();
    (median, (squares / below.len().max(1) as f64).sqrt().max(1e-3))
}

/// Whether so many items call for clustering the whole, because it has doubled or has fewer than the neighbours of a row.
pub(crate) fn has_outgrown(view: &View, items: usize) -> bool {
    items >= 2 * view.clustered || view.k < NEIGHBOURS || items <= view.k
}
