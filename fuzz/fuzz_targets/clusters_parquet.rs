//! `clusters.parquet`.
#![no_main]

use kinfolk::results::parse_clusters_parquet;
use libfuzzer_sys::fuzz_target;

// The reader turns panics of the parquet crate into errors; without this, the first of them would abort. Those that
// leave the reader still do.
fuzz_target!(init: std::panic::set_hook(Box::new(|_| {})), |bytes: &[u8]| {
    let _ = parse_clusters_parquet(bytes.to_vec(), "fuzz");
});
