//! The search as blocks over the files of a job, for many processes: the kernels of `exact`, `join` and `refine`, and the same
//! graph.
//!
//! | array | contents |
//! |---|---|
//! | `sample`, `centroids-I`, `nearest` | k-means |
//! | `list-of`, `order`, `starts`, `near` | the lists |
//! | `codes-*`, `packed-*` | rows as int8, by position |
//! | `truth-*` | a sample, which chooses the reach and measures the recall |
//! | `found-*` | the graph by position, after each step |
//! | `ids`, `similarities` | the graph |

use super::candidates::Candidate;
use super::codes::{Codes, Packed};
use super::copies::Copies;
use super::index::{Index, order_equals, pack, worst_rest};
use super::join::{Reaches, Truth, has_stalled, list_count, measure_recall, sample};
use super::kernel::{Kernel, PANEL, STEP};
use super::layout::Layout;
use super::lists::{ITERATIONS, Lists};
use super::refine::{Addition, Look, add_to, other_ends, words};
use super::{FEW_COPIES, KnnGraph, KnnReport, Rows, hash};
use crate::job::{Blocks, Store};
use crate::values::Values;
use crate::{Embeddings, Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// Rows of the sample whose exact neighbours one block finds.
const QUERIES: usize = 64;

/// A stage of the search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// The nearest centroid of every row of the sample of k-means.
    Assign { iteration: usize },
    /// The list of every row.
    Lists,
    /// Rows as int8 in the order of their lists.
    Codes,
    /// Exact neighbours, for few rows.
    Exact,
    /// Exact neighbours of a sample.
    Sample,
    /// The lists within reach.
    Search { attempt: usize },
    /// The other ends of edges.
    Ends { attempt: usize },
    /// Neighbours of neighbours.
    Look { attempt: usize, round: usize },
    /// What was found last is added.
    Add { attempt: usize, round: usize },
    /// The graph of rows, from that of positions.
    Graph,
    /// The graph of all rows, from that of the different ones.
    Fill,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Stage::Assign { iteration } => write!(f, "k-means-{iteration}"),
            Stage::Lists => f.write_str("lists"),
            Stage::Codes => f.write_str("codes"),
            Stage::Exact => f.write_str("exact-neighbours"),
            Stage::Sample => f.write_str("sample"),
            Stage::Search { attempt } => write!(f, "neighbours-{attempt}"),
            Stage::Ends { attempt } => write!(f, "other-ends-{attempt}"),
            Stage::Look { attempt, round } => write!(f, "neighbours-of-neighbours-{attempt}-{round}"),
            Stage::Add { attempt, round } => write!(f, "additions-{attempt}-{round}"),
            Stage::Graph => f.write_str("graph"),
            Stage::Fill => f.write_str("copies"),
        }
    }
}

/// What is searched for, and what is known so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Search {
    /// All rows, and how many of them are different.
    rows: usize,
    different: usize,
    dim: usize,
    /// Neighbours among the different rows, and among all.
    k_of_different: usize,
    k: usize,
    seed: u64,
    recall: f32,
    lists: usize,
    worst_rest: f32,
    attempts: Vec<Attempt>,
    /// The recall after the last step.
    measured: f32,
}

/// A search of the lists within a reach.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Attempt {
    /// The bits of the reach, which may be infinite.
    reach: u32,
    /// Whether there is no larger one.
    most: bool,
}

impl Attempt {
    fn reach(self) -> f32 {
        f32::from_bits(self.reach)
    }
}

const FACTS: &str = "search";

impl Search {
    /// Begins a search; `None` if there is nothing to search for. The rows and their hashes are there.
    pub(crate) fn begin(
        store: &Store,
        embeddings: &Embeddings,
        hashes: &[u64],
        k: usize,
        seed: u64,
        recall: f32,
    ) -> Result<Option<Stage>> {
        let rows = embeddings.len();
        let k = k.min(rows - 1);
        let copies = if k == 0 { None } else { Copies::of_hashes(embeddings, hashes, k.max(FEW_COPIES)) };
        let different = copies.as_ref().map_or(rows, |copies| copies.firsts.len());
        if let Some(copies) = &copies {
            copies.write(store)?;
        }
        let k_of_different = k.min(different - 1);
        let exact = recall == 1.0;
        let lists = if exact { different.div_ceil(super::exact::BLOCK) } else { list_count(different) };
        let dim = embeddings.dim();
        let (attempts, worst_rest, measured) = (Vec::new(), 0.0, 0.0);
        let search = Search {
            rows,
            different,
            dim,
            k_of_different,
            k,
            seed,
            recall,
            lists,
            worst_rest,
            attempts,
            measured,
        };
        store.set_facts(FACTS, &search)?;
        if k_of_different == 0 {
            store.write::<u32>("different-ids", &[])?;
            store.write::<f32>("different-similarities", &[])?;
            store.write::<u32>("ids", &[])?;
            store.write::<f32>("similarities", &[])?;
            return Ok((different < rows).then_some(Stage::Fill));
        }
        if exact {
            // Lists of consecutive rows: positions are rows.
            let list_of: Vec<u32> = (0..different).map(|row| (row / super::exact::BLOCK) as u32).collect();
            write_layout(store, &Layout::of(&list_of, lists))?;
            return Ok(Some(Stage::Codes));
        }
        let all = StoredRows::open(store, &search, embeddings)?;
        let sample = Lists::sample(different, lists, seed);
        store.write("sample", &sample)?;
        store.write("centroids-0", &Lists::first_centroids(all.rows(), &sample, lists))?;
        Ok(Some(Stage::Assign { iteration: 0 }))
    }

    pub(crate) fn open(store: &Store) -> Result<Self> {
        store.known(FACTS)
    }

    fn is_exact(&self) -> bool {
        self.recall == 1.0
    }

    /// How the graph was found.
    pub(crate) fn report(&self) -> KnnReport {
        let approximate = (!self.is_exact() && self.k_of_different > 0).then_some(());
        KnnReport {
            exact: self.is_exact(),
            kernel: Kernel::default().name(),
            recall: approximate.map(|()| self.measured),
            lists: approximate.map(|()| self.lists),
            reach: approximate.and_then(|()| self.attempts.last().map(|attempt| attempt.reach())),
        }
    }

    /// Where rows that are near one another follow each other: the array of rows, and that of their places in it.
    pub(crate) fn has_order(&self) -> bool {
        !self.is_exact() && self.different == self.rows
    }

    /// The graph.
    pub(crate) fn graph(&self, store: &Store) -> Result<KnnGraph> {
        read_graph(store, ["ids", "similarities"], self.rows, self.k)
    }

    /// The blocks of a stage.
    pub(crate) fn blocks(&self, store: &Store, stage: Stage, blocks: Blocks) -> Result<usize> {
        Ok(match stage {
            Stage::Assign { .. } => blocks.count(store.array::<u32>("sample")?.len()),
            Stage::Codes | Stage::Search { .. } => self.tasks(store, blocks)?.len(),
            Stage::Sample => store.array::<u32>("truth-positions")?.len().div_ceil(QUERIES),
            Stage::Fill => blocks.count(self.rows),
            Stage::Lists | Stage::Exact | Stage::Ends { .. } | Stage::Look { .. } => {
                blocks.count(self.different)
            }
            Stage::Add { .. } | Stage::Graph => blocks.count(self.different),
        })
    }

    /// Runs a block.
    pub(crate) fn run(
        &self,
        store: &Store,
        embeddings: &Embeddings,
        stage: Stage,
        block: usize,
        blocks: Blocks,
    ) -> Result<()> {
        let all = StoredRows::open(store, self, embeddings)?;
        let (rows, k, kernel) = (all.rows(), self.k_of_different, Kernel::default());
        let range = |total| blocks.range(block, total);
        match stage {
            Stage::Assign { iteration } => {
                let centroids = store.array::<f32>(&format!("centroids-{iteration}"))?;
                let sample = store.array::<u32>("sample")?;
                let range = range(sample.len());
                let lists = Lists::from_centroids(&centroids, self.dim);
                let sample = &sample[range.clone()];
                let nearest = lists.nearest(sample.len(), |i| rows.row(sample[i] as usize), kernel, &())?;
                store.put("nearest", range.start, &nearest)
            }
            Stage::Lists => {
                let range = range(self.different);
                let lists = self.centroids(store)?;
                let list_of = lists.nearest(range.len(), |i| rows.row(range.start + i), kernel, &())?;
                store.put("list-of", range.start, &list_of)
            }
            Stage::Codes => {
                let layout = read_layout(store)?;
                let lists = self.tasks(store, blocks)?[block].clone();
                let (codes, packed) = pack(rows, &layout, lists.clone());
                let at = layout.positions(lists.clone()).start;
                store.put("codes-bytes", at * codes.width, &codes.bytes)?;
                store.put("codes-scale", at, &codes.scale)?;
                store.put("codes-rest", at, &codes.rest)?;
                store.put("codes-sum", at, &codes.sum)?;
                let at = layout.first_panels()[lists.start] * PANEL;
                store.put("packed-bytes", at * packed.width, &packed.bytes)?;
                store.put("packed-ids", at, &packed.ids)?;
                store.put("packed-scale", at, &packed.scale)
            }
            Stage::Exact => {
                let (index, range) = (self.index(store, rows)?, range(self.different));
                let (mut sweep, mut found) = (index.sweep(), Found::default());
                let positions: Vec<u32> = range.clone().map(|position| position as u32).collect();
                for positions in positions.chunks(QUERIES) {
                    index.exact_neighbours(&mut sweep, positions, k).iter().for_each(|row| found.push(row));
                }
                found.put(store, self.names_of_different(), range.start * k)
            }
            Stage::Sample => {
                let index = self.index(store, rows)?;
                let positions = store.array::<u32>("truth-positions")?;
                let (first, to_choose) = (block * QUERIES, positions.len() / 2);
                let positions = &positions[first..positions.len().min(first + QUERIES)];
                let (mut sweep, mut found) = (index.sweep(), Found::default());
                let neighbours = index.exact_neighbours(&mut sweep, positions, k);
                neighbours.iter().for_each(|row| found.push(row));
                found.put(store, ["truth-ids", "truth-similarities"], first * k)?;
                for ((at, &position), neighbours) in (first..to_choose).zip(positions).zip(neighbours) {
                    let truth = Truth { position, neighbours };
                    let reaches = Reaches::of_row(&index, &mut sweep, &truth, k);
                    store.put("truth-reaches", at * k, &reaches)?;
                }
                Ok(())
            }
            Stage::Search { attempt } => {
                let index = self.index(store, rows)?;
                let lists = self.tasks(store, blocks)?[block].clone();
                let positions = index.layout.positions(lists.clone());
                let (mut ids, mut similarities) =
                    (vec![0; positions.len() * k], vec![0.0; positions.len() * k]);
                let reach = self.attempts[attempt].reach();
                let sweeps = &mut [index.sweep(), index.sweep()];
                index.search_task(sweeps, lists, k, reach, &mut ids, &mut similarities);
                Step { attempt, round: 0 }.put(store, positions.start, k, &ids, &similarities)
            }
            Stage::Ends { attempt } => {
                let step = Step { attempt, round: 0 };
                let (graph, last) = (step.graph(store, self.different, k)?, step.last(store)?);
                let additions = other_ends(&graph, &last, range(self.different));
                put_additions(store, &stage.to_string(), block, additions, blocks, self.different)
            }
            Stage::Look { attempt, round } => {
                let (index, step) = (self.index(store, rows)?, Step { attempt, round });
                let (graph, last) = (&step.graph(store, self.different, k)?, &*step.last(store)?);
                let new = &*step.added(store)?;
                let look = Look { index: &index, graph, new, last };
                let additions = look.around(range(self.different));
                put_additions(store, &stage.to_string(), block, additions, blocks, self.different)
            }
            Stage::Add { attempt, round } => {
                let (from, to) = (Step { attempt, round }, Step { attempt, round: round + 1 });
                let range = range(self.different);
                let graph = from.graph(store, self.different, k)?;
                let edges = range.start * k..range.end * k;
                let mut ids = graph.ids[edges.clone()].to_vec();
                let mut similarities = graph.similarities[edges].to_vec();
                let source = self.source(attempt, round).to_string();
                let additions = take_additions(store, &source, block, blocks, self.different)?;
                let mut new = add_to(range.start, &mut ids, &mut similarities, k, &additions);
                if round == 0 {
                    // In the first round all paths are followed.
                    new.fill(u64::MAX);
                }
                to.put(store, range.start, k, &ids, &similarities)?;
                store.put(&to.name("new"), range.start * words(k), &new)
            }
            Stage::Graph => {
                let (layout, step) = (read_layout(store)?, self.last_step(store)?);
                let graph = step.graph(store, self.different, k)?;
                let position_of = store.array_of::<u32>("position-of", self.different)?;
                let range = range(self.different);
                let (mut ids, mut similarities) = (vec![0; range.len() * k], vec![0.0; range.len() * k]);
                let rows = ids.chunks_exact_mut(k).zip(similarities.chunks_exact_mut(k));
                for ((ids, similarities), &position) in rows.zip(&position_of[range.clone()]) {
                    let (positions, of_position) = graph.neighbours(position as usize);
                    layout.rows_at(positions, ids);
                    similarities.copy_from_slice(of_position);
                    order_equals(ids, similarities);
                }
                let [id_name, similarity_name] = self.names_of_different();
                store.put(id_name, range.start * k, &ids)?;
                store.put(similarity_name, range.start * k, &similarities)
            }
            Stage::Fill => {
                let copies = Copies::read(store)?;
                let graph = read_graph(store, NAMES_OF_DIFFERENT, self.different, k)?;
                let range = range(self.rows);
                let mut found = Found::default();
                let mut list = Vec::new();
                for row in range.clone() {
                    copies.list(&graph, embeddings, row, self.k, &mut list);
                    found.push(&list);
                }
                found.put(store, ["ids", "similarities"], range.start * self.k)
            }
        }
    }

    /// Ends a stage, all of whose blocks are done, and returns the next.
    pub(crate) fn finish(
        mut self,
        store: &Store,
        embeddings: &Embeddings,
        stage: Stage,
    ) -> Result<Option<Stage>> {
        let k = self.k_of_different;
        let fill = (self.different < self.rows).then_some(Stage::Fill);
        let next = match stage {
            Stage::Assign { iteration } => {
                let all = StoredRows::open(store, &self, embeddings)?;
                let mut centroids = store.array::<f32>(&format!("centroids-{iteration}"))?.to_vec();
                let (sample, nearest) = (store.array::<u32>("sample")?, store.array::<u32>("nearest")?);
                Lists::move_centroids(all.rows(), &sample, &nearest, &mut centroids);
                let iteration = iteration + 1;
                store.write(&format!("centroids-{iteration}"), &centroids)?;
                if iteration < ITERATIONS { Stage::Assign { iteration } } else { Stage::Lists }
            }
            Stage::Lists => {
                let list_of = store.array_of::<u32>("list-of", self.different)?;
                let layout = Layout::of(&list_of, self.lists);
                write_layout(store, &layout)?;
                store.write("position-of", &layout.position_of())?;
                let lists = self.centroids(store)?;
                store.write("near", &lists.near(super::index::FIRST_LISTS, Kernel::default()))?;
                store.write("truth-positions", &sample(self.different, self.seed))?;
                Stage::Codes
            }
            Stage::Codes => {
                self.worst_rest = worst_rest(&store.array_of::<f32>("codes-rest", self.different)?);
                store.set_facts(FACTS, &self)?;
                if self.is_exact() { Stage::Exact } else { Stage::Sample }
            }
            Stage::Exact => return Ok(fill),
            Stage::Sample => self.next_attempt(store)?,
            Stage::Search { attempt } => Stage::Ends { attempt },
            Stage::Ends { attempt } => Stage::Add { attempt, round: 0 },
            Stage::Look { attempt, round } => Stage::Add { attempt, round },
            Stage::Add { attempt, round } => {
                store.end(&self.source(attempt, round).to_string());
                let step = Step { attempt, round: round + 1 };
                let graph = step.graph(store, self.different, k)?;
                let truth = self.truth(store)?;
                let before = self.measured;
                let measured = measure_recall(&graph, &truth[truth.len() / 2..]);
                let last = measured >= self.recall || round > 0 && has_stalled(before, measured);
                self.measured = measured;
                store.set_facts(FACTS, &self)?;
                store.set_facts("step", &step)?;
                if !last {
                    Stage::Look { attempt, round: round + 1 }
                } else if measured >= self.recall || self.attempts[attempt].most {
                    Stage::Graph
                } else {
                    self.next_attempt(store)?
                }
            }
            Stage::Graph => return Ok(fill),
            Stage::Fill => return Ok(None),
        };
        Ok(Some(next))
    }

    /// Arrays that are not needed once a stage is finished.
    pub(crate) fn stale(stage: Stage) -> Vec<String> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let codes = ["codes-bytes", "codes-scale", "codes-rest", "codes-sum"];
        let packed = ["packed-bytes", "packed-ids", "packed-scale"];
        let truth = ["truth-positions", "truth-ids", "truth-similarities", "truth-reaches"];
        match stage {
            Stage::Assign { iteration } => vec![format!("centroids-{iteration}")],
            Stage::Lists => names(&["list-of", "sample", "nearest"]),
            Stage::Add { attempt, round } => Step { attempt, round }.names().to_vec(),
            Stage::Exact | Stage::Graph => names(&[codes.as_slice(), &packed, &truth].concat()),
            Stage::Fill => names(&NAMES_OF_DIFFERENT),
            _ => Vec::new(),
        }
    }

    /// The stage that found what is added in a round.
    fn source(&self, attempt: usize, round: usize) -> Stage {
        if round == 0 { Stage::Ends { attempt } } else { Stage::Look { attempt, round } }
    }

    fn next_attempt(&mut self, store: &Store) -> Result<Stage> {
        let reaches = Reaches::of_rows(store.array("truth-reaches")?.to_vec());
        let attempt = self.attempts.len();
        let missed = (1.0 - self.recall) / (1u64 << attempt) as f32;
        let (reach, most) = reaches.choose(missed);
        self.attempts.push(Attempt { reach: reach.to_bits(), most });
        store.set_facts(FACTS, &self)?;
        Ok(Stage::Search { attempt })
    }

    fn last_step(&self, store: &Store) -> Result<Step> {
        store.known("step")
    }

    fn tasks(&self, store: &Store, blocks: Blocks) -> Result<Vec<Range<usize>>> {
        Ok(read_layout(store)?.tasks(blocks.rows))
    }

    fn centroids(&self, store: &Store) -> Result<Lists> {
        let centroids = store.array::<f32>(&format!("centroids-{ITERATIONS}"))?;
        Ok(Lists::from_centroids(&centroids, self.dim))
    }

    fn truth(&self, store: &Store) -> Result<Vec<Truth>> {
        let positions = store.array::<u32>("truth-positions")?;
        let edges = positions.len() * self.k_of_different;
        let ids = store.array_of::<u32>("truth-ids", edges)?;
        let scores = store.array_of::<f32>("truth-similarities", edges)?;
        let neighbours: Vec<Candidate> =
            ids.iter().zip(&*scores).map(|(&id, &score)| Candidate { score, id }).collect();
        let rows = positions.iter().zip(neighbours.chunks_exact(self.k_of_different));
        Ok(rows.map(|(&position, row)| Truth { position, neighbours: row.to_vec() }).collect())
    }

    fn index<'a>(&self, store: &Store, rows: Rows<'a>) -> Result<Index<'a>> {
        let width = self.dim.next_multiple_of(STEP);
        let layout = read_layout(store)?;
        let first_panel = layout.first_panels();
        let panels = first_panel.last().copied().unwrap_or(0) * PANEL;
        let codes = Codes {
            width,
            bytes: store.array_of("codes-bytes", self.different * width)?,
            scale: store.array_of("codes-scale", self.different)?,
            rest: store.array_of("codes-rest", self.different)?,
            sum: store.array_of("codes-sum", self.different)?,
        };
        let packed = Packed {
            width,
            bytes: store.array_of("packed-bytes", panels * width)?,
            ids: store.array_of("packed-ids", panels)?,
            scale: store.array_of("packed-scale", panels)?,
        };
        let (lists, near) = if self.is_exact() {
            (Lists::from_centroids(&[], self.dim), Values::from(Vec::new()))
        } else {
            (self.centroids(store)?, store.array("near")?)
        };
        let (kernel, worst_rest) = (Kernel::default(), self.worst_rest);
        Ok(Index { rows, kernel, lists, near, layout, codes, packed, first_panel, worst_rest })
    }

    /// What the graph of the different rows is called.
    fn names_of_different(&self) -> [&'static str; 2] {
        if self.different < self.rows { NAMES_OF_DIFFERENT } else { ["ids", "similarities"] }
    }
}

const NAMES_OF_DIFFERENT: [&str; 2] = ["different-ids", "different-similarities"];

/// The hash of every row, by which copies are found.
pub(crate) fn hashes(rows: &[f32], dim: usize) -> Vec<u64> {
    rows.chunks_exact(dim).map(hash).collect()
}

/// The rows that are searched.
struct StoredRows<'a> {
    embeddings: &'a Embeddings,
    firsts: Option<Values<u32>>,
}

impl<'a> StoredRows<'a> {
    fn open(store: &Store, search: &Search, embeddings: &'a Embeddings) -> Result<Self> {
        let some = search.different < search.rows;
        let firsts = some.then(|| store.array_of("copies-firsts", search.different)).transpose()?;
        Ok(Self { embeddings, firsts })
    }

    fn rows(&self) -> Rows<'_> {
        Rows { embeddings: self.embeddings, some: self.firsts.as_deref() }
    }
}

/// The graph by position after a step of an attempt.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Step {
    attempt: usize,
    round: usize,
}

impl Step {
    fn name(self, of: &str) -> String {
        format!("found-{of}-{}-{}", self.attempt, self.round)
    }

    fn names(self) -> [String; 4] {
        ["ids", "similarities", "last", "new"].map(|of| self.name(of))
    }

    fn graph(self, store: &Store, n: usize, k: usize) -> Result<KnnGraph> {
        read_graph(store, [&self.name("ids"), &self.name("similarities")], n, k)
    }

    fn last(self, store: &Store) -> Result<Values<f32>> {
        store.array(&self.name("last"))
    }

    fn added(self, store: &Store) -> Result<Values<u64>> {
        store.array(&self.name("new"))
    }

    /// Writes the neighbours of the rows from position `first` on.
    fn put(self, store: &Store, first: usize, k: usize, ids: &[u32], similarities: &[f32]) -> Result<()> {
        let last: Vec<f32> = similarities.chunks_exact(k).map(|row| row[k - 1]).collect();
        store.put(&self.name("ids"), first * k, ids)?;
        store.put(&self.name("similarities"), first * k, similarities)?;
        store.put(&self.name("last"), first, &last)
    }
}

/// Neighbours of consecutive rows.
#[derive(Default)]
struct Found {
    ids: Vec<u32>,
    similarities: Vec<f32>,
}

impl Found {
    fn push(&mut self, row: &[Candidate]) {
        self.ids.extend(row.iter().map(|found| found.id));
        self.similarities.extend(row.iter().map(|found| found.score));
    }

    fn put(&self, store: &Store, [ids, similarities]: [&str; 2], at: usize) -> Result<()> {
        store.put(ids, at, &self.ids)?;
        store.put(similarities, at, &self.similarities)
    }
}

fn read_graph(store: &Store, [ids, similarities]: [&str; 2], n: usize, k: usize) -> Result<KnnGraph> {
    let (ids, similarities) = (store.array_of(ids, n * k)?, store.array_of(similarities, n * k)?);
    Ok(KnnGraph::of_valid_parts(n, k, ids, similarities))
}

fn write_layout(store: &Store, layout: &Layout) -> Result<()> {
    store.write("order", &layout.order)?;
    store.write("starts", &layout.starts)
}

fn read_layout(store: &Store) -> Result<Layout> {
    Ok(Layout { order: store.array("order")?, starts: store.array("starts")? })
}

/// Writes the additions of a block by the block of their row: where those of each block begin, then the additions.
fn put_additions(
    store: &Store,
    stage: &str,
    block: usize,
    mut additions: Vec<Addition>,
    blocks: Blocks,
    rows: usize,
) -> Result<()> {
    additions.sort_by_key(|addition| addition.row);
    let first = |target: usize| {
        let row = blocks.range(target, rows).start;
        additions.partition_point(|addition| (addition.row as usize) < row) as u64
    };
    let starts: Vec<u64> = (0..blocks.count(rows)).map(first).chain([additions.len() as u64]).collect();
    let bytes = [bytemuck::cast_slice(&starts), bytemuck::cast_slice::<Addition, u8>(&additions)].concat();
    store.set_part(stage, block, &bytes)
}

/// The additions to the rows of a block, from all blocks in order.
fn take_additions(
    store: &Store,
    stage: &str,
    block: usize,
    blocks: Blocks,
    rows: usize,
) -> Result<Vec<Addition>> {
    let count = blocks.count(rows);
    let mut all = Vec::new();
    for source in 0..count {
        let bytes = store.part(stage, source)?;
        let whole = |expected: usize| {
            let place = format!("{} ({stage}, block {source})", store.directory().display());
            let what = "bytes of additions".to_owned();
            Error::Length { place, what, expected, found: bytes.len() }
        };
        let head = 8 * (count + 1);
        let starts = bytes.get(..head).ok_or_else(|| whole(head))?;
        let starts: Vec<usize> =
            starts.as_chunks::<8>().0.iter().map(|&word| u64::from_ne_bytes(word) as usize).collect();
        let at = |start: usize| head + start * size_of::<Addition>();
        let range = at(starts[block])..at(starts[block + 1]);
        let part = bytes.get(range.clone()).ok_or_else(|| whole(range.end))?;
        all.extend(part.chunks_exact(size_of::<Addition>()).map(bytemuck::pod_read_unaligned::<Addition>));
    }
    Ok(all)
}
