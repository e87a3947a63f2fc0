//! Shared parts of the ablations of Section 4.3 of the paper: the set, the fitting of networks, the choice of tau, the report.
//!
//! The identities of the training part are split again. Networks are fitted to four fifths of them. Parameters such as tau are
//! chosen by the mean of both F of the rows of the last fifth, within a clustering of the whole training part, so that rows of
//! different identities are as near as in use. Labels of the test part are used only for the printed scores.
//!
//! Cost: the fitting. GCN-V takes 6 (number of weights) operations for each row and epoch, GCN-E as many for each candidate.

mod ablation;
pub mod confidence_designs;
mod dynamic_graph;
pub mod layers;
pub mod m;
mod ranked;
pub mod rho;
pub mod tau;

use crate::labelled::Labelled;
use clap::Args;
use kinfolk::synth::{Profile, Synth, SynthParams};
use kinfolk_cli::failure::Failure;
use kinfolk_nn::training::FitParams;
use std::path::PathBuf;

/// Identities of the synthetic set, and epochs of GCN-V, for quick runs.
const QUICK_IDENTITIES: usize = 75;
const QUICK_EPOCHS: usize = 4;

/// Epochs of GCN-E. With few epochs it chooses worse parents than similarity does.
const EPOCHS_E: usize = 40;
const QUICK_EPOCHS_E: usize = 4;

/// The set, and how networks are fitted to it.
#[derive(Args)]
pub struct Arguments {
    /// Labelled embeddings to train on, instead of a synthetic set
    #[arg(long, num_args = 2, value_names = ["FEATURES", "LABELS"], requires = "test", conflicts_with = "identities")]
    train: Option<Vec<PathBuf>>,
    /// Labelled embeddings to test on, of other identities
    #[arg(long, num_args = 2, value_names = ["FEATURES", "LABELS"], requires = "train")]
    test: Option<Vec<PathBuf>>,
    /// The synthetic set: faces, or fashion with its many small identities
    #[arg(long, value_name = "NAME", default_value = "faces", value_parser = kinfolk_cli::profiles(), hide_possible_values = true, conflicts_with = "train")]
    profile: Profile,
    /// Identities of the synthetic set, with 256 columns; two thirds are for training, half for fashion [default: 450, fashion 7982]
    #[arg(long, value_name = "N")]
    identities: Option<usize>,
    /// Seed of the synthetic set and of training
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Neighbours of each row [default: 80, fashion 5]
    #[arg(short, value_name = "K")]
    k: Option<usize>,
    /// Epochs of GCN-V
    #[arg(long, value_name = "E", default_value_t = FitParams::default().epochs)]
    epochs: usize,
    /// Epochs of GCN-E, of at most 100,000 / K candidate sets each [default: 40]
    #[arg(long, value_name = "E")]
    epochs_e: Option<usize>,
    /// Rotate every batch at random, which helps with few identities; the paper does not
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    rotate: bool,
    /// Directory to write to [default: bench-, then the name]
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Arguments {
    /// The default synthetic set, or a small one; `gcn_e` if that network is trained.
    pub fn of(quick: bool, gcn_e: bool, output: PathBuf) -> Self {
        let (identities, epochs) = match quick {
            true => (Some(QUICK_IDENTITIES), QUICK_EPOCHS),
            false => (None, FitParams::default().epochs),
        };
        let epochs_e = (quick && gcn_e).then_some(QUICK_EPOCHS_E);
        let (train, test, profile, output) = (None, None, Profile::default(), Some(output));
        let (seed, k, rotate) = (0, None, true);
        Arguments { train, test, profile, identities, seed, k, epochs, epochs_e, rotate, output }
    }

    fn epochs_e(&self) -> usize {
        self.epochs_e.unwrap_or(EPOCHS_E)
    }

    fn k(&self) -> usize {
        self.k.unwrap_or(self.profile.k())
    }

    /// A training and a test part of the synthetic set.
    fn synthetic(&self) -> Result<[Labelled; 2], Failure> {
        let (identities, train) = match self.profile {
            Profile::Faces => (450, 2.0 / 3.0),
            Profile::Fashion => (7_982, 0.5),
        };
        let identities = self.identities.unwrap_or(identities);
        let synth = Synth::new(SynthParams { identities, seed: self.seed, ..self.profile.params() })?;
        let (train, test) = synth.split(train)?;
        Ok([train.to_embeddings()?.into(), test.to_embeddings()?.into()])
    }

    /// Uses the last epoch. Choosing the best one would need rows that are held out from fitting.
    fn fit_params(&self, default: FitParams) -> FitParams {
        FitParams { validation: 0.0, seed: self.seed, rotate: self.rotate, ..default }
    }
}
