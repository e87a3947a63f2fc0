//! Processor time and memory of the process, as reported by the system.

use kinfolk::results::Cost;
use std::time::Duration;

/// The cost of this process so far.
pub fn cost() -> Cost {
    Cost { cpu_seconds: Some(cpu_time().as_secs_f64()), peak_memory_bytes: Some(peak_memory()) }
}

/// Processor time of this process, all threads.
pub fn cpu_time() -> Duration {
    system::cpu_time()
}

/// The peak memory of this process, in bytes.
pub fn peak_memory() -> u64 {
    // On Linux `getrusage` counts what the process was before it became this program, too.
    let held = std::fs::read_to_string("/proc/self/status").ok().and_then(|s| field(&s, "VmHWM:"));
    held.map_or_else(system::peak_memory, |kilobytes| kilobytes * 1024)
}

/// What this process holds besides pages of mapped files, in bytes; Linux only.
pub fn anonymous_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some(field(&status, "RssAnon:")? * 1024)
}

/// Ends the process quietly when whoever reads its output has ended, as in `kinfolk album people faces | head`: Rust ignores the signal,
/// and printing would panic.
pub fn end_with_the_reader() {
    #[cfg(unix)]
    // SAFETY: no handler is installed, only the default restored.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}

/// Makes the GNU allocator return large blocks to the system when they are freed. Training allocates tensors of many different
/// sizes, which would otherwise fragment gigabytes after some epochs of GCN-E. Blocks of up to 4 MB, such as the weights of a
/// layer, are reused: allocating them again in every step costs as much as the step.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` only sets parameters of the allocator, and does nothing if it does not know them.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
    }
}

/// A field of `/proc/self/status`, in KB.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(unix)]
mod system {
    use std::time::Duration;

    pub fn cpu_time() -> Duration {
        let usage = usage();
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
        time(usage.ru_utime) + time(usage.ru_stime)
    }

    pub fn peak_memory() -> u64 {
        // Linux counts in KB, macOS in bytes.
        let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
        usage().ru_maxrss as u64 * unit
    }

    fn usage() -> libc::rusage {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: `getrusage` fills the struct it is given; zeroed, it is valid even if the call failed.
        unsafe {
            libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
            usage.assume_init()
        }
    }
}

#[cfg(windows)]
mod system {
    use std::time::Duration;
    use windows_sys::Win32::Foundation::FILETIME;
    use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
    use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};

    pub fn cpu_time() -> Duration {
        let [mut created, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
        // SAFETY: fills the four it is given; they are valid even if the call failed.
        unsafe { GetProcessTimes(GetCurrentProcess(), &mut created, &mut ended, &mut kernel, &mut user) };
        // In units of 100 ns.
        let time = |t: FILETIME| (u64::from(t.dwHighDateTime) << 32 | u64::from(t.dwLowDateTime)) * 100;
        Duration::from_nanos(time(kernel) + time(user))
    }

    pub fn peak_memory() -> u64 {
        let size = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
        let mut counters = PROCESS_MEMORY_COUNTERS { cb: size, ..Default::default() };
        // SAFETY: fills the given struct, whose size is passed; it is valid even if the call failed.
        unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &mut counters, size) };
        counters.PeakWorkingSetSize as u64
    }
}

/// The name of the processor, or its architecture if the system does not provide one.
pub fn processor() -> String {
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).to_owned()
}
