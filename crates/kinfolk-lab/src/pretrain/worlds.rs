//! Synthetic training sets with random parameters. A world simulates one embedding of one population.
//!
//! Unlike `synth`, which imitates one data set, worlds differ: 40 to 10,000 rows, 32 to 512 columns, low to high intrinsic
//! dimension, two identities or thousands, of 1 to 2,000 images and sometimes more, a few of them far larger than the others, any
//! share of identities with one image, noise with light and heavy tails, images of one session, poor images that drift to common
//! directions, an offset that all rows share. How similar different identities are matters most. Real ones are more similar than
//! random directions, because similarity is hierarchical (sex, family, twins; topics of topics; strokes of letters). So centres
//! are drawn along a tree of up to eight levels, or around a few topics, and some coordinates are log-normal, which simulates
//! rare strong traits.
//!
//! Cost: O(N D) normal numbers.

use kinfolk::Embeddings;
use kinfolk::laboratory::unit_rows;
use kinfolk::random::{Purpose, Stream, exp};
use rayon::prelude::*;

/// A labelled set.
pub struct World {
    pub embeddings: Embeddings,
    pub labels: Vec<u32>,
    pub kind: Kind,
}

/// How large the identities of a world are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Two to five identities and nobody else: any two rows are likely to be of one.
    Few,
    Hundreds,
    Dozens,
    /// A few or dozens, evenly.
    Any,
    Uneven,
    MostlySingletons,
}

impl Kind {
    pub const ALL: [Kind; 6] =
        [Kind::Few, Kind::Hundreds, Kind::Dozens, Kind::Any, Kind::Uneven, Kind::MostlySingletons];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Few => "two to five identities",
            Kind::Hundreds => "identities of 200 to 1,500 rows",
            Kind::Dozens => "identities of 60 to 350 rows",
            Kind::Any => "identities of 5 to 80 rows",
            Kind::Uneven => "identities of 3 to 30 rows, uneven",
            Kind::MostlySingletons => "mostly singletons",
        }
    }

    fn draw(stream: &mut Stream) -> Self {
        match stream.uniform() {
            k if k < 0.15 => Kind::Hundreds,
            k if k < 0.4 => Kind::Any,
            k if k < 0.57 => Kind::Dozens,
            k if k < 0.77 => Kind::Uneven,
            _ => Kind::MostlySingletons,
        }
    }
}

/// Rows of the smallest world, and of most small ones.
const LEAST_ROWS: [usize; 2] = [40, 600];

/// The parameters of a world.
struct Nature {
    dim: usize,
    /// Deviation of each coordinate, of identities and of noise.
    identity: Vec<f32>,
    noise: Vec<f32>,
    /// Deviation of the logarithm of a coordinate's scale.
    traits: f64,
    noise_traits: f64,
    /// The maximum number of modes of an identity, and their weight.
    modes: usize,
    mode_share: f64,
    /// Noise of an image: its median, and its variation over images and identities.
    level: f64,
    uneven: f64,
    uneven_identities: f64,
    /// Images with more noise than this drift to one of these directions.
    junk_from: f64,
    junk_pull: f64,
    junk: Vec<Vec<f32>>,
    /// The share of images that are near-copies of another image of the identity, and how near.
    repeats: f64,
    repeat_noise: f64,
    offset: Vec<f32>,
}

/// Log-uniform.
fn scale(stream: &mut Stream, from: f64, to: f64) -> f64 {
    from * exp(stream.uniform() * (to / from).ln())
}

fn between(stream: &mut Stream, from: f64, to: f64) -> f64 {
    from + (to - from) * stream.uniform()
}

/// The value with the given probability, else 0.
fn perhaps(stream: &mut Stream, probability: f64, value: f64) -> f64 {
    if stream.uniform() < probability { value } else { 0.0 }
}

fn normalise(row: &mut [f32]) {
    let length = row.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-12);
    row.iter_mut().for_each(|v| *v /= length);
}

/// Adds a multiple of one row to another.
fn add(to: &mut [f32], share: f64, row: &[f32]) {
    to.iter_mut().zip(row).for_each(|(to, v)| *to += share as f32 * v);
}

/// Deviations of the coordinates by the logarithm of each.
fn spectrum(dim: usize, logarithm: impl Fn(f64) -> f64) -> Vec<f32> {
    let mut deviations: Vec<f32> = (0..dim).map(|c| exp(logarithm(c as f64)) as f32).collect();
    normalise(&mut deviations);
    deviations
}

/// Standard deviations of identities and of noise, which decrease along the coordinates: linearly, so that a limited number of
/// columns matters, or as a power law, so that a few dominate and all of them matter.
fn spectra(stream: &mut Stream, dim: usize) -> [Vec<f32>; 2] {
    if stream.uniform() < 0.4 {
        let power = between(stream, 0.3, 1.2);
        let noise = power * between(stream, 0.4, 1.2);
        return [power, noise].map(|power| spectrum(dim, |c| -power * (1.0 + c).ln()));
    }
    let dimension = scale(stream, 8.0, 5.0 * dim as f64);
    let noise = dimension * exp(between(stream, -0.5, 0.5));
    [dimension, noise].map(|dimension| spectrum(dim, |c| -c / dimension))
}

impl World {
    /// World number `number` of `seed`, with up to about `most` rows.
    pub fn draw(seed: u64, number: u64, most: usize) -> Self {
        let mut stream = Stream::new(seed, Purpose::World, number, 0);
        let stream = &mut stream;
        let (sizes, kind) = draw_sizes(stream, most);
        let rows = sizes.iter().sum::<usize>() as f64;
        // Of a random row.
        let typical = sizes.iter().map(|&size| (size * size) as f64).sum::<f64>() / rows;
        let nature = Nature::draw(stream, typical);
        let centres = nature.centres(stream, sizes.len());
        let images = |(identity, &size): (usize, &usize)| {
            let mut stream = Stream::new(seed, Purpose::World, number, 1 + identity as u64);
            nature.images(&mut stream, &centres[identity], size)
        };
        let rows: Vec<Vec<f32>> = sizes.par_iter().enumerate().map(images).collect();
        let total = sizes.iter().sum::<usize>();
        let labels: Vec<u32> = sizes
            .iter()
            .enumerate()
            .flat_map(|(identity, &size)| std::iter::repeat_n(identity as u32, size))
            .collect();
        let rows: Vec<&[f32]> = rows.iter().flat_map(|rows| rows.chunks_exact(nature.dim)).collect();
        let order = stream.sample(total, total);
        let data = order.iter().flat_map(|&at| rows[at as usize]).copied().collect();
        Self {
            embeddings: unit_rows(data, nature.dim),
            labels: order.iter().map(|&at| labels[at as usize]).collect(),
            kind,
        }
    }
}

/// Images of each identity: of a few or of hundreds, even or uneven, with any share of identities of one image.
fn draw_sizes(stream: &mut Stream, most: usize) -> (Vec<usize>, Kind) {
    if stream.uniform() < 0.08 {
        let count = 2 + stream.below(4);
        let mean = scale(stream, 12.0, 0.8 * most as f64 / count as f64);
        let sizes = (0..count).map(|_| (mean * between(stream, 0.4, 1.2)) as usize + 2);
        return (sizes.collect(), Kind::Few);
    }
    let least = LEAST_ROWS[usize::from(stream.uniform() >= 0.15)].min(most);
    let rows = scale(stream, least as f64, most as f64);
    let kind = Kind::draw(stream);
    let alone = between(stream, 0.0, 0.7);
    let alone = perhaps(stream, 0.6, alone);
    let (mean, spread, alone) = match kind {
        Kind::Hundreds => (scale(stream, 200.0, 1500.0), between(stream, 0.05, 0.5), 0.3 * alone),
        Kind::Any => (scale(stream, 5.0, 80.0), between(stream, 0.0, 1.3), alone),
        Kind::Dozens => (scale(stream, 60.0, 350.0), between(stream, 0.05, 0.6), alone),
        Kind::Uneven => (scale(stream, 3.0, 30.0), between(stream, 0.8, 1.6), alone),
        _ => (scale(stream, 2.5, 25.0), between(stream, 0.5, 1.5), between(stream, 0.3, 0.85)),
    };
    let rows = rows.max((8.0 * mean).min(most as f64));
    let (mut sizes, mut total) = (Vec::new(), 0);
    while total < rows as usize {
        let size = match stream.uniform() < alone {
            true => 1,
            false => {
                (mean * exp(spread * stream.normal() - spread * spread / 2.0)).round().clamp(2.0, 2000.0)
                    as usize
            }
        };
        sizes.push(size);
        total += size;
    }
    // A few identities may be far larger than all others.
    if stream.uniform() < 0.4 {
        let mut room = total as f64 * scale(stream, 0.02, 1.5);
        for _ in 0..1 + stream.below(4) {
            let size = scale(stream, 40.0, 2000.0).min(room);
            room -= size;
            // Identities with near numbers are similar, so these are put among the others.
            if size >= 2.0 {
                let at = stream.below(sizes.len());
                sizes.insert(at, size as usize);
            }
        }
    }
    (sizes, kind)
}

fn direction(stream: &mut Stream, deviations: &[f32], traits: f64) -> Vec<f32> {
    let mut row = Nature::coordinates(stream, deviations, traits);
    normalise(&mut row);
    row
}

impl Nature {
    fn draw(stream: &mut Stream, typical: f64) -> Self {
        let dim = [32, 64, 96, 128, 192, 256, 384, 512][stream.below(8)];
        let [identity, noise] = spectra(stream, dim);
        let traits = between(stream, 0.0, 1.0);
        let noise_traits = between(stream, 0.0, 0.8);
        let (pull, repeats) = (between(stream, 0.0, 2.0), between(stream, 0.0, 0.5));
        // Few views of a face, or many subjects of a topic.
        let (modes, mode_share) = match stream.uniform() < 0.3 {
            true => (2 + stream.below(28), between(stream, 0.1, 0.7)),
            false => (1 + stream.below(5), between(stream, 0.0, 0.35)),
        };
        let mut nature = Self {
            dim,
            identity,
            noise,
            traits: perhaps(stream, 0.8, traits),
            noise_traits: perhaps(stream, 0.5, noise_traits),
            modes,
            mode_share,
            level: 0.0,
            uneven: between(stream, 0.05, 0.45),
            uneven_identities: between(stream, 0.0, 0.3),
            junk_from: 0.0,
            junk_pull: perhaps(stream, 0.7, pull),
            junk: Vec::new(),
            repeats: perhaps(stream, 0.5, repeats),
            repeat_noise: between(stream, 0.1, 0.6),
            offset: Vec::new(),
        };
        nature.junk = (0..2 + stream.below(14)).map(|_| direction(stream, &nature.identity, 0.0)).collect();
        nature.level = nature.draw_level(stream, typical);
        nature.junk_from = nature.level * exp(between(stream, 0.0, 0.5));
        let share = between(stream, 0.0, 1.4);
        let share = perhaps(stream, 0.5, share) as f32;
        nature.offset = nature.direction(stream).iter().map(|v| share * v).collect();
        nature
    }

    /// The noise for a random similarity of images of one identity, in units of the spread of the similarities of random
    /// pairs: from hard to easy to separate.
    fn draw_level(&self, stream: &mut Stream, typical: f64) -> f64 {
        const PAIRS: usize = 200;
        let square = |_| {
            let (a, b) = (self.direction(stream), self.direction(stream));
            a.iter().zip(&b).map(|(a, b)| f64::from(a * b)).sum::<f64>().powi(2)
        };
        let spread = ((0..PAIRS).map(square).sum::<f64>() / PAIRS as f64).sqrt();
        // The larger an identity, the less similar its images may be.
        let least = 3.0 * (10.0 / typical.max(10.0)).powf(0.25);
        let cosine = (spread * scale(stream, least, 14.0)).min(0.95);
        (1.0 / cosine - 1.0).sqrt()
    }

    fn coordinates(stream: &mut Stream, deviations: &[f32], traits: f64) -> Vec<f32> {
        let of = |&deviation: &f32| {
            let value = deviation * stream.rough_normal();
            if traits == 0.0 { value } else { value * exp(traits * f64::from(stream.rough_normal())) as f32 }
        };
        deviations.iter().map(of).collect()
    }

    /// A random direction from the distribution of identities.
    fn direction(&self, stream: &mut Stream) -> Vec<f32> {
        direction(stream, &self.identity, self.traits)
    }

    /// Centres of identities along a tree: identities with near numbers share a group, and groups share larger groups.
    fn centres(&self, stream: &mut Stream, identities: usize) -> Vec<Vec<f32>> {
        let mut groups = Vec::new();
        let count = identities as f64;
        let likeness = if stream.uniform() < 0.2 {
            // A few topics, and closer identities within each.
            let size = count / scale(stream, 3.0, 30.0);
            groups.push((size, 1.0));
            groups.push((size / scale(stream, 2.0, 10.0), stream.uniform()));
            groups.retain(|&(size, _)| size > 1.5);
            between(stream, 0.4, 0.95)
        } else {
            let mut size = count / scale(stream, 2.0, (count / 2.0).max(2.0));
            while size > 1.5 && groups.len() < 8 {
                groups.push((size, 0.05 + stream.uniform().powi(2)));
                size /= scale(stream, 1.8, 8.0);
            }
            let likeness = between(stream, 0.15, 0.97);
            perhaps(stream, 0.9, likeness)
        };
        let all: f64 = groups.iter().map(|(_, share)| share).sum();
        let mut centres = vec![vec![0.0; self.dim]; identities];
        let mut left = vec![1.0; identities];
        for (size, share) in groups {
            let share = likeness * share / all;
            let directions: Vec<Vec<f32>> =
                (0..=((identities - 1) as f64 / size) as usize).map(|_| self.direction(stream)).collect();
            for (identity, centre) in centres.iter_mut().enumerate() {
                let part = (2.0 * share * stream.uniform()).min(left[identity] - 0.02).max(0.0);
                left[identity] -= part;
                add(centre, part.sqrt(), &directions[(identity as f64 / size) as usize]);
            }
        }
        for (centre, left) in centres.iter_mut().zip(left) {
            add(centre, left.sqrt(), &self.direction(stream));
            normalise(centre);
        }
        centres
    }

    /// The images of one identity, one after the other.
    fn images(&self, stream: &mut Stream, centre: &[f32], count: usize) -> Vec<f32> {
        let modes = 1 + stream.below(self.modes);
        let modes: Vec<(Vec<f32>, f64)> = (0..modes)
            .map(|_| {
                let mut mode: Vec<f32> =
                    centre.iter().map(|v| (1.0 - self.mode_share).sqrt() as f32 * v).collect();
                add(&mut mode, self.mode_share.sqrt(), &self.direction(stream));
                normalise(&mut mode);
                (mode, 0.1 + stream.uniform())
            })
            .collect();
        let weights: f64 = modes.iter().map(|mode| mode.1).sum();
        let own = self.uneven_identities * stream.normal();
        let mut rows: Vec<Vec<f32>> = Vec::with_capacity(count);
        for at in 0..count {
            let mut row = match at > 0 && stream.uniform() < self.repeats {
                true => {
                    let mut row = rows[stream.below(at)].clone();
                    let length = row.iter().map(|v| v * v).sum::<f32>().sqrt();
                    let share = f64::from(length) * (0.05 + self.repeat_noise * stream.uniform());
                    add(&mut row, share, &self.noise(stream));
                    row
                }
                false => self.image(stream, &modes, weights, own),
            };
            rows.push(std::mem::take(&mut row));
        }
        for row in &mut rows {
            normalise(row);
            add(row, 1.0, &self.offset);
            normalise(row);
        }
        rows.concat()
    }

    fn image(&self, stream: &mut Stream, modes: &[(Vec<f32>, f64)], weights: f64, own: f64) -> Vec<f32> {
        let mut at = stream.uniform() * weights;
        let chosen = modes.iter().position(|(_, weight)| {
            at -= weight;
            at < 0.0
        });
        let mut row = modes[chosen.unwrap_or(0)].0.clone();
        let z = stream.normal();
        // The distribution is skewed towards poor images.
        let level = (self.level * exp(own + self.uneven * (z + z.max(0.0).powi(2) / 4.0))).min(20.0);
        add(&mut row, level, &self.noise(stream));
        let pull = self.junk_pull * (level - self.junk_from).max(0.0);
        add(&mut row, pull, &self.junk[stream.below(self.junk.len())]);
        row
    }

    fn noise(&self, stream: &mut Stream) -> Vec<f32> {
        let mut row = Self::coordinates(stream, &self.noise, self.noise_traits);
        // Heavy tails, not more noise.
        let smaller = exp(-self.noise_traits * self.noise_traits) as f32;
        row.iter_mut().for_each(|v| *v *= smaller);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_threads<T: Send>(count: usize, run: impl Fn() -> T + Sync + Send) -> T {
        rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap().install(run)
    }

    #[test]
    fn worlds_are_unit_rows_that_differ_and_do_not_depend_on_threads() {
        let [one, three] = [1, 3].map(|count| on_threads(count, || World::draw(1, 2, 3000)));
        assert_eq!(one.embeddings.as_slice(), three.embeddings.as_slice());
        assert_eq!(one.labels, three.labels);
        assert_eq!(one.labels.len(), one.embeddings.len());
        for row in one.embeddings.as_slice().chunks_exact(one.embeddings.dim()) {
            assert!((row.iter().map(|v| v * v).sum::<f32>() - 1.0).abs() < 1e-4);
        }
        let other = World::draw(1, 3, 3000);
        assert_ne!(one.embeddings.len(), other.embeddings.len());
    }

    #[test]
    fn images_of_one_identity_are_nearer_than_those_of_others() {
        let worlds = 8;
        let mut difference = 0.0;
        for number in 0..worlds {
            let World { embeddings, labels, .. } = World::draw(4, number, 2000);
            let (mut same, mut other) = ((0.0, 0), (0.0, 0));
            let rows = embeddings.len().min(400);
            for (i, j) in (0..rows).flat_map(|i| (0..i).map(move |j| (i, j))) {
                let sum = if labels[i] == labels[j] { &mut same } else { &mut other };
                let dot: f32 = embeddings.row(i).iter().zip(embeddings.row(j)).map(|(a, b)| a * b).sum();
                *sum = (sum.0 + f64::from(dot), sum.1 + 1);
            }
            difference += same.0 / f64::from(same.1.max(1)) - other.0 / f64::from(other.1.max(1));
        }
        assert!(difference / worlds as f64 > 0.1, "{difference}");
    }
}
