//! Every write of an album passes here first, so that tests can let any of them fail.

use std::io;

#[cfg(test)]
thread_local! {
    static WRITES_LEFT: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
}

/// Fails if a test wants this write to fail.
pub(crate) fn before_write() -> io::Result<()> {
    #[cfg(test)]
    if let Some(left) = WRITES_LEFT.get() {
        let Some(left) = left.checked_sub(1) else { return Err(io::Error::other("no space left (a test)")) };
        WRITES_LEFT.set(Some(left));
    }
    Ok(())
}

/// Lets all writes of this thread fail after so many.
#[cfg(test)]
pub(crate) fn fail_after(writes: Option<usize>) {
    WRITES_LEFT.set(writes);
}
