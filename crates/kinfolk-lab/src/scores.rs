//! Formats scores for tables and charts.

use kinfolk::metrics::Scores;

/// A score in percent.
pub fn percent(f: f64) -> String {
    format!("{:.2}", 100.0 * f)
}

/// Pairwise F and BCubed F in percent.
pub fn both_f(scores: &Scores) -> [f64; 2] {
    [100.0 * scores.pairwise.f, 100.0 * scores.bcubed.f]
}
