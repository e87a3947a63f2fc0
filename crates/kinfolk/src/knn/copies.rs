//! Sets in which some row has more than K copies.
//!
//! int8 scores cannot distinguish copies, so each row would have to be compared in float with all of its copies, which is
//! quadratic. Instead, the search runs on the distinct rows, and each neighbour in its lists is then expanded to its copies.
//!
//! The result is exact. Say the different rows are numbered in the order of their first copies, and a row m is not in the
//! list of row i because K others come before its like. Each of these K is more similar to i than m, or just as similar with a
//! first copy before that of m. So K rows other than i come before m in the order of lists too, which is by descending
//! similarity, then by id.
//!
//! Cost: one look at all rows, O(N log N) to sort their hashes, O(N K log K) to fill lists; 24 bytes for each row.

use super::KnnGraph;
use super::candidates::{Candidate, nearest_first};
use super::dot::dot;
use crate::graph::accumulate;
use crate::job::Store;
use crate::values::Values;
use crate::{Embeddings, Progress, Result};
use rayon::prelude::*;

/// Rows of one task.
const TASK: usize = 1024;

/// The different rows of a set, and where each of them occurs.
pub(super) struct Copies {
    /// The first copy of each different row, ascending.
    pub firsts: Values<u32>,
    /// The place in `firsts` of every row's own first copy.
    of_row: Values<u32>,
    /// The copies of different row u, ascending, are `rows[offsets[u]..offsets[u + 1]]`.
    offsets: Values<u64>,
    rows: Values<u32>,
}

impl Copies {
    /// The copies of a set, if there are more than `most` of some row.
    pub fn of(embeddings: &Embeddings, most: usize, progress: &dyn Progress) -> Result<Option<Self>> {
        let mut hashes: Vec<u64> = vec![0; embeddings.len()];
        hashes.par_chunks_mut(TASK).enumerate().for_each(|(task, hashes)| {
            if progress.cancelled() {
                return;
            }
            (task * TASK..).zip(hashes).for_each(|(row, slot)| *slot = hash(embeddings.row(row)));
        });
        progress.check()?;
        Ok(Self::of_hashes(embeddings, &hashes, most))
    }

    /// The same, from the hash of every row.
    pub fn of_hashes(embeddings: &Embeddings, hashes: &[u64], most: usize) -> Option<Self> {
        let n = embeddings.len();
        let mut hashes: Vec<(u64, u32)> = hashes.iter().copied().zip(0..).collect();
        hashes.par_sort_unstable();
        // Few sets have copies, and a row with too many of them has as many equal hashes.
        if most >= n || hashes.par_windows(most + 1).all(|run| run[0].0 != run[most].0) {
            return None;
        }
        let copies = Self::group(embeddings, &hashes);
        let too_many = copies.offsets.windows(2).any(|range| range[1] - range[0] > most as u64);
        too_many.then_some(copies)
    }

    /// Keeps them in the files of a job.
    pub fn write(&self, store: &Store) -> Result<()> {
        store.write("copies-firsts", &self.firsts)?;
        store.write("copies-of-row", &self.of_row)?;
        store.write("copies-offsets", &self.offsets)?;
        store.write("copies-rows", &self.rows)
    }

    /// Takes them from there.
    pub fn read(store: &Store) -> Result<Self> {
        Ok(Copies {
            firsts: store.array("copies-firsts")?,
            of_row: store.array("copies-of-row")?,
            offsets: store.array("copies-offsets")?,
            rows: store.array("copies-rows")?,
        })
    }

    /// Equal rows have equal hashes; rows of equal hashes are compared.
    fn group(embeddings: &Embeddings, hashes: &[(u64, u32)]) -> Self {
        let n = hashes.len();
        let mut first_of: Vec<u32> = vec![0; n];
        for run in hashes.chunk_by(|a, b| a.0 == b.0) {
            let mut firsts: Vec<u32> = Vec::with_capacity(1);
            for &(_, row) in run {
                let same = |first: &&u32| embeddings.row(**first as usize) == embeddings.row(row as usize);
                first_of[row as usize] = firsts.iter().find(same).copied().unwrap_or_else(|| {
                    firsts.push(row);
                    row
                });
            }
        }
        let firsts: Vec<u32> = (0..n as u32).filter(|&row| first_of[row as usize] == row).collect();
        let mut place = vec![0; n];
        firsts.iter().zip(0..).for_each(|(&first, at)| place[first as usize] = at);
        let of_row: Vec<u32> = first_of.iter().map(|&first| place[first as usize]).collect();
        let mut offsets = vec![0usize; firsts.len() + 1];
        of_row.iter().for_each(|&at| offsets[at as usize + 1] += 1);
        accumulate(&mut offsets);
        let mut next = offsets.clone();
        let mut rows = vec![0; n];
        for (row, &at) in of_row.iter().enumerate() {
            rows[next[at as usize]] = row as u32;
            next[at as usize] += 1;
        }
        let offsets: Vec<u64> = offsets.into_iter().map(|offset| offset as u64).collect();
        Copies { firsts: firsts.into(), of_row: of_row.into(), offsets: offsets.into(), rows: rows.into() }
    }

    /// The copies of a row, itself included.
    #[cfg(test)]
    pub fn of_row(&self, row: usize) -> &[u32] {
        self.copies(self.of_row[row])
    }

    fn copies(&self, different: u32) -> &[u32] {
        let [from, to] = [0, 1].map(|next| self.offsets[different as usize + next] as usize);
        &self.rows[from..to]
    }

    /// The graph of the `k` nearest of all rows, from that of the different ones with as many, or with all others.
    pub fn fill(
        &self,
        graph: &KnnGraph,
        embeddings: &Embeddings,
        k: usize,
        progress: &dyn Progress,
    ) -> Result<KnnGraph> {
        let n = self.of_row.len();
        let (mut ids, mut similarities) = (vec![0; n * k], vec![0.0; n * k]);
        let lists = ids.par_chunks_mut(TASK * k).zip(similarities.par_chunks_mut(TASK * k));
        lists.enumerate().for_each_init(Vec::new, |list, (task, (ids, similarities))| {
            if progress.cancelled() {
                return;
            }
            let rows = ids.chunks_exact_mut(k).zip(similarities.chunks_exact_mut(k));
            for (row, (ids, similarities)) in (task * TASK..).zip(rows) {
                self.list(graph, embeddings, row, k, list);
                for ((id, similarity), found) in ids.iter_mut().zip(similarities).zip(&*list) {
                    (*id, *similarity) = (found.id, found.score);
                }
            }
        });
        progress.check()?;
        Ok(KnnGraph::of_valid_parts(n, k, ids, similarities))
    }

    /// The `k` nearest of `row`.
    pub fn list(
        &self,
        graph: &KnnGraph,
        embeddings: &Embeddings,
        row: usize,
        k: usize,
        list: &mut Vec<Candidate>,
    ) {
        let own = self.of_row[row];
        let x = embeddings.row(row);
        let own = Candidate { id: own, score: dot(x, x) };
        let (ids, similarities) = graph.neighbours(own.id as usize);
        let others = ids.iter().zip(similarities).map(|(&id, &score)| Candidate { id, score });
        // By rounding, another row may be more similar than a copy.
        let before = others.clone().take_while(|other| other.score.total_cmp(&own.score).is_gt());
        let after = others.clone().skip_while(|other| other.score.total_cmp(&own.score).is_gt());
        list.clear();
        // Where those of one similarity begin, which are by id, whichever row they are copies of.
        let mut equal = 0;
        for different in before.chain([own]).chain(after) {
            if list.last().is_some_and(|last| last.score.total_cmp(&different.score).is_ne()) {
                list[equal..].sort_unstable_by(nearest_first);
                equal = list.len();
                if list.len() >= k {
                    break;
                }
            }
            let copies = self.copies(different.id).iter().filter(|&&copy| copy as usize != row);
            list.extend(copies.take(k).map(|&id| Candidate { id, score: different.score }));
        }
        list[equal..].sort_unstable_by(nearest_first);
        list.truncate(k);
    }
}

/// Equal rows have equal hashes, and 0 equals -0.
pub(crate) fn hash(row: &[f32]) -> u64 {
    let bits = |value: f32| u64::from((value + 0.0).to_bits());
    row.chunks(2).fold(row.len() as u64, |hash, pair| {
        let pair = bits(pair[0]) << 32 | pair.get(1).map_or(0, |&value| bits(value));
        let product = u128::from(hash ^ pair ^ 0x2545_F491_4F6C_DD1D) * 0x9E37_79B9_7F4A_7C15;
        (product >> 64) as u64 ^ product as u64
    })
}
