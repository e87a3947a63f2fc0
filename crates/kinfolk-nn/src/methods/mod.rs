//! The methods with models. Each file has one method, its model file and, with the feature `training`, its training.

pub(crate) mod gcn;
pub(crate) mod kin;
pub(crate) mod lgcn;
pub(crate) mod ltc;

use kinfolk::{Embeddings, Error, Result};

/// Refuses rows with another number of columns than the training rows.
fn check_columns(embeddings: &Embeddings, expected: usize) -> Result<()> {
    if embeddings.dim() == expected {
        return Ok(());
    }
    let (place, what) = ("embeddings".to_owned(), "columns, as the model was trained on".to_owned());
    Err(Error::Length { place, what, expected, found: embeddings.dim() })
}
