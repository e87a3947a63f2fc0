//! How large identities are, checked on two views.
//!
//! `connectivity/structural/views` estimates the quartiles of the sizes of identities. The upper one is too large where whole
//! groups of identities look alike. Such groups are then merged, and which ones is a matter of chance: the partition by one half
//! of the coordinates disagrees with that by the other. So the rows, or two regions of a large set, are clustered by each half,
//! with the sizes as estimated and with an upper quartile no larger than the median. The latter is taken if the halves
//! agree better on it, by at least 5 points of F.
//!
//! Cost: that of clustering at most 16,384 rows four times, and O(N D) twice.

use super::kin::{EVEN, partition};
use crate::connectivity::structural::{Background, HalfViews, Sizes, edge_probabilities};
use crate::metrics::evaluate;
use crate::{Context, EdgeModel, Embeddings, KnnGraph, KnnParams, Quiet, Result, Search, knn_graph};

/// Sets of more rows are not clustered as a whole by both halves, but two regions of them.
const WHOLE: usize = 16_384;
/// Rows of a region, which is wide enough for many identities: in a narrow one, both halves would agree to merge everything.
const REGION: usize = 4096;
/// The difference of the mean of both F from which the halves agree better. Chosen on half of the identities of ten real sets
/// and three seeds: for Omniglot's characters it is 0.10 to 0.12, for faces of three sources, where the sizes are right, up to
/// 0.03.
const MARGIN: f64 = 0.05;
/// Halves of fewer columns say nothing.
const COLUMNS: usize = 4;

/// The sizes of identities on which two views of these rows agree; `k` is the number of neighbours of the graph.
pub(super) fn choose_sizes(
    embeddings: &Embeddings,
    k: usize,
    model: &EdgeModel,
    context: &Context,
) -> Result<Sizes> {
    let seed = context.seed();
    let views = HalfViews::of(embeddings, seed);
    let sizes = views.sizes();
    let [lower, median, _] = sizes.0;
    let narrow = Sizes([lower, median, median]);
    if embeddings.dim() < COLUMNS || narrow == sizes {
        return Ok(sizes);
    }
    let n = embeddings.len();
    let mut rows = if n <= WHOLE { (0..n as u32).collect() } else { views.regions(embeddings, 2, REGION) };
    // The background is that of the whole set.
    let cohort = Background::cohort(n, seed);
    rows.extend(&cohort);
    rows.sort_unstable();
    rows.dedup();
    let mut cohort: Vec<u32> =
        cohort.iter().filter_map(|id| Some(rows.binary_search(id).ok()? as u32)).collect();
    cohort.sort_unstable();
    let halves = views.both(embeddings, &rows)?;
    let view = |rows: &Embeddings| -> Result<(KnnGraph, Background)> {
        let params = KnnParams { k, search: Search::Exact, seed, ..KnnParams::default() };
        let graph = knn_graph(rows, &params, &Quiet(context.progress()))?.0;
        Ok((graph, Background::by(rows, &cohort)))
    };
    let halves = [view(&halves[0])?, view(&halves[1])?];
    let quiet = Quiet(context.progress());
    let context = &Context::new(&quiet).with_seed(seed);
    let agreement = |sizes: Sizes| -> Result<f64> {
        let labels = |(graph, background): &(KnnGraph, Background)| {
            let probabilities = edge_probabilities(graph, background, sizes, model, context.progress())?;
            partition(graph, &probabilities, EVEN, context)
        };
        let scores = evaluate(&labels(&halves[0])?, &labels(&halves[1])?)?;
        Ok((scores.pairwise.f + scores.bcubed.f) / 2.0)
    };
    let better = agreement(narrow)? >= agreement(sizes)? + MARGIN;
    Ok(if better { narrow } else { sizes })
}
