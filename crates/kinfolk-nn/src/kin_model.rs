//! The model file of method `kin`: the edge model, the least probability of an edge, and the whitening if there is one, in the
//! same kind of file as the networks have (see `model.rs`), with the tensors `kin.edge` and `kin.whitening` and
//! `"method": "kin"` in its metadata.

use crate::model::{Contents, check_version, format_version};
use crate::tensors::{Tensor, Tensors};
use kinfolk::{EdgeModel, Error, KinParams, Prefer, Result, TrainedKin, Whitening};
use serde_json::json;
use std::path::Path;

const EDGE: &str = "kin.edge";
const WHITENING: &str = "kin.whitening";

/// What `kinfolk train --method kin` learned.
#[derive(Debug, Clone, PartialEq)]
pub struct KinModel {
    /// The map of the embeddings, if there is one.
    pub whitening: Option<Whitening>,
    /// The probability of an edge.
    pub edge: EdgeModel,
    /// Edges that are less probable are left out.
    pub probability: f32,
    /// Neighbours of each vertex in the graph it was trained on.
    pub k: usize,
}

impl From<TrainedKin> for KinModel {
    fn from(trained: TrainedKin) -> Self {
        let TrainedKin { whitening, model, chosen, k, .. } = trained;
        Self { whitening, edge: model, probability: chosen.probability, k }
    }
}

impl KinModel {
    /// Parameters of [`kin`](kinfolk::kin) with this model, where nobody asked for others.
    pub fn params(self) -> KinParams {
        let mut params = KinParams {
            prefer: Prefer::Probability(self.probability),
            whitening: self.whitening,
            model: self.edge,
            // The K it was trained with is kept.
            grow: false,
            // One threshold was chosen on other rows; what it tears apart by chance is not to be believed.
            steady: true,
            ..KinParams::default()
        };
        params.knn.k = self.k;
        params
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
        let data = self.edge.to_numbers();
        let mut tensors = Tensors::from([(EDGE.to_owned(), Tensor { shape: vec![data.len()], data })]);
        if let Some(whitening) = &self.whitening {
            let shape = vec![whitening.dim(), whitening.dim()];
            tensors.insert(WHITENING.to_owned(), Tensor { shape, data: whitening.to_numbers().to_vec() });
        }
        let metadata = json!({
            "version": format_version(), "method": "kin", "k": self.k, "probability": self.probability,
        });
        Contents { tensors, metadata }
    }

    /// Reads a model file; `None` if it is the file of another method.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        Self::parse(&bytes, &path.display().to_string())
    }

    /// The same from the bytes of a file; `place` names it in errors.
    pub fn parse(bytes: &[u8], place: &str) -> Result<Option<Self>> {
        let contents = Contents::parse(bytes, place)?;
        check_version(&contents.metadata, place)?;
        if contents.metadata["method"] != "kin" {
            return Ok(None);
        }
        let wrong =
            |what: &str| Error::format(place, "a model of method kin, as this kinfolk makes it", what);
        let edge = contents.tensors.get(EDGE).and_then(|tensor| EdgeModel::from_numbers(&tensor.data));
        let whitening = match contents.tensors.get(WHITENING) {
            None => None,
            Some(Tensor { shape, data }) => Some(
                Whitening::from_numbers(shape.last().copied().unwrap_or(0), data)
                    .ok_or_else(|| wrong("a whitening of another shape"))?,
            ),
        };
        let probability = contents.metadata["probability"].as_f64().filter(|p| (0.0..=1.0).contains(p));
        let k = contents.metadata["k"].as_u64().filter(|&k| k > 0);
        Ok(Some(Self {
            whitening,
            edge: edge.ok_or_else(|| wrong("an edge model of another shape"))?,
            probability: probability.ok_or_else(|| wrong("no probability"))? as f32,
            k: k.ok_or_else(|| wrong("no number of neighbours"))? as usize,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kin.safetensors");
        let rows = vec![1.0, 0.2, 0.9, 0.4, -1.0, 0.3, -0.8, 0.5];
        let embeddings = kinfolk::Embeddings::from_rows(rows, 2, "test").unwrap();
        let whitening = Whitening::fit(&embeddings, &[0, 0, 1, 1], |_| true, 0.5);
        assert!(whitening.is_some());
        for whitening in [None, whitening] {
            let edge = EdgeModel::default();
            let model = KinModel { whitening, edge, probability: 0.5, k: 40 };
            model.write(&path).unwrap();
            assert_eq!(model.to_bytes().unwrap(), std::fs::read(&path).unwrap());
            assert_eq!(KinModel::read(&path).unwrap(), Some(model));
        }
        // Read as the networks that it does not hold, it says so.
        assert!(crate::Model::read(&path).is_err());
    }
}
