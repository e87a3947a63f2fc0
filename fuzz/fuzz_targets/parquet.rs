//! Embeddings from `.parquet`.
#![no_main]

use kinfolk::io::{EmbeddingFormat, ReadOptions, parse_embeddings};
use libfuzzer_sys::fuzz_target;

// The reader turns panics of the parquet crate into errors; without this, the first of them would abort. Those that
// leave the reader still do.
fuzz_target!(init: std::panic::set_hook(Box::new(|_| {})), |bytes: &[u8]| {
    let options = ReadOptions::default();
    if let Ok(embeddings) = parse_embeddings(bytes.to_vec(), EmbeddingFormat::Parquet, &options, "fuzz") {
        assert_eq!(embeddings.as_slice().len(), embeddings.len() * embeddings.dim());
        assert!(embeddings.as_slice().iter().all(|v| v.is_finite()));
    }
});
