//! The tile registers of AMX: detection and configuration.
//!
//! The neighbour search multiplies tiles of bytes, the networks tiles of bfloat16. This module is public for the other crates
//! of the workspace; it is not part of the stable interface.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

const BF16: u32 = 1 << 22;
const TILE: u32 = 1 << 24;
const INT8: u32 = 1 << 25;

/// True if the processor multiplies tiles of 8-bit integers and the system lets this process use them.
pub fn multiplies_int8() -> bool {
    features() & INT8 != 0
}

/// True if the processor multiplies tiles of bfloat16 and the system lets this process use them.
pub fn multiplies_bf16() -> bool {
    features() & BF16 != 0
}

/// The feature bits of AMX; none where this process may not use it.
fn features() -> u32 {
    static FEATURES: OnceLock<u32> = OnceLock::new();
    *FEATURES.get_or_init(|| {
        let features = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).edx & (BF16 | TILE | INT8) } else { 0 };
        if features & TILE != 0 && granted() { features } else { 0 }
    })
}

/// Requests permission to use the tile registers, which Linux requires.
#[cfg(target_os = "linux")]
fn granted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: requests a permission; no memory is passed.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn granted() -> bool {
    false
}

/// While it lives, the tile registers of this thread are 16 rows of 64 bytes each.
#[derive(Debug)]
pub struct Configured(());

impl Configured {
    /// Configures them.
    ///
    /// # Safety
    /// [`multiplies_int8`] or [`multiplies_bf16`] was true, and no other is alive on this thread.
    pub unsafe fn new() -> Self {
        #[repr(C, align(64))]
        struct Config {
            palette: u8,
            start_row: u8,
            reserved: [u8; 14],
            row_bytes: [u16; 16],
            rows: [u8; 16],
        }
        let eight = |value| std::array::from_fn(|i| if i < 8 { value } else { 0 });
        let config = Config {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: eight(64),
            rows: eight(16).map(|r| r as u8),
        };
        // SAFETY: reads the 64 bytes of `config`, a valid configuration; the caller made sure of AMX.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &config, options(nostack, readonly)) };
        Configured(())
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: gives the tile registers back; nothing else in the process uses them.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}
