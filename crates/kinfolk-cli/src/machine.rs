//! What a run cost: processor time and memory, as the system counts them.

use std::time::Duration;

/// Processor time of this process, all threads.
pub fn cpu_time() -> Duration {
    let usage = usage();
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// The most memory this process has held, in bytes.
pub fn peak_memory() -> u64 {
    // On Linux `getrusage` counts what the process was before it became this program, too.
    if let Some(kilobytes) = std::fs::read_to_string("/proc/self/status").ok().and_then(|s| high_water(&s)) {
        return kilobytes * 1024;
    }
    // Linux counts in KB, macOS in bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    usage().ru_maxrss as u64 * unit
}

/// Gives large blocks back to the system as soon as they are free. Training makes tensors of ever different sizes, and
/// between those the GNU allocator leaves gaps that it cannot use: gigabytes, after some epochs of GCN-E. Blocks of up to
/// 4 MB, such as the weights of a layer, are kept: asking for them anew in every step costs as much as the step.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` only sets parameters of the allocator, and does nothing if it does not know them.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
    }
}

/// `VmHWM` in KB.
fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn usage() -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `getrusage` fills the struct it is given; zeroed, it is valid even if the call failed.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// What the system calls the processor; its architecture where it says nothing.
pub fn processor() -> String {
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).to_owned()
}
