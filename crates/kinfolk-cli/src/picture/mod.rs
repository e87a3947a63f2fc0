//! Pictures: a map of the rows, each cluster in its colour, and charts of what was measured.

mod chart;
mod layout;
pub mod palette;
mod scatter;
mod svg;

pub use chart::{Bars, Line, LineChart, draw_bars, draw_lines};
pub use scatter::{Dot, Scatter, draw_scatter};
pub use svg::{Panel, draw};

use kinfolk::KnnGraph;

/// A place in the plane for each vertex, near its neighbours.
pub fn map(graph: &KnnGraph, seed: u64) -> Vec<[f32; 2]> {
    layout::layout(graph, seed)
}
