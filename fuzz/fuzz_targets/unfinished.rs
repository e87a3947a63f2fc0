//! The file of unfinished training.

#![no_main]

use kinfolk_nn::training::Unfinished;
use kinfolk_nn::ModelFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = ModelFile::parse(bytes, "fuzz") {
        let _ = Unfinished::from_file(file);
    }
});
