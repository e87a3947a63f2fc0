//! The stages that dominate the time, measured alone.

pub mod aggregate;
pub mod knn;
pub mod metrics;

use clap::Args;
use kinfolk::Embeddings;
use kinfolk::synth::{Synth, SynthParams};
use kinfolk_cli::failure::Failure;
use std::path::PathBuf;

/// The set to measure on.
#[derive(Args)]
struct Set {
    /// Embeddings to measure on (.npy); a synthetic set if not given
    #[arg(long, value_name = "FEATURES")]
    features: Option<PathBuf>,
    /// Identities of the synthetic set, about 68 rows of 256 columns each
    #[arg(long, value_name = "N", default_value_t = 1500)]
    identities: usize,
    /// Neighbours of each row
    #[arg(short, value_name = "K", default_value_t = 80)]
    k: usize,
}

impl Set {
    fn load(&self) -> Result<Embeddings, Failure> {
        Ok(match &self.features {
            Some(path) => kinfolk::io::read_embeddings(path, &Default::default())?,
            None => {
                let params = SynthParams { identities: self.identities, ..SynthParams::default() };
                Synth::new(params)?.whole().to_embeddings()?.0
            }
        })
    }
}
