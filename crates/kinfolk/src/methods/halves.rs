//! A set as each half of its coordinates sees it. What the two halves agree on is not chance: `size_choice` and `cross_check`
//! compare them.
//!
//! Sets of more than 16,384 rows are represented by two regions: the rows nearest to two random ones. The background is that of
//! the whole set.
//!
//! Cost: that of `connectivity/structural/views`, the exact neighbours of at most 16,384 rows in either half, and for each
//! opinion their edge probabilities and a partition.

use super::kin::{EVEN, partition};
use crate::connectivity::structural::{Background, HalfViews, Sizes, edge_probabilities};
use crate::{Context, EdgeModel, Embeddings, KnnGraph, KnnParams, Quiet, Result, Search, knn_graph};

/// Sets of more rows are not looked at as a whole, but two regions of them.
const WHOLE: usize = 16_384;
/// Rows of a region, which is wide enough for many identities: in a narrow one, both halves would agree to merge everything.
pub(crate) const REGION: usize = 4096;
/// Regions.
pub(crate) const REGIONS: usize = 2;
/// Halves of fewer columns say nothing.
const COLUMNS: usize = 4;

/// Both halves of a set, or of regions of it.
pub(crate) struct Halves {
    /// The sizes of identities, as estimated.
    pub(crate) sizes: Sizes,
    /// None if there are too few columns or only one row.
    halves: Option<[Half; 2]>,
}

struct Half {
    graph: KnnGraph,
    background: Background,
}

/// What one half says of the edges of its own graph, and its partition of the rows.
pub(super) struct Opinion<'a> {
    pub(super) graph: &'a KnnGraph,
    pub(super) probabilities: Vec<f32>,
    pub(super) labels: Vec<i64>,
}

impl Halves {
    /// Graphs have `k` neighbours.
    pub(crate) fn of(embeddings: &Embeddings, k: usize, context: &Context) -> Result<Self> {
        let views = HalfViews::of(embeddings, context.seed());
        let cohort = Background::cohort(embeddings.len(), context.seed());
        let regions = || views.regions(embeddings, REGIONS, REGION);
        Self::of_views(&views, regions, &cohort, embeddings, k, context)
    }

    /// By views, regions and a cohort that were found before.
    pub(crate) fn of_views(
        views: &HalfViews,
        regions: impl FnOnce() -> Vec<u32>,
        cohort: &[u32],
        embeddings: &Embeddings,
        k: usize,
        context: &Context,
    ) -> Result<Self> {
        let (sizes, seed) = (views.sizes, context.seed());
        // One row has no neighbours.
        if embeddings.dim() < COLUMNS || k == 0 {
            return Ok(Self { sizes, halves: None });
        }
        let n = embeddings.len();
        let mut rows = if n <= WHOLE { (0..n as u32).collect() } else { regions() };
        rows.extend(cohort);
        rows.sort_unstable();
        rows.dedup();
        let mut cohort: Vec<u32> =
            cohort.iter().filter_map(|id| Some(rows.binary_search(id).ok()? as u32)).collect();
        cohort.sort_unstable();
        let half = |rows: &Embeddings| -> Result<Half> {
            let params = KnnParams { k, search: Search::Exact, seed, ..KnnParams::default() };
            let graph = knn_graph(rows, &params, &Quiet(context.progress()))?.0;
            Ok(Half { graph, background: Background::by(rows, &cohort) })
        };
        let [one, other] = views.both(embeddings, &rows)?;
        Ok(Self { sizes, halves: Some([half(&one)?, half(&other)?]) })
    }

    /// What each half says if identities have these sizes; none if there are too few columns or only one row.
    pub(super) fn opinions(
        &self,
        sizes: Sizes,
        model: &EdgeModel,
        context: &Context,
    ) -> Result<Option<[Opinion<'_>; 2]>> {
        let quiet = Quiet(context.progress());
        let context = &Context::new(&quiet).with_seed(context.seed());
        let Some([one, other]) = &self.halves else { return Ok(None) };
        Ok(Some([one.opinion(sizes, model, context)?, other.opinion(sizes, model, context)?]))
    }
}

impl Half {
    fn opinion(&self, sizes: Sizes, model: &EdgeModel, context: &Context) -> Result<Opinion<'_>> {
        let Self { graph, background } = self;
        let probabilities = edge_probabilities(graph, background, sizes, model, context.progress())?;
        let labels = partition(graph, &probabilities, EVEN, context)?;
        Ok(Opinion { graph, probabilities, labels })
    }
}
