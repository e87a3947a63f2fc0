//! The edges of new rows to clustered ones, and their probabilities, as `kin` estimates them.
//!
//! What the features of an edge need is put together for each new row alone: the lists of its neighbours, in which it takes the place
//! that it would have. So a new row is no stranger to rows whose lists were made without it, and knows nothing of other new rows.
//!
//! Cost: the lists of K rows are looked at for each new row, K^2 in all, and the features of K edges.

use super::search::{copied, nearest};
use crate::connectivity::structural::{Background, OwnEdges, Sizes};
use crate::incremental::{AddedNeighbours, Correction, Knowledge, coding_loss, estimated};
use crate::knn::NeighbourLists;
use crate::{Assignment, Context, EdgeModel, Embeddings, Kin, KnnGraph, Progress, Result, Whitening, assign};
use rayon::prelude::*;

/// New rows of one task.
const TASK: usize = 16;

/// What `kin` knows of clustered rows.
pub(super) struct OfEdges {
    whitening: Option<Whitening>,
    knowledge: Knowledge,
    correction: Correction,
    model: EdgeModel,
    pair: f32,
    /// Whitened and without what all rows share.
    rows: Embeddings,
    loss: f32,
    graph: KnnGraph,
    medians: Vec<f32>,
    spreads: Vec<f32>,
    /// How many rows list each.
    arrivals: Vec<u32>,
    /// The expected number of relatives of each, before the correction.
    relatives: Vec<f32>,
}

impl OfEdges {
    pub(super) fn of(rows: &Embeddings, method: &Kin, k: usize, context: &Context) -> Result<Self> {
        let whitening = method.model().and_then(|model| model.whitening.clone());
        let model = method.model().map_or_else(EdgeModel::default, |model| model.edge.clone());
        let whitened = whitening.as_ref().map(|whitening| whitening.apply(rows)).transpose()?;
        let rows = whitened.as_ref().unwrap_or(rows);
        let found = estimated(rows, &model, k, method.identity_size(), None, context)?;
        let mut arrivals = vec![0; rows.len()];
        for row in 0..rows.len() {
            found.graph.neighbours(row).0.iter().for_each(|&id| arrivals[id as usize] += 1);
        }
        Ok(Self {
            whitening,
            correction: found.knowledge.correction()?,
            knowledge: found.knowledge,
            model,
            pair: method.least_probability(),
            loss: coding_loss(&found.centred),
            rows: found.centred,
            graph: found.graph,
            medians: found.medians,
            spreads: found.spreads,
            arrivals,
            relatives: found.relatives,
        })
    }

    /// Whether a row joins a cluster of this probability, where that of none is another: the odds must exceed those of a pair.
    pub(super) fn suffices(&self, cluster: f64, none: f64) -> bool {
        let pair = f64::from(self.pair);
        none == 0.0 || cluster * (1.0 - pair) > none * pair
    }

    /// Where each new row may belong.
    pub(super) fn assignments(
        &self,
        labels: &[i64],
        sizes: &[usize],
        new: &Embeddings,
        progress: &dyn Progress,
    ) -> Result<Vec<Assignment<i64>>> {
        let new = &self.centred(new)?;
        let k = self.graph.k();
        // The only row has no neighbours, but may have copies.
        let found_k = k.max(1);
        let last = |id: u32| self.graph.neighbours(id as usize).1.last().copied().unwrap_or(f32::INFINITY);
        let AddedNeighbours { ids, similarities, mut nearer } =
            nearest(&self.rows, self.loss, new, found_k, last, progress)?;
        nearer.sort_unstable_by_key(|near| (near.1, near.0));
        let (medians, spreads) = self.knowledge.background(&self.rows, new);
        let first = self.rows.len() as u32;
        progress.begin("connectivity", new.len() as u64);
        let starts: Vec<usize> = (0..new.len()).step_by(TASK).collect();
        let of_task = |places: &mut Vec<u32>, start: &usize| -> Result<Vec<Assignment<i64>>> {
            progress.check()?;
            let task = *start..new.len().min(start + TASK);
            let mut beside = Beside::for_rows(task.len(), self, places);
            for at in task.clone() {
                let number = first + at as u32;
                let from = nearer.partition_point(|near| near.1 < number);
                let to = nearer.partition_point(|near| near.1 <= number);
                let list = (&ids[at * found_k..][..k], &similarities[at * found_k..][..k]);
                let listing: Vec<u32> = nearer[from..to].iter().map(|near| near.0).collect();
                beside.add(list, (medians[at], spreads[at]), &listing);
            }
            let raw = beside.probabilities();
            let of_row = |at: usize| {
                let (ids, similarities) =
                    (&ids[at * found_k..][..found_k], &similarities[at * found_k..][..found_k]);
                if let Some(copy) = copied(&self.rows, ids, similarities, new.row(at)) {
                    return Assignment { candidates: vec![(labels[copy as usize], 1.0)], none: 0.0 };
                }
                let raw = &raw[(at - start) * k..][..k];
                let relatives: f32 = raw.iter().sum();
                let edge = |(&id, &p): (&u32, &f32)| {
                    let relatives = relatives.min(self.relatives[id as usize]);
                    (labels[id as usize], self.correction.apply(relatives, p))
                };
                assign(ids.iter().zip(raw).map(edge), |label| sizes[label as usize])
            };
            let found = task.clone().map(of_row).collect();
            progress.advance(task.len() as u64);
            Ok(found)
        };
        let nowhere = || vec![NOWHERE; self.rows.len()];
        let found: Result<Vec<Vec<_>>> = starts.par_iter().map_init(nowhere, of_task).collect();
        Ok(found?.into_iter().flatten().collect())
    }

    fn centred(&self, new: &Embeddings) -> Result<Embeddings> {
        match &self.whitening {
            Some(whitening) => self.knowledge.centred(&whitening.apply(new)?),
            None => self.knowledge.centred(new),
        }
    }
}

/// The place of rows that a new row does not list.
const NOWHERE: u32 = u32::MAX;

/// Some new rows, each followed by its own copies of the rows that it lists, with lists as if it alone had been added. Behind them is
/// what these list besides, once for each time; nobody asks for the lists of that.
struct Beside<'a> {
    of: &'a OfEdges,
    lists: Lists,
    background: Background,
    arrivals: Vec<u32>,
    /// The clustered rows behind.
    behind: Vec<u32>,
    /// The number of the first of them.
    first_behind: usize,
    /// Where a new row lists each clustered one; [`NOWHERE`] between two calls.
    places: &'a mut [u32],
}

/// The lists of these rows.
struct Lists {
    k: usize,
    rows: usize,
    ids: Vec<u32>,
    similarities: Vec<f32>,
}

impl NeighbourLists for Lists {
    fn len(&self) -> usize {
        self.rows
    }

    fn k(&self) -> usize {
        self.k
    }

    fn neighbours(&self, i: usize) -> (&[u32], &[f32]) {
        (&self.ids[i * self.k..][..self.k], &self.similarities[i * self.k..][..self.k])
    }
}

impl<'a> Beside<'a> {
    /// Room for so many new rows.
    fn for_rows(rows: usize, of: &'a OfEdges, places: &'a mut [u32]) -> Self {
        let k = of.graph.k();
        let listed = rows * (k + 1);
        Self {
            of,
            lists: Lists {
                k,
                rows: listed,
                ids: Vec::with_capacity(listed * k),
                similarities: Vec::with_capacity(listed * k),
            },
            background: Background {
                medians: Vec::with_capacity(listed).into(),
                spreads: Vec::with_capacity(listed).into(),
                median: of.knowledge.median,
                spread: of.knowledge.spread,
            },
            arrivals: Vec::with_capacity(listed),
            behind: Vec::new(),
            first_behind: listed,
            places,
        }
    }

    /// Adds a new row with its neighbours, its background, and the clustered rows that would list it.
    fn add(&mut self, (ids, similarities): (&[u32], &[f32]), (median, spread): (f32, f32), listing: &[u32]) {
        let Self { of, lists, background, arrivals, behind, first_behind, places } = self;
        let (own, k) = (arrivals.len() as u32, lists.k);
        let (medians, spreads) = (background.medians.to_mut(), background.spreads.to_mut());
        lists.ids.extend(own + 1..=own + k as u32);
        lists.similarities.extend_from_slice(similarities);
        medians.push(median);
        spreads.push(spread);
        arrivals.push(listing.len() as u32);
        for (&id, place) in ids.iter().zip(0..) {
            places[id as usize] = place;
            medians.push(of.medians[id as usize]);
            spreads.push(of.spreads[id as usize]);
            arrivals.push(of.arrivals[id as usize] + 1);
        }
        for &id in listing {
            // It takes the place of the last.
            let dropped = of.graph.neighbours(id as usize).0[k - 1];
            match places[dropped as usize] {
                NOWHERE => {}
                place => arrivals[(own + 1 + place) as usize] -= 1,
            }
        }
        for (&id, &similarity) in ids.iter().zip(similarities) {
            let (theirs, as_similar) = of.graph.neighbours(id as usize);
            let mut number = |other: u32| match places[other as usize] {
                NOWHERE => {
                    behind.push(other);
                    (*first_behind + behind.len() - 1) as u32
                }
                place => own + 1 + place,
            };
            let before = as_similar.partition_point(|&s| s >= similarity);
            lists.ids.extend(theirs[..before].iter().map(|&other| number(other)));
            lists.similarities.extend_from_slice(&as_similar[..before]);
            if before < k {
                lists.ids.push(own);
                lists.similarities.push(similarity);
                lists.ids.extend(theirs[before..k - 1].iter().map(|&other| number(other)));
                lists.similarities.extend_from_slice(&as_similar[before..k - 1]);
            }
        }
        ids.iter().for_each(|&id| places[id as usize] = NOWHERE);
    }

    /// The probabilities of the edges from all new rows, before the correction.
    fn probabilities(mut self) -> Vec<f32> {
        let Self { of, lists, background, arrivals, behind, .. } = &mut self;
        let of_rows = |values: &[f32]| behind.iter().map(|&id| values[id as usize]).collect::<Vec<f32>>();
        background.medians.to_mut().extend(of_rows(&of.medians));
        background.spreads.to_mut().extend(of_rows(&of.spreads));
        arrivals.extend(behind.iter().map(|&id| of.arrivals[id as usize]));
        let new: Vec<u32> = (0..lists.rows as u32).step_by(lists.k + 1).collect();
        lists.rows = arrivals.len();
        let arrivals = std::mem::take(arrivals).into();
        OwnEdges::of(lists, background, arrivals, None, Sizes(of.knowledge.sizes), &of.model)
            .all_probabilities(&new)
    }
}
