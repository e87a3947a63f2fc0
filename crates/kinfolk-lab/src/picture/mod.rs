//! Charts of measurements.

mod chart;
pub mod palette;
mod scatter;

pub use chart::{Bars, Line, LineChart, draw_bars, draw_lines};
pub use scatter::{Dot, Scatter, draw_scatter};
