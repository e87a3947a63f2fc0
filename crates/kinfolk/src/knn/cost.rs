//! What a search costs, before it is run.

use super::codes::{Codes, Packed};
use super::kernel::Kernel;
use super::sweep::{Queries, Sweep};
use crate::random::{Purpose, Stream};
use std::time::{Duration, Instant};

/// Bytes that a search cannot do without: the graph, the rows as int8 twice and, where all rows are searched at once, the
/// candidates of each, or else half of the graph once more.
pub(crate) fn needed_memory(n: usize, dim: usize, k: usize, exact: bool) -> u64 {
    let graph = if exact { 32 } else { 12 };
    n as u64 * (graph * k + 2 * dim) as u64
}

/// About how long a search takes on this machine, by a calibration of some milliseconds. Within a factor of two on synthetic sets:
/// how many rows must be looked at for a recall depends on the set.
pub(crate) fn expected_time(n: usize, dim: usize, exact: bool) -> Duration {
    let rows = n as f64;
    let products = if exact {
        1.4 * rows * rows / 2.0
    } else {
        // Centroids (k-means, the list of every row, its choice of lists), the rows of lists, and what each row costs besides.
        let of_row = 24.0 * rows.sqrt() + 5000.0 * (rows / 1e5).powf(1.2);
        rows * (22_000.0 + 1.2 * of_row)
    };
    let seconds = products * product_time(dim) / rayon::current_num_threads() as f64;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Seconds of a thread for the product of two rows, as part of a tile.
fn product_time(dim: usize) -> f64 {
    const ROWS: usize = 512;
    const LEAST: Duration = Duration::from_millis(10);
    let mut stream = Stream::new(0, Purpose::Recall, 1, 0);
    let rows: Vec<f32> = (0..ROWS * dim).map(|_| stream.rough_normal()).collect();
    let codes = Codes::from_rows(dim, ROWS, |i| &rows[i * dim..][..dim]);
    let packed = Packed::of_rows(&codes);
    let places: Vec<u32> = (0..ROWS as u32).collect();
    let mut sweep = Sweep::new(Kernel::default(), codes.width);
    let (mut best, start) = (f64::INFINITY, Instant::now());
    // The shortest of several, because other programs run too.
    while start.elapsed() < LEAST || best == f64::INFINITY {
        let start = Instant::now();
        let queries = Queries { codes: &codes, places: &places };
        sweep.above(queries, packed.all(), |_| f32::INFINITY, |_, _, _| {});
        best = best.min(start.elapsed().as_secs_f64() / (ROWS * ROWS) as f64);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_that_of_the_graph_and_what_finds_it() {
        assert_eq!(needed_memory(1 << 26, 256, 1024, false), (1 << 26) * (12 * 1024 + 512));
        assert_eq!(needed_memory(1000, 64, 10, true), 1000 * (8 * 40 + 128));
    }

    #[test]
    fn more_rows_and_columns_take_longer() {
        let time = |n, dim, exact| expected_time(n, dim, exact);
        assert!(time(1_000_000, 256, false) > 5 * time(100_000, 256, false));
        assert!(time(1_000_000, 256, true) > 10 * time(100_000, 256, true));
        assert!(time(100_000, 1024, true) > time(100_000, 128, true));
        assert!(time(usize::MAX, 64, true) > Duration::from_secs(1 << 40));
    }
}
