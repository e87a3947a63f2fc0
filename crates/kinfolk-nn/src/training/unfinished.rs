//! Training that was stopped: a model that can be applied as it is, and all that is needed to go on.
//!
//! The file is that of a model (see `model.rs`) with the networks `training.now`, `training.velocities` and
//! `training.best`, and a `training` entry in the metadata: every epoch so far, and the conditions (data and parameters)
//! that it was trained under. Going on under others is refused: the result would be neither of the two.

use super::TrainParams;
use super::fit::{Epoch, FitState, Trained};
use crate::Model;
use crate::model::Contents;
use kinfolk::{Embeddings, Error, KnnGraph, Result};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Training between two epochs.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfinished {
    /// The model as it would be if training ended here.
    pub model: Model,
    /// GCN-V if it is trained; `state` is then that of GCN-E.
    pub gcn_v: Option<Trained>,
    /// Where the network in training stands.
    pub state: FitState,
    pub(super) conditions: Conditions,
}

/// What training depends on, by name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Conditions(Map<String, Value>);

impl Conditions {
    pub(super) fn new(
        embeddings: &Embeddings,
        labels: &[i64],
        graph: &KnnGraph,
        params: &TrainParams,
    ) -> Self {
        let all = json!({
            "rows": embeddings.len(),
            "columns": embeddings.dim(),
            "features": fingerprint(embeddings.as_slice().iter().map(|value| u64::from(value.to_bits()))),
            "labels": fingerprint(labels.iter().map(|&label| label as u64)),
            "neighbours": graph.k(),
            // The memory that may be used changes nothing but the time it takes.
            "parameters of GCN-V": format!("{:?}", super::GcnVParams { memory: 0, ..params.gcn_v.clone() }),
            "parameters of GCN-E": format!("{:?}", params.gcn_e),
            "neighbours in the rebuilt graph": params.k_rebuild,
        });
        match all {
            Value::Object(map) => Conditions(map),
            _ => Conditions(Map::new()),
        }
    }

    /// Refuses to go on from training under other conditions.
    pub(super) fn check(&self, before: &Conditions) -> Result<()> {
        for (name, now) in &self.0 {
            let before = &before.0.get(name).cloned().unwrap_or_default();
            if before != now {
                let place = format!("training to resume ({name})");
                return Err(Error::format(place, before.to_string(), now.to_string()));
            }
        }
        Ok(())
    }
}

/// A number that other data would hardly have: FNV-1a over words.
fn fingerprint(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3))
}

impl Unfinished {
    /// Writes a model file that training can go on from, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut contents = self.model.contents();
        contents.metadata["training"] = json!({
            "conditions": self.conditions.0,
            "gcn_v": self.gcn_v.as_ref().map(describe),
            "now": describe(&self.state.best),
        });
        contents.add("training.now", &self.state.now);
        contents.add("training.velocities", &self.state.velocities);
        contents.add("training.best", &self.state.best.network);
        contents.write(path)
    }

    /// Reads what [`write`](Self::write) wrote. A model whose training is finished is refused.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        Self::parse(&bytes, &path.display().to_string())
    }

    /// The same from the bytes of a file; `place` names it in errors.
    pub fn parse(bytes: &[u8], place: &str) -> Result<Self> {
        let model = Model::parse(bytes, place)?;
        let mut contents = Contents::parse(bytes, place)?;
        if !contents.has("training") {
            let expected = "a model whose training was interrupted";
            return Err(Error::format(place, expected, "one whose training is finished"));
        }
        let now = contents.network("training.now", place)?;
        let velocities = contents.network("training.velocities", place)?;
        let best = contents.network("training.best", place)?;
        if !now.fits(&velocities) || !now.fits(&best) {
            let expected = "networks in training of one shape";
            return Err(Error::format(place, expected, "several shapes"));
        }
        let training = &contents.metadata["training"];
        let conditions = match &training["conditions"] {
            Value::Object(map) => Conditions(map.clone()),
            other => return Err(wrong(place, "conditions", other)),
        };
        let gcn_v = match &training["gcn_v"] {
            Value::Null => None,
            described => {
                let (history, best) = history(described, place)?;
                Some(Trained { network: model.gcn_v.clone(), history, best })
            }
        };
        let (history, at) = history(&training["now"], place)?;
        let best = Trained { network: best, history, best: at };
        Ok(Unfinished { model, gcn_v, state: FitState { now, velocities, best }, conditions })
    }
}

fn describe(trained: &Trained) -> Value {
    let epochs = trained.history.iter().map(|e| {
        json!({
            "learning_rate": e.learning_rate,
            "training_loss": e.training_loss,
            "validation_loss": e.validation_loss,
            "validation_f": e.validation_f,
            "seconds": e.seconds,
        })
    });
    json!({ "best": trained.best, "epochs": epochs.collect::<Vec<_>>() })
}

/// The epochs and which was the best.
fn history(described: &Value, place: &str) -> Result<(Vec<Epoch>, usize)> {
    let Value::Array(epochs) = &described["epochs"] else {
        return Err(wrong(place, "epochs", &described["epochs"]));
    };
    let number = |epoch: &Value, name: &str| epoch[name].as_f64().ok_or_else(|| wrong(place, name, epoch));
    let epochs: Vec<Epoch> = epochs
        .iter()
        .map(|epoch| {
            Ok(Epoch {
                learning_rate: number(epoch, "learning_rate")? as f32,
                training_loss: number(epoch, "training_loss")?,
                validation_loss: epoch["validation_loss"].as_f64(),
                validation_f: epoch["validation_f"].as_f64(),
                seconds: number(epoch, "seconds")?,
            })
        })
        .collect::<Result<_>>()?;
    match described["best"].as_u64().map(|best| best as usize) {
        Some(best) if best < epochs.len() => Ok((epochs, best)),
        _ => Err(wrong(place, "best", &described["best"])),
    }
}

fn wrong(place: &str, name: &str, found: &Value) -> Error {
    Error::format(format!("{place} (metadata, training, {name})"), "what training wrote", found.to_string())
}
