//! `kinfolk synth`: writes a synthetic labelled set that is as hard as MS-Celeb-1M or DeepFashion.

use super::make_directory;
use crate::bars::Bars;
use crate::failure::Failure;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kinfolk::io::write_npy_i64;
use kinfolk::synth::{Profile, Synth, SynthParams};
use std::path::PathBuf;

/// Write a synthetic labelled set that is as hard as MS-Celeb-1M or DeepFashion
#[derive(Args)]
#[command(after_help = "Example:  kinfolk synth set --identities 1500 --seed 1
          writes set/features.npy and set/labels.npy
          kinfolk synth set --identities 4500 --split 0.667
          writes set/train_features.npy, train_labels.npy, test_features.npy and test_labels.npy
          kinfolk synth clothes --profile fashion
          writes 26,960 rows of 3,991 identities, most of 3 to 8 rows")]
pub struct Arguments {
    /// Directory to write to
    directory: PathBuf,
    /// What to imitate: faces (MS-Celeb-1M, with K = 80) or fashion (DeepFashion, with K = 5)
    #[arg(long, value_name = "NAME", default_value = "faces", value_parser = profiles(), hide_possible_values = true)]
    profile: Profile,
    /// Number of identities, about 68 rows each, or 7 for fashion [default: 1500, fashion 3991]
    #[arg(long, value_name = "N")]
    identities: Option<usize>,
    /// Number of columns
    #[arg(long, value_name = "D", default_value_t = 256)]
    dim: usize,
    /// Random seed; the same seed gives the same bytes
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Write a training and a test part with disjoint identities; this share of them is for training
    #[arg(long, value_name = "SHARE")]
    split: Option<f64>,
}

/// The names of the profiles.
pub fn profiles() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::ALL.map(Profile::name)).try_map(|name| name.parse())
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let profile = arguments.profile.params();
    let params = SynthParams {
        identities: arguments.identities.unwrap_or(profile.identities),
        dim: arguments.dim,
        seed: arguments.seed,
        ..profile
    };
    let synth = Synth::new(params)?;
    let parts = match arguments.split {
        None => vec![("", synth.whole())],
        Some(share) => {
            let (train, test) = synth.split(share)?;
            vec![("train_", train), ("test_", test)]
        }
    };
    make_directory(&arguments.directory)?;
    for (prefix, part) in parts {
        let file = |name: &str| arguments.directory.join(format!("{prefix}{name}"));
        part.write_features(&file("features.npy"), &Bars::default())?;
        write_npy_i64(&file("labels.npy"), &part.labels())?;
        println!(
            "{}: {} rows x {}, {} identities",
            file("features.npy").display(),
            part.rows(),
            part.dim(),
            part.identities()
        );
    }
    Ok(())
}
