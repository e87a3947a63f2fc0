//! How a long stage tells whoever is watching how far it is.

/// Receives the progress of a stage. The library calls it from worker threads; the command draws a bar,
/// the Python package drives `tqdm`, and `&()` ignores it.
///
/// It is also how to end work early: any of these methods may unwind ([`std::panic::resume_unwind`]), which ends the call
/// that was given it. Stages hold nothing that could be left half done: their results are values, and files appear whole
/// or not at all. Whoever unwinds once should do so in every later call, because the threads of a stage each have to hear it.
pub trait Progress: Sync {
    /// A stage of `total` steps begins; the one before it, if any, is over.
    fn begin(&self, stage: &str, total: u64);
    /// `steps` more of the current stage are done.
    fn advance(&self, steps: u64);
    /// Called often by work that has nothing to count: a chance to end it.
    fn tick(&self) {}
    /// Something worth knowing about the current stage, such as the loss of training; it replaces the note before.
    fn note(&self, _text: &str) {}
}

/// Passes on nothing but the chance to end the work: for a stage within another, whose steps are the ones that count.
pub struct Quiet<'a>(pub &'a dyn Progress);

impl Progress for Quiet<'_> {
    fn begin(&self, _stage: &str, _total: u64) {
        self.0.tick();
    }
    fn advance(&self, _steps: u64) {
        self.0.tick();
    }
    fn tick(&self) {
        self.0.tick();
    }
}

impl Progress for () {
    fn begin(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _steps: u64) {}
}
