//! The methods that learn: each file has one method, its model and, with the feature `training`, how it is trained.

pub(crate) mod gcn;
pub(crate) mod kin;
pub(crate) mod lgcn;
pub(crate) mod ltc;

use kinfolk::{Embeddings, Error, Result};

/// Refuses rows that are not like those a model was trained on.
fn check_columns(embeddings: &Embeddings, expected: usize) -> Result<()> {
    if embeddings.dim() == expected {
        return Ok(());
    }
    let (place, what) = ("embeddings".to_owned(), "columns, as the model was trained on".to_owned());
    Err(Error::Length { place, what, expected, found: embeddings.dim() })
}
