//! The kNN affinity graph: for every row its K nearest others by cosine.
//!
//! | file | contents |
//! |---|---|
//! | `codes` | rows as int8, with a proven bound on the error of a score |
//! | `kernel/` | integer products of tiles of rows: AMX, AVX-512 VNNI, AVX2, portable |
//! | `scan` | the few pairs of a tile that beat a threshold |
//! | `candidates` | the best of each row so far, and the threshold |
//! | `exact` | all pairs, each once: N^2 D / 2 integer products |
//! | `join` | IVF join, refined: a recall that is measured |
//! | `lists` | k-means, for the join and for super vertices |
//! | `layout` | the order of rows by their lists |
//! | `index` | rows in the order of their lists, and the search of lists |
//! | `refine` | other ends of edges, and neighbours of neighbours |
//! | `cost` | memory and time, before a search |
//! | `by_blocks` | the search for many processes |
//! | `copies` | rows that occur often are searched for once |
//! | `sweep` | some rows against some others, for the join |
//! | `added` | the neighbours of rows that are added to a graph |
//! | `cohort` | the cosines of all rows with a few, roughly |
//! | `dot` | the similarity that is reported, the same bits from either end |

pub(crate) mod added;
pub(crate) mod by_blocks;
mod candidates;
mod codes;
mod cohort;
mod copies;
mod cost;
mod dot;
mod exact;
mod index;
mod join;
mod kernel;
mod knn_graph;
mod layout;
mod lists;
mod refine;
mod scan;
mod sweep;
#[cfg(test)]
mod tests;

use crate::memory::Budget;
use crate::work::{Arrays, Facts, Journal, Key, Stage};
use crate::{Embeddings, Error, Progress, Result};
use copies::Copies;

pub(crate) use cohort::Cohort;
pub(crate) use copies::hash;
pub(crate) use cost::{expected_time, needed_memory};
pub(crate) use dot::dot;
pub use kernel::Kernel;
pub(crate) use knn_graph::once_each;
pub use knn_graph::{KnnGraph, NeighbourLists};
pub(crate) use lists::near_lists;

/// Well within 2^31 / 127^2, beyond which products would not fit.
const MOST_COLUMNS: usize = 65_536;

/// Copies of a row that the search itself copes with, whatever K is.
const FEW_COPIES: usize = 64;

/// The rows that are searched: all, or some, which are then numbered anew.
#[derive(Clone, Copy)]
struct Rows<'a> {
    embeddings: &'a Embeddings,
    some: Option<&'a [u32]>,
}

impl<'a> Rows<'a> {
    fn all(embeddings: &'a Embeddings) -> Self {
        Self { embeddings, some: None }
    }

    fn len(self) -> usize {
        self.some.map_or_else(|| self.embeddings.len(), <[u32]>::len)
    }

    fn dim(self) -> usize {
        self.embeddings.dim()
    }

    #[inline]
    fn row(self, i: usize) -> &'a [f32] {
        self.embeddings.row(self.some.map_or(i, |some| some[i] as usize))
    }
}

/// The kind of search.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Search {
    #[default]
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

    /// The recall that is aimed at for `n` rows; 1 is an exact search.
    pub(crate) fn recall(self, n: usize) -> f32 {
        match self {
            Search::Auto if n > Search::EXACT_UP_TO => Search::AUTO_RECALL,
            Search::Auto | Search::Exact => 1.0,
            Search::Recall(recall) => recall,
        }
    }
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
    /// The instructions to use; one of `Kernel::available`. Only measurements choose it.
    #[doc(hidden)]
    pub kernel: Kernel,
}

impl Default for KnnParams {
    fn default() -> Self {
        KnnParams { k: 80, search: Search::Auto, seed: 0, kernel: Kernel::default() }
    }
}

impl KnnParams {
    /// What a graph depends on besides the rows. All kernels find the same one.
    pub(crate) fn key(&self) -> Key {
        Key::new().with("k", self.k).with("search", format!("{:?}", self.search)).with("seed", self.seed)
    }
}

/// How a graph was found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
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
    resumed_knn_graph(rows, params, None, progress)
}

/// The same, with the blocks of an approximate search that were finished before.
pub(crate) fn resumed_knn_graph(
    rows: &Embeddings,
    params: &KnnParams,
    journal: Option<&Journal>,
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
    progress.check()?;
    let k = params.k.min(n.saturating_sub(1));
    let kernel = params.kernel;
    if !Kernel::available().contains(&kernel) {
        let expected = "a kernel that this machine has";
        return Err(Error::Parameter { field: "kernel", expected, found: kernel.name().to_owned() });
    }
    let recall = params.search.recall(n);
    let plan = Plan { recall, seed: params.seed, kernel, journal };
    let needed = needed_memory(n, rows.dim(), k, recall == 1.0);
    Budget::default().check(needed, || format!("the search for {k} neighbours of {n} rows"))?;
    search(rows, k, k.max(FEW_COPIES), &plan, progress)
}

/// What a search is to do, all checked.
struct Plan<'a> {
    recall: f32,
    seed: u64,
    kernel: Kernel,
    journal: Option<&'a Journal>,
}

/// Searches the distinct rows only, if some row has more than `most` copies.
fn search(
    embeddings: &Embeddings,
    k: usize,
    most: usize,
    plan: &Plan,
    progress: &dyn Progress,
) -> Result<(KnnGraph, KnnReport)> {
    let all = Rows::all(embeddings);
    let copies = if k == 0 { None } else { Copies::of(embeddings, most, progress)? };
    let Some(copies) = copies else { return plan.search(all, k, progress) };
    let different = Rows { some: Some(&copies.firsts), ..all };
    let (graph, report) = plan.search(different, k.min(different.len() - 1), progress)?;
    Ok((copies.fill(&graph, embeddings, k, progress)?, report))
}

impl Plan<'_> {
    fn search(&self, rows: Rows, k: usize, progress: &dyn Progress) -> Result<(KnnGraph, KnnReport)> {
        let (n, kernel) = (rows.len(), self.kernel);
        if self.recall < 1.0 && k > 0 {
            return join::join(rows, k, self.recall, self.seed, kernel, self.journal, progress);
        }
        let report = KnnReport { exact: true, kernel: kernel.name(), recall: None, lists: None, reach: None };
        let graph = match k {
            0 => KnnGraph::of_valid_parts(n, k, Vec::new(), Vec::new()),
            _ => exact::exact(rows, k, kernel, progress)?,
        };
        Ok((graph, report))
    }
}

impl Stage for (KnnGraph, KnnReport) {
    fn parts(&self) -> (Facts, Vec<&[u8]>) {
        let (KnnGraph { n, k, ids, similarities }, report) = self;
        let KnnReport { exact, kernel, recall, lists, reach } = report;
        let facts = serde_json::json!({
            "rows": n, "k": k, "exact": exact, "kernel": kernel, "recall": recall, "lists": lists, "reach": reach,
        });
        (facts, vec![bytemuck::cast_slice(ids), bytemuck::cast_slice(similarities)])
    }

    fn from_parts(facts: Facts, arrays: &mut Arrays) -> Option<Self> {
        let number = |name: &str| facts[name].as_u64().map(|value| value as usize);
        let share = |name: &str| facts[name].as_f64().map(|value| value as f32);
        let (n, k) = (number("rows")?, number("k")?);
        let (ids, similarities) = (arrays.next::<u32>()?, arrays.next::<f32>()?);
        let fits = n.checked_mul(k) == Some(ids.len()) && ids.len() == similarities.len();
        if !fits || ids.iter().any(|&id| id as usize >= n) {
            return None;
        }
        let report = KnnReport {
            exact: facts["exact"].as_bool()?,
            kernel: Kernel::known_name(facts["kernel"].as_str()?)?,
            recall: share("recall"),
            lists: number("lists"),
            reach: share("reach"),
        };
        Some((KnnGraph::of_valid_parts(n, k, ids, similarities), report))
    }
}
