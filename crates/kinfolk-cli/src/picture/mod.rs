//! A map of the rows, each cluster in its colour, and the tree of levels.

mod layout;
mod levels;
mod svg;

pub use levels::draw_levels;
pub use svg::{Panel, draw};

use kinfolk::KnnGraph;

/// A place in the plane for each vertex, near its neighbours.
pub fn map(graph: &KnnGraph, seed: u64) -> Vec<[f32; 2]> {
    layout::layout(graph, seed)
}
