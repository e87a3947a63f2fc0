//! A graph file, and the adjacency of the graph it holds: symmetric, its rows summing to one.

#![no_main]

use kinfolk::stages::Adjacency;
use kinfolk::io;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(graph) = io::parse_graph(bytes, None, "fuzz")
        && graph.len() < 1 << 16
    {
        let _ = Adjacency::from_knn(&graph, 0.0);
    }
});
