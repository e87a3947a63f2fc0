//! The tile product in plain Rust: what the other kernels are tested against, and the fallback.

use super::{PANEL, Tile};

pub(super) fn tile(rows: &[i8], packed: &[i8], width: usize, tile: &mut Tile) {
    for (row, out) in rows.chunks_exact(width).zip(&mut tile.0) {
        for (panel, out) in packed.chunks_exact(PANEL * width).zip(out.chunks_exact_mut(PANEL)) {
            let mut sums = [0i32; PANEL];
            for (four, group) in row.chunks_exact(4).zip(panel.chunks_exact(4 * PANEL)) {
                for (sum, other) in sums.iter_mut().zip(group.chunks_exact(4)) {
                    for c in 0..4 {
                        *sum += four[c] as i32 * other[c] as i32;
                    }
                }
            }
            out.copy_from_slice(&sums);
        }
    }
}
