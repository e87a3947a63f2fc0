//! Errors of the command and their exit codes.

use kinfolk::Error;
use std::fmt;
use std::path::Path;

/// An error of the command.
#[derive(Debug)]
pub enum Failure {
    /// A usage error.
    Usage(String),
    /// The library refused an input or a parameter.
    Refused(Error),
}

/// The files behind the library's names of inputs.
#[derive(Default)]
pub struct Places<'a> {
    /// `embeddings`.
    pub embeddings: Option<&'a Path>,
    /// `graph`.
    pub graph: Option<&'a Path>,
    /// `labels`.
    pub labels: Option<&'a Path>,
    /// `model`.
    pub model: Option<&'a Path>,
}

impl Failure {
    /// 2 for usage errors, 1 for input errors.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::Refused(Error::Parameter { .. }) => 2,
            Failure::Refused(_) => 1,
        }
    }

    /// The same, with the names of files in place of the library's names for inputs.
    pub fn at(mut self, places: &Places<'_>) -> Self {
        if let Failure::Refused(Error::Length { place, .. } | Error::Format { place, .. }) = &mut self {
            let file = match place.as_str() {
                "embeddings" => places.embeddings,
                "graph" => places.graph,
                "labels" => places.labels,
                "model" => places.model,
                _ => None,
            };
            if let Some(file) = file {
                *place = file.display().to_string();
            }
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) => f.write_str(message),
            Failure::Refused(Error::Parameter { field, expected, found }) => {
                write!(f, "{}: expected {expected}, found {found}", option_of(field))
            }
            Failure::Refused(error) => error.fmt(f),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Refused(error)
    }
}

/// Fields that have an option of their own.
const OPTIONS: &[&str] = &[
    "batch",
    "clusters",
    "confidence",
    "density",
    "device",
    "dim",
    "epochs",
    "epochs_e",
    "graph",
    "identities",
    "k_rebuild",
    "labels",
    "layers",
    "learning_rate",
    "least_probability",
    "least_size",
    "loss",
    "method",
    "methods",
    "model",
    "param",
    "prefer",
    "radius",
    "rebuild",
    "recall",
    "recipe",
    "rho",
    "rotate",
    "sampled",
    "sampling",
    "split",
    "table",
    "target",
    "tau",
    "train",
    "validation",
];

/// How the command spells a field of the library: as its own option or, for other parameters of a method, by `--param`.
fn option_of(field: &str) -> String {
    match field {
        "k" | "m" => format!("-{field}"),
        "search" => "--exact or --recall".to_owned(),
        "row" => "ROW".to_owned(),
        _ if OPTIONS.contains(&field) => format!("--{}", field.replace('_', "-")),
        _ if is_parameter(field) => format!("--param {field}"),
        _ => field.to_owned(),
    }
}

/// Whether some method has a parameter of this name.
fn is_parameter(field: &str) -> bool {
    let methods = kinfolk_methods::METHODS.iter().filter_map(|entry| entry.make());
    methods.into_iter().any(|method| method.parameters().get(field).is_some())
        || ["th", "max_size", "step", "rounds", "least", "levels", "follow"].contains(&field)
}

/// The text without the passwords of URLs in it, such as one that was given where a file was expected: everything from the scheme
/// to the last @ of the word, and what follows `password=`.
pub fn without_passwords(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = ["postgres:/", "postgresql:/"].iter().filter_map(|scheme| rest.find(scheme)).min() {
        let end = at + rest[at..].find(char::is_whitespace).unwrap_or(rest.len() - at);
        let url = &rest[at..end];
        let scheme = url.find(":/").map_or(0, |colon| colon + 2);
        let from = url.rfind('@').unwrap_or(scheme).max(scheme);
        let credentials = &url[scheme..from];
        shown += &rest[..at + scheme];
        // A name alone is no secret.
        let name = credentials.split(':').next().unwrap_or_default();
        shown += if credentials.contains(':') { name } else { credentials };
        let others = &url[from..];
        shown += others.find("password=").map_or(others, |at| &others[..at]);
        rest = &rest[end..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_urls_are_not_shown() {
        let cases = [
            ("postgres://ada:secret@a/photos: no such file", "postgres://ada@a/photos: no such file"),
            ("x 'postgresql://ada:sec@ret@a/b' y", "x 'postgresql://ada@a/b' y"),
            ("postgres:/ada:sec/ret@a", "postgres:/ada@a"),
            (
                "postgres://ada@a/b?password=secret and postgres://b/c",
                "postgres://ada@a/b? and postgres://b/c",
            ),
            ("postgres://ada@a:5432/b: expected x@y", "postgres://ada@a:5432/b: expected x@y"),
            ("no URL: a@b", "no URL: a@b"),
        ];
        for (text, expected) in cases {
            assert_eq!(without_passwords(text), expected);
        }
    }
}
