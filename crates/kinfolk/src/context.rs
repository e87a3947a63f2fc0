//! [`Context`], which every long call takes besides its input: seed, progress, cancellation and timings.

use crate::memory::Budget;
use crate::{Progress, Work};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The seed of all random numbers, the receiver of progress, and whether levels are wanted.
///
/// ```
/// use kinfolk::Context;
/// let context = Context::default().with_seed(7);
/// assert_eq!(context.seed(), 7);
/// ```
pub struct Context<'a> {
    seed: u64,
    levels: bool,
    progress: &'a dyn Progress,
    work: Option<&'a Work>,
    scratch: Option<&'a Path>,
    memory: Budget,
    timings: Mutex<Timings>,
}

/// How long each stage took, in the order in which they were first run.
pub type Timings = Vec<(&'static str, Duration)>;

impl Default for Context<'_> {
    /// Seed 0, without progress.
    fn default() -> Self {
        Context {
            seed: 0,
            levels: false,
            progress: &(),
            work: None,
            scratch: None,
            memory: Budget::default(),
            timings: Mutex::default(),
        }
    }
}

impl<'a> Context<'a> {
    /// Seed 0, with progress.
    pub fn new(progress: &'a dyn Progress) -> Self {
        Context { progress, ..Context::default() }
    }

    /// The same with another seed.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The same with or without [`Levels`](crate::stages::Levels), from methods that have them.
    pub fn with_levels(mut self, levels: bool) -> Self {
        self.levels = levels;
        self
    }

    /// The same with a directory that keeps finished stages.
    pub fn with_work(mut self, work: Option<&'a Work>) -> Self {
        self.work = work;
        self
    }

    /// The same with a directory for matrices that would fill much of the memory. They are files without a name, which the system
    /// may drop from memory and removes when the run ends, however it ends.
    pub fn with_scratch(mut self, scratch: Option<&'a Path>) -> Self {
        self.scratch = scratch;
        self
    }

    /// The same with a limit to the bytes of memory, besides pages of mapped files; without one it is what is free.
    pub fn with_memory(mut self, bytes: Option<u64>) -> Self {
        self.memory = Budget(bytes);
        self
    }

    /// What may be used.
    pub(crate) fn memory(&self) -> Budget {
        self.memory
    }

    /// The directory for large matrices, if there is one.
    pub fn scratch(&self) -> Option<&'a Path> {
        self.scratch
    }

    /// The directory that keeps finished stages, if there is one.
    pub fn work(&self) -> Option<&'a Work> {
        self.work
    }

    /// Whether levels are wanted.
    pub fn levels(&self) -> bool {
        self.levels
    }

    /// The seed of all random numbers.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The receiver of progress.
    pub fn progress(&self) -> &'a dyn Progress {
        self.progress
    }

    /// Runs a stage and adds the time it took.
    pub fn timed<T>(&self, stage: &'static str, run: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = run();
        let taken = start.elapsed();
        let mut timings = self.timings();
        match timings.iter_mut().find(|timing| timing.0 == stage) {
            Some(timing) => timing.1 += taken,
            None => timings.push((stage, taken)),
        }
        result
    }

    /// Takes the times so far; the next run starts without any.
    pub fn take_timings(&self) -> Timings {
        std::mem::take(&mut *self.timings())
    }

    fn timings(&self) -> MutexGuard<'_, Timings> {
        self.timings.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_runs_twice_is_listed_once() {
        let context = Context::default();
        for stage in ["knn", "partition", "knn"] {
            context.timed(stage, || std::thread::sleep(Duration::from_millis(1)));
        }
        let timings = context.take_timings();
        assert_eq!(timings.iter().map(|timing| timing.0).collect::<Vec<_>>(), ["knn", "partition"]);
        assert!(timings[0].1 >= Duration::from_millis(2));
        assert!(context.take_timings().is_empty());
    }
}
