//! Clustering by many processes: `kinfolk::Job`.

use crate::errors::raise;
use crate::work::Job as Call;
use kinfolk::results::{ClustersFormat, ResultOptions, Run, write_results};
use kinfolk::{JobParams, Kin, Method, Search};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

type StageOfJob = (String, usize, Vec<usize>, (f32, f32));

/// A directory of stages, which any number of processes run block by block.
#[pyclass(frozen, name = "Job", module = "kinfolk._kinfolk")]
pub struct StoredJob(kinfolk::Job);

#[pymethods]
impl StoredJob {
    /// Begins a job, or opens the one of the same inputs and parameters that is there.
    #[staticmethod]
    #[pyo3(signature = (directory, paths, *, k=None, seed=0, recall=None, prefer=None, identity_size=None, dim=None, array=None, memory=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn create(
        directory: PathBuf,
        paths: Vec<PathBuf>,
        k: Option<usize>,
        seed: u64,
        recall: Option<f32>,
        prefer: Option<String>,
        identity_size: Option<f64>,
        dim: Option<usize>,
        array: Option<String>,
        memory: Option<u64>,
    ) -> PyResult<Self> {
        let mut method = Kin::default();
        let size = identity_size.map(|size| size.to_string());
        for (name, value) in [("prefer", prefer), ("identity_size", size)] {
            if let Some(value) = value {
                method.parameters_mut().set(name, &value).map_err(raise)?;
            }
        }
        let search = match recall {
            None => Search::Auto,
            Some(1.0) => Search::Exact,
            Some(recall) => Search::Recall(recall),
        };
        let params = JobParams { method, k, search, seed, dim, array, memory, ..JobParams::default() };
        kinfolk::Job::create(&directory, &paths, &params).map(Self).map_err(raise)
    }

    /// Opens a job.
    #[staticmethod]
    fn open(directory: PathBuf) -> PyResult<Self> {
        kinfolk::Job::open(&directory).map(Self).map_err(raise)
    }

    /// The stage to run, the number of its blocks, those that are not done, and the part of a usual job at which it begins
    /// and ends; None once all stages are finished.
    fn next_stage(&self) -> PyResult<Option<StageOfJob>> {
        let stage = self.0.next_stage().map_err(raise)?;
        Ok(stage.map(|stage| (stage.name, stage.blocks, stage.left, (stage.share.start, stage.share.end))))
    }

    /// Runs a block on one thread.
    fn run(&self, py: Python<'_>, stage: String, block: usize) -> PyResult<()> {
        Call::on_threads(Some(1)).run(py, |_| self.0.run(&stage, block))
    }

    /// Joins what the blocks of a stage found, on all cores.
    fn finish(&self, py: Python<'_>, stage: String) -> PyResult<()> {
        Call::on_threads(None).run(py, |_| self.0.finish(&stage))
    }

    /// Partitions the graph and writes the files that `kinfolk cluster` writes; returns the counts.
    #[pyo3(signature = (output, *, parquet=false))]
    fn write<'py>(&self, py: Python<'py>, output: PathBuf, parquet: bool) -> PyResult<Bound<'py, PyDict>> {
        let clusters = if parquet { ClustersFormat::Parquet } else { ClustersFormat::Csv };
        let counts = Call::on_threads(None).run(py, |progress| {
            let found = self.0.result(progress)?;
            let run = Run::of_job(&self.0, &found)?;
            write_results(&output, &found, &run, &ResultOptions { clusters, levels_svg: None })?;
            Ok((found.labels.len(), run.clusters))
        })?;
        let (rows, clusters) = counts;
        let counts = PyDict::new(py);
        counts.set_item("rows", rows)?;
        counts.set_item("clusters", clusters.count)?;
        counts.set_item("singletons", clusters.singletons)?;
        counts.set_item("largest", clusters.largest)?;
        Ok(counts)
    }

    /// Removes the directory.
    fn remove(&self) -> PyResult<()> {
        self.0.remove().map_err(raise)
    }
}
