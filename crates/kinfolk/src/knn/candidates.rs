//! The best candidates of each row so far, and the threshold that a new one must reach.
//!
//! Scores are uncertain by e (see `codes`). Let v_K be the K-th best score of a row. At least K candidates have
//! a similarity of v_K - e or more, so one that scores below v_K - 2e cannot be among the true K nearest: it is
//! dropped, and the rest are computed exactly at the end. With e the proven bound, the search is exact; with a
//! smaller e it is faster and nearly so.
//!
//! When too many lie within 2e to fit the buffer (duplicates, ties everywhere), they are computed exactly at
//! once and the K best are kept with the score `exact + e`, for which the same argument holds.

/// A possible neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Candidate {
    pub score: f32,
    pub id: u32,
}

/// Descending score, then ascending id: the order of every neighbour list.
pub(super) fn nearest_first(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.score.total_cmp(&a.score).then(a.id.cmp(&b.id))
}

/// Buffers for a block of rows.
pub(super) struct Candidates {
    keep: usize,
    capacity: usize,
    /// e of each row.
    uncertainty: Vec<f32>,
    threshold: Vec<f32>,
    len: Vec<u32>,
    entries: Vec<Candidate>,
}

impl Candidates {
    /// Buffers for as many rows as there are uncertainties, to find the best `keep` of each.
    pub fn new(keep: usize, uncertainty: Vec<f32>) -> Self {
        let rows = uncertainty.len();
        let capacity = (3 * keep + 16).next_multiple_of(8);
        Candidates {
            keep,
            capacity,
            threshold: vec![f32::NEG_INFINITY; rows],
            uncertainty,
            len: vec![0; rows],
            entries: vec![Candidate::default(); rows * capacity],
        }
    }

    /// What a new candidate of each row must score.
    pub fn thresholds(&self) -> &[f32] {
        &self.threshold
    }

    /// Adds a candidate to `row`. `exact` gives the true similarity of the row and an id.
    #[inline]
    pub fn push(&mut self, row: usize, candidate: Candidate, exact: impl Fn(u32) -> f32) {
        let len = self.len[row] as usize;
        self.entries[row * self.capacity + len] = candidate;
        self.len[row] += 1;
        if len + 1 == self.capacity {
            self.make_room(row, exact);
        }
    }

    #[cold]
    fn make_room(&mut self, row: usize, exact: impl Fn(u32) -> f32) {
        self.drop_hopeless(row);
        if self.len[row] as usize > self.capacity - self.keep / 2 - 8 {
            let best = self.verify(row, exact).to_vec();
            let e = self.uncertainty[row];
            for (entry, best) in self.entries[row * self.capacity..].iter_mut().zip(&best) {
                *entry = Candidate { score: best.score + e, id: best.id };
            }
            self.len[row] = best.len() as u32;
            self.drop_hopeless(row);
        }
    }

    fn drop_hopeless(&mut self, row: usize) {
        let entries = &mut self.entries[row * self.capacity..][..self.len[row] as usize];
        if entries.len() <= self.keep {
            if entries.len() == self.keep {
                let worst = entries.iter().fold(f32::INFINITY, |m, c| m.min(c.score));
                self.threshold[row] = worst - 2.0 * self.uncertainty[row];
            }
            return;
        }
        let (_, last, _) = entries.select_nth_unstable_by(self.keep - 1, nearest_first);
        let threshold = last.score - 2.0 * self.uncertainty[row];
        let mut len = self.keep;
        for i in self.keep..entries.len() {
            if entries[i].score >= threshold {
                entries.swap(len, i);
                len += 1;
            }
        }
        self.threshold[row] = threshold;
        self.len[row] = len as u32;
    }

    /// The `keep`-th best score of `row` so far; minus infinity while there are fewer.
    pub fn last_score(&mut self, row: usize) -> f32 {
        self.drop_hopeless(row);
        self.threshold[row] + 2.0 * self.uncertainty[row]
    }

    /// The true nearest `keep` of the candidates of `row`, with their true similarities, nearest first.
    pub fn finish(&mut self, row: usize, exact: impl Fn(u32) -> f32) -> &[Candidate] {
        self.drop_hopeless(row);
        self.verify(row, exact)
    }

    fn verify(&mut self, row: usize, exact: impl Fn(u32) -> f32) -> &[Candidate] {
        let entries = &mut self.entries[row * self.capacity..][..self.len[row] as usize];
        for entry in entries.iter_mut() {
            entry.score = exact(entry.id);
        }
        entries.sort_unstable_by(nearest_first);
        &entries[..entries.len().min(self.keep)]
    }

    /// The best `keep` of `row` by score alone, best first.
    pub fn by_score(&mut self, row: usize) -> &[Candidate] {
        let entries = &mut self.entries[row * self.capacity..][..self.len[row] as usize];
        entries.sort_unstable_by(nearest_first);
        &entries[..entries.len().min(self.keep)]
    }
}
