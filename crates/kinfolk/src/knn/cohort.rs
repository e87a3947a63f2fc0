//! The cosines of all rows with a few chosen ones, by integer products.
//!
//! A row is represented by its code and the code of the remainder: x = a q + b p, with an error of about 1/30,000 of its largest
//! value. Of the four products of two such rows, that of both remainders is left out, and for rough cosines also the two with one
//! remainder. The others are the tile products of the search, the same numbers on every machine. One pass over all rows costs
//! little more than reading them.

use super::codes::{Codes, Packed};
use super::kernel::{Kernel, Left, PANEL};
use crate::Embeddings;

/// Chosen rows: their codes, and those of the rests.
pub(crate) struct Cohort {
    packed: [Packed; 2],
    count: usize,
}

impl Cohort {
    /// Rows to take at a time: their cosines with some hundred others stay in cache.
    pub(crate) const BLOCK: usize = 64;

    pub(crate) fn of(embeddings: &Embeddings, ids: &[u32]) -> Self {
        Self::pack(code(embeddings.dim(), ids.len(), |at| embeddings.row(ids[at] as usize)))
    }

    /// Any vectors of at most unit length, one after the other.
    pub(crate) fn of_vectors(vectors: &[f32], dim: usize) -> Self {
        Self::pack(code(dim, vectors.len() / dim, |at| &vectors[at * dim..][..dim]))
    }

    fn pack(codes: [Codes; 2]) -> Self {
        let count = codes[0].len();
        Self { packed: codes.map(|codes| Packed::of_rows(&codes)), count }
    }

    /// Fills `out` with the cosines of `count` rows from `first` on: for each row one with every chosen row, in order.
    pub(crate) fn cosines(&self, embeddings: &Embeddings, first: usize, count: usize, out: &mut Vec<f32>) {
        self.products(embeddings, first, count, &[(0, 0), (0, 1), (1, 0)], out);
    }

    /// As [`Cohort::cosines`], for a third of the cost and with errors of about 0.005.
    pub(crate) fn rough_cosines(
        &self,
        embeddings: &Embeddings,
        first: usize,
        count: usize,
        out: &mut Vec<f32>,
    ) {
        self.products(embeddings, first, count, &[(0, 0)], out);
    }

    /// The sums of these products of codes and remainders.
    fn products(
        &self,
        embeddings: &Embeddings,
        first: usize,
        count: usize,
        products: &[(usize, usize)],
        out: &mut Vec<f32>,
    ) {
        let codes = code(embeddings.dim(), count, |at| embeddings.row(first + at));
        let left = |codes: &Codes| {
            let mut left = Left::new(codes.width);
            left.gather(codes, 0..count);
            left
        };
        let lefts = codes.each_ref().map(left);
        let chosen = self.count;
        out.clear();
        out.resize(count * chosen, 0.0);
        for &(left, right) in products {
            let (left, right) = (&lefts[left], self.packed[right].all());
            Kernel::default().for_each_tile(left, right.bytes, |row, panel, panels, tile| {
                let from = panel * PANEL;
                let columns = (panels * PANEL).min(chosen - from);
                for (row, products) in (row..count).zip(&tile.0) {
                    let scale = left.scale[row];
                    let out = &mut out[row * chosen + from..][..columns];
                    for ((cosine, &product), &other) in out.iter_mut().zip(products).zip(&right.scale[from..])
                    {
                        *cosine += product as f32 * scale * other;
                    }
                }
            });
        }
    }
}

/// The codes of some rows, and the codes of what those leave.
fn code<'a>(dim: usize, count: usize, row: impl Fn(usize) -> &'a [f32] + Sync) -> [Codes; 2] {
    let codes = Codes::from_rows(dim, count, &row);
    let mut rests = Vec::with_capacity(count * dim);
    for at in 0..count {
        let scale = codes.scale[at];
        rests.extend(row(at).iter().zip(codes.row(at)).map(|(value, &code)| value - scale * f32::from(code)));
    }
    let rests = Codes::from_rows(dim, count, |at| &rests[at * dim..][..dim]);
    [codes, rests]
}

#[cfg(test)]
mod tests {
    use super::super::dot;
    use super::*;
    use crate::testing::embeddings_and_graph;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cosines_differ_by_no_more_than_the_rests_of_the_rests((embeddings, _) in embeddings_and_graph()) {
            let n = embeddings.len();
            let [codes, rests] = code(embeddings.dim(), n, |i| embeddings.row(i));
            let chosen: Vec<u32> = (0..n as u32).rev().step_by(2).collect();
            let (first, mut found) = (n / 3, Vec::new());
            let cohort = Cohort::of(&embeddings, &chosen);
            cohort.cosines(&embeddings, first, n - first, &mut found);
            let mut rough = Vec::new();
            cohort.rough_cosines(&embeddings, first, n - first, &mut rough);
            prop_assert_eq!([found.len(), rough.len()], [(n - first) * chosen.len(); 2]);
            for (at, (found, rough)) in found.into_iter().zip(rough).enumerate() {
                let (i, j) = (first + at / chosen.len(), chosen[at % chosen.len()] as usize);
                let exact = dot(embeddings.row(i), embeddings.row(j));
                let both = codes.rest[i] * codes.rest[j];
                let bound = rests.rest[i] + rests.rest[j] + both + 1e-6;
                prop_assert!((found - exact).abs() <= bound && bound < 1e-3, "{found} {exact} {bound}");
                let bound = codes.rest[i] + codes.rest[j] + both + 1e-6;
                prop_assert!((rough - exact).abs() <= bound, "{rough} {exact} {bound}");
            }
        }
    }
}
