//! A map of the rows, each cluster in its colour.

mod layout;
mod svg;

pub use svg::{Panel, draw};

use kinfolk::KnnGraph;

/// A place in the plane for each vertex, near its neighbours.
pub fn map(graph: &KnnGraph, seed: u64) -> Vec<[f32; 2]> {
    layout::layout(graph, seed)
}
