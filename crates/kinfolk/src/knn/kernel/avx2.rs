//! The tile product with 256-bit integers. `vpmaddubsw` multiplies unsigned with signed bytes and adds pairs in
//! 16 bits; |a| * (b with the sign of a) is a * b, and 2 * 127 * 127 fits, so nothing saturates.

use super::{PANEL, Tile};
use std::arch::x86_64::*;

/// # Safety
/// Needs AVX2; `rows` holds ROWS rows of `width` bytes, `packed` one or two panels.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn tile(rows: &[i8], packed: &[i8], width: usize, tile: &mut Tile) {
    let ones = _mm256_set1_epi16(1);
    for (pair, outs) in rows.chunks_exact(2 * width).zip(tile.0.chunks_exact_mut(2)) {
        for (p, panel) in packed.chunks_exact(PANEL * width).enumerate() {
            let mut sums = [[_mm256_setzero_si256(); 2]; 2];
            for group in 0..width / 4 {
                let mut fours = [_mm256_setzero_si256(); 2];
                for (r, four) in fours.iter_mut().enumerate() {
                    let at = r * width + 4 * group;
                    let bytes = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]].map(|b| b as u8);
                    *four = _mm256_set1_epi32(i32::from_le_bytes(bytes));
                }
                for half in 0..2 {
                    // SAFETY: a group is 64 bytes of the panel; `half` takes its first or second 32.
                    let b = unsafe {
                        _mm256_loadu_si256(panel.as_ptr().add(group * 4 * PANEL + 32 * half).cast())
                    };
                    for (sum, &four) in sums.iter_mut().zip(&fours) {
                        let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(four), _mm256_sign_epi8(b, four));
                        sum[half] = _mm256_add_epi32(sum[half], _mm256_madd_epi16(pairs, ones));
                    }
                }
            }
            for (out, sum) in outs.iter_mut().zip(&sums) {
                for (half, &sum) in sum.iter().enumerate() {
                    // SAFETY: eight lanes at column 16 p + 8 half of a row of 32.
                    unsafe { _mm256_storeu_si256(out.as_mut_ptr().add(PANEL * p + 8 * half).cast(), sum) };
                }
            }
        }
    }
}
