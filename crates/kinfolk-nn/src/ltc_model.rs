//! The model file of LTC: its two networks and how they are meant to be used, in the same kind of file as the other networks
//! have (see `model.rs`), with tensors `gcn_d.conv1.weight`, `gcn_s.conv1.weight` ... and `"method": "ltc"` in its metadata.

use crate::model::{Contents, MethodFile};
use crate::{GraphNetwork, LtcParams, ProposalParams, ProposalSetting};
use kinfolk::{Error, Result};
use serde_json::json;
use std::path::Path;

const NAME: &str = "ltc";

/// What `kinfolk train --method ltc` learned.
#[derive(Debug, Clone, PartialEq)]
pub struct LtcModel {
    /// The IoU of a proposal.
    pub gcn_d: GraphNetwork,
    /// Which rows of a proposal belong with its seed.
    pub gcn_s: GraphNetwork,
    /// How to apply them.
    pub params: LtcParams,
}

impl LtcModel {
    /// Columns of the embeddings it takes.
    pub fn dim(&self) -> usize {
        self.gcn_d.inputs().saturating_sub(1)
    }

    /// Writes a model file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.contents().write(path)
    }

    /// The bytes of a model file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.contents().to_bytes(Path::new("model"))
    }

    fn contents(&self) -> Contents {
        let LtcParams { proposals, least, segment } = &self.params;
        let settings = proposals.settings.iter().map(|s| json!({ "k": s.k, "th": s.th }));
        let mut contents = Contents::of_method(
            NAME,
            json!({
                "settings": settings.collect::<Vec<_>>(), "min_size": proposals.min_size,
                "levels": proposals.levels, "max_size": proposals.limit.max_size,
                "step": proposals.limit.step, "rounds": proposals.limit.rounds,
                "least": least, "segment": segment,
            }),
        );
        contents.add("gcn_d", &self.gcn_d);
        contents.add("gcn_s", &self.gcn_s);
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
        let setting = |value: &serde_json::Value| {
            let k = usize::try_from(value["k"].as_u64()?).ok()?;
            Some(ProposalSetting { k, th: value["th"].as_f64()? as f32 })
        };
        let proposals = ProposalParams {
            settings: file.list("settings", "a list of k and th", setting)?,
            limit: file.limit()?,
            min_size: file.count("min_size")?,
            levels: file.count("levels")?,
        };
        let segment = match file.is_null("segment") {
            true => None,
            false => {
                let range = file.list("segment", "two numbers", |value| Some(value.as_f64()? as f32))?;
                let range: [f32; 2] = range.try_into().map_err(|_| file.wrong("segment", "two numbers"))?;
                Some(range)
            }
        };
        let params = LtcParams { proposals, least: file.number("least")?, segment };
        params.check().map_err(|e| Error::format(&file.place, "a usable configuration", e.to_string()))?;
        let (gcn_d, gcn_s) = (file.network("gcn_d")?, file.network("gcn_s")?);
        if gcn_d.inputs() != gcn_s.inputs() {
            let expected = format!("GCN-S for rows of {}, as GCN-D", gcn_d.inputs());
            return Err(Error::format(&file.place, expected, format!("for rows of {}", gcn_s.inputs())));
        }
        file.finish()?;
        Ok(Some(LtcModel { gcn_d, gcn_s, params }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LgcnModel, Model, testing};

    fn model() -> LtcModel {
        let params = LtcParams { least: 0.4, ..LtcParams::default() };
        let (gcn_d, gcn_s) = (testing::network(1, 5, &[6, 3], 1), testing::network(2, 5, &[4], 2));
        LtcModel { gcn_d, gcn_s, params }
    }

    #[test]
    fn a_model_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ltc.safetensors");
        for segment in [None, Some([0.25, 0.5])] {
            let model = LtcModel { params: LtcParams { segment, ..model().params }, ..model() };
            model.write(&path).unwrap();
            assert_eq!(LtcModel::read(&path).unwrap(), Some(model));
        }
        assert_eq!(LgcnModel::read(&path).unwrap(), None);
        assert!(Model::read(&path).is_err());
    }

    #[test]
    fn what_cannot_be_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ltc.safetensors");
        let message = |model: LtcModel| {
            model.write(&path).unwrap();
            LtcModel::read(&path).unwrap_err().to_string()
        };
        let said = message(LtcModel { gcn_s: testing::network(2, 6, &[4], 2), ..model() });
        assert!(said.ends_with("expected GCN-S for rows of 5, as GCN-D, found for rows of 6"), "{said}");
        let said = message(LtcModel { params: LtcParams { least: 2.0, ..model().params }, ..model() });
        assert!(said.ends_with("least: expected an IoU from 0 to 1, found 2"), "{said}");
    }
}
