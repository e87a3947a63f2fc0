//! `run.json`: the input, the parameters, the result and the cost of a run.

use crate::metrics::Scores;
use crate::{
    Clustering, Embeddings, Error, GraphReport, Job, Level, Levels, PseudoLabelParams, PseudoLabels, Result,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The version of the format that this program writes, and the newest that it reads. Files without one are of version 1.
pub const RUN_FORMAT: u32 = 2;

/// The content of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// The version of the format.
    #[serde(default = "first_format")]
    pub format: u32,
    /// The version of the program.
    pub kinfolk: String,
    /// The input.
    pub features: Features,
    /// The method, its parameters as they were applied, the seed and the number of threads.
    pub parameters: Map<String, Value>,
    /// The graph, if one was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphInfo>,
    /// The graph that was rebuilt from a network's embeddings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt_graph: Option<GraphInfo>,
    /// The number and sizes of clusters.
    pub clusters: ClusterCounts,
    /// The levels, fine to coarse, if they were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelInfo>,
    /// The pseudo-labels, if they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pseudo_labels: Option<PseudoLabelInfo>,
    /// Notes for the reader of the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Seconds of each stage.
    pub seconds: Map<String, Value>,
    /// What each part of the stages costs, by what its progress bar is called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartCost>,
    /// Processor time and memory.
    #[serde(flatten)]
    pub cost: Cost,
    /// The scores, if true labels were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
}

fn first_format() -> u32 {
    1
}

/// The file of embeddings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// Its path.
    pub file: PathBuf,
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub dim: usize,
    /// Whether it was mapped into memory rather than read.
    #[serde(default)]
    pub mapped: bool,
    /// All files, if there are several; `file` is the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<PathBuf>,
    /// The array or column that was read, if it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
}

/// A graph, and how it was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphInfo {
    /// Neighbours of each vertex.
    pub k: usize,
    /// The file it was read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Whether a search found every true neighbour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<bool>,
    /// The recall of an approximate search, measured on a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<f32>,
    /// The instructions that a search used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Lists of an approximate search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists: Option<usize>,
    /// Its reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<f32>,
}

impl From<&GraphReport> for GraphInfo {
    fn from(report: &GraphReport) -> Self {
        let search = report.search.as_ref();
        GraphInfo {
            k: report.k,
            file: None,
            exact: search.map(|search| search.exact),
            recall: search.and_then(|search| search.recall),
            kernel: search.map(|search| search.kernel.to_owned()),
            lists: search.and_then(|search| search.lists),
            reach: search.and_then(|search| search.reach),
        }
    }
}

/// The number and sizes of clusters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterCounts {
    /// The number of clusters; noise does not count.
    pub count: usize,
    /// Clusters of one row.
    pub singletons: usize,
    /// Rows of the largest.
    pub largest: Option<usize>,
}

/// A partition of `levels.npy`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LevelInfo {
    /// The number of clusters.
    pub clusters: usize,
    /// The mean life of the rows' clusters, in octaves.
    pub persistence: f64,
    /// The height of the cut, in octaves; 0 is the default.
    pub height: f64,
    /// Whether it is the partition of `labels.npy`.
    pub default: bool,
}

impl From<&Level> for LevelInfo {
    fn from(level: &Level) -> Self {
        let Level { clusters, persistence, height, default } = *level;
        LevelInfo { clusters, persistence, height, default }
    }
}

/// A file of pseudo-labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PseudoLabelInfo {
    /// Its path.
    pub file: PathBuf,
    /// Rows of the smallest cluster that was kept.
    pub least_size: usize,
    /// The least probability of a cluster that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_probability: Option<f32>,
    /// The number of classes.
    pub classes: usize,
    /// The number of rows that have a class.
    pub rows: usize,
    /// Their share.
    pub share: f64,
    /// The probability that two rows of one class are of one identity, if the method estimates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_precision: Option<f32>,
    /// The share of pairs in one class that are of one identity, if true labels were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
}

impl PseudoLabelInfo {
    /// Describes the pseudo-labels in a file.
    pub fn new(file: &Path, params: &PseudoLabelParams, found: &PseudoLabels) -> Self {
        PseudoLabelInfo {
            file: file.to_owned(),
            least_size: params.least_size,
            least_probability: params.least_probability,
            classes: found.classes,
            rows: found.kept,
            share: found.share(),
            expected_precision: found.expected_precision,
            precision: None,
        }
    }
}

/// Processor time and memory of a run; `None` if the system does not provide it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Processor time of all threads.
    pub cpu_seconds: Option<f64>,
    /// Peak memory.
    pub peak_memory_bytes: Option<u64>,
}

/// What a part of a run costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PartCost {
    /// What its progress bar is called.
    pub part: String,
    /// Wall time.
    pub seconds: f64,
    /// Processor time of all threads.
    pub cpu_seconds: f64,
    /// The most memory that the process held during it besides pages of mapped files; `None` if the system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl PartCost {
    /// A part that has not cost anything yet.
    pub fn new(part: &str) -> Self {
        PartCost { part: part.to_owned(), ..PartCost::default() }
    }
}

impl Run {
    /// Describes the result of a job.
    pub fn of_job(job: &Job, found: &Clustering) -> Result<Self> {
        let paths = job.paths();
        let mut run = Run::new(&job.unit_rows()?, &paths[0], job.array(), found);
        if paths.len() > 1 {
            run.features.shards = paths.to_vec();
        }
        run.parameters.insert("seed".to_owned(), job.seed().into());
        Ok(run)
    }

    /// Describes a run on embeddings from a file.
    pub fn new(embeddings: &Embeddings, file: &Path, array: Option<String>, found: &Clustering) -> Self {
        let report = &found.report;
        let mut parameters = Map::new();
        parameters.insert("method".to_owned(), report.method.into());
        for (name, value) in &report.parameters {
            parameters.insert((*name).to_owned(), json_scalar(value));
        }
        if let Some(rows) = report.noise_rows {
            parameters.insert("rows_of_noise".to_owned(), rows.into());
        }
        let seconds = report.timings.iter();
        let sizes = found.sizes();
        Run {
            format: RUN_FORMAT,
            kinfolk: env!("CARGO_PKG_VERSION").to_owned(),
            features: Features {
                file: file.to_owned(),
                rows: embeddings.len(),
                dim: embeddings.dim(),
                mapped: embeddings.is_mapped(),
                shards: Vec::new(),
                array,
            },
            parameters,
            graph: report.graph.as_ref().map(GraphInfo::from),
            rebuilt_graph: report.rebuilt_graph.as_ref().map(GraphInfo::from),
            clusters: ClusterCounts {
                count: sizes.len(),
                singletons: sizes.iter().filter(|&&size| size == 1).count(),
                largest: sizes.iter().max().copied(),
            },
            levels: found.levels.iter().flat_map(Levels::levels).map(LevelInfo::from).collect(),
            pseudo_labels: None,
            notes: report.notes.clone(),
            seconds: seconds.map(|(stage, time)| ((*stage).to_owned(), time.as_secs_f64().into())).collect(),
            parts: Vec::new(),
            cost: Cost::default(),
            scores: None,
        }
    }

    /// The name of the method.
    pub fn method(&self) -> &str {
        self.parameters.get("method").and_then(Value::as_str).unwrap_or("an unknown method")
    }

    /// The text of the file.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads the text of a file; `place` names it in errors.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let wrong =
            |e: serde_json::Error| Error::format(place, "a run.json of `kinfolk cluster`", e.to_string());
        #[derive(Deserialize)]
        struct Version {
            #[serde(default = "first_format")]
            format: u32,
        }
        let Version { format } = serde_json::from_str(text).map_err(wrong)?;
        if format > RUN_FORMAT {
            let expected = format!("format {RUN_FORMAT} or older; a newer kinfolk wrote this file");
            return Err(Error::format(place, expected, format!("format {format}")));
        }
        serde_json::from_str(text).map_err(wrong)
    }
}

/// A text as a JSON number or boolean if it is one, else as a string.
pub fn json_scalar(text: &str) -> Value {
    if let Ok(whole) = text.parse::<i64>() {
        return whole.into();
    }
    match (text.parse::<f64>(), text) {
        (Ok(number), _) if number.is_finite() => number.into(),
        (_, "true") => true.into(),
        (_, "false") => false.into(),
        _ => text.into(),
    }
}
