//! A time limit for work that reports progress.
//!
//! After the limit the work is cancelled and returns at its next check; waiting tasks of a parallel loop are skipped. A stage
//! that never checks runs to its end and then counts as too slow.

use kinfolk::{Error, Progress, Result};
use kinfolk_cli::bars::Bars;
use std::time::{Duration, Instant};

struct Watched {
    end: Instant,
    bars: Bars,
}

impl Progress for Watched {
    fn begin(&self, stage: &str, total: u64) {
        self.bars.begin(stage, total);
    }

    fn advance(&self, steps: u64) {
        self.bars.advance(steps);
    }

    fn note(&self, text: &str) {
        self.bars.note(text);
    }

    fn cancelled(&self) -> bool {
        Instant::now() > self.end
    }
}

/// Runs something for at most `limit`; returns its result and its seconds, or `None` if it took longer.
pub fn within<T>(limit: Duration, run: impl FnOnce(&dyn Progress) -> Result<T>) -> Option<(Result<T>, f64)> {
    let start = Instant::now();
    let result = run(&Watched { end: start + limit, bars: Bars::default() });
    let taken = start.elapsed();
    let stopped = taken > limit || matches!(result, Err(Error::Cancelled));
    (!stopped).then_some((result, taken.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn work_on_many_threads_ends_at_the_limit() {
        let start = Instant::now();
        let found = within(Duration::from_millis(50), |progress| {
            for _ in 0..10_000 {
                (0..8).into_par_iter().try_for_each(|_| {
                    std::thread::sleep(Duration::from_millis(5));
                    progress.advance(1);
                    progress.check()
                })?;
            }
            Ok(())
        });
        assert!(found.is_none());
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn tasks_that_wait_are_not_done_after_the_limit() {
        let start = Instant::now();
        let found = within(Duration::from_millis(50), |progress| {
            (0..10_000).into_par_iter().for_each(|_| {
                if !progress.cancelled() {
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            progress.check()
        });
        assert!(found.is_none());
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn work_in_time_counts_and_work_that_never_checks_is_too_slow() {
        let (found, seconds) = within(Duration::from_secs(60), |_| Ok(7)).unwrap();
        assert_eq!(found.unwrap(), 7);
        assert!(seconds < 60.0);
        let (refused, _) = within(Duration::from_secs(60), |_| {
            Err::<(), _>(Error::Parameter { field: "k", expected: "at least 1", found: "0".to_owned() })
        })
        .unwrap();
        assert!(matches!(refused, Err(Error::Parameter { .. })));
        let sleep = |_: &dyn Progress| {
            std::thread::sleep(Duration::from_millis(20));
            Ok(())
        };
        assert!(within(Duration::from_millis(1), sleep).is_none());
    }
}
