//! What a job is about: inputs, parameters, and the size of its blocks.

use super::{Blocks, JobParams};
use crate::work::Key;
use crate::{Error, Kin, MAX_K, Method, Result, Search};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Rows of a block, if memory allows.
const ROWS: usize = 8192;
const LEAST_ROWS: usize = 1024;
/// Memory that a process takes whatever it does, and that a row of a block takes at most.
const BASE: u64 = 128 << 20;
const OF_ROW: u64 = 96 << 10;

/// What a job is about; kept in its directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Spec {
    /// What wrote it.
    maker: String,
    pub key: Key,
    pub paths: Vec<PathBuf>,
    /// Names and values of the parameters of the method.
    pub parameters: Vec<(String, String)>,
    pub k: Option<usize>,
    /// The recall that is asked for; 1 is an exact search.
    pub recall: Option<f32>,
    pub seed: u64,
    pub dim: Option<usize>,
    pub array: Option<String>,
    pub blocks: Blocks,
}

impl Spec {
    pub fn method(&self) -> Result<Kin> {
        let mut method = Kin::default();
        for (name, value) in &self.parameters {
            method.parameters_mut().set(name, value)?;
        }
        Ok(method)
    }

    /// Refuses the job of another version, or of processors whose mathematical functions may round otherwise.
    pub fn check(&self, directory: &Path) -> Result<()> {
        let (expected, found) = (maker(), &self.maker);
        if expected == *found {
            return Ok(());
        }
        Err(Error::format(directory, format!("a job of {expected}"), format!("one of {found}")))
    }

    /// Checks inputs and parameters.
    pub fn new(paths: &[PathBuf], params: &JobParams) -> Result<Self> {
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
            Search::Auto => None,
            Search::Exact => Some(1.0),
            Search::Recall(recall) if *recall > 0.0 && *recall <= 1.0 => Some(*recall),
            Search::Recall(recall) => {
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
            let found = std::fs::metadata(&path).map_err(|e| Error::io(&path, e))?;
            let changed = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let changed = changed.map_or(0.0, |time| time.as_secs_f64());
            let (length, path_text) = (found.len(), path.display());
            key = key.with(
                &format!("shard {shard}"),
                format!("{path_text}, {length} bytes, changed at {changed}"),
            );
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
        Ok(Self {
            maker: maker(),
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
}

fn maker() -> String {
    format!("kinfolk {} on {}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH)
}
