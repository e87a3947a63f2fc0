//! [`Clusterer`], the entry point of the library.

use crate::{
    Clustering, Context, Embeddings, Error, Kin, KnnGraph, Method, Problem, Progress, Result, Search, Work,
    forecast,
};
use std::path::Path;

/// Clusters embeddings. The default method is [`Kin`], which needs neither labels nor thresholds. The command
/// `kinfolk cluster` and the Python class `Kinfolk` do the same with the same defaults.
///
/// ```
/// use kinfolk::synth::{Synth, SynthParams};
/// use kinfolk::{Clusterer, Density};
/// # fn main() -> kinfolk::Result<()> {
/// let params = SynthParams { identities: 40, dim: 64, ..SynthParams::default() };
/// let (embeddings, truth) = Synth::new(params)?.whole().to_embeddings()?;
///
/// let found = Clusterer::new().fit(&embeddings)?;
/// assert!(kinfolk::metrics::evaluate(&truth, &found.labels)?.bcubed.f > 0.7);
///
/// // Another method, another number of neighbours, another seed.
/// let found = Clusterer::with(Density::default()).k(30).seed(7).fit(&embeddings)?;
/// assert_eq!(found.report.k(), Some(30));
/// # Ok(())
/// # }
/// ```
pub struct Clusterer<'a> {
    method: Box<dyn Method + 'a>,
    k: Option<usize>,
    search: Search,
    seed: u64,
    levels: bool,
    progress: &'a dyn Progress,
    work: Option<&'a Work>,
    scratch: Option<&'a Path>,
    memory: Option<u64>,
}

impl Default for Clusterer<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Clusterer<'a> {
    /// Clusters by [`Kin`] with its defaults.
    pub fn new() -> Self {
        Self::with(Kin::default())
    }

    /// Clusters by this method.
    pub fn with(method: impl Method + 'a) -> Self {
        Self::with_boxed(Box::new(method))
    }

    /// Clusters by a method that is known only at run time.
    pub fn with_boxed(method: Box<dyn Method + 'a>) -> Self {
        Clusterer {
            method,
            k: None,
            search: Search::Auto,
            seed: 0,
            levels: false,
            progress: &(),
            work: None,
            scratch: None,
            memory: None,
        }
    }

    /// Neighbours of each row, instead of the method's default.
    pub fn k(mut self, k: usize) -> Self {
        self.k = Some(k);
        self
    }

    /// The kind of neighbour search, instead of [`Search::Auto`].
    pub fn search(mut self, search: Search) -> Self {
        self.search = search;
        self
    }

    /// The seed of all random numbers, 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Also returns nested partitions from fine to coarse, [`Clustering::levels`]; refused if the method has none.
    pub fn levels(mut self, levels: bool) -> Self {
        self.levels = levels;
        self
    }

    /// Receives progress and can cancel the run.
    pub fn progress(mut self, progress: &'a dyn Progress) -> Self {
        self.progress = progress;
        self
    }

    /// Keeps the results of finished stages there, and takes those that are there already: the neighbours, and for [`Kin`] also
    /// the edge probabilities and the partition.
    pub fn work(mut self, work: &'a Work) -> Self {
        self.work = Some(work);
        self
    }

    /// Puts matrices that would fill much of the memory into files without a name in this directory.
    pub fn scratch(mut self, directory: &'a Path) -> Self {
        self.scratch = Some(directory);
        self
    }

    /// Uses at most this many bytes of memory, besides pages of mapped files, instead of what is free. A run that would need more is
    /// refused before it starts.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Clusters rows.
    pub fn fit(&self, embeddings: &Embeddings) -> Result<Clustering> {
        self.run(&Problem::new(embeddings).with_search(self.search).with_k(self.k)?)
    }

    /// Clusters rows with a precomputed kNN graph.
    pub fn fit_graph(&self, embeddings: &Embeddings, graph: &KnnGraph) -> Result<Clustering> {
        self.run(&Problem::new(embeddings).with_graph(graph)?.with_k(self.k)?)
    }

    /// Clusters a problem, which has its own K and search. Refuses a graph, K or search that the method would not use.
    pub fn run(&self, problem: &Problem) -> Result<Clustering> {
        let info = self.method.info();
        let unused = [
            ("graph", problem.given_graph().is_some()),
            ("k", problem.k().is_some()),
            ("search", problem.search() != Search::Auto),
        ];
        if problem.has_embeddings()
            && !self.method.uses_graph(problem.len())
            && let Some((field, _)) = unused.into_iter().find(|(_, given)| *given)
        {
            let found = format!("{} on {} rows", info.name, problem.len());
            return Err(Error::Parameter { field, expected: "a method that uses neighbours", found });
        }
        if self.levels && !info.levels {
            let expected = "a method that estimates edge probabilities, such as kin";
            return Err(Error::Parameter { field: "levels", expected, found: info.name.to_owned() });
        }
        let context = Context::new(self.progress)
            .with_seed(self.seed)
            .with_levels(self.levels)
            .with_work(self.work)
            .with_scratch(self.scratch)
            .with_memory(self.memory);
        forecast::announce(&*self.method, problem, &context)?;
        self.method.run(problem, &context)
    }
}
