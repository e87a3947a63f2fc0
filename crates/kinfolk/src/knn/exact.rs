//! Exact neighbours: every pair of blocks is multiplied once and serves both its sides.
//!
//! N^2 D / 2 integer products choose candidates whose float similarities are then computed (see `candidates`
//! for why nothing is missed). Blocks meet as in a round-robin tournament, so the pairs of a round share no
//! block and run in parallel; memory is O(N K).

use super::Rows;
use super::candidates::{Candidate, Candidates};
use super::codes::{Codes, Packed};
use super::dot::dot;
use super::kernel::{Kernel, Left, PANEL, ROWS};
use super::scan::{Sides, scan};
use crate::{KnnGraph, Progress, Result};
use rayon::prelude::*;
use std::sync::Mutex;

/// Rows of a block: its int8 codes and candidate buffers stay in the second-level cache.
pub(super) const BLOCK: usize = 1024;

/// The exact graph of the `k` nearest.
pub(super) fn exact(rows: Rows, k: usize, kernel: Kernel, progress: &dyn Progress) -> Result<KnnGraph> {
    let n = rows.len();
    let order: Vec<u32> = (0..n as u32).collect();
    let codes = Codes::quantise(rows, &order);
    let segments: Vec<_> = (0..n).step_by(BLOCK).map(|start| start..(start + BLOCK).min(n)).collect();
    let (packed, first_panel) = Packed::pack(&codes, &segments, |i| i as u32);
    let worst_rest = codes.rest.iter().fold(0.0f32, |m, &r| m.max(r));
    let blocks: Vec<Mutex<Candidates>> = segments
        .iter()
        .map(|s| {
            Mutex::new(Candidates::new(
                k,
                s.clone().map(|i| bound(codes.rest[i], worst_rest, rows.dim())).collect(),
            ))
        })
        .collect();

    let rounds = tournament(segments.len());
    progress.begin("exact neighbours", rounds.len() as u64);
    for round in rounds {
        round.par_iter().for_each_init(
            || Meeting::new(codes.width),
            |meeting, &(a, b)| {
                if progress.cancelled() {
                    return;
                }
                let panels = packed.panels(first_panel[b]..first_panel[b + 1]);
                meeting.left.gather(&codes, segments[a].clone());
                let (row0, column0) = (segments[a].start, segments[b].start);
                let exact = |i: usize, j: u32| dot(rows.row(i), rows.row(j as usize));
                let mut for_a = lock(&blocks[a]);
                let mut for_b = (a != b).then(|| lock(&blocks[b]));
                meeting.thresholds(&for_a, for_b.as_deref());
                kernel.for_each_tile(&meeting.left, panels.bytes, |row, panel, count, tile| {
                    let column = panel * PANEL;
                    let sides = Sides {
                        row_scale: &meeting.left.scale[row..],
                        row_threshold: &meeting.row_threshold[row..],
                        column_scale: &panels.scale[column..],
                        column_threshold: (a != b).then(|| &meeting.column_threshold[column..]),
                    };
                    scan(kernel, tile, count, &sides, &mut meeting.for_rows, &mut meeting.for_columns);
                    for hit in meeting.for_rows.drain(..) {
                        let (r, c) = (row + hit.row as usize, column + hit.column as usize);
                        if row0 + r != column0 + c {
                            for_a.push(r, Candidate { score: hit.score, id: (column0 + c) as u32 }, |j| {
                                exact(row0 + r, j)
                            });
                            meeting.row_threshold[r] = for_a.thresholds()[r];
                        }
                    }
                    if let Some(for_b) = &mut for_b {
                        for hit in meeting.for_columns.drain(..) {
                            let (r, c) = (row + hit.row as usize, column + hit.column as usize);
                            for_b.push(c, Candidate { score: hit.score, id: (row0 + r) as u32 }, |i| {
                                exact(column0 + c, i)
                            });
                            meeting.column_threshold[c] = for_b.thresholds()[c];
                        }
                    }
                });
            },
        );
        progress.check()?;
        progress.advance(1);
    }

    let mut ids = vec![0; n * k];
    let mut similarities = vec![0.0; n * k];
    progress.begin("similarities", n as u64);
    ids.par_chunks_mut(BLOCK * k)
        .zip(similarities.par_chunks_mut(BLOCK * k))
        .zip(&blocks)
        .enumerate()
        .for_each(|(b, ((ids, similarities), block))| {
            if progress.cancelled() {
                return;
            }
            let mut block = lock(block);
            for (r, (ids, similarities)) in
                ids.chunks_exact_mut(k).zip(similarities.chunks_exact_mut(k)).enumerate()
            {
                let row = rows.row(b * BLOCK + r);
                let best = block.finish(r, |j| dot(row, rows.row(j as usize)));
                for ((id, similarity), best) in ids.iter_mut().zip(similarities).zip(best) {
                    (*id, *similarity) = (best.id, best.score);
                }
            }
            progress.advance((ids.len() / k) as u64);
        });
    progress.check()?;
    Ok(KnnGraph::of_valid_parts(n, k, ids, similarities))
}

/// The proven bound on the error of a score of a row with rest `rest` (see `codes`), plus what rounding adds.
pub(super) fn bound(rest: f32, worst_rest: f32, dim: usize) -> f32 {
    rest + worst_rest + rest * worst_rest + 2e-6 + dim as f32 * 6e-8
}

/// What one thread needs while two blocks meet.
struct Meeting {
    left: Left,
    row_threshold: Vec<f32>,
    column_threshold: Vec<f32>,
    for_rows: Vec<super::scan::Hit>,
    for_columns: Vec<super::scan::Hit>,
}

impl Meeting {
    fn new(width: usize) -> Self {
        Meeting {
            left: Left::new(width),
            row_threshold: Vec::new(),
            column_threshold: Vec::new(),
            for_rows: Vec::new(),
            for_columns: Vec::new(),
        }
    }

    fn thresholds(&mut self, rows: &Candidates, columns: Option<&Candidates>) {
        fill(&mut self.row_threshold, rows, ROWS);
        if let Some(columns) = columns {
            fill(&mut self.column_threshold, columns, PANEL);
        }
        fn fill(into: &mut Vec<f32>, of: &Candidates, multiple: usize) {
            into.clear();
            into.extend_from_slice(of.thresholds());
            into.resize(into.len().next_multiple_of(multiple), f32::INFINITY);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Rounds in which each pair of `n` players, and each player with itself, meets exactly once, and no player
/// meets two in one round (but for itself in the first).
pub(super) fn tournament(n: usize) -> Vec<Vec<(usize, usize)>> {
    let mut rounds = vec![(0..n).map(|i| (i, i)).collect()];
    let even = n + n % 2;
    for round in 0..even.saturating_sub(1) {
        let seat = |i: usize| if i == 0 { even - 1 } else { (round + i - 1) % (even - 1) };
        let pairs = (0..even / 2).map(|i| (seat(i), seat(even - 1 - i)));
        rounds.push(pairs.map(|(a, b)| (a.min(b), a.max(b))).filter(|&(_, b)| b < n).collect());
    }
    rounds
}
