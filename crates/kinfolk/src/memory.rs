//! The memory that is free, so that work that cannot fit is refused before it starts.

use crate::{Error, Result};

/// Refuses work that needs more memory than is free. Where the system does not say how much that is, nothing is refused.
pub(crate) fn check(needed: u64, what: impl FnOnce() -> String) -> Result<()> {
    check_against(free(), needed, what)
}

fn check_against(free: Option<u64>, needed: u64, what: impl FnOnce() -> String) -> Result<()> {
    match free {
        Some(free) if needed > free => Err(Error::Memory { what: what(), needed, free }),
        _ => Ok(()),
    }
}

/// Whether this would fill more than an eighth of the memory that is free.
pub(crate) fn is_large(bytes: u64) -> bool {
    free().is_some_and(|free| bytes > free / 8)
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
        check_against(Some(100), 100, what).unwrap();
        check_against(None, u64::MAX, what).unwrap();
        let error = check_against(Some(12_340_000_000), 41_000_000_000, what).unwrap_err();
        assert_eq!(error.to_string(), "the graph of 9 rows needs 41.0 GB of memory, 12.3 GB are free");
    }

    #[test]
    fn the_system_is_read() {
        assert_eq!(available("MemTotal: 5 kB\nMemAvailable:   20480 kB\nBuffers: 1 kB\n"), Some(20_971_520));
        assert_eq!(available("MemTotal: 5 kB\n"), None);
        #[cfg(target_os = "linux")]
        assert!(free().is_some_and(|bytes| bytes > 0));
    }
}
