//! The tile product with 256-bit integers. `vpmaddubsw` multiplies unsigned with signed bytes and adds pairs in
//! 16 bits; |a| * (b with the sign of a) is a * b, and 2 * 127 * 127 fits, so nothing saturates.

use super::{Codes, PANEL, PREFETCH, Tile};
use std::arch::x86_64::*;

/// Rows kept in registers at once: 4 x 2 sums of the 16 registers.
const AT_ONCE: usize = 4;

/// # Safety
/// Needs AVX2; `rows` holds ROWS rows of `width` bytes, `packed` one or two panels.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn tile(rows: &[i8], packed: &[i8], width: usize, tile: &mut Tile) {
    let ones = _mm256_set1_epi16(1);
    for (four, outs) in rows.chunks_exact(AT_ONCE * width).zip(tile.0.chunks_exact_mut(AT_ONCE)) {
        for (p, panel) in packed.chunks_exact(PANEL * width).enumerate() {
            let mut sums = [[_mm256_setzero_si256(); 2]; AT_ONCE];
            for group in 0..width / 4 {
                // SAFETY: a group is 64 bytes of the panel.
                let at = unsafe { panel.as_ptr().add(group * 4 * PANEL) };
                // SAFETY: its first and its second 32 bytes.
                let halves =
                    unsafe { [_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(32).cast())] };
                for (r, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: four bytes, group `group` of row `r`.
                    let a =
                        unsafe { four.as_ptr().add(r * width + 4 * group).cast::<i32>().read_unaligned() };
                    let a = _mm256_set1_epi32(a);
                    let size = _mm256_abs_epi8(a);
                    for (sum, &b) in sums.iter_mut().zip(&halves) {
                        let pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(b, a));
                        *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, ones));
                    }
                }
            }
            for (out, sums) in outs.iter_mut().zip(&sums) {
                for (half, &sum) in sums.iter().enumerate() {
                    // SAFETY: eight lanes at column 16 p + 8 half of a row of 32.
                    unsafe { _mm256_storeu_si256(out.as_mut_ptr().add(PANEL * p + 8 * half).cast(), sum) };
                }
            }
        }
    }
}

/// The products of one row with the rows of `codes` at `places`.
///
/// # Safety
/// Needs AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn products(row: &[i8], codes: &Codes, places: &[u32], out: &mut Vec<i32>) {
    let ones = _mm256_set1_epi16(1);
    for (at, &place) in places.iter().enumerate() {
        if let Some(&next) = places.get(at + PREFETCH) {
            for line in codes.row(next as usize).chunks(64) {
                _mm_prefetch::<_MM_HINT_T0>(line.as_ptr());
            }
        }
        let mut sum = _mm256_setzero_si256();
        for (a, b) in row.chunks_exact(32).zip(codes.row(place as usize).chunks_exact(32)) {
            // SAFETY: 32 bytes each.
            let (a, b) =
                unsafe { (_mm256_loadu_si256(a.as_ptr().cast()), _mm256_loadu_si256(b.as_ptr().cast())) };
            let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
        }
        let mut lanes = [0i32; 8];
        // SAFETY: eight lanes.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
        out.push(lanes.iter().sum());
    }
}
