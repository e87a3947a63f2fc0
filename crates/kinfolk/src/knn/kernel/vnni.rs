//! The tile product with AVX-512 VNNI. `vpdpbusd` needs one unsigned side, so the packed side is shifted by 128
//! (its sign bit flipped): sum (b + 128) a = sum a b + 128 sum a, and 128 times the row's sum is taken away.

use super::{Codes, PANEL, PREFETCH, Tile};
use std::arch::x86_64::*;

/// Rows kept in registers at once: 8 x 2 accumulators, 2 panels, of 32 registers.
const AT_ONCE: usize = 8;

/// # Safety
/// Needs AVX-512 F, BW and VNNI; `rows` holds ROWS rows of `width` bytes, `packed` one or two panels.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) unsafe fn tile(rows: &[i8], sums: &[i32], packed: &[i8], width: usize, tile: &mut Tile) {
    // SAFETY: passed on.
    unsafe {
        if packed.len() == 2 * PANEL * width {
            panels::<2>(rows, sums, packed, width, tile)
        } else {
            panels::<1>(rows, sums, packed, width, tile)
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn panels<const P: usize>(rows: &[i8], sums: &[i32], packed: &[i8], width: usize, tile: &mut Tile) {
    let flip = _mm512_set1_epi8(i8::MIN);
    for ((eight, sums), outs) in rows
        .chunks_exact(AT_ONCE * width)
        .zip(sums.chunks_exact(AT_ONCE))
        .zip(tile.0.chunks_exact_mut(AT_ONCE))
    {
        let mut acc = [[_mm512_setzero_si512(); P]; AT_ONCE];
        for (acc, &sum) in acc.iter_mut().zip(sums) {
            *acc = [_mm512_set1_epi32(-128 * sum); P];
        }
        for group in 0..width / 4 {
            let mut b = [_mm512_setzero_si512(); P];
            for (p, b) in b.iter_mut().enumerate() {
                // SAFETY: 64 bytes, group `group` of panel `p`.
                let at = unsafe { packed.as_ptr().add(p * PANEL * width + group * 4 * PANEL) };
                // SAFETY: as above.
                *b = _mm512_xor_si512(unsafe { _mm512_loadu_si512(at.cast()) }, flip);
            }
            for (r, acc) in acc.iter_mut().enumerate() {
                // SAFETY: four bytes, group `group` of row `r`.
                let four =
                    unsafe { eight.as_ptr().add(r * width + 4 * group).cast::<i32>().read_unaligned() };
                for (acc, &b) in acc.iter_mut().zip(&b) {
                    *acc = _mm512_dpbusd_epi32(*acc, b, _mm512_set1_epi32(four));
                }
            }
        }
        for (out, acc) in outs.iter_mut().zip(&acc) {
            for (p, &acc) in acc.iter().enumerate() {
                // SAFETY: sixteen lanes at column 16 p of a row of 32.
                unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(PANEL * p).cast(), acc) };
            }
        }
    }
}

/// The products of one row with the rows of `codes` at `places`. Here the one row is the shifted side: sum (q + 128) b, less 128
/// times the other row's sum.
///
/// # Safety
/// Needs AVX-512 F, BW and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) unsafe fn products(row: &[i8], codes: &Codes, places: &[u32], out: &mut Vec<i32>) {
    let flip = _mm512_set1_epi8(i8::MIN);
    for (at, &place) in places.iter().enumerate() {
        if let Some(&next) = places.get(at + PREFETCH) {
            for line in codes.row(next as usize).chunks(64) {
                _mm_prefetch::<_MM_HINT_T0>(line.as_ptr());
            }
        }
        let mut sum = _mm512_setzero_si512();
        for (a, b) in row.chunks_exact(64).zip(codes.row(place as usize).chunks_exact(64)) {
            // SAFETY: 64 bytes each.
            let (a, b) =
                unsafe { (_mm512_loadu_si512(a.as_ptr().cast()), _mm512_loadu_si512(b.as_ptr().cast())) };
            sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(a, flip), b);
        }
        out.push(_mm512_reduce_add_epi32(sum) - 128 * codes.sum[place as usize]);
    }
}
