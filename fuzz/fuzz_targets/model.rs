//! Model files.
#![no_main]

use kinfolk_nn::Model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(model) = Model::parse(bytes, "fuzz") {
        model.check("fuzz").unwrap();
    }
});
