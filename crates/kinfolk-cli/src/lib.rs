//! The `kinfolk` command, as a library so that the Python package can contain it. Results go to stdout, progress and warnings
//! to stderr. The exit code is 2 for usage errors and 1 for input errors.

#[doc(hidden)]
pub mod bars;
mod commands;
#[doc(hidden)]
pub mod failure;
#[doc(hidden)]
pub mod machine;
mod picture;
#[doc(hidden)]
pub mod table;
mod watch;

#[doc(hidden)]
pub use commands::synth::profiles;
pub use commands::{make_directory, write_text};

use clap::{Parser, Subcommand};
use failure::Failure;
use std::ffi::OsString;

/// Clusters embeddings of the same identity.
#[derive(Parser)]
#[command(name = "kinfolk", version, arg_required_else_help = true, propagate_version = true)]
#[command(after_help = "Try it:  kinfolk demo\n         kinfolk cluster faces.npy")]
struct Arguments {
    /// Threads to use; all cores if not given
    #[arg(long, global = true, value_name = "N")]
    threads: Option<usize>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Album(commands::album::Arguments),
    Cluster(commands::cluster::Arguments),
    Knn(commands::knn::Arguments),
    Eval(commands::eval::Arguments),
    Explain(commands::explain::Arguments),
    Import(commands::import::Arguments),
    Synth(commands::synth::Arguments),
    Train(commands::train::Arguments),
    Demo(commands::demo::Arguments),
    Bench(commands::bench::Arguments),
}

/// Runs the command with these arguments, the first of which is its own name, and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    machine::end_with_the_reader();
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        // Help, the version, or a usage error.
        Err(message) => {
            let text = message.to_string();
            match failure::without_passwords(&text) {
                hidden if hidden != text => eprint!("{hidden}"),
                // If printing fails, there is no other place to report it.
                _ => drop(message.print()),
            }
            return message.exit_code() as u8;
        }
    };
    match execute(arguments) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {}", failure::without_passwords(&failure.to_string()));
            failure.exit_code()
        }
    }
}

/// Sets the number of threads of the process, if one is given.
#[doc(hidden)]
pub fn use_threads(threads: Option<usize>) -> Result<(), Failure> {
    let Some(threads) = threads else { return Ok(()) };
    if threads == 0 {
        return Err(Failure::Usage("--threads: expected at least 1, found 0".to_owned()));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    pool.map_err(|e| Failure::Usage(format!("--threads {threads}: {e}")))
}

/// Runs a subcommand and returns its exit code.
fn execute(arguments: Arguments) -> Result<u8, Failure> {
    use_threads(arguments.threads)?;
    match arguments.command {
        Command::Album(a) => return commands::album::run(a),
        Command::Cluster(a) => commands::cluster::run(a),
        Command::Knn(a) => commands::knn::run(a),
        Command::Eval(a) => commands::eval::run(a),
        Command::Explain(a) => commands::explain::run(a),
        Command::Import(a) => commands::import::run(a),
        Command::Synth(a) => commands::synth::run(a),
        Command::Train(a) => commands::train::run(a),
        Command::Demo(a) => commands::demo::run(a),
        Command::Bench(a) => return commands::bench::run(a),
    }?;
    Ok(0)
}
