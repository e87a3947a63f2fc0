//! Why the command failed, and with which exit code.

use std::fmt;

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
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::Refused(kinfolk::Error::Parameter { .. }) => 2,
            Failure::Refused(_) => 1,
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
