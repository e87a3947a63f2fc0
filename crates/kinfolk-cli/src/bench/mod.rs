//! `kinfolk bench`: the measurements behind every figure that the project claims.

mod ablation;
mod aggregate;
mod all;
mod confidence_designs;
mod contest;
mod default;
mod grid;
mod knn;
mod layers;
mod limit;
mod m;
mod metrics;
mod outcome;
mod pretrain;
mod programs;
mod rho;
mod runtime;
mod sets;
mod table1;
mod table2;
mod tau;

use crate::failure::Failure;
use crate::machine;
use clap::{Args, Subcommand};
use kinfolk::Embeddings;
use kinfolk::synth::{Synth, SynthParams};
use std::path::PathBuf;
use std::time::Instant;

/// Measure speed and quality
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    name: Name,
}

#[derive(Subcommand)]
enum Name {
    /// Neighbours: exact and approximate, time and recall (faiss beside it: bench/knn_faiss.py)
    Knn(knn::Arguments),
    /// The sparse-dense product, against the memory bandwidth (scipy beside it: bench/aggregate_scipy.py)
    Aggregate(aggregate::Arguments),
    /// Scores of 5.2 million labels
    Metrics,
    /// The default method, with neither labels nor thresholds, beside rivals with the best threshold
    Default(default::Arguments),
    /// What makes a row confident: label-free designs, those that GCN-V learns, and the true one (Table 3 of the paper)
    ConfidenceDesigns(ablation::Arguments),
    /// The share of rows whose parents GCN-E chooses, from none to all
    Rho(ablation::Arguments),
    /// Links of each row: 1, 2, 3, and -1, where GCN-E chooses among all neighbours
    M(ablation::Arguments),
    /// Where links are cut, for the density tree, GCN-V and GCN-V+E
    Tau(ablation::Arguments),
    /// Graph convolutions of GCN-V: 1, 2, 3
    Layers(ablation::Arguments),
    /// All methods on ever larger sets (Table 1 of the paper)
    Table1(table1::Arguments),
    /// All methods on a long-tailed set or one of your own (Table 2 of the paper)
    Table2(table2::Arguments),
    /// F of all methods against their time (Figure 4 of the paper)
    Runtime(runtime::Arguments),
    /// Every table and figure, each into its own directory
    All(all::Arguments),
    /// Make weights like those that are built into kin, from a seed
    Pretrain(pretrain::Arguments),
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.name {
        Name::Knn(a) => knn::run(a),
        Name::Aggregate(a) => aggregate::run(a),
        Name::Metrics => metrics::run(),
        Name::Default(a) => default::run(a),
        Name::ConfidenceDesigns(a) => confidence_designs::run(a),
        Name::Rho(a) => rho::run(a),
        Name::M(a) => m::run(a),
        Name::Tau(a) => tau::run(a),
        Name::Layers(a) => layers::run(a),
        Name::Table1(a) => table1::run(a),
        Name::Table2(a) => table2::run(a),
        Name::Runtime(a) => runtime::run(a),
        Name::All(a) => all::run(a),
        Name::Pretrain(a) => pretrain::run(a),
    }
}

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

/// What something cost.
struct Cost {
    seconds: f64,
    cpu_seconds: f64,
}

/// Runs something and says what it cost.
fn measure<T>(run: impl FnOnce() -> T) -> (T, Cost) {
    let (start, cpu) = (Instant::now(), machine::cpu_time());
    let result = run();
    let cost = Cost {
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: (machine::cpu_time() - cpu).as_secs_f64(),
    };
    (result, cost)
}

/// The cheapest of several runs: on a shared machine the others were disturbed.
fn best_of<T>(times: usize, mut run: impl FnMut() -> T) -> (T, Cost) {
    let mut best = measure(&mut run);
    for _ in 1..times {
        let again = measure(&mut run);
        if again.1.seconds < best.1.seconds {
            best = again;
        }
    }
    best
}
