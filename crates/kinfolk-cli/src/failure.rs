//! Why the command failed, and with which exit code.

use std::fmt;
use std::process::ExitCode;

/// What ends a run.
#[derive(Debug)]
pub enum Failure {
    /// The command was given wrongly.
    Usage(String),
    /// The library refused an input or a parameter.
    Refused(kinfolk::Error),
}

impl Failure {
    /// 2 for bad usage, 1 for bad input.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) | Failure::Refused(kinfolk::Error::Parameter { .. }) => ExitCode::from(2),
            Failure::Refused(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) => f.write_str(message),
            Failure::Refused(error) => error.fmt(f),
        }
    }
}

impl From<kinfolk::Error> for Failure {
    fn from(error: kinfolk::Error) -> Self {
        Failure::Refused(error)
    }
}
