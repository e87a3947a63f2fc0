//! The common neighbours of the two ends of an edge, found by a table of the ranks of the neighbours of one end.
//!
//! Cost: K lookups in the table for each edge, 16 at a time with AVX-512; then a dozen operations for each common neighbour.

/// In the table: the row whose table it is.
pub(super) const ITSELF: u32 = u32::MAX;
/// Common neighbours are counted within this many nearest neighbours of both ends.
pub(super) const DEPTHS: [u32; 4] = [5, 10, 20, 40];

/// The common neighbours of an edge.
pub(super) struct Matches {
    /// The table entry of each, and its rank at the other end; entries beyond `count` are undefined.
    found: Vec<u32>,
    places: Vec<u32>,
    count: usize,
}

/// Entries that are looked up together.
const LANES: usize = 16;

impl Matches {
    /// For rows of `k` neighbours.
    pub(super) fn room_for(k: usize) -> Self {
        Self { found: vec![0; k + LANES], places: vec![0; k + LANES], count: 0 }
    }

    /// Looks up the neighbours of a row in a table that has 0 for those that are not in it.
    pub(super) fn find(&mut self, numbers: &[u32], table: &[u32]) {
        assert!(numbers.len() + LANES <= self.found.len(), "more neighbours than there is room for");
        debug_assert!(numbers.iter().all(|&number| (number as usize) < table.len()));
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: just detected; room for 16 more than there are neighbours was just asserted.
            unsafe { self.find_with_avx512(numbers, table) };
            return;
        }
        self.find_one_by_one(numbers, table);
    }

    /// Branch-free, because a branch would be mispredicted often.
    fn find_one_by_one(&mut self, numbers: &[u32], table: &[u32]) {
        self.count = 0;
        for (place, &number) in (0..).zip(numbers) {
            let found = table[number as usize];
            (self.found[self.count], self.places[self.count]) = (found, place);
            self.count += usize::from(found != 0);
        }
    }

    /// # Safety
    /// There is room for 16 more than `numbers`.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn find_with_avx512(&mut self, numbers: &[u32], table: &[u32]) {
        use std::arch::x86_64::*;
        self.count = 0;
        // Places are signed to the processor.
        let length = _mm512_set1_epi32(table.len().min(i32::MAX as usize) as i32);
        let mut places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        for chunk in numbers.chunks(LANES) {
            let here: __mmask16 = u16::MAX >> (LANES - chunk.len());
            let none = _mm512_setzero_si512();
            // SAFETY: as many numbers are read as there are, and only places that the table has.
            let found = unsafe {
                let numbers = _mm512_maskz_loadu_epi32(here, chunk.as_ptr().cast());
                let known = _mm512_mask_cmplt_epu32_mask(here, numbers, length);
                _mm512_mask_i32gather_epi32::<4>(none, known, numbers, table.as_ptr().cast())
            };
            let listed = _mm512_test_epi32_mask(found, found);
            // SAFETY: `count` is at most the numbers before this chunk, and there is room for 16 more than numbers.
            unsafe {
                let (to, at) =
                    (self.found.as_mut_ptr().add(self.count), self.places.as_mut_ptr().add(self.count));
                _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi32(listed, found));
                _mm512_storeu_si512(at.cast(), _mm512_maskz_compress_epi32(listed, places));
            }
            self.count += listed.count_ones() as usize;
            places = _mm512_add_epi32(places, _mm512_set1_epi32(LANES as i32));
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u32, usize)> {
        self.found[..self.count].iter().zip(&self.places).map(|(&found, &place)| (found, place as usize))
    }
}

/// Statistics of the common neighbours of two ends.
pub(super) struct Common {
    /// How many are among the first of both ends, by [`DEPTHS`].
    pub(super) shallow: [u32; DEPTHS.len()],
    pub(super) all: u32,
    pub(super) mass: [f32; 2],
    pub(super) least_mass: f32,
    pub(super) best: [f32; 3],
    pub(super) listed: u32,
    /// The rank of this end at the other, K if it is not a neighbour.
    pub(super) back: usize,
}

impl Common {
    /// Of row `one`, whose table it was, and `other`, whose neighbours have these `numbers`: z of a neighbour, and its share p of the
    /// mass of the row. `arrivals` says of each number how many list it.
    pub(super) fn of(
        matches: &Matches,
        one: impl Fn(usize) -> (f32, f32),
        other: impl Fn(usize) -> (f32, f32),
        numbers: &[u32],
        arrivals: &[u32],
    ) -> Self {
        let mut shallow = [0; DEPTHS.len()];
        let (mut mass, mut least_mass, mut listed) = ([0.0; 2], 0.0, 0);
        let [mut first, mut second, mut third] = [f32::MIN; 3];
        let mut back = numbers.len();
        for (found, b) in matches.iter() {
            if found == ITSELF {
                back = b;
                continue;
            }
            let a = found as usize - 1;
            let depth = a.max(b) as u32;
            shallow.iter_mut().zip(DEPTHS).for_each(|(count, least)| *count += u32::from(depth < least));
            let ((z_a, mass_a), (z_b, mass_b)) = (one(a), other(b));
            mass[0] += mass_a;
            mass[1] += mass_b;
            least_mass += smaller(mass_a, mass_b);
            listed += arrivals[numbers[b] as usize];
            // The three largest so far, branch-free.
            let weaker = smaller(z_a, z_b);
            let (weaker, _) = (smaller(first, weaker), first = larger(first, weaker));
            let (weaker, _) = (smaller(second, weaker), second = larger(second, weaker));
            third = larger(third, weaker);
        }
        let all = matches.count as u32 - u32::from(back < numbers.len());
        Self { shallow, all, mass, least_mass, best: [first, second, third], listed, back }
    }
}

/// [`f32::max`] and [`f32::min`] of numbers, in one instruction.
#[inline]
pub(super) fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[inline]
pub(super) fn smaller(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sixteen_at_a_time_find_what_one_by_one_finds(
            table in proptest::collection::vec(prop_oneof![Just(0u32), 1u32..90, Just(ITSELF)], 1..200),
            picks in proptest::collection::vec(any::<proptest::sample::Index>(), 0..90),
        ) {
            let numbers: Vec<u32> = picks.iter().map(|pick| pick.index(table.len()) as u32).collect();
            let [mut fast, mut slow] = [0; 2].map(|_| Matches::room_for(numbers.len()));
            fast.find(&numbers, &table);
            slow.find_one_by_one(&numbers, &table);
            prop_assert!(fast.iter().eq(slow.iter()));
        }
    }
}
