//! The tile product with AMX: eight registers of 16 x 64 bytes, and one instruction that multiplies two of them.
//!
//! Four registers hold the 32 x 32 sums, two the rows, two the panels; a panel's layout in memory (groups of four
//! columns, rows within a group) is what `tdpbssd` expects of its right-hand side. The intrinsics are not stable,
//! so this is assembly.

use super::{PANEL, Tile};
use std::arch::asm;

/// # Safety
/// Needs a live [`Configured`](crate::amx::Configured) on this thread; `rows` holds ROWS rows of `width` bytes (a multiple of
/// 64),
/// `packed` one or two panels.
#[inline]
pub(super) unsafe fn tile(rows: &[i8], packed: &[i8], width: usize, tile: &mut Tile) {
    let two = packed.len() == 2 * PANEL * width;
    let second_panel = if two { PANEL * width } else { 0 };
    // SAFETY: each step of the loop reads 64 columns of 32 rows, and the 16 groups of 4 columns of both panels
    // (of the one panel twice, if there is one); `width / 64` steps stay inside the slices. The stores fill the
    // 32 x 32 tile, whose rows are 128 bytes apart.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            "tileloadd tmm6, [{b} + {sixty_four}]",
            "tileloadd tmm4, [{a} + {width}]",
            "tdpbssd tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{b2} + {sixty_four}]",
            "tdpbssd tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{a2} + {width}]",
            "tdpbssd tmm2, tmm5, tmm6",
            "tdpbssd tmm3, tmm5, tmm7",
            "add {a}, 64",
            "add {a2}, 64",
            "add {b}, 1024",
            "add {b2}, 1024",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{out} + {out_stride}], tmm0",
            "tilestored [{out} + {out_stride} + 64], tmm1",
            "tilestored [{out2} + {out_stride}], tmm2",
            "tilestored [{out2} + {out_stride} + 64], tmm3",
            a = inout(reg) rows.as_ptr() => _,
            a2 = inout(reg) rows.as_ptr().add(16 * width) => _,
            b = inout(reg) packed.as_ptr() => _,
            b2 = inout(reg) packed.as_ptr().add(second_panel) => _,
            steps = inout(reg) width / 64 => _,
            width = in(reg) width,
            sixty_four = in(reg) 64usize,
            out = in(reg) tile.0.as_mut_ptr(),
            out2 = in(reg) tile.0.as_mut_ptr().add(16),
            out_stride = in(reg) 128usize,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}
