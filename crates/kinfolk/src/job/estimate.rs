//! The probabilities of edges as blocks: the kernels of `methods/kin`, and the same numbers.
//!
//! | array | contents |
//! |---|---|
//! | `medians`, `spreads`, `arrivals` | the background of each row, and how many rows list it |
//! | `profiles` | what the features of an edge depend on at one end |
//! | `region`, `sizes`, `check` | what the halves of the coordinates say |
//! | `own` | the probability of every edge that is evaluated from this end, in the order of `order`; NaN for others |
//! | `raw`, `relatives` | the probability of every edge, and the sum of each row's |
//! | `probabilities` | the same, corrected |

use super::{Blocks, Store};
use crate::connectivity::structural::{
    Background, EdgeModel, HalfViews, Nearest, NullModel, NullScratch, OwnEdges, Profile, Sizes, ViewSample,
    joined, keep_nearest, nearest_to, rows_of_regions,
};
use crate::knn::Cohort;
use crate::knn::by_blocks::Search;
use crate::methods::{CrossCheck, Halves, REGION, REGIONS, choose_sizes};
use crate::values::Values;
use crate::{Context, Embeddings, Error, KnnGraph, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// Blocks that one block of the views is as large as: it keeps long lists, whatever the number of its rows.
const VIEW_BLOCKS: usize = 16;

/// A stage of the estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// The similarities of random pairs, and in-degrees.
    Background,
    /// What the features of edges depend on at one end.
    Profiles,
    /// The nearest rows to a sample, by either half of the coordinates.
    Views,
    /// What the halves agree on. One block: it looks at a bounded number of rows.
    Halves,
    /// The probabilities of edges, each from one end.
    Edges,
    /// The probabilities of all edges.
    BothEnds,
    /// What the halves correct.
    Check,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Stage::Background => "background",
            Stage::Profiles => "profiles",
            Stage::Views => "views",
            Stage::Halves => "halves",
            Stage::Edges => "edges",
            Stage::BothEnds => "both-ends",
            Stage::Check => "cross-check",
        })
    }
}

/// What the estimate depends on besides the rows.
pub(crate) struct Estimation {
    pub search: Search,
    /// The typical size of identities, if it is known.
    pub known_size: Option<f32>,
    pub seed: u64,
    pub blocks: Blocks,
}

/// Begins with the first stage.
pub(super) fn begin(store: &Store, rows: &Embeddings, seed: u64) -> Result<Stage> {
    let mut cohort = Background::cohort(rows.len(), seed);
    store.write("unsorted-cohort", &cohort)?;
    cohort.sort_unstable();
    store.write("cohort", &cohort)?;
    store.write("view-sample", &ViewSample::sample(rows.len(), seed))?;
    Ok(Stage::Background)
}

/// The blocks of a stage.
pub(super) fn blocks(stage: Stage, rows: usize, blocks: Blocks) -> usize {
    match stage {
        Stage::Views => of_views(blocks).count(rows),
        Stage::Halves => 1,
        _ => blocks.count(rows),
    }
}

fn of_views(blocks: Blocks) -> Blocks {
    Blocks { rows: VIEW_BLOCKS * blocks.rows }
}

/// The sizes of identities that were chosen.
pub(super) fn sizes(store: &Store) -> Result<Sizes> {
    let sizes = store.array_of::<f32>("sizes", 3)?;
    Ok(Sizes([sizes[0], sizes[1], sizes[2]]))
}

/// Runs a block.
pub(super) fn run(
    store: &Store,
    embeddings: &Embeddings,
    estimation: &Estimation,
    stage: Stage,
    block: usize,
) -> Result<()> {
    let n = embeddings.len();
    let range = estimation.blocks.range(block, n);
    match stage {
        Stage::Background => background(store, embeddings, &estimation.search.graph(store)?, block, range),
        Stage::Profiles => {
            let (graph, background) = (estimation.search.graph(store)?, stored_background(store)?);
            let arrivals = store.array_of::<u32>("arrivals", n)?;
            let profiles = Profile::of_rows(&graph, &background, &arrivals, range.clone());
            store.put("profiles", range.start, &profiles)
        }
        Stage::Views => views(store, embeddings, estimation, block),
        Stage::Halves => halves(store, embeddings, estimation),
        Stage::Edges => {
            let (graph, background) = (estimation.search.graph(store)?, stored_background(store)?);
            let order = order(store, estimation, "order")?;
            let rows: Vec<u32> = range.clone().map(|at| order.at(at)).collect();
            let (arrivals, profiles) = (store.array_of("arrivals", n)?, store.array_of("profiles", n)?);
            let (sizes, model) = (sizes(store)?, EdgeModel::default());
            let edges = OwnEdges::of(&graph, &background, arrivals, Some(profiles), sizes, &model);
            store.put("own", range.start * graph.k(), &edges.probabilities(&rows))
        }
        Stage::BothEnds => {
            let graph = estimation.search.graph(store)?;
            let own = store.array_of::<f32>("own", n * graph.k())?;
            let places = order(store, estimation, "position-of")?;
            let probabilities = both_ends(&graph, &own, &places, range.clone());
            let relatives: Vec<f32> = match graph.k() {
                0 => vec![0.0; range.len()],
                k => probabilities.chunks_exact(k).map(|row| row.iter().sum()).collect(),
            };
            store.put("raw", range.start * graph.k(), &probabilities)?;
            store.put("relatives", range.start, &relatives)
        }
        Stage::Check => {
            let graph = estimation.search.graph(store)?;
            let k = graph.k();
            let relatives = store.array_of::<f32>("relatives", n)?;
            let raw = store.array_of::<f32>("raw", n * k)?;
            let mut probabilities = raw[range.start * k..range.end * k].to_vec();
            let check = CrossCheck::from_numbers(&store.array("check")?);
            let check =
                check.ok_or_else(|| Error::format(store.directory(), "a whole cross-check", "none"))?;
            check.correct(&graph, &relatives, range.start, &mut probabilities);
            store.put("probabilities", range.start * k, &probabilities)
        }
    }
}

/// Ends a stage and returns the next, if there is one.
pub(super) fn finish(
    store: &Store,
    embeddings: &Embeddings,
    estimation: &Estimation,
    stage: Stage,
) -> Result<Option<Stage>> {
    let (n, seed) = (embeddings.len(), estimation.seed);
    Ok(Some(match stage {
        Stage::Background => {
            let mut arrivals = vec![0u32; n];
            for block in 0..estimation.blocks.count(n) {
                for pair in store.part(&stage.to_string(), block)?.chunks_exact(size_of::<[u32; 2]>()) {
                    let [row, count] = bytemuck::pod_read_unaligned(pair);
                    let row: u32 = row;
                    let count: u32 = count;
                    arrivals[row as usize] += count;
                }
            }
            store.write("arrivals", &arrivals)?;
            Stage::Profiles
        }
        Stage::Profiles => Stage::Views,
        Stage::Views => {
            let sample = view_sample(store, embeddings, seed)?;
            let mut lists = sample.no_lists();
            let mut regions: Vec<Vec<(f32, u32)>> = vec![Vec::new(); REGIONS.min(sample.ids.len())];
            for block in 0..of_views(estimation.blocks).count(n) {
                let part = store.part(&stage.to_string(), block)?;
                let mut found = Lists(&part);
                let of_block = (0..lists.len()).map(|_| found.next().map(Nearest::of_rows));
                let of_block = of_block.collect::<Option<Vec<_>>>();
                let whole = || Error::format(store.directory(), "whole lists of views", "some cut short");
                lists = joined(lists, of_block.ok_or_else(whole)?);
                for region in &mut regions {
                    region.extend(found.next().ok_or_else(whole)?);
                    *region = keep_nearest(std::mem::take(region), REGION);
                }
            }
            let views = sample.into_views(lists, n);
            store.write("estimated-sizes", &views.sizes.0)?;
            store.write("region", &rows_of_regions(regions))?;
            Stage::Halves
        }
        Stage::Halves => Stage::Edges,
        Stage::Edges => Stage::BothEnds,
        Stage::BothEnds => Stage::Check,
        Stage::Check => return Ok(None),
    }))
}

fn background(
    store: &Store,
    embeddings: &Embeddings,
    graph: &KnnGraph,
    block: usize,
    range: Range<usize>,
) -> Result<()> {
    let null = NullModel::of(embeddings, &store.array::<u32>("cohort")?);
    let (mut medians, mut spreads) = (vec![0.0; range.len()], vec![0.0; range.len()]);
    let parts = medians.chunks_mut(Cohort::BLOCK).zip(spreads.chunks_mut(Cohort::BLOCK));
    let mut scratch = NullScratch::default();
    for (first, (medians, spreads)) in range.clone().step_by(Cohort::BLOCK).zip(parts) {
        null.of_rows(embeddings, first, medians, spreads, &mut scratch);
    }
    store.put("medians", range.start, &medians)?;
    store.put("spreads", range.start, &spreads)?;
    store.put("null-model", 0, &[null.median, null.spread])?;
    // Rows that are listed here, and how often.
    let mut listed: Vec<u32> = range.flat_map(|i| graph.neighbours(i).0).copied().collect();
    listed.sort_unstable();
    let counts: Vec<[u32; 2]> =
        listed.chunk_by(|a, b| a == b).map(|equal| [equal[0], equal.len() as u32]).collect();
    store.set_part(&Stage::Background.to_string(), block, bytemuck::cast_slice(&counts))
}

fn stored_background(store: &Store) -> Result<Background> {
    let null = store.array_of::<f32>("null-model", 2)?;
    let (medians, spreads) = (store.array("medians")?, store.array("spreads")?);
    Ok(Background { medians, spreads, median: null[0], spread: null[1] })
}

fn view_sample(store: &Store, embeddings: &Embeddings, seed: u64) -> Result<ViewSample> {
    Ok(ViewSample::of(embeddings, store.array::<u32>("view-sample")?.to_vec(), seed))
}

fn views(store: &Store, embeddings: &Embeddings, estimation: &Estimation, block: usize) -> Result<()> {
    let range = of_views(estimation.blocks).range(block, embeddings.len());
    let sample = view_sample(store, embeddings, estimation.seed)?;
    let (mut lists, mut products) = (sample.no_lists(), Vec::new());
    for first in range.clone().step_by(Cohort::BLOCK) {
        let rows = first..range.end.min(first + Cohort::BLOCK);
        sample.look(embeddings, rows, &mut lists, &mut products);
    }
    let near = |&centre: &u32| nearest_to(embeddings, centre, range.clone(), REGION);
    let regions = sample.ids.iter().take(REGIONS).map(near);
    let mut bytes = Vec::new();
    for rows in lists.into_iter().map(Nearest::into_rows).chain(regions) {
        bytes.extend((rows.len() as u32).to_ne_bytes());
        rows.iter().for_each(|(product, row)| {
            bytes.extend(product.to_ne_bytes());
            bytes.extend(row.to_ne_bytes());
        });
    }
    store.set_part(&Stage::Views.to_string(), block, &bytes)
}

/// Lists of rows with a number each, one after the other.
struct Lists<'a>(&'a [u8]);

impl Lists<'_> {
    fn next(&mut self) -> Option<Vec<(f32, u32)>> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let rows = rest.get(..8 * u32::from_ne_bytes(*length) as usize)?;
        self.0 = &rest[rows.len()..];
        let pair = |pair: &[u8]| -> (f32, u32) {
            (bytemuck::pod_read_unaligned(&pair[..4]), bytemuck::pod_read_unaligned(&pair[4..]))
        };
        Some(rows.chunks_exact(8).map(pair).collect())
    }
}

fn halves(store: &Store, embeddings: &Embeddings, estimation: &Estimation) -> Result<()> {
    let context = &Context::default().with_seed(estimation.seed);
    let sizes = store.array_of::<f32>("estimated-sizes", 3)?;
    let ids = store.array::<u32>("view-sample")?.to_vec();
    let views =
        HalfViews::of_sizes(Sizes([sizes[0], sizes[1], sizes[2]]), ids, embeddings.dim(), estimation.seed);
    let (region, cohort) = (store.array::<u32>("region")?, store.array::<u32>("unsorted-cohort")?);
    let k = estimation.search.graph(store)?.k();
    let halves = Halves::of_views(&views, || region.to_vec(), &cohort, embeddings, k, context)?;
    let sizes = match estimation.known_size {
        Some(size) => Sizes([size.log2(); 3]),
        None => choose_sizes(&halves, context)?,
    };
    let check = CrossCheck::of(&halves, sizes, &EdgeModel::default(), context)?;
    store.write("sizes", &sizes.0)?;
    store.write("check", &check.to_numbers())
}

/// A permutation of the rows, or the rows as they are.
struct Order(Option<Values<u32>>);

impl Order {
    fn at(&self, at: usize) -> u32 {
        self.0.as_ref().map_or(at as u32, |order| order[at])
    }
}

fn order(store: &Store, estimation: &Estimation, name: &str) -> Result<Order> {
    estimation.search.has_order().then(|| store.array(name)).transpose().map(Order)
}

/// The probabilities of the edges from some rows: those that were evaluated from the other end are taken from there.
fn both_ends(graph: &KnnGraph, own: &[f32], places: &Order, rows: Range<usize>) -> Vec<f32> {
    let k = graph.k();
    let mut probabilities = Vec::with_capacity(rows.len() * k);
    for i in rows {
        let first = places.at(i) as usize * k;
        for (&probability, &j) in own[first..first + k].iter().zip(graph.neighbours(i).0) {
            let there = || {
                let back = graph.neighbours(j as usize).0.iter().position(|&id| id as usize == i);
                back.map_or(f32::NAN, |back| own[places.at(j as usize) as usize * k + back])
            };
            probabilities.push(if probability.is_nan() { there() } else { probability });
        }
    }
    probabilities
}
