//! How large identities are, checked on two views.
//!
//! `connectivity/structural/views` estimates the quartiles of the sizes of identities. The upper one is too large where whole
//! groups of identities look alike. Such groups are then merged, and which ones is a matter of chance: the partition by one half
//! of the coordinates disagrees with that by the other. So the rows are clustered by each half (`halves`), with the sizes as
//! estimated and with an upper quartile no larger than the median. The latter is taken if the halves agree better on it, by at
//! least 3 points of BCubed F. (Pairwise F is decided by whether one large identity happens to split in one half.) Where the
//! two quartiles are within an octave, the choice would change little and is not made.
//!
//! Cost: with a choice, two opinions of `halves`.

use super::halves::Halves;
use crate::connectivity::structural::Sizes;
use crate::metrics::evaluate;
use crate::{Context, EdgeModel, Result};

/// The difference of BCubed F from which the halves agree better. Chosen on the halves of the identities of four real sets: it is
/// 0.045 and 0.111 for Omniglot's characters, where the upper quartile is wrong, and at most 0.003 for faces of three sources,
/// LFW and faces of 24 pixels, where it is right.
const MARGIN: f64 = 0.03;
/// The difference of median and upper quartile, as logarithms to base 2, up to which there is no choice.
const OCTAVE: f32 = 1.0;

/// The sizes of identities on which both halves agree.
pub(crate) fn choose_sizes(halves: &Halves, context: &Context) -> Result<Sizes> {
    let [lower, median, upper] = halves.sizes.0;
    if upper <= median + OCTAVE {
        return Ok(halves.sizes);
    }
    let narrow = Sizes([lower, median, median]);
    let model = EdgeModel::default();
    let agreement = |sizes: Sizes| -> Result<f64> {
        let Some([one, other]) = halves.opinions(sizes, &model, context)? else { return Ok(0.0) };
        Ok(evaluate(&one.labels, &other.labels)?.bcubed.f)
    };
    let better = agreement(narrow)? >= agreement(halves.sizes)? + MARGIN;
    Ok(if better { narrow } else { halves.sizes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Embeddings;
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
        let context = Context::default();
        let halves = Halves::of(rows, 80, &context).unwrap();
        [halves.sizes, choose_sizes(&halves, &context).unwrap()]
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
