//! The stages of a job, in the order in which they run.

use super::estimate;
use crate::knn::by_blocks::{self, Search};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// The part of a usual job that stages are; the rest is the partition.
const STAGES: f32 = 0.93;

/// A stage of a job.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) enum Stage {
    /// The shapes of the shards.
    Shapes,
    /// Rows of unit length.
    Rows,
    /// Sums of rows, for what all rows share.
    Sums,
    /// Rows without it.
    Centring,
    Search(by_blocks::Stage),
    Estimate(estimate::Stage),
    Done,
}

impl Stage {
    /// Whether its parts are still read by the next stage, which removes them.
    pub fn has_additions(self) -> bool {
        use by_blocks::Stage::{Ends, Look};
        matches!(self, Stage::Search(Ends { .. } | Look { .. }))
    }

    /// The part of a usual job, of millions of rows, at which it begins and ends. Its rounds are taken for one.
    pub fn share(self) -> Range<f32> {
        use by_blocks::Stage::{
            Add, Assign, Codes, Ends, Exact, Fill, Graph, Lists, Look, Sample, Search as Visit,
        };
        use estimate::Stage::{Background, BothEnds, Check, Edges, Halves, Profiles, Views};
        match self {
            Stage::Shapes => 0.0..0.0,
            Stage::Rows => 0.0..0.01,
            Stage::Sums => 0.01..0.02,
            Stage::Centring => 0.02..0.03,
            Stage::Search(stage) => match stage {
                Assign { .. } => 0.03..0.1,
                Lists => 0.1..0.15,
                Codes => 0.15..0.16,
                Exact => 0.16..0.7,
                Sample => 0.16..0.2,
                Visit { .. } => 0.2..0.6,
                Ends { .. } => 0.6..0.62,
                Look { .. } => 0.62..0.65,
                Add { .. } => 0.65..0.68,
                Graph => 0.68..0.7,
                Fill => 0.7..0.7,
            },
            Stage::Estimate(stage) => match stage {
                Background => 0.7..0.72,
                Profiles => 0.72..0.73,
                Views => 0.73..0.74,
                Halves => 0.74..0.76,
                Edges => 0.76..0.9,
                BothEnds => 0.9..0.92,
                Check => 0.92..STAGES,
            },
            Stage::Done => STAGES..1.0,
        }
    }

    /// Arrays that are not needed once it is finished.
    pub fn stale(self) -> Vec<String> {
        match self {
            Stage::Centring => vec!["sums".to_owned()],
            Stage::Search(stage) => Search::stale(stage),
            Stage::Estimate(estimate::Stage::BothEnds) => vec!["own".to_owned(), "profiles".to_owned()],
            Stage::Estimate(estimate::Stage::Check) => vec!["raw".to_owned()],
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Stage::Shapes => f.write_str("shapes"),
            Stage::Rows => f.write_str("rows"),
            Stage::Sums => f.write_str("sums"),
            Stage::Centring => f.write_str("centring"),
            Stage::Search(stage) => stage.fmt(f),
            Stage::Estimate(stage) => stage.fmt(f),
            Stage::Done => f.write_str("done"),
        }
    }
}
