//! Products of f32 by tiles of bfloat16.
//!
//! A number x is hi + lo, hi the nearest bfloat16 and lo the one nearest to the rest: 2^-17 of x is lost at most. x y is
//! hi hi + hi lo + lo hi; the fourth product is as small as what was lost. That is three tile products for one, and still
//! five times what AVX-512 can do in f32: 12 products of 16 cycles for 32 x 32 x 32 multiplications.
//!
//! A tile is 16 x 16 pairs of bfloat16, 1 KB. On the left a row of a tile is 32 columns of a row of the matrix; on the
//! right, where `tdpbf16ps` expects pairs from two rows side by side, it is 16 columns of two rows. The two layouts are each
//! other's transpose by pairs, so a transposed matrix is packed as the other side and its tiles are turned. Edges are
//! filled with zeros.

use super::Matrix;
use kinfolk::amx::{Configured, multiplies_bf16};
use rayon::prelude::*;
use std::arch::asm;
use std::arch::x86_64::*;
use std::cell::{Cell, RefCell};

/// Rows or columns of the matrix in a tile.
const SIDE: usize = 16;
/// Numbers that are multiplied and summed by one product of tiles.
const DEPTH: usize = 32;
/// Tiles in depth between two visits to the sums. Fewer would leave more room in the fastest cache, but sums that are read
/// again cost more than that: their rows are often a power of two apart and push each other out.
const STEPS: usize = 16;

thread_local! {
    /// The left-hand side, packed; kept from product to product.
    static LEFT: RefCell<Tiles> = const { RefCell::new(Tiles { tiles: Vec::new(), outer: 0, inner: 0 }) };
    /// The memory of a right-hand side that is no longer needed.
    static SPARE: Cell<Vec<Tile>> = const { Cell::new(Vec::new()) };
}

/// True where this can be used.
pub(super) fn available() -> bool {
    let convert = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16");
    convert && multiplies_bf16()
}

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Tile([u32; SIDE * SIDE]);

impl Tile {
    const ZERO: Tile = Tile([0; SIDE * SIDE]);

    fn turn(&mut self) {
        let from = *self;
        for row in 0..SIDE {
            for column in 0..SIDE {
                self.0[column * SIDE + row] = from.0[row * SIDE + column];
            }
        }
    }
}

/// A packed matrix: for each 16 of its outer dimension, for each 32 of its inner one, the tile of hi and that of lo.
#[derive(Debug, Default)]
pub(crate) struct Tiles {
    tiles: Vec<Tile>,
    /// Rows of a left-hand side, columns of a right-hand side.
    outer: usize,
    /// What is summed over.
    inner: usize,
}

impl Tiles {
    /// As a right-hand side.
    pub(super) fn right(matrix: Matrix, parallel: bool) -> Self {
        let mut tiles = Tiles { tiles: SPARE.take(), outer: 0, inner: 0 };
        let Matrix { rows, columns, transposed, .. } = matrix;
        tiles.pack(matrix, [columns, rows], !transposed, parallel);
        tiles
    }

    /// Leaves the memory to the next right-hand side on this thread.
    pub(super) fn recycle(self) {
        SPARE.set(self.tiles);
    }

    fn left(&mut self, matrix: Matrix) {
        let Matrix { rows, columns, transposed, .. } = matrix;
        // On this thread alone: while it waited for others it could be given another product, which needs this one's memory.
        self.pack(matrix, [rows, columns], transposed, false);
    }

    fn steps(&self) -> usize {
        self.inner.div_ceil(DEPTH)
    }

    /// Packs by pairs from two rows of the slice if `across`, else by pairs within its rows; a transposed matrix's tiles are
    /// turned then.
    fn pack(&mut self, matrix: Matrix, [outer, inner]: [usize; 2], across: bool, parallel: bool) {
        (self.outer, self.inner) = (outer, inner);
        let steps = self.steps();
        // The kernel takes two of the outer dimension at a time.
        let groups = outer.div_ceil(2 * SIDE) * 2;
        // Old numbers beyond the last row or column end in sums that are not read; beyond the depth, where they would be added,
        // packing writes zeros.
        // Never fewer than before: the next matrix would pay for zeros in what was cut off.
        let needed = groups * steps * 2;
        if self.tiles.len() < needed {
            self.tiles.resize(needed, Tile::ZERO);
        }
        let tiles = &mut self.tiles[..needed];
        let pack = |(group, tiles): (usize, &mut [Tile])| {
            let first = group * SIDE;
            let side = outer.saturating_sub(first).min(SIDE);
            for (step, pair) in tiles.chunks_exact_mut(2).enumerate().filter(|_| side > 0) {
                let depth = (inner - step * DEPTH).min(DEPTH);
                let [hi, lo] = pair else { unreachable!("chunks of two") };
                // SAFETY: `available` found the instructions: nothing is packed elsewhere.
                unsafe {
                    if across {
                        let values = &matrix.values[step * DEPTH * matrix.stride + first..];
                        pairs_across(values, matrix.stride, depth, side, hi, lo);
                    } else {
                        let values = &matrix.values[first * matrix.stride + step * DEPTH..];
                        pairs_within(values, matrix.stride, side, depth, hi, lo);
                    }
                }
                if matrix.transposed {
                    hi.turn();
                    lo.turn();
                }
            }
        };
        let group = 2 * steps.max(1);
        if parallel {
            tiles.par_chunks_exact_mut(group).enumerate().for_each(pack);
        } else {
            tiles.chunks_exact_mut(group).enumerate().for_each(pack);
        }
    }
}

/// Both halves of 16 numbers.
///
/// # Safety
/// Needs avx512f and avx512bf16.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn split(x: __m512) -> (__m512i, __m512i) {
    // As 32-bit integers with the bfloat16 in the lower half.
    let round = |x| {
        // SAFETY: both types are 256 bits.
        let half: __m256i = unsafe { std::mem::transmute(_mm512_cvtneps_pbh(x)) };
        _mm512_cvtepu16_epi32(half)
    };
    let hi = round(x);
    let rest = _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(hi, 16)));
    (hi, round(rest))
}

/// The first `count` lanes.
fn lanes(count: usize) -> __mmask16 {
    if count >= 16 { u16::MAX } else { (1 << count) - 1 }
}

/// Row r of the tile: the first 32 of row r of `values`, zeros beyond `columns`.
///
/// # Safety
/// Needs avx512f and avx512bf16.
#[target_feature(enable = "avx512f,avx512bf16")]
fn pairs_within(values: &[f32], stride: usize, rows: usize, columns: usize, hi: &mut Tile, lo: &mut Tile) {
    for row in 0..rows {
        let values = &values[row * stride..][..columns];
        for half in [0, 16] {
            let values = &values[half.min(columns)..];
            // SAFETY: reads only the lanes that are inside `values`.
            let x = unsafe { _mm512_maskz_loadu_ps(lanes(values.len()), values.as_ptr()) };
            let (first, second) = split(x);
            let at = row * SIDE + half / 2;
            // SAFETY: the eight pairs at `at` are inside the tile: row < 16, half / 2 <= 8.
            unsafe {
                _mm256_storeu_si256(hi.0[at..].as_mut_ptr().cast(), _mm512_cvtepi32_epi16(first));
                _mm256_storeu_si256(lo.0[at..].as_mut_ptr().cast(), _mm512_cvtepi32_epi16(second));
            }
        }
    }
}

/// Row r of the tile: rows 2 r and 2 r + 1 of `values`, 16 columns of them, side by side; zeros beyond `rows`.
///
/// # Safety
/// Needs avx512f and avx512bf16.
#[target_feature(enable = "avx512f,avx512bf16")]
fn pairs_across(values: &[f32], stride: usize, rows: usize, columns: usize, hi: &mut Tile, lo: &mut Tile) {
    let load = |row: usize| {
        if row >= rows {
            return _mm512_setzero_ps();
        }
        let values = &values[row * stride..][..columns];
        // SAFETY: reads only the lanes that are inside `values`.
        unsafe { _mm512_maskz_loadu_ps(lanes(columns), values.as_ptr()) }
    };
    for row in 0..SIDE {
        let (first, second) = (split(load(2 * row)), split(load(2 * row + 1)));
        let join = |a, b| _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
        // SAFETY: the 16 pairs of a row are inside the tile: row < 16.
        unsafe {
            _mm512_storeu_si512(hi.0[row * SIDE..].as_mut_ptr().cast(), join(first.0, second.0));
            _mm512_storeu_si512(lo.0[row * SIDE..].as_mut_ptr().cast(), join(first.1, second.1));
        }
    }
}

/// `out` = `left` times `right`.
pub(super) fn multiply(left: Matrix, right: &Tiles, out: &mut [f32]) {
    assert_eq!(left.columns, right.inner, "the columns of the left must be the rows of the right");
    assert_eq!(out.len(), left.rows * right.outer, "out: expected {} rows of {}", left.rows, right.outer);
    if right.inner == 0 {
        out.fill(0.0);
    }
    LEFT.with_borrow_mut(|packed| {
        packed.left(left);
        // SAFETY: a right-hand side was packed, so there is AMX; nothing below configures tiles.
        let _configured = unsafe { Configured::new() };
        let (steps, columns) = (right.steps(), right.outer);
        for first in (0..steps).step_by(STEPS) {
            let count = (steps - first).min(STEPS);
            // Of two groups that lie one after the other in memory, from step `first` on.
            let pair = |tiles: &[Tile], side: usize| {
                let group = side / SIDE * steps;
                (tiles[(group + first) * 2..].as_ptr(), tiles[(group + steps + first) * 2..].as_ptr())
            };
            for column in (0..columns).step_by(2 * SIDE) {
                let b = pair(&right.tiles, column);
                let width = (columns - column).min(2 * SIDE);
                for row in (0..left.rows).step_by(2 * SIDE) {
                    let a = pair(&packed.tiles, row);
                    let height = (left.rows - row).min(2 * SIDE);
                    let begin = row * columns + column;
                    // SAFETY: both operands hold `count` steps of two groups there, as `pack` made them; the sums are 32 rows of 32, inside
                    // `out` or in the copy.
                    unsafe {
                        if (height, width) == (2 * SIDE, 2 * SIDE) {
                            sum_tiles(a, b, count, first > 0, out[begin..].as_mut_ptr(), columns);
                        } else {
                            let mut copy = [[0.0; 2 * SIDE]; 2 * SIDE];
                            for (r, copy) in copy[..height].iter_mut().enumerate().filter(|_| first > 0) {
                                copy[..width].copy_from_slice(&out[begin + r * columns..][..width]);
                            }
                            sum_tiles(a, b, count, first > 0, copy.as_mut_ptr().cast(), 2 * SIDE);
                            for (r, copy) in copy[..height].iter().enumerate() {
                                out[begin + r * columns..][..width].copy_from_slice(&copy[..width]);
                            }
                        }
                    }
                }
            }
        }
    });
}

/// Writes the product of 32 rows and 32 columns to the 32 x 32 at `out`, whose rows are `stride` apart, or adds it.
///
/// # Safety
/// Needs a live [`Configured`] on this thread; each pointer of `a` and `b` is to `steps` pairs of tiles.
#[inline]
unsafe fn sum_tiles(
    a: (*const Tile, *const Tile),
    b: (*const Tile, *const Tile),
    steps: usize,
    add: bool,
    out: *mut f32,
    stride: usize,
) {
    // SAFETY: each round reads two tiles (hi, lo) from each of the four pointers and moves them on by as much; the sums are
    // written, and read if added to, as four tiles of 16 rows of 64 bytes.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "test {add}, {add}",
            "jz 2f",
            "tileloadd tmm0, [{out} + {stride}]",
            "tileloadd tmm1, [{out} + {stride} + 64]",
            "tileloadd tmm2, [{out2} + {stride}]",
            "tileloadd tmm3, [{out2} + {stride} + 64]",
            "2:",
            "tileloadd tmm4, [{a} + {row}]",
            "tileloadd tmm6, [{b} + {row} + 1024]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{b2} + {row} + 1024]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{a2} + {row}]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "tileloadd tmm6, [{b} + {row}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{b2} + {row}]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "tileloadd tmm4, [{a} + {row} + 1024]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{a2} + {row} + 1024]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {a}, 2048",
            "add {a2}, 2048",
            "add {b}, 2048",
            "add {b2}, 2048",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{out} + {stride}], tmm0",
            "tilestored [{out} + {stride} + 64], tmm1",
            "tilestored [{out2} + {stride}], tmm2",
            "tilestored [{out2} + {stride} + 64], tmm3",
            a = inout(reg) a.0 => _,
            a2 = inout(reg) a.1 => _,
            b = inout(reg) b.0 => _,
            b2 = inout(reg) b.1 => _,
            steps = inout(reg) steps => _,
            row = in(reg) 64usize,
            add = in(reg) usize::from(add),
            out = in(reg) out,
            out2 = in(reg) out.add(SIDE * stride),
            stride = in(reg) 4 * stride,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}
