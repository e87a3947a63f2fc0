//! The margin softmax of CosFace (Wang et al., CVPR 2018), which trains the recogniser.
//!
//! With embeddings x and class weights w of unit length the logits are s cos(x, w), and s (cos(x, w) - m) for the class of
//! x: it must win by the margin m. The loss is the cross-entropy. It stores batch x classes numbers.

use super::recogniser::{DIM, normalise, normalise_backward};
use kinfolk::random::Stream;
use kinfolk_nn::laboratory::{Matrix, product};
use rayon::prelude::*;

/// The margin m.
const MARGIN: f32 = 0.2;
/// The scale s.
const SCALE: f32 = 24.0;

/// The classes of one set of labels: a row of weights for each.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    pub weight: Vec<f32>,
}

/// The sum of the losses, and its gradients by embeddings and weights.
pub struct Loss {
    pub sum: f64,
    pub by_embeddings: Vec<f32>,
    pub by_weight: Vec<f32>,
}

impl Head {
    /// Classes in random directions.
    pub fn random(classes: usize, random: &mut Stream) -> Self {
        let mut weight: Vec<f32> = (0..classes * DIM).map(|_| random.rough_normal()).collect();
        normalise(&mut weight, DIM);
        Self { weight }
    }

    /// Classes in the directions of the means of their embeddings.
    pub fn means(embeddings: &[f32], targets: &[u32], classes: usize) -> Self {
        let mut weight = vec![0.0; classes * DIM];
        for (row, &target) in embeddings.chunks_exact(DIM).zip(targets) {
            let mean = &mut weight[target as usize * DIM..][..DIM];
            mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        normalise(&mut weight, DIM);
        Self { weight }
    }

    /// The loss of embeddings of unit length whose classes are `targets`, as sums over them.
    pub fn loss(&self, embeddings: &[f32], targets: &[u32]) -> Loss {
        let mut weight = self.weight.clone();
        let lengths = normalise(&mut weight, DIM);
        let classes = lengths.len();
        let (x, w) = (Matrix::new(embeddings, DIM), Matrix::new(&weight, DIM));
        let mut by_cosines = product(x, w.transpose(), |_, _| {});
        let losses: Vec<f64> = (by_cosines.par_chunks_mut(classes))
            .zip(targets)
            .map(|(row, &target)| {
                row[target as usize] -= MARGIN;
                softmax_loss(row, target as usize)
            })
            .collect();
        let by_cosines = Matrix::new(&by_cosines, classes);
        let by_embeddings = product(by_cosines, w, |_, _| {});
        let mut by_weight = product(by_cosines.transpose(), x, |_, _| {});
        normalise_backward(&weight, &lengths, &mut by_weight, DIM);
        Loss { sum: losses.iter().sum(), by_embeddings, by_weight }
    }
}

/// The cross-entropy of cosines, which become its gradient by them.
fn softmax_loss(row: &mut [f32], target: usize) -> f64 {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let of_target = SCALE * (row[target] - largest);
    let mut sum = 0.0;
    for value in row.iter_mut() {
        *value = (SCALE * (*value - largest)).exp();
        sum += *value;
    }
    row.iter_mut().for_each(|value| *value *= SCALE / sum);
    row[target] -= SCALE;
    f64::from(sum.ln() - of_target)
}
