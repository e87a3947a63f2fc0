//! A watcher that cancels at a chosen look, for the tests of every crate whose work can be cancelled.

use kinfolk::{Error, Progress, Result};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cancelled from look number `burns_at` on.
struct Fuse {
    burns_at: usize,
    looks: AtomicUsize,
}

impl Progress for Fuse {
    fn begin(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _steps: u64) {}
    fn cancelled(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) >= self.burns_at
    }
}

/// Cancels some work at its first look, at its last and at many in between: each time it ends with `Error::Cancelled`, after
/// no more looks than it would have taken to finish.
pub fn ends_wherever_it_is_cancelled<T>(name: &str, work: impl Fn(&dyn Progress) -> Result<T>) {
    let run = |burns_at: usize| {
        let fuse = Fuse { burns_at, looks: AtomicUsize::new(0) };
        let result = work(&fuse);
        (result, fuse.looks.into_inner())
    };
    let (finished, looks) = run(usize::MAX);
    assert!(finished.is_ok(), "{name}");
    assert!(looks > 0, "{name} never looks");
    let mut places: Vec<usize> = (0..7).map(|i| i * (looks - 1) / 6).collect();
    places.dedup();
    for burns_at in places {
        let (result, taken) = run(burns_at);
        match result {
            Err(Error::Cancelled) => {}
            Err(other) => panic!("{name} at look {burns_at} of {looks}: {other}"),
            Ok(_) => panic!("{name} finished although it was cancelled at look {burns_at} of {looks}"),
        }
        assert!(taken <= looks, "{name} at look {burns_at} of {looks}: looked {taken} times");
    }
}
