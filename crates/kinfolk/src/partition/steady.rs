//! Merges clusters that are split at one threshold only.
//!
//! Whether a large identity is one module can depend on small changes of the threshold: it may be whole with edges above 0.5 and
//! above 0.7, and split into three with edges above 0.6. So modules are merged if they are in one cluster both in a partition of
//! more edges and in one of fewer edges.

use super::number_by_size;
use std::collections::HashMap;

/// Merges clusters of `labels` if in both `others`, labels of the same rows, most of their rows are in the same cluster.
///
/// Cost: O(N).
pub(crate) fn join_steady(labels: &[i64], others: [&[i64]; 2]) -> Vec<i64> {
    let clusters = labels.iter().max().map_or(0, |&last| last as usize + 1);
    let mut sizes = vec![0usize; clusters];
    labels.iter().for_each(|&label| sizes[label as usize] += 1);
    // Where most rows of each cluster are, if most are in one.
    let [less, more] = others.map(|other| {
        let mut rows: HashMap<(i64, i64), usize> = HashMap::new();
        labels.iter().zip(other).for_each(|(&ours, &theirs)| *rows.entry((ours, theirs)).or_default() += 1);
        let mut most = vec![None; clusters];
        for ((ours, theirs), count) in rows {
            if 2 * count > sizes[ours as usize] {
                most[ours as usize] = Some(theirs);
            }
        }
        most
    });
    let mut first: HashMap<(i64, i64), i64> = HashMap::new();
    let names: Vec<i64> = (0..clusters)
        .map(|cluster| {
            let own = cluster as i64;
            less[cluster].zip(more[cluster]).map_or(own, |homes| *first.entry(homes).or_insert(own))
        })
        .collect();
    number_by_size(&labels.iter().map(|&label| names[label as usize]).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_both_hold_together_is_joined() {
        let torn = [0, 0, 0, 1, 1, 2, 2];
        let whole = [0, 0, 0, 0, 0, 1, 1];
        let one = [0; 7];
        assert_eq!(join_steady(&torn, [&one, &whole]), [0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(join_steady(&torn, [&one, &torn]), torn);
        assert_eq!(join_steady(&torn, [&one, &one]), [0; 7]);
        // Half of a cluster is not most of it.
        assert_eq!(join_steady(&[0, 0, 0, 1, 1], [&[0; 5], &[0, 0, 0, 0, 1]]), [0, 0, 0, 1, 1]);
        assert_eq!(join_steady(&[], [&[], &[]]), [0i64; 0]);
    }

    proptest! {
        /// Clusters are merged, never split, and only if both others agree.
        #[test]
        fn nothing_is_torn(rows in proptest::collection::vec((0i64..6, 0i64..4, 0i64..4), 1..60)) {
            let column = |which: fn(&(i64, i64, i64)) -> i64| {
                number_by_size(&rows.iter().map(which).collect::<Vec<_>>())
            };
            let (labels, less, more) = (column(|row| row.0), column(|row| row.1), column(|row| row.2));
            let joined = join_steady(&labels, [&less, &more]);
            let home = |of: &[i64], cluster: i64| {
                let rows: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] == cluster).collect();
                (0..4).find(|&c| 2 * rows.iter().filter(|&&i| of[i] == c).count() > rows.len())
            };
            for i in 0..labels.len() {
                for j in 0..labels.len() {
                    let (a, b) = (labels[i], labels[j]);
                    let both = [&less, &more].map(|of| (home(of, a), home(of, b)));
                    let expected = a == b || both.iter().all(|homes| homes.0.is_some() && homes.0 == homes.1);
                    prop_assert_eq!(joined[i] == joined[j], expected);
                }
            }
        }
    }
}
