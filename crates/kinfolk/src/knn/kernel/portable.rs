//! The tile product in plain Rust: what the other kernels are tested against, and the fallback.

use super::{Codes, PANEL, Tile};

pub(super) fn tile(rows: &[i8], packed: &[i8], width: usize, tile: &mut Tile) {
    for (row, out) in rows.chunks_exact(width).zip(&mut tile.0) {
        for (panel, out) in packed.chunks_exact(PANEL * width).zip(out.chunks_exact_mut(PANEL)) {
            // Sums of 16 rows x 4 columns: neighbours in memory stay neighbours, so the compiler can use vectors.
            let mut sums = [0i32; 4 * PANEL];
            for (four, group) in row.chunks_exact(4).zip(panel.chunks_exact(4 * PANEL)) {
                for (sums, other) in sums.chunks_exact_mut(4).zip(group.chunks_exact(4)) {
                    for c in 0..4 {
                        // In 16 bits, where vectors can multiply; 127 * 127 fits.
                        sums[c] += i32::from(i16::from(four[c]) * i16::from(other[c]));
                    }
                }
            }
            for (out, sums) in out.iter_mut().zip(sums.chunks_exact(4)) {
                *out = sums.iter().sum();
            }
        }
    }
}

/// The products of one row with the rows of `codes` at `places`.
pub(super) fn products(row: &[i8], codes: &Codes, places: &[u32], out: &mut Vec<i32>) {
    out.extend(places.iter().map(|&place| {
        let pairs = row.iter().zip(codes.row(place as usize));
        pairs.map(|(&a, &b)| i32::from(i16::from(a) * i16::from(b))).sum::<i32>()
    }));
}
