//! Training that was stopped: a model that can be applied as it is, and all that is needed to go on.
//!
//! The file is that of a model (see `model.rs`) with the networks `training.now`, `training.velocities`,
//! `training.best` and, where GCN-V is trained, `training.gcn_v_0` and so on, and a `training` entry in the metadata: every epoch so far, and the conditions (data and parameters)
//! that it was trained under. Going on under others is refused: the result would be neither of the two.

use super::TrainParams;
use super::fit::{Epoch, FitState, FittedNetwork};
use crate::{GcnModel, ModelFile};
use kinfolk::{Embeddings, Error, KnnGraph, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Training between two epochs.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfinished {
    /// The model as it would be if training ended here.
    pub model: GcnModel,
    /// GCN-V, as often as it is trained; once that is as often as it should be, `state` is that of GCN-E.
    pub gcn_v: Vec<FittedNetwork>,
    /// Where the network in training stands.
    pub state: FitState,
    pub(super) conditions: Conditions,
}

/// What training depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Conditions {
    rows: usize,
    columns: usize,
    features: u64,
    labels: u64,
    neighbours: usize,
    /// Ids and similarities of the graph.
    graph: u64,
    gcn_v: String,
    gcn_e: String,
    k_rebuild: usize,
    choices: String,
    /// How often GCN-V is trained.
    rotations: usize,
}

impl Conditions {
    pub(super) fn new(
        embeddings: &Embeddings,
        labels: &[i64],
        graph: &KnnGraph,
        params: &TrainParams,
        k_rebuild: usize,
    ) -> Self {
        let edges = (0..graph.len()).flat_map(|i| {
            let (ids, similarities) = graph.neighbours(i);
            ids.iter().zip(similarities).map(|(&id, s)| u64::from(id) << 32 | u64::from(s.to_bits()))
        });
        Conditions {
            rows: embeddings.len(),
            columns: embeddings.dim(),
            features: fingerprint(embeddings.as_slice().iter().map(|value| u64::from(value.to_bits()))),
            labels: fingerprint(labels.iter().map(|&label| label as u64)),
            neighbours: graph.k(),
            graph: fingerprint(edges),
            // The memory that may be used changes nothing but the time it takes.
            gcn_v: format!("{:?}", super::GcnVParams { memory: 0, ..params.gcn_v.clone() }),
            gcn_e: format!("{:?}", params.gcn_e),
            k_rebuild,
            choices: format!("{:?}", params.choices),
            rotations: params.choices.rotations().len(),
        }
    }

    /// Refuses to go on from training under other conditions.
    pub(super) fn check(&self, before: &Conditions) -> Result<()> {
        let parts = |c: &Conditions| {
            [
                ("rows", c.rows.to_string()),
                ("columns", c.columns.to_string()),
                ("features", c.features.to_string()),
                ("labels", c.labels.to_string()),
                ("neighbours", c.neighbours.to_string()),
                ("graph", c.graph.to_string()),
                ("parameters of GCN-V", c.gcn_v.clone()),
                ("parameters of GCN-E", c.gcn_e.clone()),
                ("neighbours in the rebuilt graph", c.k_rebuild.to_string()),
                ("choices", c.choices.clone()),
            ]
        };
        match parts(self).into_iter().zip(parts(before)).find(|(now, before)| now != before) {
            Some(((name, now), (_, before))) => {
                Err(Error::format(format!("training to resume ({name})"), before, now))
            }
            None => Ok(()),
        }
    }
}

/// A number that other data would hardly have: FNV-1a over words.
fn fingerprint(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3))
}

/// What the metadata says under `training`.
#[derive(Serialize, Deserialize)]
struct Metadata {
    conditions: Conditions,
    gcn_v: Vec<History>,
    now: History,
}

#[derive(Serialize, Deserialize)]
struct History {
    best: usize,
    epochs: Vec<Epoch>,
}

impl History {
    fn of(fitted: &FittedNetwork) -> Self {
        History { best: fitted.best, epochs: fitted.history.clone() }
    }
}

impl Unfinished {
    /// The network in training.
    pub fn network(&self) -> String {
        match (self.gcn_v.len(), self.conditions.rotations) {
            (trained, all) if trained >= all => "GCN-E".to_owned(),
            (_, 1) => "GCN-V".to_owned(),
            (trained, all) => format!("GCN-V ({} of {all})", trained + 1),
        }
    }

    /// Writes a model file that training can go on from, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut file = self.model.to_file();
        let (gcn_v, now) = (self.gcn_v.iter().map(History::of).collect(), History::of(&self.state.best));
        file.set_entry("training", &Metadata { conditions: self.conditions.clone(), gcn_v, now });
        file.insert_network("training.now", &self.state.now);
        file.insert_network("training.velocities", &self.state.velocities);
        file.insert_network("training.best", &self.state.best.network);
        for (at, gcn_v) in self.gcn_v.iter().enumerate() {
            file.insert_network(&format!("training.gcn_v_{at}"), &gcn_v.network);
        }
        file.write(path)
    }

    /// Reads what [`write`](Self::write) wrote. A model whose training is finished is refused.
    pub fn read(path: &Path) -> Result<Self> {
        Self::from_file(ModelFile::read(path)?)
    }

    /// The same from a file's contents.
    pub fn from_file(mut file: ModelFile) -> Result<Self> {
        let model = GcnModel::take(&mut file)?;
        let place = file.place().to_owned();
        let Some(Metadata { conditions, gcn_v, now: history }) = file.entry("training")? else {
            let expected = "a model whose training was interrupted";
            return Err(Error::format(place, expected, "one whose training is finished"));
        };
        let now = file.take_network("training.now")?;
        let velocities = file.take_network("training.velocities")?;
        let best = file.take_network("training.best")?;
        if !now.fits(&velocities) || !now.fits(&best) {
            let expected = "networks in training of one shape";
            return Err(Error::format(place, expected, "several shapes"));
        }
        let fitted = |network, History { best, epochs }: History| match best < epochs.len() {
            true => Ok(FittedNetwork { network, history: epochs, best }),
            false => {
                let expected = format!("the number of one of {} epochs", epochs.len());
                Err(Error::format(format!("{place} (metadata, training, best)"), expected, best.to_string()))
            }
        };
        let mut networks = Vec::new();
        for (at, history) in gcn_v.into_iter().enumerate() {
            let network = file.take_network(&format!("training.gcn_v_{at}"))?;
            if !network.fits(&model.gcn_v) {
                return Err(Error::format(place, "every GCN-V of one shape", "several shapes"));
            }
            networks.push(fitted(network, history)?);
        }
        let best = fitted(best, history)?;
        Ok(Unfinished { model, gcn_v: networks, state: FitState { now, velocities, best }, conditions })
    }
}
