//! Shared parts of the ablations of Section 4.3 of the paper: the set, the fitting of networks, the choice of tau, the report.
//!
//! The identities of the training part are split again. Networks are fitted to four fifths of them. Parameters such as tau are
//! chosen by the mean of both F of the rows of the last fifth, within a clustering of the whole training part, so that rows of
//! different identities are as near as in use. Labels of the test part are used only for the printed scores.
//!
//! Cost: the fitting. GCN-V takes 6 (number of weights) operations for each row and epoch, GCN-E as many for each candidate.

mod ablation;
pub mod confidence_designs;
pub mod layers;
pub mod m;
mod ranked;
pub mod rho;
pub mod tau;

use clap::Args;
use kinfolk_nn::training::FitParams;
use std::path::PathBuf;

/// Identities of the synthetic set, and epochs of GCN-V, for quick runs.
const QUICK_IDENTITIES: usize = 75;
const QUICK_EPOCHS: usize = 4;

/// The set, and how networks are fitted to it.
#[derive(Args)]
pub struct Arguments {
    /// Labelled embeddings to train on, instead of a synthetic set
    #[arg(long, num_args = 2, value_names = ["FEATURES", "LABELS"], requires = "test", conflicts_with = "identities")]
    train: Option<Vec<PathBuf>>,
    /// Labelled embeddings to test on, of other identities
    #[arg(long, num_args = 2, value_names = ["FEATURES", "LABELS"], requires = "train")]
    test: Option<Vec<PathBuf>>,
    /// Identities of the synthetic set, about 68 rows of 256 columns each; two thirds are for training
    #[arg(long, value_name = "N", default_value_t = 450)]
    identities: usize,
    /// Seed of the synthetic set and of training
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Neighbours of each row
    #[arg(short, value_name = "K", default_value_t = 80)]
    k: usize,
    /// Epochs of GCN-V; GCN-E has at most 4
    #[arg(long, value_name = "E", default_value_t = FitParams::default().epochs)]
    epochs: usize,
    /// Directory to write to [default: bench-, then the name]
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Arguments {
    /// The default synthetic set, or a small one.
    pub fn of(quick: bool, output: PathBuf) -> Self {
        let epochs = FitParams::default().epochs;
        let (identities, epochs) = if quick { (QUICK_IDENTITIES, QUICK_EPOCHS) } else { (450, epochs) };
        Arguments { train: None, test: None, identities, seed: 0, k: 80, epochs, output: Some(output) }
    }

    /// Uses the last epoch. Choosing the best one would need rows that are held out from fitting.
    fn fit_params(&self, default: FitParams) -> FitParams {
        FitParams { validation: 0.0, seed: self.seed, epochs: self.epochs, ..default }
    }
}
