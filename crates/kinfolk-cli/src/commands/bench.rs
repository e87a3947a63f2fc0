//! `kinfolk bench`: runs the program `kinfolk-lab`. It is a separate program because it is not needed for clustering.

use crate::failure::Failure;
use clap::Args;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Measure speed and quality (runs kinfolk-lab)
// --help is passed on to kinfolk-lab.
#[derive(Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct Arguments {
    /// Arguments of kinfolk-lab; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Runs kinfolk-lab with the same number of threads and returns its exit code.
pub fn run(arguments: Arguments) -> Result<u8, Failure> {
    let Some(program) = find_program() else {
        let found = "none (build it with: cargo build --release -p kinfolk-lab)";
        return Err(Failure::Usage(format!(
            "bench: expected the program kinfolk-lab beside kinfolk, found {found}"
        )));
    };
    let status = Command::new(&program)
        .args(arguments.arguments)
        .env("RAYON_NUM_THREADS", rayon::current_num_threads().to_string())
        .status()
        .map_err(|e| kinfolk::Error::io(&program, e))?;
    // A program that was ended by a signal has no exit code.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// The program in the directory of this one, or else on the PATH.
fn find_program() -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|own| own.parent().map(PathBuf::from));
    let path = env::var_os("PATH").unwrap_or_default();
    let name = format!("kinfolk-lab{}", env::consts::EXE_SUFFIX);
    let mut places = beside.into_iter().chain(env::split_paths(&path)).map(|directory| directory.join(&name));
    places.find(|place| place.is_file())
}
