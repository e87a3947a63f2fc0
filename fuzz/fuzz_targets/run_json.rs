//! `run.json`: what is read is written and read again as the same.

#![no_main]

use kinfolk::results::Run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(run) = Run::parse(text, "fuzz") {
        assert!(Run::parse(&run.to_json(), "fuzz").is_ok());
    }
});
