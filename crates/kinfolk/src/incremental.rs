//! `kin` for sets that grow: the whole of it with what it knows in the end, and the same stages for rows that are added.
//!
//! [`cluster`] runs the stages of [`Kin`] in the same order on the same rows, so its labels are those of
//! [`Clusterer`](crate::Clusterer). What it knows of the set ([`Knowledge`]) makes a new row comparable with the old ones: the
//! offset that all rows share, the cohort of the background, the sizes of identities, what two halves of the coordinates
//! corrected. A program that keeps the graph then finds the neighbours of new rows ([`Added`]), the probabilities of their edges
//! ([`Edges`]) and new modules of a region ([`regional_modules`](crate::stages::regional_modules)).
//!
//! Cost: [`cluster`] that of `kin`, the others that of the rows they are asked about.

pub use crate::knn::added::{Added, AddedNeighbours, coding_loss};

use crate::centre::{PART, offset, sum_of_part, without_offset};
use crate::connectivity::structural::{
    Background, NullModel, NullScratch, OwnEdges, Sizes, edge_probabilities,
};
use crate::knn::{Cohort, NeighbourLists, dot, near_lists};
use crate::methods::{CrossCheck, DEFAULT_K, EVEN, Halves, WEAK, choose_sizes, edge_evidence, partition};
use crate::problem::search;
use crate::values::Values;
use crate::{
    Clustering, Context, EdgeModel, Embeddings, Error, GraphReport, Kin, KnnGraph, KnnParams, Method as _,
    Progress, Reason, Report, Result,
};
use bytes::Bytes;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The probability that the edge between two rows without other edges must exceed for them to join.
pub const PAIR: f32 = EVEN;

/// Neighbours of each row, unless there are fewer rows.
pub const NEIGHBOURS: usize = DEFAULT_K;

/// The weight of an edge of this probability: itself, and nothing if it is weak.
#[inline]
pub fn weight(probability: f32) -> f32 {
    if probability > WEAK.min(PAIR) { probability } else { 0.0 }
}

/// Rows of native f32 that were stored as unit rows and are used in place, without a look at them.
pub fn stored_rows(bytes: Bytes, dim: usize) -> Embeddings {
    Embeddings::from_unit_bytes(bytes, dim)
}

/// The cosine of two rows, the same bits as in every graph.
pub fn similarity(a: &[f32], b: &[f32]) -> f32 {
    dot(a, b)
}

/// What `kin` knows of a set besides its graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    /// What all rows share.
    pub offset: Vec<f64>,
    /// The rows of the background's cohort, ascending.
    pub cohort: Vec<u32>,
    /// The median similarity of random pairs, after centring.
    pub median: f32,
    /// Their spread.
    pub spread: f32,
    /// The quartiles of the sizes of identities, as logarithms to base 2.
    pub sizes: [f32; 3],
    /// What is added to the logits of probabilities.
    pub check: Vec<f32>,
}

/// A clustered set.
pub struct Found {
    /// What is known of it.
    pub knowledge: Knowledge,
    /// Its rows without what all share.
    pub centred: Embeddings,
    /// The neighbours.
    pub graph: KnnGraph,
    /// How they were found.
    pub search: GraphReport,
    /// The background of each row: the median of its similarities to the cohort.
    pub medians: Vec<f32>,
    /// The spread of these similarities.
    pub spreads: Vec<f32>,
    /// The expected number of relatives of each row, before the correction.
    pub relatives: Vec<f32>,
    /// The probability of every edge, in the order of the graph.
    pub probabilities: Vec<f32>,
    /// The cluster of every row.
    pub labels: Vec<i64>,
}

/// What is known of two rows besides their embeddings: the probability of their edge, from that which was estimated.
pub type Adjust<'a> = &'a (dyn Fn(u32, u32, f32) -> f32 + Sync);

/// Clusters rows as [`Kin`] does with its defaults, but for what is known besides.
pub fn cluster(rows: &Embeddings, adjust: Option<Adjust>, context: &Context) -> Result<Found> {
    let mut found = estimated(rows, &EdgeModel::default(), NEIGHBOURS, None, adjust, context)?;
    let Found { graph, probabilities, .. } = &found;
    found.labels = context.timed("partition", || partition(graph, probabilities, PAIR, context))?;
    Ok(found)
}

/// What `kin` finds before it partitions, with this model and so many neighbours: everything but labels.
pub(crate) fn estimated(
    rows: &Embeddings,
    model: &EdgeModel,
    k: usize,
    known_size: Option<f32>,
    adjust: Option<Adjust>,
    context: &Context,
) -> Result<Found> {
    let seed = context.seed();
    let offset = context.timed("centring", || {
        let dim = rows.dim();
        let parts = rows.as_slice().par_chunks(PART * dim).map(|part| sum_of_part(part, dim));
        let parts: Vec<Vec<f64>> = parts.collect();
        offset(parts.iter().map(Vec::as_slice), rows, seed)
    });
    let centred = context.timed("centring", || without(rows, &offset))?;
    let params = KnnParams { k, seed, ..KnnParams::default() };
    let found = search(&centred, &params, "knn", context)?;
    let graph = found.graph.into_owned();
    let mut cohort = Background::cohort(rows.len(), seed);
    cohort.sort_unstable();
    let background = context.timed("background", || Background::by(&centred, &cohort));
    let halves = context.timed("halves", || Halves::of(&centred, graph.k(), context))?;
    let sizes = match known_size {
        Some(size) => Sizes([size.log2(); 3]),
        None => context.timed("sizes", || choose_sizes(&halves, context))?,
    };
    let check = context.timed("cross-check", || CrossCheck::of(&halves, sizes, model, context))?;
    drop(halves);
    let (probabilities, relatives) = context.timed("connectivity", || -> Result<_> {
        let mut probabilities = edge_probabilities(&graph, &background, sizes, model, context.progress())?;
        let relatives = relatives(graph.k(), rows.len(), &probabilities);
        check.apply(&graph, &mut probabilities);
        if let Some(adjust) = adjust {
            let rows = probabilities.par_chunks_exact_mut(graph.k().max(1)).enumerate();
            rows.for_each(|(i, row)| {
                let ids = graph.neighbours(i).0;
                row.iter_mut().zip(ids).for_each(|(p, &j)| *p = adjust(i as u32, j, *p));
            });
        }
        Ok((probabilities, relatives))
    })?;
    let Background { medians, spreads, median, spread } = background;
    let knowledge = Knowledge { offset, cohort, median, spread, sizes: sizes.0, check: check.to_numbers() };
    Ok(Found {
        knowledge,
        centred,
        graph,
        search: found.report,
        medians: medians.into_vec(),
        spreads: spreads.into_vec(),
        relatives,
        probabilities,
        labels: Vec::new(),
    })
}

/// The sum of the probabilities of each row.
pub fn relatives(k: usize, rows: usize, probabilities: &[f32]) -> Vec<f32> {
    if k == 0 {
        return vec![0.0; rows];
    }
    probabilities.par_chunks_exact(k).map(|row| row.iter().sum()).collect()
}

fn without(rows: &Embeddings, offset: &[f64]) -> Result<Embeddings> {
    Embeddings::from_fn(rows.len(), rows.dim(), "centred embeddings", |i, values| {
        without_offset(rows.row(i), offset, values);
    })
}

impl Knowledge {
    /// Rows without what all rows of the set share.
    pub fn centred(&self, rows: &Embeddings) -> Result<Embeddings> {
        if rows.dim() != self.offset.len() {
            let (place, what) = ("embeddings".to_owned(), "columns, as the set has".to_owned());
            return Err(Error::Length { place, what, expected: self.offset.len(), found: rows.dim() });
        }
        without(rows, &self.offset)
    }

    /// The medians and spreads of the similarities of new rows to the cohort, which are among the `old` ones; all are centred.
    pub fn background(&self, old: &Embeddings, new: &Embeddings) -> (Vec<f32>, Vec<f32>) {
        let (count, first) = (new.len(), self.cohort.len());
        // The cohort first, and the new rows behind it.
        let mut rows = Vec::with_capacity((first + count) * old.dim());
        self.cohort.iter().for_each(|&i| rows.extend_from_slice(old.row(i as usize)));
        rows.extend_from_slice(new.as_slice());
        let centred = &Embeddings::from_unit_rows(rows, old.dim());
        let null = NullModel::of(centred, &(0..first as u32).collect::<Vec<u32>>());
        let (mut medians, mut spreads) = (vec![0.0; count], vec![0.0; count]);
        let blocks = medians.par_chunks_mut(Cohort::BLOCK).zip(spreads.par_chunks_mut(Cohort::BLOCK));
        blocks.enumerate().for_each_init(NullScratch::default, |scratch, (block, (medians, spreads))| {
            null.of_rows(centred, first + block * Cohort::BLOCK, medians, spreads, scratch);
        });
        (medians, spreads)
    }

    /// A corrector of probabilities.
    pub fn correction(&self) -> Result<Correction> {
        let check = CrossCheck::from_numbers(&self.check);
        let whole = || Error::Format {
            place: "knowledge".to_owned(),
            expected: "a whole cross-check".to_owned(),
            found: format!("{} numbers", self.check.len()),
        };
        Ok(Correction(check.ok_or_else(whole)?))
    }
}

/// What two halves of the coordinates corrected.
pub struct Correction(CrossCheck);

impl Correction {
    /// The probability of an edge, of which the end with fewer expected relatives has so many.
    pub fn apply(&self, relatives: f32, probability: f32) -> f32 {
        self.0.corrected(relatives, probability)
    }
}

/// Edges whose probabilities can be estimated, wherever their lists are.
pub struct Edges<'a> {
    lists: &'a dyn NeighbourLists,
    background: Background,
    arrivals: Values<u32>,
    sizes: Sizes,
}

impl<'a> Edges<'a> {
    /// `arrivals` says how many rows list each row; `medians` and `spreads` are the background of each.
    pub fn of(
        lists: &'a dyn NeighbourLists,
        knowledge: &Knowledge,
        medians: Vec<f32>,
        spreads: Vec<f32>,
        arrivals: Vec<u32>,
    ) -> Self {
        let (medians, spreads) = (medians.into(), spreads.into());
        let background = Background { medians, spreads, median: knowledge.median, spread: knowledge.spread };
        Self { lists, background, arrivals: arrivals.into(), sizes: Sizes(knowledge.sizes) }
    }

    /// The probabilities of all edges from some rows, before the correction.
    pub fn probabilities(&self, rows: &[u32], progress: &dyn Progress) -> Result<Vec<f32>> {
        // As many as stay in a near cache.
        const TASK: usize = 512;
        let model = EdgeModel::default();
        let edges =
            OwnEdges::of(self.lists, &self.background, self.arrivals.clone(), None, self.sizes, &model);
        progress.begin("connectivity", rows.len() as u64);
        let tasks = rows.par_chunks(TASK).map(|rows| {
            progress.check()?;
            let found = edges.all_probabilities(rows);
            progress.advance(rows.len() as u64);
            Ok(found)
        });
        Ok(tasks.collect::<Result<Vec<_>>>()?.concat())
    }
}

/// Lists of rows that are near one another, about as many as the root of the number of rows, and the mean direction of each.
pub struct Lists {
    /// The rows of each list, ascending.
    pub members: Vec<Vec<u32>>,
    /// The mean of each list, of unit length; row after row.
    pub centroids: Vec<f32>,
}

impl Lists {
    /// Those of all rows.
    pub fn of(rows: &Embeddings, context: &Context) -> Result<Self> {
        let members = near_lists(rows, context.seed(), context.progress())?;
        let mean = |members: &Vec<u32>| {
            let mut mean = vec![0.0f64; rows.dim()];
            for &member in members {
                mean.iter_mut().zip(rows.row(member as usize)).for_each(|(sum, &v)| *sum += f64::from(v));
            }
            let norm = mean.iter().map(|v| v * v).sum::<f64>().sqrt().max(1e-12);
            mean.into_iter().map(|v| (v / norm) as f32).collect::<Vec<f32>>()
        };
        let centroids = members.par_iter().map(mean).collect::<Vec<_>>().concat();
        Ok(Self { members, centroids })
    }
}

/// A clustering that [`write_results`](crate::results::write_results) writes: these labels, explained by the edges of a graph.
pub fn explained(
    rows: &Embeddings,
    graph: &KnnGraph,
    probabilities: &[f32],
    labels: Vec<i64>,
    context: &Context,
) -> Clustering {
    let evidence = edge_evidence(graph, probabilities, &labels, PAIR, rows);
    let kin = Kin::default();
    let report = GraphReport { k: graph.k(), search: None };
    let mut report = Report::new(&kin, Some(report), context);
    report.method = kin.info().name;
    report.set("least_probability", PAIR);
    Clustering::new(labels, Reason::Edges(evidence), report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clusterer;
    use crate::methods::estimate;
    use crate::synth::{Synth, SynthParams};

    fn faces() -> Embeddings {
        let params = SynthParams { identities: 60, dim: 32, ..SynthParams::default() };
        Synth::new(params).unwrap().whole().to_embeddings().unwrap().0
    }

    #[test]
    fn the_whole_is_what_the_clusterer_finds() {
        let rows = faces();
        let found = cluster(&rows, None, &Context::default()).unwrap();
        assert_eq!(found.labels, Clusterer::new().fit(&rows).unwrap().labels);
        let context = Context::default();
        let estimated =
            estimate(&found.centred, &found.graph, &EdgeModel::default(), None, &context).unwrap();
        assert_eq!(found.probabilities, estimated.probabilities);
        assert_eq!(found.knowledge.sizes, estimated.sizes.0);
    }

    #[test]
    fn single_rows_are_estimated_as_in_the_whole() {
        let rows = faces();
        let found = cluster(&rows, None, &Context::default()).unwrap();
        let k = found.graph.k();
        let mut arrivals = vec![0; rows.len()];
        (0..rows.len())
            .for_each(|i| found.graph.neighbours(i).0.iter().for_each(|&j| arrivals[j as usize] += 1));
        let (medians, spreads) = (found.medians.clone(), found.spreads.clone());
        let edges = Edges::of(&found.graph, &found.knowledge, medians, spreads, arrivals);
        let some = [3, 700, 44, 9];
        let raw = edges.probabilities(&some, &()).unwrap();
        let correction = found.knowledge.correction().unwrap();
        for (at, &row) in some.iter().enumerate() {
            for (place, &other) in found.graph.neighbours(row as usize).0.iter().enumerate() {
                let least = found.relatives[row as usize].min(found.relatives[other as usize]);
                let p = correction.apply(least, raw[at * k + place]);
                assert!((p - found.probabilities[row as usize * k + place]).abs() < 1e-5);
            }
        }
        let new: Vec<u32> = (500..600).filter(|i| found.knowledge.cohort.binary_search(i).is_err()).collect();
        let added = new.iter().flat_map(|&i| found.centred.row(i as usize)).copied().collect();
        let added = Embeddings::from_rows(added, found.centred.dim(), "added").unwrap();
        let (medians, spreads) = found.knowledge.background(&found.centred, &added);
        for (at, &i) in new.iter().enumerate() {
            assert_eq!((medians[at], spreads[at]), (found.medians[i as usize], found.spreads[i as usize]));
        }
        let centred = found.knowledge.centred(&rows).unwrap();
        assert_eq!(centred.as_slice(), found.centred.as_slice());
    }
}
