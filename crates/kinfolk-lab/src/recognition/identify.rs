//! Identification as MegaFace measures it (Kemelmacher-Shlizerman et al., CVPR 2016).
//!
//! Every ordered pair of different images of one probe identity is a trial: the first is looked for in a gallery of the
//! second and all distractors. It is a hit if the second is nearer than every distractor. Cost: probes x distractors x
//! columns; memory: a block of probes x distractors.

use super::recogniser::DIM;
use kinfolk_nn::laboratory::{Matrix, product};

/// Probes that are compared at a time.
const PROBES: usize = 256;

/// The share of trials that are hits. Both sets are rows of unit length.
pub fn hit_rate(probes: &[f32], identities: &[u32], distractors: &[f32]) -> f64 {
    let mut nearest = Vec::with_capacity(identities.len());
    for probes in probes.chunks(PROBES * DIM) {
        let gallery = Matrix::new(distractors, DIM).transpose();
        let similarities = product(Matrix::new(probes, DIM), gallery, |_, _| {});
        let largest = |row: &[f32]| row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        nearest.extend(similarities.chunks_exact(distractors.len() / DIM).map(largest));
    }
    let (mut trials, mut hits) = (0u64, 0u64);
    let row = |i: usize| &probes[i * DIM..][..DIM];
    for (i, &nearest) in nearest.iter().enumerate() {
        for j in (0..identities.len()).filter(|&j| j != i && identities[j] == identities[i]) {
            trials += 1;
            let similarity: f32 = row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum();
            hits += u64::from(similarity > nearest);
        }
    }
    hits as f64 / trials as f64
}
