//! The model file of L-GCN: its network and how it is meant to be used, in the same kind of file as the other networks have
//! (see `model.rs`), with tensors `lgcn.conv1.weight` ... and `"method": "lgcn"` in its metadata.

use crate::model::{Contents, MethodFile};
use crate::{GraphNetwork, LgcnParams, PivotShape};
use kinfolk::{Error, Result};
use serde_json::json;
use std::path::Path;

const NAME: &str = "lgcn";

/// What `kinfolk train --method lgcn` learned.
#[derive(Debug, Clone, PartialEq)]
pub struct LgcnModel {
    /// The probability of a link: one output, or two that are logits.
    pub network: GraphNetwork,
    /// How to apply it.
    pub params: LgcnParams,
}

impl LgcnModel {
    /// Writes a model file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.contents().write(path)
    }

    /// The bytes of a model file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.contents().to_bytes(Path::new("model"))
    }

    fn contents(&self) -> Contents {
        let LgcnParams { shape, th, limit } = &self.params;
        let mut contents = Contents::of_method(
            NAME,
            json!({
                "k1": shape.k1, "k2": shape.k2, "active": shape.active, "th": th,
                "max_size": limit.max_size, "step": limit.step, "rounds": limit.rounds,
            }),
        );
        contents.add(NAME, &self.network);
        contents
    }

    /// Reads a model file; `None` if it is the file of another method.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        Self::parse(&bytes, &path.display().to_string())
    }

    /// The same from the bytes of a file; `place` names it in errors.
    pub fn parse(bytes: &[u8], place: &str) -> Result<Option<Self>> {
        let Some(mut file) = MethodFile::parse(bytes, place, NAME)? else { return Ok(None) };
        let params = LgcnParams {
            shape: PivotShape { k1: file.count("k1")?, k2: file.count("k2")?, active: file.count("active")? },
            th: file.number("th")?,
            limit: file.limit()?,
        };
        params.check().map_err(|e| Error::format(&file.place, "a usable configuration", e.to_string()))?;
        let network = file.network(NAME)?;
        file.finish()?;
        Ok(Some(LgcnModel { network, params }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KinModel, Model, ModelConfig, testing};

    #[test]
    fn a_model_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lgcn.safetensors");
        let network = testing::network(1, 4, &[6, 5], 2);
        let shape = PivotShape { k1: 9, k2: 3, active: 4 };
        let params = LgcnParams { shape, th: 0.7, ..LgcnParams::default() };
        let model = LgcnModel { network: network.clone(), params };
        model.write(&path).unwrap();
        assert_eq!(LgcnModel::read(&path).unwrap(), Some(model.clone()));
        // It is not taken for another's, nor another's for it.
        assert_eq!(KinModel::read(&path).unwrap(), None);
        assert!(Model::read(&path).is_err());
        let gcn_v = testing::network(1, 4, &[6, 5], 1);
        Model { gcn_v, gcn_e: None, config: ModelConfig::default() }.write(&path).unwrap();
        assert_eq!(LgcnModel::read(&path).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lgcn.safetensors");
        let network = testing::network(1, 4, &[6, 5], 2);
        let params = LgcnParams { th: 3.0, ..LgcnParams::default() };
        LgcnModel { network, params }.write(&path).unwrap();
        let message = LgcnModel::read(&path).unwrap_err().to_string();
        let expected =
            "expected a usable configuration, found th: expected a probability from 0 to 1, found 3";
        assert!(message.ends_with(expected), "{message}");
    }
}
