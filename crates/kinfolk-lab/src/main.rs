//! The program `kinfolk-lab`; its documentation is in the library of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(kinfolk_lab::run(std::env::args_os()))
}
