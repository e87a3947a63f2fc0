//! The sets of `kinfolk bench default`: files, and synthetic sets.
//!
//! If there is a NAME_train, kin is also trained: on NAME_train for NAME_test or, without NAME_test, on each half of the
//! identities for the other half.

use crate::labelled::Labelled;
use kinfolk::random::{Stream, mix};
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{Embeddings, Error};
use kinfolk_cli::failure::Failure;
use std::path::{Path, PathBuf};

/// A set to cluster, and a set to train on if there is one.
pub struct Set {
    pub name: String,
    pub test: Labelled,
    pub training: Option<Labelled>,
}

/// Where a set comes from.
pub enum Source {
    /// NAME_feat.npy and NAME_label.npy, of the set and of its training rows.
    Files { name: String, test: PathBuf, training: Option<PathBuf> },
    /// One half of the identities of a file, by the labels; the other is for training.
    Half { name: String, file: PathBuf, second: bool },
    /// Synthetic, without a training set.
    Synthetic { name: String, params: Box<SynthParams> },
    /// Synthetic, with as many identities for training.
    SyntheticSplit { name: String, params: Box<SynthParams> },
}

impl Source {
    pub fn load(self) -> Result<Set, Failure> {
        Ok(match self {
            Source::Files { name, test, training } => {
                let training = training.map(|base| read(&base)).transpose()?;
                Set { name, test: read(&test)?, training }
            }
            Source::Half { name, file, second } => {
                let [first, other] = halves(&read(&file)?)?;
                let (test, training) = if second { (other, first) } else { (first, other) };
                Set { name, test, training: Some(training) }
            }
            Source::Synthetic { name, params } => {
                Set { name, test: Synth::new(*params)?.whole().to_embeddings()?.into(), training: None }
            }
            Source::SyntheticSplit { name, mut params } => {
                params.identities *= 2;
                let synth = Synth::new(*params)?;
                let (training, test) = synth.split(0.5)?;
                let training = Some(training.to_embeddings()?.into());
                Set { name, test: test.to_embeddings()?.into(), training }
            }
        })
    }
}

/// A file of the set `base`, a path without suffix.
fn beside(base: &Path, what: &str) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    path.push(format!("_{what}.npy"));
    path.into()
}

fn read(base: &Path) -> Result<Labelled, Failure> {
    Labelled::read(&beside(base, "feat"), &beside(base, "label"))
}

/// Two halves with no identity in common: identities by a hash of their label, so that neither the order of the rows nor that
/// of the labels matters.
fn halves(all: &Labelled) -> Result<[Labelled; 2], Failure> {
    let half = |second: bool| -> Result<Labelled, Failure> {
        let rows: Vec<usize> =
            (0..all.labels.len()).filter(|&i| (mix(all.labels[i] as u64) & 1 == 1) == second).collect();
        let labels = rows.iter().map(|&i| all.labels[i]).collect();
        let data = rows.iter().flat_map(|&i| all.features.row(i)).copied().collect();
        Ok(Labelled {
            features: Embeddings::from_rows(data, all.features.dim(), "half of the identities")?,
            labels,
        })
    };
    Ok([half(false)?, half(true)?])
}

/// Sets of a directory: pairs of NAME_feat.npy and NAME_label.npy, by name.
pub fn in_directory(directory: &Path) -> Result<Vec<Source>, Failure> {
    let entries = std::fs::read_dir(directory).map_err(|e| Error::io(directory, e))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| Error::io(directory, e))?;
        if let Some(name) = entry.file_name().to_string_lossy().strip_suffix("_feat.npy")
            && beside(&directory.join(name), "label").exists()
        {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        return Err(Error::format(directory, "files NAME_feat.npy and NAME_label.npy", "none").into());
    }
    names.sort();
    let mut sources = Vec::new();
    for name in &names {
        let file = directory.join(name);
        let of = |part: &str, other: &str| {
            let other = format!("{}_{other}", name.strip_suffix(part)?.strip_suffix('_')?);
            names.contains(&other).then(|| directory.join(other))
        };
        match name.ends_with("_train") {
            // A training set, which belongs to its test set.
            true if of("train", "test").is_some() => {}
            true => sources.extend([false, true].map(|second| Source::Half {
                name: format!("{name} half {}", 1 + u8::from(second)),
                file: file.clone(),
                second,
            })),
            false => {
                let training = of("test", "train");
                sources.push(Source::Files { name: name.clone(), test: file, training });
            }
        }
    }
    Ok(sources)
}

/// Parameters of a synthetic set, uniform within the ranges here.
pub fn drawn(seed: u64) -> SynthParams {
    let mut stream = Stream::from_state(seed);
    let mut uniform = |from: f64, to: f64| from + (to - from) * stream.uniform();
    let mean_of_others = uniform(4.0, 60.0);
    let singletons = uniform(0.0, 0.7);
    let rows = uniform(3000.0, 15000.0);
    let mean_size = singletons + (1.0 - singletons) * mean_of_others;
    SynthParams {
        identities: (rows / mean_size) as usize,
        dim: uniform(64.0, 512.0) as usize,
        seed,
        intrinsic_dim: uniform(32.0, 64.0),
        mean_size,
        size_spread: uniform(0.2, 1.0),
        max_size: 600,
        singletons,
        group_size: uniform(1.0, 20.0),
        likeness: uniform(0.0, 0.4),
        noise: uniform(0.7, 0.95),
        noise_tail: uniform(0.1, 0.3),
        drift: uniform(0.5, 1.5),
        ..SynthParams::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_set_can_be_made() {
        for seed in 0..200 {
            drawn(seed).validate().unwrap();
        }
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
    }

    #[test]
    fn training_rows_are_found_by_name_or_are_half_of_the_identities() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a_train", "a_test", "b", "c_train"] {
            let base = directory.path().join(name);
            let labels: Vec<i64> = (0..40).map(|row| row / 4).collect();
            let rows: Vec<f32> = (0..80).map(|at| 1.0 + (at % 7) as f32).collect();
            kinfolk::io::write_npy_f32(&beside(&base, "feat"), &rows, 2).unwrap();
            kinfolk::io::write_npy_i64(&beside(&base, "label"), &labels).unwrap();
        }
        // A file without labels is not a set.
        kinfolk::io::write_npy_f32(&beside(&directory.path().join("d"), "feat"), &[1.0, 2.0], 2).unwrap();
        let sets: Vec<Set> = in_directory(directory.path())
            .unwrap()
            .into_iter()
            .map(|source| source.load().unwrap())
            .collect();
        let names: Vec<(&str, bool)> =
            sets.iter().map(|set| (&set.name[..], set.training.is_some())).collect();
        assert_eq!(
            names,
            [("a_test", true), ("b", false), ("c_train half 1", true), ("c_train half 2", true)]
        );
        let (half, training) = (&sets[2].test, sets[2].training.as_ref().unwrap());
        assert_eq!(half.labels.len() + training.labels.len(), 40);
        assert!(half.labels.iter().all(|label| !training.labels.contains(label)));
        assert_eq!(sets[3].test.labels, training.labels);
        assert!(in_directory(&directory.path().join("none")).is_err());
    }
}
