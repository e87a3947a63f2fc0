//! Rows as int8, with a proven bound on what that costs.
//!
//! Row x is stored as q = round(x / alpha), alpha = max|x| / 127, so x = alpha q + r with a small rest r.
//! For unit rows x_i, x_j
//!
//! ```text
//! |<x_i, x_j> - alpha_i alpha_j <q_i, q_j>| <= |r_i| + |r_j| + |r_i| |r_j|
//! ```
//!
//! by Cauchy-Schwarz. <q_i, q_j> is integer arithmetic: every kernel, on every machine, gives the same number.
//! The bound is what lets the exact search use int8 and still be exact (see `candidates`).

use super::Rows;
use super::kernel::{PANEL, STEP};
use crate::values::Values;
use rayon::prelude::*;

/// int8 rows padded with zeros to a multiple of [`STEP`] columns.
pub(super) struct Codes {
    pub width: usize,
    pub bytes: Values<i8>,
    /// alpha of each row.
    pub scale: Values<f32>,
    /// |r| of each row, rounded up.
    pub rest: Values<f32>,
    /// Sum of each row's codes, which the VNNI kernel needs (see there).
    pub sum: Values<i32>,
}

impl Codes {
    /// Codes of `rows[order[0]], rows[order[1]], ...`
    pub fn quantise(rows: Rows, order: &[u32]) -> Self {
        Self::from_rows(rows.dim(), order.len(), |i| rows.row(order[i] as usize))
    }

    /// Codes of any `n` rows of unit length.
    pub fn from_rows<'a>(dim: usize, n: usize, row: impl Fn(usize) -> &'a [f32] + Sync) -> Self {
        let width = dim.next_multiple_of(STEP);
        let (mut bytes, mut sum) = (vec![0; n * width], vec![0; n]);
        let (mut scale, mut rest) = (vec![0.0; n], vec![0.0; n]);
        let places = scale.par_iter_mut().zip(&mut rest).zip(&mut sum);
        bytes.par_chunks_mut(width).zip(places).enumerate().with_min_len(256).for_each(
            |(i, (bytes, ((scale, rest), sum)))| {
                (*scale, *rest) = quantise_row(row(i), bytes);
                *sum = bytes.iter().map(|&b| b as i32).sum();
            },
        );
        Codes { width, bytes: bytes.into(), scale: scale.into(), rest: rest.into(), sum: sum.into() }
    }

    pub fn len(&self) -> usize {
        self.scale.len()
    }

    pub fn row(&self, i: usize) -> &[i8] {
        &self.bytes[i * self.width..][..self.width]
    }
}

fn quantise_row(row: &[f32], bytes: &mut [i8]) -> (f32, f32) {
    let largest = row.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    let scale = (largest / 127.0).max(f32::MIN_POSITIVE);
    let inverse = 1.0 / scale;
    let mut rest = 0.0f32;
    for (&value, byte) in row.iter().zip(bytes) {
        // Adding and taking away 1.5 * 2^23 rounds to the nearest integer, and vectorises.
        let rounded = (value * inverse + 12_582_912.0) - 12_582_912.0;
        *byte = rounded as i8;
        let r = value - scale * rounded;
        rest += r * r;
    }
    (scale, rest.sqrt() * 1.001 + 1e-7)
}

/// Rows laid out as the right-hand side of a tile product: panels of [`PANEL`] rows, within a panel groups of
/// four columns, within a group the rows one after the other. The last panel of each segment is padded with
/// rows that score NaN.
pub(super) struct Packed {
    pub width: usize,
    pub bytes: Values<i8>,
    /// What the rows are called, `u32::MAX` for padding.
    pub ids: Values<u32>,
    pub scale: Values<f32>,
}

impl Packed {
    /// Packs each segment of `codes` (ranges that follow one another) so that it starts at a panel of its own;
    /// returns the first panel of each segment, and at the end the number of panels.
    /// A row's id is what `id` makes of its place in `codes`.
    pub fn pack(
        codes: &Codes,
        segments: &[std::ops::Range<usize>],
        id: impl Fn(usize) -> u32,
    ) -> (Self, Vec<usize>) {
        const PADDING: usize = usize::MAX;
        let mut first_panel = Vec::with_capacity(segments.len() + 1);
        let mut places = Vec::new();
        first_panel.push(0);
        for segment in segments {
            places.extend(segment.clone());
            places.resize(places.len().next_multiple_of(PANEL), PADDING);
            first_panel.push(places.len() / PANEL);
        }
        let mut bytes = vec![0; places.len() * codes.width];
        bytes.par_chunks_mut(PANEL * codes.width).zip(places.par_chunks(PANEL)).for_each(
            |(panel, places)| {
                for (lane, &place) in places.iter().enumerate().filter(|(_, place)| **place != PADDING) {
                    for (group, four) in codes.row(place).chunks_exact(4).enumerate() {
                        panel[group * 4 * PANEL + 4 * lane..][..4].copy_from_slice(four);
                    }
                }
            },
        );
        let scale = |&place: &usize| codes.scale.get(place).copied().unwrap_or(f32::NAN);
        let scale: Vec<f32> = places.iter().map(scale).collect();
        let id = |&place: &usize| if place == PADDING { u32::MAX } else { id(place) };
        let ids: Vec<u32> = places.iter().map(id).collect();
        (
            Packed { width: codes.width, bytes: bytes.into(), ids: ids.into(), scale: scale.into() },
            first_panel,
        )
    }

    /// All rows as one segment, called by their places.
    pub fn of_rows(codes: &Codes) -> Self {
        Self::pack(codes, std::slice::from_ref(&(0..codes.len())), |place| place as u32).0
    }

    pub fn all(&self) -> PackedPanels<'_> {
        self.panels(0..self.ids.len() / PANEL)
    }

    pub fn panels(&self, range: std::ops::Range<usize>) -> PackedPanels<'_> {
        PackedPanels {
            bytes: &self.bytes[range.start * PANEL * self.width..range.end * PANEL * self.width],
            ids: &self.ids[range.start * PANEL..range.end * PANEL],
            scale: &self.scale[range.start * PANEL..range.end * PANEL],
        }
    }
}

/// Some consecutive panels of a [`Packed`].
#[derive(Clone, Copy)]
pub(super) struct PackedPanels<'a> {
    pub bytes: &'a [i8],
    pub ids: &'a [u32],
    pub scale: &'a [f32],
}
