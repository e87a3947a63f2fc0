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
            Failure::Refused(kinfolk::Error::Parameter { field, expected, found }) => {
                write!(f, "{}: expected {expected}, found {found}", option_of(field))
            }
            Failure::Refused(error) => error.fmt(f),
        }
    }
}

/// Fields that have an option of their own; the others are given by `--param`.
const OPTIONS: [&str; 22] = [
    "batch",
    "clusters",
    "confidence",
    "density",
    "epochs",
    "graph",
    "identities",
    "k_rebuild",
    "layers",
    "learning_rate",
    "least",
    "loss",
    "methods",
    "prefer",
    "radius",
    "recall",
    "rho",
    "split",
    "target",
    "train",
    "tau",
    "validation",
];

/// How the command spells a field of the library.
fn option_of(field: &str) -> String {
    match field {
        "k" | "m" => format!("-{field}"),
        _ if OPTIONS.contains(&field) => format!("--{}", field.replace('_', "-")),
        _ => field.to_owned(),
    }
}

impl From<kinfolk::Error> for Failure {
    fn from(error: kinfolk::Error) -> Self {
        Failure::Refused(error)
    }
}
