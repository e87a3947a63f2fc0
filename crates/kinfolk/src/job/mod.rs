//! Clustering by many processes, on one machine or many: the stages of [`Kin`] as blocks over the files of a directory.
//!
//! Every stage is a number of blocks. A block is a function from files that are finished to a part of another, and always writes
//! the same: any process that sees the directory can run it, in any order, again if it was lost. Between two stages one process
//! joins what the blocks found for all rows. The kernels are those of [`Clusterer`](crate::Clusterer), and the labels are the same,
//! to the row.
//!
//! | file | contents |
//! |---|---|
//! | `stage` | the stages, in their order |
//! | `spec` | inputs and parameters |
//! | `store` | the files of a job |
//! | `inputs` | shards of rows, normalised and centred |
//! | `estimate` | the probabilities of edges |
//! | `../knn/by_blocks` | the search |
//!
//! Files are mapped, so a process holds what it works on, and the system drops the rest when it needs memory. What a block holds
//! besides grows with its rows; the tables that grow with all rows take some tens of bytes for each.

mod estimate;
mod inputs;
mod spec;
mod stage;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use store::Store;

use crate::knn::by_blocks::Search;
use crate::methods::{DEFAULT_K, edge_evidence, partition};
use crate::{
    Clustering, Context, Embeddings, Error, GraphReport, Kin, Progress, Reason, Report, Result,
    Search as SearchKind,
};
use inputs::Shards;
use serde::{Deserialize, Serialize};
use spec::Spec;
use stage::Stage;
use std::ops::Range;
use std::path::{Path, PathBuf};

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
/// while let Some(stage) = job.next_stage()? {
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
    /// The part of a usual job, from 0 to 1, at which it begins and ends.
    pub share: Range<f32>,
}

impl Job {
    /// Begins a job in a directory, or opens the one that is there. Refuses one of other inputs or parameters.
    pub fn create(directory: &Path, paths: &[PathBuf], params: &JobParams) -> Result<Self> {
        if directory.exists() && !directory.is_dir() {
            return Err(Error::format(directory, "a directory for a job", "a file"));
        }
        let spec = Spec::new(paths, params)?;
        let store = Store::new(directory);
        if let Some(there) = store.facts::<Spec>("job")? {
            there.check(directory)?;
            if let Some((expected, found)) = spec.key.difference(&there.key) {
                let expected = format!("a job with {expected} (remove the directory to begin anew)");
                return Err(Error::format(directory, expected, found));
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
        spec.check(directory)?;
        Ok(Self { store, spec })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        self.store.directory()
    }

    /// The stage whose blocks are to be run, or which is to be finished if none is left; `None` once all are.
    pub fn next_stage(&self) -> Result<Option<JobStage>> {
        let stage = self.stage()?;
        if stage == Stage::Done {
            return Ok(None);
        }
        let (name, blocks) = (stage.to_string(), self.blocks(stage)?);
        self.store.begin(&name)?;
        let left = (0..blocks).filter(|&block| !self.store.is_done(&name, block)).collect();
        Ok(Some(JobStage { name, blocks, left, share: stage.share() }))
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
