//! Progress and cancellation of long stages.

use crate::{Error, Result};

/// Receives the progress of a stage. The library calls it from worker threads; the command draws a bar,
/// the Python package drives `tqdm`, and `&()` ignores it.
///
/// It also cancels work: once [`cancelled`](Progress::cancelled) is true, the call returns [`Error::Cancelled`] soon. No
/// partial result remains, because results are values and files are written atomically.
pub trait Progress: Sync {
    /// A stage of `total` steps begins; the one before it, if any, is over.
    fn begin(&self, stage: &str, total: u64);
    /// `steps` more of the current stage are done.
    fn advance(&self, steps: u64);
    /// A note about the current stage, such as the training loss; it replaces the previous note.
    fn note(&self, _text: &str) {}
    /// What long work is expected to need, before it starts.
    fn forecast(&self, _text: &str) {}
    /// Something to know before the work goes on, such as that it will take hours.
    fn warn(&self, _text: &str) {}
    /// True once the caller wants to cancel: long stages then return [`Error::Cancelled`] soon.
    ///
    /// Called often and from many threads, so it should be cheap; once true it must stay true.
    fn cancelled(&self) -> bool {
        false
    }
    /// [`Error::Cancelled`] once [`cancelled`](Progress::cancelled) is true.
    fn check(&self) -> Result<()> {
        if self.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Forwards cancellation only, for a stage within another stage that reports the progress.
pub struct Quiet<'a>(pub &'a dyn Progress);

impl Progress for Quiet<'_> {
    fn begin(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _steps: u64) {}
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

impl Progress for () {
    fn begin(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _steps: u64) {}
}
