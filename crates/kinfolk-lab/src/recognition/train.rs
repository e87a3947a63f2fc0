//! Training of a recogniser on one or two sets of labels, a head for each (step 4 of the paper's experiment).
//!
//! Every batch is drawn from all images in random order, and each image is classified by the head of its own labels, so the
//! labels of two sets need not agree. Stochastic gradient descent with momentum, the learning rate falls as a cosine after a
//! short rise. All trainings have the same number of steps, whatever the number of images.

use super::distort::distort;
use super::images::Images;
use super::layers::{Gradient, Trace};
use super::margin::Head;
use super::recogniser::{DIM, Recogniser, What, normalise, normalise_backward, stream};
use kinfolk::{Progress, Result};
use rayon::prelude::*;

/// Images of a step.
pub const BATCH: usize = 256;
/// Images that are normalised together: a part of the batch, so that its layers stay in the cache of a thread.
const PART: usize = 64;
const RATE: f32 = 0.2;
const MOMENTUM: f32 = 0.9;
const DECAY: f32 = 5e-4;
/// Steps in which the learning rate rises.
const RISE: usize = 100;

/// Images, and for each its class among those of its set.
pub struct Labels<'a> {
    pub images: &'a Images,
    /// The images that are used.
    pub rows: Vec<u32>,
    pub classes: Vec<u32>,
}

impl Labels<'_> {
    fn count(&self) -> usize {
        self.classes.iter().max().map_or(0, |&last| last as usize + 1)
    }
}

/// The weights before training.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// Random ones, for images of this side.
    Random(usize),
    /// Those of another recogniser. The classes begin with the means of its embeddings, which saves most of the steps that
    /// thousands of classes would need otherwise.
    From(&'a Recogniser),
}

/// Trains for `steps` steps.
pub fn train(
    start: Start,
    sets: &[Labels],
    steps: usize,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Recogniser> {
    let recogniser = match start {
        Start::Random(side) => Recogniser::new(side, &mut stream(seed, What::Weights, 0)),
        Start::From(other) => other.clone(),
    };
    let mut heads: Vec<Head> = Vec::new();
    for (set, index) in sets.iter().zip(1..) {
        heads.push(match start {
            Start::Random(_) => Head::random(set.count(), &mut stream(seed, What::Weights, index)),
            Start::From(other) => {
                let rows = other.embed(&set.images.gather(&set.rows));
                Head::means(&rows, &set.classes, set.count())
            }
        });
    }
    let mut learner = Learner { recogniser, heads, velocities: Vec::new() };
    let mut order: Vec<(u32, u32)> = (sets.iter().zip(0..))
        .flat_map(|(set, head)| (0..set.rows.len() as u32).map(move |at| (head, at)))
        .collect();
    let (batch, mut at, mut epoch) = (BATCH.min(order.len()), order.len(), 0);
    for step in 0..steps {
        progress.check()?;
        if at + batch > order.len() {
            stream(seed, What::Order, epoch).shuffle(&mut order);
            (at, epoch) = (0, epoch + 1);
        }
        let drawn = &mut order[at..at + batch].to_vec();
        at += batch;
        // Images of one head beside each other.
        drawn.sort_unstable_by_key(|&(head, _)| head);
        let images = distorted(sets, drawn, seed, step);
        let loss = learner.descend(sets, drawn, &images, rate(step, steps));
        progress.advance(1);
        if step % 50 == 0 {
            progress.note(&format!("loss {loss:.2}"));
        }
    }
    Ok(learner.recogniser)
}

/// What changes in a step.
struct Learner {
    recogniser: Recogniser,
    heads: Vec<Head>,
    /// Of all parameters of the recogniser, then of the heads; empty before the first step.
    velocities: Vec<Vec<f32>>,
}

/// The learning rate of a step.
fn rate(step: usize, steps: usize) -> f32 {
    let rise = ((step + 1) as f32 / RISE as f32).min(1.0);
    let angle = std::f32::consts::PI * step as f32 / steps as f32;
    RATE * rise * 0.5 * (1.0 + angle.cos())
}

fn distorted(sets: &[Labels], drawn: &[(u32, u32)], seed: u64, step: usize) -> Vec<f32> {
    let side = sets[0].images.side;
    let mut images = vec![0.0; drawn.len() * side * side];
    images.par_chunks_mut(side * side).zip(drawn).enumerate().for_each(|(index, (out, &(head, at)))| {
        let set = &sets[head as usize];
        let image = set.images.pixels(set.rows[at as usize]);
        distort(image, side, &mut stream(seed, What::Distortion, (step * BATCH + index) as u64), out);
    });
    images
}

impl Learner {
    /// A step of gradient descent; returns the mean loss before it.
    fn descend(&mut self, sets: &[Labels], drawn: &[(u32, u32)], images: &[f32], rate: f32) -> f64 {
        let Learner { recogniser, heads, velocities } = self;
        let size = sets[0].images.side.pow(2);
        let parts: Vec<Vec<Trace>> =
            images.par_chunks(PART * size).map(|images| recogniser.forward(images)).collect();
        let mut embeddings: Vec<f32> = Vec::with_capacity(drawn.len() * DIM);
        for traces in &parts {
            recogniser.average(traces);
            embeddings.extend(&traces[traces.len() - 1].output);
        }
        let lengths = normalise(&mut embeddings, DIM);
        let (mut by_embeddings, mut by_heads, mut sum) =
            (Vec::with_capacity(embeddings.len()), Vec::new(), 0.0);
        for (head, weights) in heads.iter().enumerate() {
            let of = |&&(h, _): &&(u32, u32)| h as usize == head;
            let targets: Vec<u32> =
                drawn.iter().filter(of).map(|&(_, at)| sets[head].classes[at as usize]).collect();
            let first = by_embeddings.len();
            let loss = weights.loss(&embeddings[first..first + targets.len() * DIM], &targets);
            by_embeddings.extend(loss.by_embeddings);
            by_heads.push(loss.by_weight);
            sum += loss.sum;
        }
        normalise_backward(&embeddings, &lengths, &mut by_embeddings, DIM);
        let parts: Vec<Vec<Gradient>> = (parts.into_par_iter())
            .zip(by_embeddings.par_chunks(PART * DIM))
            .map(|(traces, gradient)| recogniser.backward(traces, gradient.to_vec()))
            .collect();
        let mut gradients: Vec<Vec<f32>> = Vec::new();
        for part in parts {
            let part = part.into_iter().flat_map(|Gradient { weight, scale, shift }| [weight, scale, shift]);
            if gradients.is_empty() {
                gradients.extend(part);
            } else {
                for (sums, part) in gradients.iter_mut().zip(part) {
                    sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
                }
            }
        }
        gradients.extend(by_heads);
        if velocities.is_empty() {
            velocities.extend(gradients.iter().map(|gradient| vec![0.0; gradient.len()]));
        }
        let mean = 1.0 / drawn.len() as f32;
        let parameters = recogniser.parameters_mut().into_iter();
        let parameters: Vec<_> =
            parameters.chain(heads.iter_mut().map(|head| head.weight.as_mut_slice())).collect();
        (parameters.into_par_iter()).zip(velocities).zip(gradients).for_each(
            |((parameters, velocities), gradients)| {
                for ((w, v), g) in parameters.iter_mut().zip(velocities).zip(gradients) {
                    *v = MOMENTUM * *v + g * mean + DECAY * *w;
                    *w -= rate * *v;
                }
            },
        );
        sum / drawn.len() as f64
    }
}
