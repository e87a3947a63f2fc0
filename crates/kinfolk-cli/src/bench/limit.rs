//! A time limit for whatever reports progress.
//!
//! The report that comes too late does not return: the stack unwinds from there to [`within`], through all threads that
//! have a part in the work. Of a loop that all threads share, the tasks that wait are still begun, each up to its first
//! report, which long loops make as they begin a task. A stage that does not report is waited for, and then counts as too
//! late all the same.

use crate::bars::Bars;
use kinfolk::Progress;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// What unwinds.
struct TooLate;

struct Watched {
    end: Instant,
    bars: Bars,
}

impl Watched {
    fn check(&self) {
        if Instant::now() > self.end {
            // Unlike a panic it prints nothing.
            resume_unwind(Box::new(TooLate));
        }
    }
}

impl Progress for Watched {
    fn begin(&self, stage: &str, total: u64) {
        self.check();
        self.bars.begin(stage, total);
    }

    fn advance(&self, steps: u64) {
        self.check();
        self.bars.advance(steps);
    }

    fn tick(&self) {
        self.check();
    }

    fn note(&self, text: &str) {
        self.bars.note(text);
    }
}

/// Runs something for at most `limit`; the result and its seconds, or `None` if it took longer.
pub fn within<T>(limit: Duration, run: impl FnOnce(&dyn Progress) -> T) -> Option<(T, f64)> {
    let start = Instant::now();
    let watched = Watched { end: start + limit, bars: Bars::default() };
    match catch_unwind(AssertUnwindSafe(|| run(&watched))) {
        Ok(result) => {
            let taken = start.elapsed();
            (taken <= limit).then_some((result, taken.as_secs_f64()))
        }
        Err(cause) if cause.is::<TooLate>() => None,
        Err(cause) => resume_unwind(cause),
    }
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
                (0..8).into_par_iter().for_each(|_| {
                    std::thread::sleep(Duration::from_millis(5));
                    progress.advance(1);
                });
            }
        });
        assert!(found.is_none());
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn tasks_that_wait_are_not_done_after_the_limit() {
        let start = Instant::now();
        let found = within(Duration::from_millis(50), |progress| {
            (0..10_000).into_par_iter().for_each(|_| {
                progress.tick();
                std::thread::sleep(Duration::from_millis(5));
            });
        });
        assert!(found.is_none());
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn what_ends_in_time_is_kept_and_what_reports_nothing_is_late_all_the_same() {
        let (found, seconds) = within(Duration::from_secs(60), |_| 7).unwrap();
        assert_eq!(found, 7);
        assert!(seconds < 60.0);
        let sleep = |_: &dyn Progress| std::thread::sleep(Duration::from_millis(20));
        assert!(within(Duration::from_millis(1), sleep).is_none());
    }
}
