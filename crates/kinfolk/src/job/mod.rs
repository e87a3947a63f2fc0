//! Clustering by many processes, on one machine or many: the stages of [`Kin`] as blocks over the files of a directory.
//!
//! Every stage is a number of blocks. A block is a function from files that are finished to a part of another, and always writes
//! the same: any process that sees the directory can run it, in any order, again if it was lost. Between two stages one process
//! joins what the blocks found for all rows. The kernels are those of [`Clusterer`](crate::Clusterer), and the labels are the same,
//! to the row.
//!
//! | file | contents |
//! |---|---|
//! | `store` | the files of a job |
//! | `inputs` | shards of rows, normalised and centred |
//! | `estimate` | the probabilities of edges |
//! | `../knn/by_blocks` | the search |
//!
//! Files are mapped, so a process holds what it works on, and the system drops the rest when it needs memory. What a block holds
//! besides grows with its rows; the tables that grow with all rows take some tens of bytes for each.

mod estimate;
mod inputs;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use store::Store;

use crate::knn::by_blocks::{self, Search};
use crate::methods::{DEFAULT_K, edge_evidence, partition};
use crate::work::Key;
use crate::{
    Clustering, Context, Embeddings, Error, GraphReport, Kin, MAX_K, Method, Progress, Reason, Report,
    Result, Search as SearchKind,
};
use inputs::Shards;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The version of the files.
const FORMAT: u32 = 1;
/// Rows of a block, if memory allows.
const ROWS: usize = 8192;
const LEAST_ROWS: usize = 1024;
/// Memory that a process takes whatever it does, and that a row of a block takes at most.
const BASE: u64 = 128 << 20;
const OF_ROW: u64 = 96 << 10;

/// How all rows are divided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Blocks {
    /// Rows of a block.
    pub rows: usize,
}

impl Blocks {
    /// The number of blocks of so many rows.
    pub fn count(self, rows: usize) -> usize {
        rows.div_ceil(self.rows)
    }

    /// The rows of a block.
    pub fn range(self, block: usize, rows: usize) -> Range<usize> {
        (block * self.rows).min(rows)..((block + 1) * self.rows).min(rows)
    }
}

/// Parameters of a [`Job`].
#[derive(Debug, Clone, Default)]
pub struct JobParams {
    /// The method and its parameters. No model.
    pub method: Kin,
    /// Neighbours of each row, instead of the method's default.
    pub k: Option<usize>,
    /// The kind of search.
    pub search: SearchKind,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Columns of `.bin` files.
    pub dim: Option<usize>,
    /// The array of `.npz` files or the column of `.parquet` files.
    pub array: Option<String>,
    /// Bytes that a process may use, besides pages of mapped files. It chooses the size of blocks.
    pub memory: Option<u64>,
    /// Rows of a block, instead of what fits into the memory.
    #[doc(hidden)]
    pub block_rows: Option<usize>,
}

/// A stage of a job.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Stage {
    /// The shapes of the shards.
    Shapes,
    /// Rows of unit length.
    Rows,
    /// Sums of rows, for what all rows share.
    Sums,
    /// Rows without it.
    Centring,
    Search(by_blocks::Stage),
    Estimate(estimate::Stage),
    Done,
}

impl Stage {
    /// Whether its parts are still read by the next stage, which removes them.
    fn has_additions(self) -> bool {
        use by_blocks::Stage::{Ends, Look};
        matches!(self, Stage::Search(Ends { .. } | Look { .. }))
    }
}

impl Stage {
    /// Arrays that are not needed once it is finished.
    fn stale(self) -> Vec<String> {
        match self {
            Stage::Centring => vec!["sums".to_owned()],
            Stage::Search(stage) => Search::stale(stage),
            Stage::Estimate(estimate::Stage::BothEnds) => vec!["own".to_owned()],
            Stage::Estimate(estimate::Stage::Check) => vec!["raw".to_owned()],
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Stage::Shapes => f.write_str("shapes"),
            Stage::Rows => f.write_str("rows"),
            Stage::Sums => f.write_str("sums"),
            Stage::Centring => f.write_str("centring"),
            Stage::Search(stage) => stage.fmt(f),
            Stage::Estimate(stage) => stage.fmt(f),
            Stage::Done => f.write_str("done"),
        }
    }
}

/// What a job is about; kept in its directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Spec {
    format: u32,
    key: Key,
    paths: Vec<PathBuf>,
    /// Names and values of the parameters of the method.
    parameters: Vec<(String, String)>,
    k: Option<usize>,
    /// The recall that is asked for; 1 is an exact search.
    recall: Option<f32>,
    seed: u64,
    dim: Option<usize>,
    array: Option<String>,
    blocks: Blocks,
}

impl Spec {
    fn method(&self) -> Result<Kin> {
        let mut method = Kin::default();
        for (name, value) in &self.parameters {
            method.parameters_mut().set(name, value)?;
        }
        Ok(method)
    }
}

/// Clustering by many processes.
///
/// ```
/// use kinfolk::{Job, JobParams, synth};
/// # fn main() -> kinfolk::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let directory = directory.path();
/// # let params = synth::SynthParams { identities: 40, dim: 64, ..Default::default() };
/// # let (embeddings, _) = synth::Synth::new(params)?.whole().to_embeddings()?;
/// # let faces = directory.join("faces.npy");
/// # kinfolk::io::write_npy_f32(&faces, embeddings.as_slice(), embeddings.dim())?;
/// let job = Job::create(&directory.join("job"), &[faces], &JobParams::default())?;
/// while let Some(stage) = job.next()? {
///     // Each of them could be run by another process, which opens the job.
///     for block in stage.left {
///         job.run(&stage.name, block)?;
///     }
///     job.finish(&stage.name)?;
/// }
/// assert_eq!(job.result(&())?.labels.len(), embeddings.len());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Job {
    store: Store,
    spec: Spec,
}

/// A stage whose blocks are to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct JobStage {
    /// Its name.
    pub name: String,
    /// The number of its blocks.
    pub blocks: usize,
    /// The blocks that are not done, ascending.
    pub left: Vec<usize>,
}

impl Job {
    /// Begins a job in a directory, or opens the one that is there. Refuses one of other inputs or parameters.
    pub fn create(directory: &Path, paths: &[PathBuf], params: &JobParams) -> Result<Self> {
        if directory.exists() && !directory.is_dir() {
            return Err(Error::format(directory, "a directory for a job", "a file"));
        }
        let spec = new_spec(paths, params)?;
        let store = Store::new(directory);
        if let Some(there) = store.facts::<Spec>("job")? {
            let refuse = |expected: String, found: String| {
                let expected = format!("a job with {expected} (remove the directory to begin anew)");
                Err(Error::format(directory, expected, found))
            };
            if there.format != FORMAT {
                return refuse(format!("format {FORMAT}"), there.format.to_string());
            }
            if let Some((expected, found)) = spec.key.difference(&there.key) {
                return refuse(expected, found);
            }
            return Ok(Self { store, spec: there });
        }
        store.create()?;
        store.set_facts("state", &Stage::Shapes)?;
        store.set_facts("job", &spec)?;
        Ok(Self { store, spec })
    }

    /// Opens a job.
    pub fn open(directory: &Path) -> Result<Self> {
        let store = Store::new(directory);
        let Some(spec) = store.facts::<Spec>("job")? else {
            return Err(Error::format(directory, "the directory of a job", "none"));
        };
        if spec.format != FORMAT {
            return Err(Error::format(directory, format!("format {FORMAT}"), spec.format.to_string()));
        }
        Ok(Self { store, spec })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        self.store.directory()
    }

    /// The stage whose blocks are to be run, or which is to be finished if none is left; `None` once all are.
    pub fn next(&self) -> Result<Option<JobStage>> {
        let stage = self.stage()?;
        if stage == Stage::Done {
            return Ok(None);
        }
        let (name, blocks) = (stage.to_string(), self.blocks(stage)?);
        self.store.begin(&name)?;
        let left = (0..blocks).filter(|&block| !self.store.is_done(&name, block)).collect();
        Ok(Some(JobStage { name, blocks, left }))
    }

    /// Runs a block of the present stage.
    pub fn run(&self, stage: &str, block: usize) -> Result<()> {
        let name = stage;
        let stage = self.named(name)?;
        let blocks = self.blocks(stage)?;
        if block >= blocks {
            let found = format!("block {block}");
            return Err(Error::format(self.directory(), format!("one of {blocks} blocks of {name}"), found));
        }
        match stage {
            Stage::Shapes => Shards::measure(&self.store, &self.spec, block)?,
            Stage::Rows => Shards::open(&self.store)?.read(&self.store, &self.spec, block)?,
            Stage::Sums => Shards::open(&self.store)?.sum(&self.store, self.spec.blocks, block)?,
            Stage::Centring => Shards::open(&self.store)?.centre(&self.store, self.spec.blocks, block)?,
            Stage::Search(stage) => {
                let (rows, search) = (self.centred()?, Search::open(&self.store)?);
                search.run(&self.store, &rows, stage, block, self.spec.blocks)?;
            }
            Stage::Estimate(stage) => {
                estimate::run(&self.store, &self.centred()?, &self.estimation()?, stage, block)?;
            }
            Stage::Done => {}
        }
        self.store.set_done(name, block)
    }

    /// Joins what the blocks of the present stage found, all of which are done, and begins the next.
    pub fn finish(&self, stage: &str) -> Result<()> {
        let name = stage;
        let stage = self.named(name)?;
        let blocks = self.blocks(stage)?;
        if let Some(block) = (0..blocks).find(|&block| !self.store.is_done(name, block)) {
            let found = format!("block {block} that is not");
            return Err(Error::format(
                self.directory(),
                format!("all {blocks} blocks of {name} done"),
                found,
            ));
        }
        let next = match stage {
            Stage::Shapes => {
                Shards::join(&self.store, &self.spec)?;
                Stage::Rows
            }
            Stage::Rows => Stage::Sums,
            Stage::Sums => {
                Shards::open(&self.store)?.find_offset(&self.store, self.spec.seed)?;
                Stage::Centring
            }
            Stage::Centring => self.begin_search()?,
            Stage::Search(stage) => {
                let search = Search::open(&self.store)?;
                match search.finish(&self.store, &self.centred()?, stage)? {
                    Some(next) => Stage::Search(next),
                    None => self.begin_estimate()?,
                }
            }
            Stage::Estimate(stage) => {
                let next = estimate::finish(&self.store, &self.centred()?, &self.estimation()?, stage)?;
                next.map_or(Stage::Done, Stage::Estimate)
            }
            Stage::Done => Stage::Done,
        };
        self.store.set_facts("state", &next)?;
        if !stage.has_additions() {
            self.store.end(name);
        }
        self.store.remove(&stage.stale());
        Ok(())
    }

    /// The number of rows; known after the first stage.
    pub fn rows(&self) -> Result<usize> {
        Shards::open(&self.store).map(|shards| shards.rows)
    }

    /// The labels and the reasons for them, once all stages are finished. The partition holds the edges that may join rows.
    pub fn result(&self, progress: &dyn Progress) -> Result<Clustering> {
        if self.stage()? != Stage::Done {
            let found = format!("one in stage {}", self.stage()?);
            return Err(Error::format(self.directory(), "a job whose stages are finished", found));
        }
        let context = Context::new(progress).with_seed(self.spec.seed);
        let (method, search) = (self.spec.method()?, Search::open(&self.store)?);
        let graph = search.graph(&self.store)?;
        let probabilities = self.store.array_of::<f32>("probabilities", graph.len() * graph.k())?;
        let pair = method.least_probability();
        let labels = context.timed("partition", || partition(&graph, &probabilities, pair, &context))?;
        let rows = self.unit_rows()?;
        let evidence =
            context.timed("evidence", || edge_evidence(&graph, &probabilities, &labels, pair, &rows));
        let found = GraphReport { k: graph.k(), search: Some(search.report()) };
        let mut report = Report::new(&method, Some(found), &context);
        report.set("least_probability", pair);
        report.set("identity_sizes", estimate::sizes(&self.store)?);
        report.set("whitened", false);
        Ok(Clustering::new(labels, Reason::Edges(evidence), report))
    }

    /// The rows of all shards, each of unit length.
    pub fn unit_rows(&self) -> Result<Embeddings> {
        Shards::open(&self.store)?.embeddings(&self.store, inputs::ROWS)
    }

    /// The shards.
    pub fn paths(&self) -> &[PathBuf] {
        &self.spec.paths
    }

    /// The array of `.npz` files or the column of `.parquet` files, if it was named.
    pub fn array(&self) -> Option<String> {
        self.spec.array.clone()
    }

    /// The seed of all random numbers.
    pub fn seed(&self) -> u64 {
        self.spec.seed
    }

    /// Removes the directory.
    pub fn remove(&self) -> Result<()> {
        let directory = self.store.directory();
        std::fs::remove_dir_all(directory).map_err(|e| Error::io(directory, e))
    }

    fn stage(&self) -> Result<Stage> {
        self.store.known("state")
    }

    /// The present stage, if that is its name.
    fn named(&self, name: &str) -> Result<Stage> {
        let stage = self.stage()?;
        match stage.to_string() == name {
            true => Ok(stage),
            false => Err(Error::format(self.directory(), format!("stage {stage}"), format!("stage {name}"))),
        }
    }

    fn blocks(&self, stage: Stage) -> Result<usize> {
        let (store, blocks) = (&self.store, self.spec.blocks);
        Ok(match stage {
            Stage::Shapes => self.spec.paths.len(),
            Stage::Rows => Shards::open(store)?.blocks(blocks).len(),
            Stage::Sums => Shards::blocks_of_parts(blocks).count(self.rows()?),
            Stage::Centring => blocks.count(self.rows()?),
            Stage::Search(stage) => Search::open(store)?.blocks(store, stage, blocks)?,
            Stage::Estimate(stage) => estimate::blocks(stage, self.rows()?, blocks),
            Stage::Done => 0,
        })
    }

    fn centred(&self) -> Result<Embeddings> {
        Shards::open(&self.store)?.embeddings(&self.store, inputs::CENTRED)
    }

    fn begin_search(&self) -> Result<Stage> {
        let (rows, spec) = (self.centred()?, &self.spec);
        let k = spec.k.unwrap_or(DEFAULT_K).min(rows.len() - 1);
        let hashes = self.store.array_of::<u64>("hashes", rows.len())?;
        let recall = spec.recall.unwrap_or_else(|| SearchKind::Auto.recall(rows.len()));
        match Search::begin(&self.store, &rows, &hashes, k, spec.seed, recall)? {
            Some(stage) => Ok(Stage::Search(stage)),
            None => self.begin_estimate(),
        }
    }

    fn begin_estimate(&self) -> Result<Stage> {
        estimate::begin(&self.store, &self.centred()?, self.spec.seed).map(Stage::Estimate)
    }

    fn estimation(&self) -> Result<estimate::Estimation> {
        let search = Search::open(&self.store)?;
        let known_size = self.spec.method()?.identity_size();
        Ok(estimate::Estimation { search, known_size, seed: self.spec.seed, blocks: self.spec.blocks })
    }
}

fn new_spec(paths: &[PathBuf], params: &JobParams) -> Result<Spec> {
    let JobParams { method, k, search, seed, dim, array, memory, block_rows } = params;
    let wrong = |field, expected, found: String| Err(Error::Parameter { field, expected, found });
    if paths.is_empty() {
        return wrong("paths", "at least one file of embeddings", "none".to_owned());
    }
    if method.model().is_some() {
        return wrong("model", "none in a job", "one".to_owned());
    }
    let all: Vec<(String, String)> = method
        .parameters()
        .specs()
        .iter()
        .map(|spec| (spec.name.to_owned(), method.parameters().get(spec.name).unwrap_or_default()))
        .collect();
    if let Some((_, bound)) = all.iter().find(|(name, bound)| name == "super_vertices" && bound != "1") {
        return wrong("super_vertices", "1 in a job, which contracts nothing", bound.clone());
    }
    match k {
        Some(0) => return wrong("k", "at least 1", "0".to_owned()),
        Some(k) if *k > MAX_K => return wrong("k", "at most 1024 neighbours", k.to_string()),
        _ => {}
    }
    let recall = match search {
        SearchKind::Auto => None,
        SearchKind::Exact => Some(1.0),
        SearchKind::Recall(recall) if *recall > 0.0 && *recall <= 1.0 => Some(*recall),
        SearchKind::Recall(recall) => {
            return wrong("recall", "a number above 0, at most 1", recall.to_string());
        }
    };
    let rows = match (block_rows, memory) {
        (Some(rows), _) => *rows,
        (None, None) => ROWS,
        (None, Some(memory)) => {
            let rows = (memory.saturating_sub(BASE) / OF_ROW) as usize;
            if rows < LEAST_ROWS {
                let (what, needed) = ("a block of a job".to_owned(), BASE + LEAST_ROWS as u64 * OF_ROW);
                return Err(Error::Memory { what, needed, budget: *memory });
            }
            rows.min(ROWS)
        }
    };
    let mut key = Key::new().with("number of shards", paths.len());
    let mut absolute = Vec::new();
    for (shard, path) in paths.iter().enumerate() {
        let path = std::path::absolute(path).map_err(|e| Error::io(path, e))?;
        let length = std::fs::metadata(&path).map_err(|e| Error::io(&path, e))?.len();
        key = key.with(&format!("shard {shard}"), format!("{}, {length} bytes", path.display()));
        absolute.push(path);
    }
    let or_auto = |value: Option<String>| value.unwrap_or_else(|| "auto".to_owned());
    key = key
        .with("k", or_auto(k.map(|k| k.to_string())))
        .with("recall", or_auto(recall.map(|recall| recall.to_string())))
        .with("seed", seed)
        .with("dim", or_auto(dim.map(|dim| dim.to_string())))
        .with("array", or_auto(array.clone()));
    for (name, value) in &all {
        key = key.with(name, value);
    }
    Ok(Spec {
        format: FORMAT,
        key,
        paths: absolute,
        parameters: all,
        k: *k,
        recall,
        seed: *seed,
        dim: *dim,
        array: array.clone(),
        blocks: Blocks { rows },
    })
}
