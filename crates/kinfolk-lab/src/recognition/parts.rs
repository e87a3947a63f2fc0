//! The parts of a set of images: ten splits of the identities to train on, probes and distractors to test on.

use super::images::Images;
use super::recogniser::{What, stream};
use kinfolk::{Error, Result};

/// Splits; the first is labelled.
pub const SPLITS: usize = 10;
/// The share of the identities to test on, where the images do not say which.
const TEST: f64 = 0.4;
/// The share of these that are probes.
const PROBES: f64 = 0.15;

/// Images by what they are for, each a list of their numbers.
pub struct Parts {
    pub labelled: Vec<u32>,
    /// The unlabelled splits.
    pub unlabelled: Vec<Vec<u32>>,
    pub probes: Vec<u32>,
    pub distractors: Vec<u32>,
}

impl Parts {
    /// Divides the identities at random. Rotations of an image stay together.
    pub fn new(images: &Images, seed: u64) -> Result<Self> {
        let mut groups: Vec<u32> = (0..images.group_count() as u32).collect();
        stream(seed, What::Parts, 0).shuffle(&mut groups);
        let (test, train): (Vec<u32>, Vec<u32>) = match &images.test {
            Some(test) => groups.into_iter().partition(|&group| test[group as usize]),
            None => {
                let test = (TEST * groups.len() as f64) as usize;
                let train = groups.split_off(test);
                (groups, train)
            }
        };
        let probes = (PROBES * test.len() as f64).ceil() as usize;
        if train.len() < SPLITS || test.len() < probes + 2 || probes < 2 {
            let expected = format!("at least {SPLITS} identities to train on and 16 to test on");
            let found = format!("{} and {}", train.len(), test.len());
            return Err(Error::format("the images", expected, found));
        }
        const DISTRACTOR: usize = SPLITS;
        const PROBE: usize = SPLITS + 1;
        let mut part = vec![DISTRACTOR; images.group_count()];
        test[..probes].iter().for_each(|&group| part[group as usize] = PROBE);
        for (at, &group) in train.iter().enumerate() {
            part[group as usize] = at * SPLITS / train.len();
        }
        let of = |wanted: usize| -> Vec<u32> {
            let rows = (0..images.len()).filter(|&row| part[images.groups[row] as usize] == wanted);
            rows.map(|row| row as u32).collect()
        };
        Ok(Self {
            labelled: of(0),
            unlabelled: (1..SPLITS).map(of).collect(),
            probes: of(PROBE),
            distractors: of(DISTRACTOR),
        })
    }
}
