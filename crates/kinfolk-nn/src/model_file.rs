//! Model files: named tensors and a description, in one `.safetensors`. The one place that reads and writes them.
//!
//! Tensors are float32. The metadata of the file has one key, `kinfolk`, whose value is JSON: `version`, the version of the
//! format; `method`, whose model it is; then what that method wrote. A reader refuses a version above its own. Files of
//! versions 1 and 2 without a `method` are models of GCN-V and GCN-E. Training that is not finished adds tensors that begin
//! with `training.` and a key `training`; a model with them can be applied like any other.

use crate::GraphNetwork;
use crate::tensors::{self, Tensor, Tensors};
use kinfolk::io::AtomicFile;
use kinfolk::{Error, Method, Result};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

/// The version this program writes, and the newest it reads.
pub const MODEL_FORMAT: u64 = 3;

/// The key of the metadata.
const KEY: &str = "kinfolk";

/// A method with what it learned, which can be written to a file.
pub trait LearnedMethod: Method {
    /// What its file holds; `None` if it has learned nothing.
    fn to_model(&self) -> Option<ModelFile>;
}

/// What is in a model file.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// Its name in errors.
    place: String,
    /// By full name.
    tensors: Tensors,
    /// The value of [`KEY`], without version and method.
    metadata: Map<String, Value>,
    method: String,
}

impl ModelFile {
    /// The file of a method, with what its metadata says besides; tensors are added later.
    pub(crate) fn new(method: &str, metadata: &impl Serialize) -> Self {
        let metadata = match to_json(metadata) {
            Value::Object(metadata) => metadata,
            _ => Map::new(),
        };
        Self { place: "model".to_owned(), tensors: Tensors::new(), metadata, method: method.to_owned() }
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        Self::parse(&bytes, &path.display().to_string())
    }

    /// The same from the bytes of a file; `place` names it in errors.
    pub fn parse(bytes: &[u8], place: &str) -> Result<Self> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| damaged(place, e.to_string()))?;
        let file = SafeTensors::deserialize(bytes).map_err(|e| damaged(place, e.to_string()))?;
        let metadata = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let metadata = metadata
            .ok_or_else(|| damaged(place, "a .safetensors file that kinfolk did not write".to_owned()))?;
        let mut metadata: Map<String, Value> =
            serde_json::from_str(metadata).map_err(|e| damaged(place, e.to_string()))?;
        let version = metadata.remove("version").unwrap_or_default();
        let wrong = |name: &str, expected: String, found: String| {
            Error::format(format!("{place} (metadata, {name})"), expected, found)
        };
        match version.as_u64() {
            Some(1..=MODEL_FORMAT) => {}
            Some(_) => {
                let expected = format!("a version up to {MODEL_FORMAT}; a newer kinfolk wrote this model");
                return Err(wrong("version", expected, version.to_string()));
            }
            None => {
                return Err(wrong("version", "the version of the format".to_owned(), version.to_string()));
            }
        }
        let method = match metadata.remove("method") {
            Some(Value::String(method)) => method,
            None if version.as_u64() < Some(MODEL_FORMAT) => super::methods::gcn::TAG.to_owned(),
            other => {
                let found = other.unwrap_or_default().to_string();
                return Err(wrong("method", "the name of a method".to_owned(), found));
            }
        };
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
        Ok(ModelFile { place: place.to_owned(), tensors, metadata, method })
    }

    /// Whose model it is.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Its name in errors.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What the file says besides its tensors.
    pub fn description(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// Refuses the model of another method.
    pub(crate) fn expect(&self, method: &str) -> Result<()> {
        match self.method == method {
            true => Ok(()),
            false => Err(Error::format(
                &self.place,
                format!("a model of {method}"),
                format!("one of {}", self.method),
            )),
        }
    }

    /// The metadata as a type.
    pub(crate) fn metadata<T: DeserializeOwned>(&self) -> Result<T> {
        let metadata = Value::Object(self.metadata.clone());
        serde_json::from_value(metadata).map_err(|e| {
            Error::format(format!("{} (metadata)", self.place), "what kinfolk writes", e.to_string())
        })
    }

    /// One key of the metadata as a type; `None` if it is not there.
    pub(crate) fn entry<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let Some(value) = self.metadata.get(key) else { return Ok(None) };
        let place = || format!("{} (metadata, {key})", self.place);
        serde_json::from_value(value.clone())
            .map(Some)
            .map_err(|e| Error::format(place(), "what kinfolk writes", e.to_string()))
    }

    /// Adds a key to the metadata.
    pub(crate) fn set_entry(&mut self, key: &str, value: &impl Serialize) {
        self.metadata.insert(key.to_owned(), to_json(value));
    }

    /// Removes a key of the metadata.
    #[cfg(test)]
    pub(crate) fn remove_entry(&mut self, key: &str) {
        self.metadata.remove(key);
    }

    /// The error of a file whose configuration cannot be used.
    pub(crate) fn unusable(&self, error: Error) -> Error {
        Error::format(&self.place, "a usable configuration", error.to_string())
    }

    /// Leaves out the state of unfinished training, if there is one.
    pub(crate) fn without_training(mut self) -> Self {
        if self.metadata.remove("training").is_some() {
            self.tensors.retain(|name, _| !name.starts_with("training."));
        }
        self
    }

    /// Whether there are tensors whose names begin with `prefix.`.
    pub(crate) fn has(&self, prefix: &str) -> bool {
        self.tensors.keys().any(|name| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Takes a tensor out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Tensor> {
        self.tensors.remove(name)
    }

    /// Puts a tensor in.
    pub(crate) fn insert(&mut self, name: &str, tensor: Tensor) {
        self.tensors.insert(name.to_owned(), tensor);
    }

    /// Takes the network of this name out.
    pub(crate) fn take_network(&mut self, prefix: &str) -> Result<GraphNetwork> {
        let mut own = Tensors::new();
        let start = format!("{prefix}.");
        self.tensors.retain(|name, tensor| match name.strip_prefix(&start) {
            Some(key) => {
                own.insert(key.to_owned(), std::mem::take(tensor));
                false
            }
            None => true,
        });
        tensors::network(own, &format!("{} ({prefix})", self.place))
    }

    /// Puts a network in under this name.
    pub(crate) fn insert_network(&mut self, prefix: &str, network: &GraphNetwork) {
        for (name, tensor) in tensors::tensors(network) {
            self.tensors.insert(format!("{prefix}.{name}"), tensor);
        }
    }

    /// Refuses tensors that were not read: they might change the result.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.tensors.keys().next() {
            Some(name) => Err(damaged(&self.place, format!("a tensor {name}"))),
            None => Ok(()),
        }
    }

    /// Writes the file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        let bytes = self.to_bytes()?;
        let mut file = AtomicFile::create(path)?;
        file.write_all(&bytes).map_err(|e| Error::io(path, e))?;
        file.commit()
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let refused =
            |e: safetensors::SafeTensorError| Error::io(Path::new(&self.place), std::io::Error::other(e));
        let bytes = |tensor: &Tensor| tensor.data.iter().flat_map(|value| value.to_le_bytes()).collect();
        let data: Vec<Vec<u8>> = self.tensors.values().map(bytes).collect();
        let mut views = Vec::new();
        for ((name, tensor), data) in self.tensors.iter().zip(&data) {
            views.push((name, TensorView::new(Dtype::F32, tensor.shape.clone(), data).map_err(refused)?));
        }
        let mut metadata = self.metadata.clone();
        metadata.insert("version".to_owned(), MODEL_FORMAT.into());
        metadata.insert("method".to_owned(), self.method.clone().into());
        let metadata = HashMap::from([(KEY.to_owned(), Value::Object(metadata).to_string())]);
        safetensors::serialize(views, Some(metadata)).map_err(refused)
    }
}

/// A value as JSON, via its text, so that float32 has its short form.
fn to_json(value: &impl Serialize) -> Value {
    let text = serde_json::to_string(value).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn damaged(place: &str, found: String) -> Error {
    Error::format(place, "a kinfolk model (.safetensors)", found)
}
