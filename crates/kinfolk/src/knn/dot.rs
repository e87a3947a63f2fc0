//! The similarity of two unit rows, always summed in the same order: whichever search found a pair, and from
//! whichever end, its similarity is the same bits.

const LANES: usize = 16;

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
