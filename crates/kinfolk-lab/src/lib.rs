//! `kinfolk-lab`, which is also `kinfolk bench`: the measurements that the documents of the project report.
//!
//! | module | contents |
//! |---|---|
//! | `tables` | every registered method, on one set or on sets of increasing size |
//! | `calibration` | whether edge probabilities mean what they say |
//! | `album` | albums that live: cost of changes, quality of growing and of answers |
//! | `default` | the default method compared with others at their best threshold |
//! | `ablations` | the effect of each part of the paper's method |
//! | `speed` | the stages that dominate the time |
//! | `recognition` | pseudo-labels that improve a recogniser of images |
//! | `pretrain` | training of the weights that are built into `kin` |

mod ablations;
mod album;
mod all;
mod calibration;
mod default;
#[cfg(doctest)]
mod documents;
mod labelled;
mod measure;
mod picture;
mod pretrain;
mod recognition;
mod scores;
mod speed;
mod tables;

use ablations::{confidence_designs, layers, m, rho, tau};
use clap::{Parser, Subcommand};
use kinfolk_cli::failure::Failure;
use speed::{aggregate, knn, metrics};
use std::ffi::OsString;
use tables::{calibrate, published, runtime, table1, table2};

/// Measure speed and quality
#[derive(Parser)]
#[command(name = "kinfolk-lab", version, arg_required_else_help = true, propagate_version = true)]
struct Arguments {
    /// Threads to use; all cores if not given
    #[arg(long, global = true, value_name = "N")]
    threads: Option<usize>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Neighbour search, exact and approximate: time and recall (bench/knn_faiss.py compares with faiss)
    Knn(knn::Arguments),
    /// The sparse-dense product, as a share of the memory bandwidth (bench/aggregate_scipy.py compares with SciPy)
    Aggregate(aggregate::Arguments),
    /// Scores of 5.2 million labels
    Metrics,
    /// The default method, without labels and thresholds, compared with other methods at their best threshold
    Default(default::Arguments),
    /// Designs of confidence: without labels, learned by GCN-V, and computed from the true labels (Table 3 of the paper)
    ConfidenceDesigns(ablations::Arguments),
    /// The share of rows whose parents GCN-E chooses, from none to all
    Rho(ablations::Arguments),
    /// Links of each row: 1, 2, 3, and -1, where GCN-E chooses from all neighbours
    M(ablations::Arguments),
    /// The similarity tau at which links are cut, for the density tree, GCN-V and GCN-V+E
    Tau(ablations::Arguments),
    /// The number of graph convolutions of GCN-V: 1, 2, 3
    Layers(ablations::Arguments),
    /// All methods on sets of increasing size (Table 1 of the paper)
    Table1(table1::Arguments),
    /// All methods on a synthetic set as hard as DeepFashion, or on your own set (Table 2 of the paper)
    Table2(table2::Arguments),
    /// Tables 1 and 2 of the paper on the published data
    Published(published::Arguments),
    /// How hard the fashion profile of synth is for known methods, beside their figures on DeepFashion
    Calibrate(calibrate::Arguments),
    /// F against run time for all methods (Figure 4 of the paper)
    Runtime(runtime::Arguments),
    /// A recogniser of images, trained with pseudo-labels of more and more unlabelled images (Figure 5 of the paper)
    Recognition(recognition::Arguments),
    /// Albums that live: what changes cost, what batches lose, what answers gain
    Album(album::Arguments),
    /// Every table and figure, each into its own directory
    All(all::Arguments),
    /// Train weights like those that are built into kin, from a seed
    Pretrain(pretrain::Arguments),
}

/// Runs the program with these arguments, the first of which is its own name, and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        // Help, the version, or a usage error.
        Err(message) => {
            // If printing fails, there is no other place to report it.
            let _ = message.print();
            return message.exit_code() as u8;
        }
    };
    match execute(arguments) {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

fn execute(arguments: Arguments) -> Result<(), Failure> {
    kinfolk_cli::use_threads(arguments.threads)?;
    match arguments.command {
        Command::Knn(a) => knn::run(a),
        Command::Aggregate(a) => aggregate::run(a),
        Command::Metrics => metrics::run(),
        Command::Default(a) => default::run(a),
        Command::ConfidenceDesigns(a) => confidence_designs::run(a),
        Command::Rho(a) => rho::run(a),
        Command::M(a) => m::run(a),
        Command::Tau(a) => tau::run(a),
        Command::Layers(a) => layers::run(a),
        Command::Table1(a) => table1::run(a),
        Command::Table2(a) => table2::run(a),
        Command::Published(a) => published::run(a),
        Command::Calibrate(a) => calibrate::run(a),
        Command::Runtime(a) => runtime::run(a),
        Command::Recognition(a) => recognition::run(a),
        Command::Album(a) => album::run(a),
        Command::All(a) => all::run(a),
        Command::Pretrain(a) => pretrain::run(a),
    }
}
