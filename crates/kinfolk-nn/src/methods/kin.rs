//! The model file of `kin`, with the tensors `kin.edge` and, if there is a whitening, `kin.whitening`.

use crate::tensors::Tensor;
use crate::{LearnedMethod, ModelFile};
use kinfolk::stages::{EdgeModel, Whitening};
use kinfolk::{Error, Kin, KinModel, Result};
use serde::{Deserialize, Serialize};

/// The tag of the model file.
pub(crate) const TAG: &str = "kin";

const EDGE: &str = "kin.edge";
const WHITENING: &str = "kin.whitening";

#[derive(Serialize, Deserialize)]
struct Metadata {
    k: usize,
    probability: f32,
}

/// Reads a model from a file's contents.
pub fn read_kin_model(mut file: ModelFile) -> Result<KinModel> {
    file.expect(TAG)?;
    let Metadata { k, probability } = file.metadata()?;
    let place = file.place().to_owned();
    let wrong = |what: &str| Error::format(&place, "a model of method kin of this version", what);
    if k == 0 {
        return Err(wrong("no number of neighbours"));
    }
    if !(0.0..=1.0).contains(&probability) {
        return Err(wrong("no probability"));
    }
    let edge = file.take(EDGE).and_then(|tensor| EdgeModel::from_numbers(&tensor.data));
    let edge = edge.ok_or_else(|| wrong("an edge model of another shape"))?;
    let whitening = match file.take(WHITENING) {
        None => None,
        Some(Tensor { shape, data }) => Some(
            Whitening::from_numbers(shape.last().copied().unwrap_or(0), &data)
                .ok_or_else(|| wrong("a whitening of another shape"))?,
        ),
    };
    file.finish()?;
    Ok(KinModel { whitening, edge, probability, k })
}

/// The content of the model file.
pub fn write_kin_model(model: &KinModel) -> ModelFile {
    let mut file = ModelFile::new(TAG, &Metadata { k: model.k, probability: model.probability });
    let data = model.edge.to_numbers();
    file.insert(EDGE, Tensor { shape: vec![data.len()], data });
    if let Some(whitening) = &model.whitening {
        let shape = vec![whitening.dim(), whitening.dim()];
        file.insert(WHITENING, Tensor { shape, data: whitening.to_numbers().to_vec() });
    }
    file
}

impl LearnedMethod for Kin {
    fn to_model(&self) -> Option<ModelFile> {
        self.model().map(write_kin_model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_read_as_it_was_written() {
        let rows = vec![1.0, 0.2, 0.9, 0.4, -1.0, 0.3, -0.8, 0.5];
        let embeddings = kinfolk::Embeddings::from_rows(rows, 2, "test").unwrap();
        let whitening = Whitening::fit(&embeddings, &[0, 0, 1, 1], |_| true, 0.5);
        assert!(whitening.is_some());
        for whitening in [None, whitening] {
            let model = KinModel { whitening, edge: EdgeModel::default(), probability: 0.5, k: 40 };
            let bytes = Kin::trained(model.clone()).to_model().unwrap().to_bytes().unwrap();
            let file = ModelFile::parse(&bytes, "m").unwrap();
            assert_eq!(read_kin_model(file.clone()).unwrap(), model);
            // Read as the networks that it does not hold, it says so.
            let message = crate::GcnModel::from_file(file).unwrap_err().to_string();
            assert_eq!(message, "m: expected a model of gcn, found one of kin");
        }
    }

    #[test]
    fn a_tensor_that_is_not_known_is_refused() {
        let model = KinModel { whitening: None, edge: EdgeModel::default(), probability: 0.5, k: 40 };
        let mut file = write_kin_model(&model);
        file.insert("kin.colour", Tensor { shape: vec![1], data: vec![1.0] });
        let message = read_kin_model(file).unwrap_err().to_string();
        assert_eq!(message, "model: expected a kinfolk model (.safetensors), found a tensor kin.colour");
    }
}
