//! The outcome of a run of a method, and how tables, files and messages show it.

use crate::scores::{both_f, percent};
use kinfolk::metrics::Scores;

/// The outcome of a run.
#[derive(Clone)]
pub enum Outcome {
    Done {
        scores: Box<Scores>,
        seconds: f64,
    },
    /// It took longer than the limit.
    Stopped,
    /// It took longer than the limit on a smaller set, or when settings were tried.
    NotRun,
    /// The method refuses such a set.
    Refused(String),
}

impl Outcome {
    /// Pairwise F, BCubed F in percent.
    pub fn both_f(&self) -> Option<[f64; 2]> {
        match self {
            Outcome::Done { scores, .. } => Some(both_f(scores)),
            _ => None,
        }
    }

    /// Cells for clusters, both F's and seconds.
    pub fn cells(&self, limit: f64) -> [String; 4] {
        let none = || "-".to_owned();
        match self {
            Outcome::Done { scores, seconds } => [
                scores.clusters.to_string(),
                percent(scores.pairwise.f),
                percent(scores.bcubed.f),
                format!("{seconds:.2}"),
            ],
            Outcome::Stopped | Outcome::NotRun => [none(), none(), none(), format!("> {limit}")],
            Outcome::Refused(_) => [none(), none(), none(), "refused".to_owned()],
        }
    }

    /// Both F's and seconds, or what happened instead, in words.
    pub fn describe(&self, limit: f64) -> String {
        match self {
            Outcome::Done { .. } => {
                let [_, pairwise, bcubed, seconds] = self.cells(limit);
                format!("{pairwise} / {bcubed}, {seconds} s")
            }
            Outcome::Stopped => format!("over {limit} s"),
            Outcome::NotRun => "not run".to_owned(),
            Outcome::Refused(reason) => format!("refused: {reason}"),
        }
    }

    /// Clusters, both F, seconds and how it ended, for a file; missing values are empty.
    pub fn fields(&self) -> [String; 5] {
        let how = match self {
            Outcome::Done { .. } => "done",
            Outcome::Stopped => "over the limit",
            Outcome::NotRun => "not run",
            Outcome::Refused(_) => "refused",
        };
        let [clusters, pairwise, bcubed, seconds] = match self {
            Outcome::Done { .. } => self.cells(0.0),
            _ => Default::default(),
        };
        [clusters, pairwise, bcubed, seconds, how.to_owned()]
    }
}

/// The names of [`Outcome::fields`].
pub const FIELDS: &str = "clusters,pairwise_f,bcubed_f,seconds,ended";
