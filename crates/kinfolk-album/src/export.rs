//! The album as the files that `kinfolk cluster` writes, rows in the order in which items were added.
//!
//! Removed items that others still list take part as rows of no weight behind all others, because every row has K neighbours;
//! what is written is about the others only.
//!
//! Cost: one look at all records, and a copy of all rows in memory.

use crate::album::Album;
use kinfolk::incremental::explained;
use kinfolk::results::{ResultOptions, Run, write_results};
use kinfolk::stages::number_by_size;
use kinfolk::{Clustering, Embeddings, Error, KnnGraph, Progress, Reason, Result};
use std::collections::HashMap;
use std::path::Path;

impl Album {
    /// Writes `labels.npy`, `clusters.csv`, `review.csv` and `run.json`; the number of rows and of clusters.
    pub fn export(&self, directory: &Path, progress: &dyn Progress) -> Result<(usize, usize)> {
        let (rows, found) = self.rows_and_clustering(progress)?;
        let run = Run::new(&rows, &self.directory.join(crate::view::ROWS), None, &found);
        write_results(directory, &found, &run, &ResultOptions::default())?;
        Ok((rows.len(), found.len()))
    }

    /// What `Clusterer` would return if it had found these people: rows in the order in which items were added, with the reasons for
    /// their labels.
    pub fn clustering(&self, progress: &dyn Progress) -> Result<Clustering> {
        Ok(self.rows_and_clustering(progress)?.1)
    }

    fn rows_and_clustering(&self, progress: &dyn Progress) -> Result<(Embeddings, Clustering)> {
        let view = self.view()?;
        let people: Vec<i64> = self.items()?.into_iter().map(|(_, person)| person).collect();
        let mut slots = view.alive();
        let (items, k) = (slots.len(), view.k);
        if items == 0 {
            return Err(Error::format(&self.directory, "an album with items", "an empty one"));
        }
        if people.len() != items {
            return Err(Error::format(
                &self.directory,
                format!("{items} items in the database"),
                people.len().to_string(),
            ));
        }
        let mut place_of: HashMap<u32, u32> = slots.iter().copied().zip(0..).collect();
        for at in 0..items {
            for &other in view.records.ids(slots[at]) {
                place_of.entry(other).or_insert_with(|| {
                    slots.push(other);
                    slots.len() as u32 - 1
                });
            }
        }
        let mut labels = number_by_size(&people.iter().map(|&person| person as u32).collect::<Vec<u32>>());
        let clusters = labels.iter().max().map_or(0, |&last| last as usize + 1);
        labels.extend((clusters as i64..).take(slots.len() - items));
        let (mut ids, mut similarities, mut probabilities) = (Vec::new(), Vec::new(), Vec::new());
        for &slot in &slots[..items] {
            ids.extend(view.records.ids(slot).iter().map(|other| place_of[other]));
            similarities.extend_from_slice(view.records.similarities(slot));
            let of_edge =
                |(other, p): (&u32, &f32)| if view.records.state.is_alive(*other) { *p } else { 0.0 };
            probabilities
                .extend(view.records.ids(slot).iter().zip(view.records.probabilities(slot)).map(of_edge));
        }
        for _ in items..slots.len() {
            ids.extend(0..k as u32);
            similarities.extend(std::iter::repeat_n(-1.0, k));
            probabilities.extend(std::iter::repeat_n(0.0, k));
        }
        // Items that came later come later in the lists of equals, so the order is as it must be.
        let graph =
            KnnGraph::from_parts(slots.len(), k, ids, similarities, &self.directory.display().to_string())?;
        let rows = |slots: &[u32]| {
            let rows = slots.iter().flat_map(|&slot| view.rows.row(slot as usize)).copied().collect();
            Embeddings::from_rows(rows, view.dim, "album")
        };
        let context = self.context(progress)?;
        let mut found = explained(&rows(&slots)?, &graph, &probabilities, labels, &context);
        found.labels.truncate(items);
        if let Reason::Edges(evidence) = &mut found.reason {
            evidence.inside.truncate(items);
            evidence.outside.truncate(items);
            evidence.clusters.truncate(clusters);
            for outside in &mut evidence.outside {
                *outside = outside.filter(|edge| (edge.row as usize) < items);
            }
        }
        Ok((rows(&slots[..items])?, found))
    }
}
