//! From a tile of integer products to the few pairs that beat a row's threshold.

use super::kernel::{Kernel, PANEL, ROWS, Tile};

/// A pair of a tile whose score reached the threshold of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hit {
    pub row: u32,
    pub column: u32,
    pub score: f32,
}

/// The scales of the tile's rows and columns: score = product * scale of row * scale of column. Padding has
/// scale NaN, which no comparison lets through.
pub(super) struct Sides<'a> {
    pub row_scale: &'a [f32],
    pub row_threshold: &'a [f32],
    pub column_scale: &'a [f32],
    /// Thresholds of the columns, when each pair is offered to both sides.
    pub column_threshold: Option<&'a [f32]>,
}

/// Appends the hits of the rows to `for_rows` and those of the columns to `for_columns`.
#[inline]
pub(super) fn scan(
    kernel: Kernel,
    tile: &Tile,
    panels: usize,
    sides: &Sides,
    for_rows: &mut Vec<Hit>,
    for_columns: &mut Vec<Hit>,
) {
    let columns = panels * PANEL;
    assert!(sides.row_scale.len() >= ROWS && sides.row_threshold.len() >= ROWS);
    assert!(sides.column_scale.len() >= columns);
    assert!(sides.column_threshold.is_none_or(|t| t.len() >= columns));
    match kernel {
        // SAFETY: these kernels exist only where AVX-512 does; the lengths were checked above.
        #[cfg(target_arch = "x86_64")]
        Kernel::Amx | Kernel::Vnni => unsafe { scan_avx512(tile, panels, sides, for_rows, for_columns) },
        // SAFETY: this kernel exists only where AVX2 does.
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => unsafe { scan_avx2(tile, panels, sides, for_rows, for_columns) },
        Kernel::Portable => scan_chunks(tile, panels, sides, for_rows, for_columns),
    }
}

/// Looks at 16 columns at a time, without a branch for each, so that the compiler can use vectors.
#[inline(always)]
fn scan_chunks(
    tile: &Tile,
    panels: usize,
    sides: &Sides,
    for_rows: &mut Vec<Hit>,
    for_columns: &mut Vec<Hit>,
) {
    for panel in 0..panels {
        let first = panel * PANEL;
        let mut column_threshold = [f32::INFINITY; PANEL];
        if let Some(threshold) = sides.column_threshold {
            column_threshold.copy_from_slice(&threshold[first..first + PANEL]);
        }
        let column_scale = &sides.column_scale[first..first + PANEL];
        for (row, products) in tile.0.iter().enumerate() {
            let (row_scale, row_threshold) = (sides.row_scale[row], sides.row_threshold[row]);
            let mut scores = [0.0f32; PANEL];
            let mut any = 0u32;
            for c in 0..PANEL {
                let score = products[first + c] as f32 * column_scale[c] * row_scale;
                scores[c] = score;
                any |= u32::from(score >= row_threshold) | u32::from(score >= column_threshold[c]);
            }
            if any == 0 {
                continue;
            }
            for (c, &score) in scores.iter().enumerate() {
                let hit = Hit { row: row as u32, column: (first + c) as u32, score };
                if score >= row_threshold {
                    for_rows.push(hit);
                }
                if score >= column_threshold[c] {
                    for_columns.push(hit);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn scan_avx2(tile: &Tile, panels: usize, sides: &Sides, for_rows: &mut Vec<Hit>, for_columns: &mut Vec<Hit>) {
    scan_chunks(tile, panels, sides, for_rows, for_columns);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn scan_avx512(
    tile: &Tile,
    panels: usize,
    sides: &Sides,
    for_rows: &mut Vec<Hit>,
    for_columns: &mut Vec<Hit>,
) {
    use std::arch::x86_64::*;
    for panel in 0..panels {
        let first = panel * PANEL;
        // SAFETY: `scan` checked that the slice covers the panels of the tile.
        let column_scale = unsafe { _mm512_loadu_ps(sides.column_scale.as_ptr().add(first)) };
        let column_threshold = match sides.column_threshold {
            // SAFETY: as above.
            Some(t) => unsafe { _mm512_loadu_ps(t.as_ptr().add(first)) },
            None => _mm512_set1_ps(f32::INFINITY),
        };
        for row in 0..ROWS {
            // SAFETY: 16 of the 32 columns of a row of the tile.
            let products = unsafe { _mm512_loadu_si512(tile.0[row].as_ptr().add(first).cast()) };
            let scores = _mm512_mul_ps(
                _mm512_mul_ps(_mm512_cvtepi32_ps(products), column_scale),
                _mm512_set1_ps(sides.row_scale[row]),
            );
            let row_threshold = _mm512_set1_ps(sides.row_threshold[row]);
            let by_row = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(scores, row_threshold);
            let by_column = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(scores, column_threshold);
            if by_row | by_column == 0 {
                continue;
            }
            let mut score = [0.0f32; PANEL];
            // SAFETY: 16 floats.
            unsafe { _mm512_storeu_ps(score.as_mut_ptr(), scores) };
            for (mut mask, hits) in [(by_row, &mut *for_rows), (by_column, &mut *for_columns)] {
                while mask != 0 {
                    let lane = mask.trailing_zeros() as usize;
                    mask &= mask - 1;
                    hits.push(Hit { row: row as u32, column: (first + lane) as u32, score: score[lane] });
                }
            }
        }
    }
}
