//! A model file: both networks and how they were meant to be used, in one `.safetensors`.
//!
//! Tensors are named `gcn_v.conv1.weight`, `gcn_e.classifier.0.bias` ... (see `tensors.rs`), all float32. The
//! metadata has one key, `kinfolk`, whose value is JSON: the version of the format, then the configuration.
//! A reader refuses a version above its own; what an older version lacks has a default. Training that is not finished
//! adds tensors that begin with `training.` and a JSON key of that name; a model with them can be applied like any other.

use crate::tensors::{self, Tensor, Tensors};
use crate::{Among, GraphNetwork, Linear};
use kinfolk::io::AtomicFile;
use kinfolk::{DEFAULT_RADIUS, Error, Result, SizeLimit};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

/// The version this program writes, and the newest it reads.
const VERSION: u64 = 2;

/// The key of the metadata.
const KEY: &str = "kinfolk";

/// How a model is applied, unless told otherwise. The defaults are those of the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Neighbours of each vertex in the graph that GCN-V sees, itself excluded.
    pub k: usize,
    /// Neighbours of each vertex in the graph that is rebuilt from the embeddings F_L.
    pub k_rebuild: usize,
    /// Links of at most this similarity are cut.
    pub tau: f32,
    /// The same when GCN-V is applied without GCN-E.
    pub tau_v: f32,
    /// The share of the density u_weight in the confidence of a vertex; that of GCN-V is the rest. Ranks are averaged.
    pub density: f32,
    /// The radius of that density.
    pub radius: f32,
    /// The share of vertices, by descending confidence, whose parents GCN-E chooses.
    pub rho: f32,
    /// Links of each vertex to candidates: 1 makes trees, more make directed acyclic graphs.
    pub m: usize,
    /// Which neighbours GCN-E chooses from.
    pub among: Among,
    /// Whether candidates are looked for among the neighbours by F_L rather than by the input.
    pub rebuild: bool,
}

impl Default for ModelConfig {
    fn default() -> Self {
        ModelConfig {
            k: 80,
            k_rebuild: 80,
            tau: 0.8,
            tau_v: 0.8,
            density: 0.0,
            radius: DEFAULT_RADIUS,
            rho: 0.1,
            m: 1,
            among: Among::MoreConfident,
            rebuild: true,
        }
    }
}

impl ModelConfig {
    /// Refuses what is out of range.
    pub fn check(&self) -> Result<()> {
        let wrong = |name, expected, found: String| Err(Error::Parameter { field: name, expected, found });
        for (name, value) in [("k", self.k), ("k_rebuild", self.k_rebuild), ("m", self.m)] {
            if value == 0 {
                return wrong(name, "at least 1", "0".to_owned());
            }
        }
        for tau in [self.tau, self.tau_v] {
            if !(-1.0..=1.0).contains(&tau) {
                return wrong("tau", "a similarity from -1 to 1", tau.to_string());
            }
        }
        for (name, share) in [("rho", self.rho), ("density", self.density)] {
            if !(0.0..=1.0).contains(&share) {
                return wrong(name, "a share from 0 to 1", share.to_string());
            }
        }
        if !(self.radius > 0.0 && self.radius <= 2.0) {
            return wrong("radius", "above 0, at most 2", self.radius.to_string());
        }
        Ok(())
    }
}

/// GCN-V, GCN-E if there is one, and how to apply them.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Estimates confidence: one output.
    pub gcn_v: GraphNetwork,
    /// Estimates connectivity: one output, or two that are logits.
    pub gcn_e: Option<GraphNetwork>,
    /// How to apply them.
    pub config: ModelConfig,
}

impl Model {
    /// Columns of the embeddings it takes.
    pub fn dim(&self) -> usize {
        self.gcn_v.inputs()
    }

    /// Refuses networks that do not fit each other or what they are for; `place` names the model in errors.
    pub fn check(&self, place: &str) -> Result<()> {
        self.check_for(self.config.rebuild, place)
    }

    /// The same, for an application that rebuilds the graph or does not.
    pub(crate) fn check_for(&self, rebuild: bool, place: &str) -> Result<()> {
        let outputs = self.gcn_v.output.outputs;
        if outputs != 1 {
            return Err(Error::format(place, "GCN-V with 1 output, the confidence", outputs.to_string()));
        }
        let Some(gcn_e) = &self.gcn_e else { return Ok(()) };
        let (dim, width) = (self.dim(), self.gcn_v.width());
        let (expected, why) = match rebuild {
            true => (width, "the width of the embeddings of GCN-V"),
            false => (dim, "the columns of the features, which are not rebuilt"),
        };
        if gcn_e.inputs() != expected {
            let expected = format!("GCN-E for rows of {expected}, {why}");
            return Err(Error::format(place, expected, format!("for rows of {}", gcn_e.inputs())));
        }
        Ok(())
    }

    /// Reads a model file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        Self::parse(&bytes, &path.display().to_string())
    }

    /// Reads a model from the bytes of a file; `place` names it in errors.
    pub fn parse(bytes: &[u8], place: &str) -> Result<Self> {
        let mut contents = Contents::parse(bytes, place)?;
        let config = parse_config(&contents.metadata, place)?;
        let gcn_v = contents.network("gcn_v", place)?;
        let gcn_e = match contents.has("gcn_e") {
            true => Some(contents.network("gcn_e", place)?),
            false => None,
        };
        if let Some(name) = contents.tensors.keys().find(|name| !name.starts_with("training.")) {
            return Err(damaged(place, format!("a tensor {name}")));
        }
        let model = Model { gcn_v, gcn_e, config };
        model.check(place)?;
        Ok(model)
    }

    /// Writes a model file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.check(&path.display().to_string())?;
        self.contents().write(path)
    }

    /// The bytes of a model file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.contents().to_bytes(Path::new("model"))
    }

    pub(crate) fn contents(&self) -> Contents {
        let mut contents = Contents { tensors: Tensors::new(), metadata: describe_config(&self.config) };
        contents.add("gcn_v", &self.gcn_v);
        if let Some(gcn_e) = &self.gcn_e {
            contents.add("gcn_e", gcn_e);
        }
        contents
    }
}

/// What is in a model file, before it is known what it means.
pub(crate) struct Contents {
    /// By full name.
    pub(crate) tensors: Tensors,
    /// The value of [`KEY`].
    pub(crate) metadata: Value,
}

impl Contents {
    pub(crate) fn parse(bytes: &[u8], place: &str) -> Result<Self> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| damaged(place, e.to_string()))?;
        let file = SafeTensors::deserialize(bytes).map_err(|e| damaged(place, e.to_string()))?;
        let metadata = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let metadata = metadata
            .ok_or_else(|| damaged(place, "a .safetensors file that kinfolk did not write".to_owned()))?;
        let metadata: Value = serde_json::from_str(metadata).map_err(|e| damaged(place, e.to_string()))?;
        let mut tensors = Tensors::new();
        for (name, view) in file.iter() {
            if view.dtype() != Dtype::F32 {
                let found = format!("{:?}", view.dtype());
                return Err(Error::format(format!("{place} (tensor {name})"), "F32", found));
            }
            let (values, _) = view.data().as_chunks::<4>();
            let data = values.iter().map(|&value| f32::from_le_bytes(value)).collect();
            tensors.insert(name.to_owned(), Tensor { shape: view.shape().to_vec(), data });
        }
        Ok(Contents { tensors, metadata })
    }

    /// Whether there are tensors of a network of this name.
    pub(crate) fn has(&self, prefix: &str) -> bool {
        self.tensors.keys().any(|name| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Takes the network of this name out.
    pub(crate) fn network(&mut self, prefix: &str, place: &str) -> Result<GraphNetwork> {
        let mut own = Tensors::new();
        let start = format!("{prefix}.");
        self.tensors.retain(|name, tensor| match name.strip_prefix(&start) {
            Some(key) => {
                own.insert(key.to_owned(), std::mem::take(tensor));
                false
            }
            None => true,
        });
        tensors::network(own, &format!("{place} ({prefix})"))
    }

    /// Puts a network in under this name.
    pub(crate) fn add(&mut self, prefix: &str, network: &GraphNetwork) {
        for (name, tensor) in tensors::tensors(network) {
            self.tensors.insert(format!("{prefix}.{name}"), tensor);
        }
    }

    /// Writes a file, whole or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let bytes = self.to_bytes(path)?;
        let mut file = AtomicFile::create(path)?;
        file.write_all(&bytes).map_err(|e| Error::io(path, e))?;
        file.commit()
    }

    pub(crate) fn to_bytes(&self, path: &Path) -> Result<Vec<u8>> {
        let refused = |e: safetensors::SafeTensorError| Error::io(path, std::io::Error::other(e));
        let data: Vec<Vec<u8>> = self
            .tensors
            .values()
            .map(|tensor| tensor.data.iter().flat_map(|value| value.to_le_bytes()).collect())
            .collect();
        let mut views = Vec::new();
        for ((name, tensor), data) in self.tensors.iter().zip(&data) {
            views.push((name, TensorView::new(Dtype::F32, tensor.shape.clone(), data).map_err(refused)?));
        }
        let metadata = HashMap::from([(KEY.to_owned(), self.metadata.to_string())]);
        safetensors::serialize(views, Some(metadata)).map_err(refused)
    }
}

impl Contents {
    /// The file of a method other than GCN-V and GCN-E, with what its metadata says besides; tensors are added later.
    pub(crate) fn of_method(method: &str, mut metadata: Value) -> Self {
        metadata["version"] = VERSION.into();
        metadata["method"] = method.into();
        Contents { tensors: Tensors::new(), metadata }
    }
}

/// The file of a method other than GCN-V and GCN-E, as it is read.
pub(crate) struct MethodFile {
    contents: Contents,
    /// Its name in errors.
    pub(crate) place: String,
}

impl MethodFile {
    /// The contents of a file; `None` if it is that of another method.
    pub(crate) fn parse(bytes: &[u8], place: &str, method: &str) -> Result<Option<Self>> {
        let contents = Contents::parse(bytes, place)?;
        check_version(&contents.metadata, place)?;
        let place = place.to_owned();
        Ok((contents.metadata["method"] == method).then_some(MethodFile { contents, place }))
    }

    pub(crate) fn wrong(&self, name: &str, expected: &str) -> Error {
        let found = self.contents.metadata[name].to_string();
        Error::format(format!("{} (metadata, {name})", self.place), expected, found)
    }

    pub(crate) fn count(&self, name: &str) -> Result<usize> {
        let value = self.contents.metadata[name].as_u64().and_then(|value| usize::try_from(value).ok());
        value.ok_or_else(|| self.wrong(name, "a count"))
    }

    pub(crate) fn number(&self, name: &str) -> Result<f32> {
        let value = self.contents.metadata[name].as_f64().map(|value| value as f32);
        value.ok_or_else(|| self.wrong(name, "a number"))
    }

    pub(crate) fn is_null(&self, name: &str) -> bool {
        self.contents.metadata[name].is_null()
    }

    /// A list whose items `read` understands.
    pub(crate) fn list<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<T>> {
        let items = self.contents.metadata[name].as_array();
        let items = items.and_then(|items| items.iter().map(read).collect());
        items.ok_or_else(|| self.wrong(name, expected))
    }

    /// `max_size`, `step` and `rounds`.
    pub(crate) fn limit(&self) -> Result<SizeLimit> {
        let (max_size, rounds) = (self.count("max_size")?, self.count("rounds")?);
        Ok(SizeLimit { max_size, step: self.number("step")?, rounds })
    }

    /// Takes a network out.
    pub(crate) fn network(&mut self, prefix: &str) -> Result<GraphNetwork> {
        self.contents.network(prefix, &self.place)
    }

    /// Refuses tensors that nobody took: they might change the answer.
    pub(crate) fn finish(self) -> Result<()> {
        match self.contents.tensors.keys().next() {
            Some(name) => Err(damaged(&self.place, format!("a tensor {name}"))),
            None => Ok(()),
        }
    }
}

fn damaged(place: &str, found: String) -> Error {
    Error::format(place, "a kinfolk model (.safetensors)", found)
}

fn describe_config(config: &ModelConfig) -> Value {
    json!({
        "version": VERSION,
        "k": config.k,
        "k_rebuild": config.k_rebuild,
        "tau": config.tau,
        "tau_v": config.tau_v,
        "density": config.density,
        "radius": config.radius,
        "rho": config.rho,
        "m": config.m,
        "all_neighbours": config.among == Among::AllNeighbours,
        "rebuild": config.rebuild,
    })
}

pub(crate) fn format_version() -> u64 {
    VERSION
}

/// Refuses files of a version that this program does not know.
pub(crate) fn check_version(metadata: &Value, place: &str) -> Result<()> {
    let version = &metadata["version"];
    let wrong = |expected: String| {
        Err(Error::format(format!("{place} (metadata, version)"), expected, version.to_string()))
    };
    match version.as_u64() {
        Some(1..=VERSION) => Ok(()),
        Some(_) => wrong(format!("a version up to {VERSION}; a newer kinfolk wrote this model")),
        None => wrong("the version of the format".to_owned()),
    }
}

fn parse_config(metadata: &Value, place: &str) -> Result<ModelConfig> {
    let wrong = |name: &str, expected: &str, found: &Value| {
        Error::format(format!("{place} (metadata, {name})"), expected, found.to_string())
    };
    check_version(metadata, place)?;
    let count = |name: &str| {
        let value = metadata[name].as_u64().and_then(|value| usize::try_from(value).ok());
        value.ok_or_else(|| wrong(name, "a count", &metadata[name]))
    };
    let number = |name: &str| {
        let value = metadata[name].as_f64().map(|value| value as f32);
        value.ok_or_else(|| wrong(name, "a number", &metadata[name]))
    };
    let truth = |name: &str| match &metadata[name] {
        Value::Bool(value) => Ok(*value),
        other => Err(wrong(name, "true or false", other)),
    };
    let first = metadata["version"] == 1;
    let config = ModelConfig {
        k: count("k")?,
        k_rebuild: count("k_rebuild")?,
        tau: number("tau")?,
        tau_v: number(if first { "tau" } else { "tau_v" })?,
        density: if first { 0.0 } else { number("density")? },
        radius: if first { DEFAULT_RADIUS } else { number("radius")? },
        rho: number("rho")?,
        m: count("m")?,
        among: match !first && truth("all_neighbours")? {
            true => Among::AllNeighbours,
            false => Among::MoreConfident,
        },
        rebuild: truth("rebuild")?,
    };
    // The file is at fault here, not an argument.
    config.check().map_err(|e| Error::format(place, "a usable configuration", e.to_string()))?;
    Ok(config)
}

impl GraphNetwork {
    /// Columns of the rows it takes.
    pub fn inputs(&self) -> usize {
        self.convolutions.first().map_or(0, |first: &Linear| first.inputs / 2)
    }

    /// Columns of its last graph convolution: those of the embeddings F_L.
    pub fn width(&self) -> usize {
        self.hidden.inputs
    }
}

#[cfg(test)]
mod tests;
