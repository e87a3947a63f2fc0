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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};
    use crate::testing::on_one_and_three_threads;

    /// 60 identities of 12 rows, `large` ones of 100 rows, and `groups` of 20 identities of 12 rows that share half of their squared
    /// length, in 64 columns.
    fn rows(large: usize, groups: usize) -> Embeddings {
        const DIM: usize = 64;
        let mut stream = Stream::new(3, Purpose::Image, 0, 0);
        let mut direction = || -> Vec<f32> { (0..DIM).map(|_| stream.rough_normal()).collect() };
        let mix = |a: &[f32], b: &[f32], share: f32| -> Vec<f32> {
            a.iter().zip(b).map(|(a, b)| share.sqrt() * a + (1.0 - share).sqrt() * b).collect()
        };
        let mut identities: Vec<(Vec<f32>, usize)> = Vec::new();
        identities.extend((0..60).map(|_| (direction(), 12)));
        identities.extend((0..large).map(|_| (direction(), 100)));
        for _ in 0..groups {
            let group = direction();
            identities.extend((0..20).map(|_| (mix(&group, &direction(), 0.5), 12)));
        }
        let mut rows = Vec::new();
        for (identity, size) in identities {
            (0..size).for_each(|_| rows.extend(mix(&identity, &direction(), 0.6)));
        }
        Embeddings::from_rows(rows, DIM, "test").unwrap()
    }

    fn estimated_and_chosen(rows: &Embeddings) -> [Sizes; 2] {
        [HalfViews::of(rows, 0).sizes, choose_sizes(rows, 80, &Context::default()).unwrap()]
    }

    #[test]
    fn identities_of_one_size_leave_no_choice() {
        let [estimated, chosen] = estimated_and_chosen(&rows(0, 0));
        assert!(estimated.0[2] <= estimated.0[1] + OCTAVE, "{estimated}");
        assert_eq!(estimated, chosen);
    }

    #[test]
    fn identities_that_are_really_large_are_not_cut() {
        let [estimated, chosen] = estimated_and_chosen(&rows(6, 0));
        assert!(estimated.0[2] > estimated.0[1] + OCTAVE, "{estimated}");
        assert_eq!(estimated, chosen);
    }

    #[test]
    fn groups_of_look_alikes_are_cut_on_any_number_of_threads() {
        let rows = rows(0, 6);
        let [one, three] = on_one_and_three_threads(|| estimated_and_chosen(&rows));
        assert_eq!(one, three);
        let [estimated, chosen] = one;
        let [lower, median, upper] = estimated.0;
        assert!(upper > median + OCTAVE, "{estimated}");
        assert_eq!(chosen, Sizes([lower, median, median]), "{estimated}");
    }
}
