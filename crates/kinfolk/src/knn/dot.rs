//! The similarity of two unit rows, always summed in the same order: whichever search found a pair, and from
//! whichever end, its similarity is the same bits.

const LANES: usize = 16;

/// Rows that [`dots`] takes at a time: one sum waits for its last addition, four keep the processor busy.
const AT_ONCE: usize = 4;

/// Dot product in 16 lanes, without fused multiply-add, so that SSE2, AVX2 and AVX-512 agree to the bit.
#[inline(always)]
fn in_lanes(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a_chunks.zip(b_chunks) {
        for l in 0..LANES {
            sums[l] += x[l] * y[l];
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            sums[l] += sums[l + half];
        }
        half /= 2;
    }
    sums[0] + rest
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn with_avx512(a: &[f32], b: &[f32]) -> f32 {
    in_lanes(a, b)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(a: &[f32], b: &[f32]) -> f32 {
    in_lanes(a, b)
}

/// The same for several rows `b` with one `a`. Written out, or the compiler would keep the sums in memory.
#[inline(always)]
fn several_in_lanes(a: &[f32], [b0, b1, b2, b3]: [&[f32]; AT_ONCE]) -> [f32; AT_ONCE] {
    let mut sums = [[0.0f32; LANES]; AT_ONCE];
    let [s0, s1, s2, s3] = &mut sums;
    let (x, rest) = a.as_chunks::<LANES>();
    let others = b0.as_chunks::<LANES>().0.iter().zip(b1.as_chunks::<LANES>().0);
    let others = others.zip(b2.as_chunks::<LANES>().0.iter().zip(b3.as_chunks::<LANES>().0));
    for (x, ((y0, y1), (y2, y3))) in x.iter().zip(others) {
        for l in 0..LANES {
            s0[l] += x[l] * y0[l];
            s1[l] += x[l] * y1[l];
            s2[l] += x[l] * y2[l];
            s3[l] += x[l] * y3[l];
        }
    }
    let whole = a.len() - rest.len();
    let mut out = [0.0; AT_ONCE];
    for ((out, sums), b) in out.iter_mut().zip(&mut sums).zip([b0, b1, b2, b3]) {
        let rest: f32 = rest.iter().zip(&b[whole..]).map(|(x, y)| x * y).sum();
        let mut half = LANES / 2;
        while half > 0 {
            for l in 0..half {
                sums[l] += sums[l + half];
            }
            half /= 2;
        }
        *out = sums[0] + rest;
    }
    out
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn several_with_avx512(a: &[f32], b: [&[f32]; AT_ONCE]) -> [f32; AT_ONCE] {
    several_in_lanes(a, b)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn several_with_avx2(a: &[f32], b: [&[f32]; AT_ONCE]) -> [f32; AT_ONCE] {
    several_in_lanes(a, b)
}

/// The dot products of `row` with each of `rows`, which follow each other; bit for bit those of [`dot`].
pub(crate) fn dots(row: &[f32], rows: &[f32], mut each: impl FnMut(usize, f32)) {
    let dim = row.len();
    let several = |b: [&[f32]; AT_ONCE]| {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: just detected.
                return unsafe { several_with_avx512(row, b) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: just detected.
                return unsafe { several_with_avx2(row, b) };
            }
        }
        several_in_lanes(row, b)
    };
    let blocks = rows.chunks_exact(AT_ONCE * dim);
    let last = blocks.len() * AT_ONCE;
    let rest = blocks.remainder();
    for (block, b) in blocks.enumerate() {
        let products = several(std::array::from_fn(|at| &b[at * dim..][..dim]));
        for (at, product) in products.into_iter().enumerate() {
            each(block * AT_ONCE + at, product);
        }
    }
    for (at, b) in rest.chunks_exact(dim).enumerate() {
        each(last + at, dot(row, b));
    }
}

/// The dot product of two rows of equal length.
#[inline]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: just detected.
            return unsafe { with_avx512(a, b) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: just detected.
            return unsafe { with_avx2(a, b) };
        }
    }
    in_lanes(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn several_at_once_are_the_same_bits(
            (dim, rows) in (1usize..70, 0usize..14),
            seed in any::<u32>(),
        ) {
            let value = |at: usize| ((at as u32).wrapping_mul(2_654_435_761) ^ seed) as f32 / u32::MAX as f32 - 0.5;
            let row: Vec<f32> = (0..dim).map(value).collect();
            let others: Vec<f32> = (0..dim * rows).map(|at| value(at + 977)).collect();
            let mut found = vec![f32::NAN; rows];
            dots(&row, &others, |at, product| found[at] = product);
            let expected: Vec<f32> = others.chunks_exact(dim).map(|other| dot(&row, other)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
