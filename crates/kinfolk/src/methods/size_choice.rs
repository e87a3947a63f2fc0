//! How large identities are, checked on two views.
//!
//! `connectivity/structural/views` estimates the quartiles of the sizes of identities. The upper one is too large where whole
//! groups of identities look alike. Such groups are then merged, and which ones is a matter of chance: the partition by one half
//! of the coordinates disagrees with that by the other. So the rows, or two regions of a large set, are clustered by each half,
//! with the sizes as estimated and with an upper quartile no larger than the median. The latter is taken if the halves
//! agree better on it, by at least 3 points of BCubed F. (Pairwise F is decided by whether one large identity happens to split in
//! one half.) Where the two quartiles are within an octave, the choice would change little and
//! is not made.
//!
//! Cost: that of `views`; with a choice also that of clustering at most 16,384 rows four times, and O(N D) twice.

use super::kin::{EVEN, partition};
use crate::connectivity::structural::{Background, HalfViews, Sizes, edge_probabilities};
use crate::metrics::evaluate;
use crate::{Context, EdgeModel, Embeddings, KnnGraph, KnnParams, Quiet, Result, Search, knn_graph};

/// Sets of more rows are not clustered as a whole by both halves, but two regions of them.
const WHOLE: usize = 16_384;
/// Rows of a region, which is wide enough for many identities: in a narrow one, both halves would agree to merge everything.
const REGION: usize = 4096;
/// The difference of BCubed F from which the halves agree better. Chosen on the halves of the identities of four real sets: it is
/// 0.045 and 0.111 for Omniglot's characters, where the upper quartile is wrong, and at most 0.003 for faces of three sources,
/// LFW and faces of 24 pixels, where it is right.
const MARGIN: f64 = 0.03;
/// The difference of median and upper quartile, as logarithms to base 2, up to which there is no choice.
const OCTAVE: f32 = 1.0;
/// Halves of fewer columns say nothing.
const COLUMNS: usize = 4;

/// The sizes of identities on which two views of these rows agree; `k` is the number of neighbours of the graph.
pub(super) fn choose_sizes(embeddings: &Embeddings, k: usize, context: &Context) -> Result<Sizes> {
    let seed = context.seed();
    let views = HalfViews::of(embeddings, seed);
    let sizes = views.sizes;
    let [lower, median, upper] = sizes.0;
    if embeddings.dim() < COLUMNS || upper <= median + OCTAVE {
        return Ok(sizes);
    }
    let narrow = Sizes([lower, median, median]);
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
    let model = EdgeModel::default();
    let agreement = |sizes: Sizes| -> Result<f64> {
        let labels = |(graph, background): &(KnnGraph, Background)| {
            let probabilities = edge_probabilities(graph, background, sizes, &model, context.progress())?;
            partition(graph, &probabilities, EVEN, context)
        };
        Ok(evaluate(&labels(&halves[0])?, &labels(&halves[1])?)?.bcubed.f)
    };
    let better = agreement(narrow)? >= agreement(sizes)? + MARGIN;
    Ok(if better { narrow } else { sizes })
}
