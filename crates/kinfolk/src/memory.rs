//! The memory that a run may use, so that work that cannot fit is refused before it starts.

use crate::{Error, Result};

/// What a run may use: what its user allowed, or else what is free. Pages of mapped files do not count, because the system drops
/// them when it needs memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Budget(pub(crate) Option<u64>);

impl Budget {
    /// Refuses work that needs more. Where nothing was allowed and the system does not say what is free, nothing is refused.
    pub(crate) fn check(self, needed: u64, what: impl FnOnce() -> String) -> Result<()> {
        match self.bytes() {
            Some(budget) if needed > budget => Err(Error::Memory { what: what(), needed, budget }),
            _ => Ok(()),
        }
    }

    /// Whether this would be more than an eighth.
    pub(crate) fn is_large(self, bytes: u64) -> bool {
        self.bytes().is_some_and(|budget| bytes > budget / 8)
    }

    fn bytes(self) -> Option<u64> {
        self.0.or_else(free)
    }
}

/// Bytes that the system, and the control group that this process may be confined to, can still give; Linux only.
fn free() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    let system = read("/proc/meminfo").and_then(|text| available(&text));
    let group = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map(|(most, now)| most.saturating_sub(now));
    [system, group].into_iter().flatten().min()
}

/// `MemAvailable` in bytes.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let what = || "the graph of 9 rows".to_owned();
        Budget(Some(100)).check(100, what).unwrap();
        let error = Budget(Some(12_340_000_000)).check(41_000_000_000, what).unwrap_err();
        assert_eq!(error.to_string(), "the graph of 9 rows needs 41.0 GB of memory, 12.3 GB may be used");
        assert!(Budget(Some(80)).is_large(11) && !Budget(Some(80)).is_large(10));
    }

    #[test]
    fn the_system_is_read_where_nothing_was_allowed() {
        assert_eq!(available("MemTotal: 5 kB\nMemAvailable:   20480 kB\nBuffers: 1 kB\n"), Some(20_971_520));
        assert_eq!(available("MemTotal: 5 kB\n"), None);
        #[cfg(target_os = "linux")]
        assert!(Budget::default().bytes().is_some_and(|bytes| bytes > 0));
    }
}
