//! `clusters.csv`, and the explanation of its first rows.

#![no_main]

use kinfolk::results::parse_clusters;
use kinfolk::{Criterion, Explainer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(rows) = parse_clusters(text, "fuzz") else { return };
    for criterion in [Criterion::Probability(0.5), Criterion::Similarity(0.5)] {
        if let Ok(explainer) = Explainer::of_rows(rows.clone(), 3, criterion, "fuzz") {
            let _ = explainer.explain(0, None);
            let _ = explainer.explain(0, Some(1));
        }
    }
});
