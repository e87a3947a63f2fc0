//! Measures the cost of a run.

use kinfolk_cli::machine;
use std::time::Instant;

/// The cost of a run.
pub struct Cost {
    pub seconds: f64,
    pub cpu_seconds: f64,
}

/// Runs something and returns its cost with its result.
pub fn measure<T>(run: impl FnOnce() -> T) -> (T, Cost) {
    let (start, cpu) = (Instant::now(), machine::cpu_time());
    let result = run();
    let cost = Cost {
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: (machine::cpu_time() - cpu).as_secs_f64(),
    };
    (result, cost)
}

/// The fastest of several runs: on a shared machine, the others had to wait.
pub fn best_of<T>(times: usize, mut run: impl FnMut() -> T) -> (T, Cost) {
    let mut best = measure(&mut run);
    for _ in 1..times {
        let again = measure(&mut run);
        if again.1.seconds < best.1.seconds {
            best = again;
        }
    }
    best
}
