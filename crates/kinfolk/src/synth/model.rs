//! The formulas of the [module documentation](super), one function each.

use super::SynthParams;
use crate::random::{Purpose, Stream, exp};

/// What all identities share: the space, and the directions towards which low quality drifts.
pub(super) struct Space {
    /// Standard deviation of each coordinate before the rotation.
    deviations: Vec<f32>,
    /// The same of the noise.
    of_noise: Vec<f32>,
    rotation: Vec<Layer>,
    /// `drift_directions` rows, before the rotation.
    drifts: Vec<f32>,
    groups: usize,
}

/// Plane rotations of disjoint pairs of coordinates: (one, other, cosine, sine).
type Layer = Vec<(u32, u32, f32, f32)>;

/// An identity: the centres of its modes, and how its images are spread over them.
pub(super) struct Identity {
    /// Rows before the rotation.
    modes: Vec<f32>,
    /// Cumulative shares of the modes, the last one 1.
    shares: Vec<f64>,
    /// Median length of the noise of its images.
    noise: f64,
}

impl Space {
    pub(super) fn new(params: &SynthParams) -> Self {
        let dim = params.dim;
        // exp(-2j/d) falls off so that (sum)^2 / (sum of squares), the participation ratio, is d (when d is
        // well below dim; it is cut to what dim allows otherwise).
        let spectrum = |d: f64| -> Vec<f32> {
            let variances: Vec<f64> = (0..dim).map(|j| exp(-2.0 * j as f64 / d)).collect();
            let total: f64 = variances.iter().sum();
            variances.iter().map(|v| (v / total).sqrt() as f32).collect()
        };
        let deviations = spectrum(params.intrinsic_dim);
        let of_noise = if params.noise_dim > 0.0 { spectrum(params.noise_dim) } else { deviations.clone() };
        // log2(dim) layers would do if the pairs were chosen well; they are random, so a few more.
        let layers = if dim < 2 { 0 } else { dim.ilog2() as u64 + 4 };
        let rotation = (0..layers).map(|layer| rotation_layer(params.seed, layer, dim)).collect();
        let drifts = (0..params.drift_directions)
            .flat_map(|i| direction(&mut Stream::new(params.seed, Purpose::Drift, i as u64, 0), &deviations))
            .collect();
        let groups = (params.identities as f64 / params.group_size).round().max(1.0) as usize;
        Self { deviations, of_noise, rotation, drifts, groups }
    }

    /// Identity number `index` with so many images: cᵢ = √g·u + √(1-g)·v and its modes √(1-m)·cᵢ + √m·w, all of unit length.
    pub(super) fn identity(&self, params: &SynthParams, index: usize, size: u32) -> Identity {
        let stream = &mut Stream::new(params.seed, Purpose::Identity, index as u64, 0);
        let mut centre = direction(stream, &self.deviations);
        // Groups of one identity have no look-alikes.
        if params.group_size > 1.0 {
            let group = stream.below(self.groups) as u64;
            let shared = direction(&mut Stream::new(params.seed, Purpose::Group, group, 0), &self.deviations);
            blend(&mut centre, &shared, params.likeness);
        }
        let count = match params.mode_size {
            0.0 => 1 + stream.below(params.max_modes),
            mode_size => (f64::from(size) / mode_size).round().clamp(1.0, params.max_modes as f64) as usize,
        };
        let mut modes = Vec::with_capacity(count * centre.len());
        for _ in 0..count {
            let mut mode = direction(stream, &self.deviations);
            blend(&mut mode, &centre, 1.0 - params.mode_spread);
            modes.extend(mode);
        }
        // Uneven shares: most images are of one mode.
        let mut sum = 0.0;
        let mut shares: Vec<f64> = (0..count)
            .map(|_| {
                sum += 0.1 + stream.uniform();
                sum
            })
            .collect();
        shares.iter_mut().for_each(|s| *s /= sum);
        Identity { modes, shares, noise: median_noise(params, index) }
    }

    /// Writes image `image` of identity `index` to `out`: mode + σ·n + drift, rotated, of unit length.
    pub(super) fn image(
        &self,
        params: &SynthParams,
        index: usize,
        identity: &Identity,
        image: usize,
        out: &mut [f32],
    ) {
        let dim = out.len();
        let stream = &mut Stream::new(params.seed, Purpose::Image, index as u64, image as u64);
        let length = noise_length(params, identity.noise, stream);
        let at = stream.uniform();
        let mode = identity.shares.iter().position(|&s| at < s).unwrap_or(identity.shares.len() - 1);
        let mode = &identity.modes[mode * dim..][..dim];
        let drift = &self.drifts[stream.below(params.drift_directions) * dim..][..dim];
        let pull = (params.drift * (length - params.drift_from).max(0.0)) as f32;
        let length = length as f32;
        for j in 0..dim {
            let noise = length * self.of_noise[j] * stream.rough_normal();
            out[j] = mode[j] + noise + pull * drift[j];
        }
        for layer in &self.rotation {
            for &(a, b, cosine, sine) in layer {
                let (x, y) = (out[a as usize], out[b as usize]);
                out[a as usize] = cosine * x - sine * y;
                out[b as usize] = sine * x + cosine * y;
            }
        }
        normalise(out);
    }
}

/// The median length of the noise of an identity's images: σ₀·exp(e·z).
fn median_noise(params: &SynthParams, index: usize) -> f64 {
    match params.noise_between {
        0.0 => params.noise,
        between => {
            params.noise
                * exp(between * Stream::new(params.seed, Purpose::Identity, index as u64, 1).normal())
        }
    }
}

/// The length of the noise of an image, the first draw of its stream: its identity's median times exp(h·(z + z₊²/4)).
fn noise_length(params: &SynthParams, median: f64, stream: &mut Stream) -> f64 {
    let z = stream.normal();
    let above = z.max(0.0);
    // Beyond a billion nothing of the image is left; the limit keeps single precision finite.
    (median * exp(params.noise_tail * (z + above * above / 4.0))).min(1e9)
}

/// The quality of an image: the cosine that noise alone leaves between the image and its mode.
pub(super) fn quality(params: &SynthParams, index: usize, image: usize) -> f32 {
    let stream = &mut Stream::new(params.seed, Purpose::Image, index as u64, image as u64);
    let length = noise_length(params, median_noise(params, index), stream);
    (1.0 / (1.0 + length * length).sqrt()) as f32
}

/// The number of images of each identity: log-normal, rounded and clipped, with the given mean.
pub(super) fn sizes(params: &SynthParams) -> Vec<u32> {
    if let Some(histogram) = params.histogram {
        return sizes_of(params, histogram);
    }
    let draws: Vec<(bool, f64)> = (0..params.identities)
        .map(|i| {
            let stream = &mut Stream::new(params.seed, Purpose::Size, i as u64, 0);
            (stream.uniform() < params.singletons, stream.normal())
        })
        .collect();
    let size = |mu: f64, z: f64| {
        let size = exp(mu + params.size_spread * z).round();
        size.clamp(params.min_size as f64, params.max_size as f64)
    };
    // Clipping and chance change the mean; the median that gives the requested mean is found by
    // halving, which a few hundred sizes already make nearly continuous.
    let others = draws.iter().filter(|d| !d.0).count() as f64;
    let target = params.mean_of_others() * others;
    let (mut low, mut high) = (-30.0, 30.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let total: f64 = draws.iter().filter(|d| !d.0).map(|d| size(middle, d.1)).sum();
        if total < target { low = middle } else { high = middle }
    }
    draws.iter().map(|&(single, z)| if single { 1 } else { size(high, z) as u32 }).collect()
}

/// The sizes of a histogram in random order, again and again.
fn sizes_of(params: &SynthParams, histogram: &[(u32, u32)]) -> Vec<u32> {
    let all: Vec<u32> =
        histogram.iter().flat_map(|&(size, count)| std::iter::repeat_n(size, count as usize)).collect();
    let mut sizes = Vec::with_capacity(params.identities + all.len());
    for block in 0.. {
        let mut order = all.clone();
        Stream::new(params.seed, Purpose::Size, block, 0).shuffle(&mut order);
        sizes.extend(order);
        if sizes.len() >= params.identities {
            break;
        }
    }
    sizes.truncate(params.identities);
    sizes
}

/// The order in which identities are dealt to the parts of a split.
pub(super) fn shuffled(params: &SynthParams) -> Vec<u32> {
    let mut order: Vec<u32> = (0..params.identities as u32).collect();
    Stream::new(params.seed, Purpose::Split, 0, 0).shuffle(&mut order);
    order
}

/// Random disjoint pairs, each turned by a random angle; with an odd number, one coordinate rests.
fn rotation_layer(seed: u64, layer: u64, dim: usize) -> Layer {
    let stream = &mut Stream::new(seed, Purpose::Rotation, layer, 0);
    let mut order: Vec<u32> = (0..dim as u32).collect();
    stream.shuffle(&mut order);
    let pairs = order.chunks_exact(2);
    pairs
        .map(|pair| {
            // A point in the disc has a uniform angle, without a sine.
            loop {
                let (x, y) = (2.0 * stream.uniform() - 1.0, 2.0 * stream.uniform() - 1.0);
                let square = x * x + y * y;
                if square > 1e-6 && square <= 1.0 {
                    let length = square.sqrt();
                    return (pair[0], pair[1], (x / length) as f32, (y / length) as f32);
                }
            }
        })
        .collect()
}

/// A unit vector with the spectrum of the space.
fn direction(stream: &mut Stream, deviations: &[f32]) -> Vec<f32> {
    let mut vector: Vec<f32> = deviations.iter().map(|&d| d * stream.rough_normal()).collect();
    normalise(&mut vector);
    vector
}

/// √(1-share)·vector + √share·other, of unit length.
fn blend(vector: &mut [f32], other: &[f32], share: f64) {
    let (keep, take) = ((1.0 - share).sqrt() as f32, share.sqrt() as f32);
    vector.iter_mut().zip(other).for_each(|(v, &o)| *v = keep * *v + take * o);
    normalise(vector);
}

fn normalise(vector: &mut [f32]) {
    let norm = vector.iter().map(|&v| v as f64 * v as f64).sum::<f64>().sqrt();
    if norm > 0.0 {
        let scale = 1.0 / norm;
        vector.iter_mut().for_each(|v| *v = (*v as f64 * scale) as f32);
    } else {
        // Everything cancelled: possible in one or two dimensions only. Any direction will do.
        vector[0] = 1.0;
    }
}
