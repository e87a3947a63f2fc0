//! The kNN affinity graph: for every row its K nearest others by cosine.
//!
//! | file | what |
//! |---|---|
//! | `codes` | rows as int8, with a proven bound on the error of a score |
//! | `kernel/` | integer products of tiles of rows: AMX, AVX-512 VNNI, AVX2, portable |
//! | `scan` | the few pairs of a tile that beat a threshold |
//! | `candidates` | the best of each row so far, and the threshold |
//! | `exact` | all pairs, each once: N^2 D / 2 integer products |
//! | `lists`, `join` | IVF join: about N^1.5 D products at a recall that is measured |
//! | `sweep` | some rows against some others, for the join |
//! | `cohort` | the cosines of all rows with a few, roughly |
//! | `dot` | the similarity that is reported, the same bits from either end |

mod candidates;
mod codes;
mod cohort;
mod dot;
mod exact;
mod join;
mod kernel;
mod knn_graph;
mod lists;
mod scan;
mod sweep;
#[cfg(test)]
mod tests;

use crate::{Embeddings, Error, Progress, Result};

pub(crate) use cohort::Cohort;
pub(crate) use dot::dot;
pub use kernel::Kernel;
pub use knn_graph::KnnGraph;

/// Well within 2^31 / 127^2, beyond which products would not fit.
const MOST_COLUMNS: usize = 65_536;

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Search {
    /// Exact up to [`Search::EXACT_UP_TO`] rows, recall 0.98 above.
    Auto,
    /// Every true neighbour.
    Exact,
    /// At least this share of the true neighbours, as measured on a sample.
    Recall(f32),
}

impl Search {
    /// Rows up to which [`Search::Auto`] is exact.
    pub const EXACT_UP_TO: usize = 50_000;
    /// The recall of [`Search::Auto`] above that.
    pub const AUTO_RECALL: f32 = 0.98;
}

/// Parameters of [`knn_graph`].
#[derive(Debug, Clone, PartialEq)]
pub struct KnnParams {
    /// Neighbours of each vertex, itself excluded.
    pub k: usize,
    /// How to search.
    pub search: Search,
    /// Seed of the samples that the approximate search takes.
    pub seed: u64,
    /// The instructions to use; one of [`Kernel::available`].
    pub kernel: Kernel,
}

impl Default for KnnParams {
    fn default() -> Self {
        KnnParams { k: 80, search: Search::Auto, seed: 0, kernel: Kernel::default() }
    }
}

/// How a graph was found.
#[derive(Debug, Clone, PartialEq)]
pub struct KnnReport {
    /// Whether every neighbour is a true one.
    pub exact: bool,
    /// The instructions that multiplied the tiles.
    pub kernel: &'static str,
    /// The share of true neighbours found, measured on a sample; `None` for an exact search.
    pub recall: Option<f32>,
    /// Lists of the approximate search.
    pub lists: Option<usize>,
    /// Its reach: lists whose centroid scores this much below a row's best are searched.
    pub reach: Option<f32>,
}

/// Finds the K nearest neighbours of every row. K becomes N - 1 where it is larger.
pub fn knn_graph(
    rows: &Embeddings,
    params: &KnnParams,
    progress: &dyn Progress,
) -> Result<(KnnGraph, KnnReport)> {
    let n = rows.len();
    if params.k == 0 {
        return Err(Error::Parameter { field: "k", expected: "at least 1", found: "0".into() });
    }
    if let Search::Recall(r) = params.search
        && !(r > 0.0 && r <= 1.0)
    {
        let expected = "a number above 0, at most 1";
        return Err(Error::Parameter { field: "recall", expected, found: r.to_string() });
    }
    if rows.dim() > MOST_COLUMNS {
        let expected = "at most 65536 columns, whose int8 products fit 32 bits";
        return Err(Error::Parameter { field: "features", expected, found: rows.dim().to_string() });
    }
    let k = params.k.min(n.saturating_sub(1));
    let kernel = params.kernel;
    if !Kernel::available().contains(&kernel) {
        let expected = "a kernel that this machine has";
        return Err(Error::Parameter { field: "kernel", expected, found: kernel.name().to_owned() });
    }
    let recall = match params.search {
        Search::Auto if n > Search::EXACT_UP_TO => Search::AUTO_RECALL,
        Search::Auto | Search::Exact => 1.0,
        Search::Recall(recall) => recall,
    };
    if recall < 1.0 && k > 0 {
        return Ok(join::join(rows, k, recall, params.seed, kernel, progress));
    }
    let report = KnnReport { exact: true, kernel: kernel.name(), recall: None, lists: None, reach: None };
    let graph = match k {
        0 => KnnGraph { n, k, ids: Vec::new(), similarities: Vec::new() },
        _ => exact::exact(rows, k, kernel, progress),
    };
    Ok((graph, report))
}
