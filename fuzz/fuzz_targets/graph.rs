//! kNN graphs from `.npz`, in both layouts.
#![no_main]

use kinfolk::io::parse_graph;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(graph) = parse_graph(bytes, None, "fuzz") else { return };
    // A graph without edges may have any number of vertices.
    for i in 0..if graph.k() == 0 { 0 } else { graph.len() } {
        let (ids, similarities) = graph.neighbours(i);
        assert!(ids.iter().all(|&id| id as usize != i && (id as usize) < graph.len()));
        assert!(similarities.is_sorted_by(|a, b| a >= b));
    }
});
