//! Labels from `.npy` and from text.
#![no_main]

use kinfolk::io::{LabelFormat, parse_labels};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_labels(bytes, LabelFormat::Npy, "fuzz");
    if let Ok(labels) = parse_labels(bytes, LabelFormat::Text, "fuzz") {
        let text: String = labels.iter().map(|label| format!("{label}\n")).collect();
        assert_eq!(parse_labels(text.as_bytes(), LabelFormat::Text, "fuzz").unwrap(), labels);
    }
});
