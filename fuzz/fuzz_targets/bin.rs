//! Embeddings from `.bin`; the first byte is the number of columns.
#![no_main]

use kinfolk::io::{EmbeddingFormat, ReadOptions, parse_embeddings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&dim, bytes)) = bytes.split_first() else { return };
    let options = ReadOptions { dim: Some(usize::from(dim)), array: None };
    if let Ok(embeddings) = parse_embeddings(bytes.to_vec(), EmbeddingFormat::Bin, &options, "fuzz") {
        assert_eq!(embeddings.dim(), usize::from(dim));
        assert!(embeddings.as_slice().iter().all(|v| v.is_finite()));
    }
});
