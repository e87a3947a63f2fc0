//! How a long stage tells whoever is watching how far it is, and hears that it should end.

use crate::{Error, Result};

/// Receives the progress of a stage. The library calls it from worker threads; the command draws a bar,
/// the Python package drives `tqdm`, and `&()` ignores it.
///
/// It is also how to end work early: once [`cancelled`](Progress::cancelled) is true, the call that was given it returns
/// [`Error::Cancelled`] soon. Stages hold nothing that could be left half done: their results are values, and files appear
/// whole or not at all.
pub trait Progress: Sync {
    /// A stage of `total` steps begins; the one before it, if any, is over.
    fn begin(&self, stage: &str, total: u64);
    /// `steps` more of the current stage are done.
    fn advance(&self, steps: u64);
    /// Something worth knowing about the current stage, such as the loss of training; it replaces the note before.
    fn note(&self, _text: &str) {}
    /// True once the caller wants the work to end: long stages then return [`Error::Cancelled`] soon.
    ///
    /// Called often and from many threads, so it should be cheap; once true it must stay true.
    fn cancelled(&self) -> bool {
        false
    }
    /// [`Error::Cancelled`] once the caller wants the work to end.
    fn check(&self) -> Result<()> {
        if self.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Passes on nothing but the wish to end the work: for a stage within another, whose steps are the ones that count.
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
