//! Numbers clusters by size, for all methods.
//!
//! Cost: O(N) time.

use crate::labels::densify;

/// Numbers clusters 0..C-1 by descending size, ties by smallest member.
///
/// `components[i]` is any integer that names the cluster of row `i`; equal names are one cluster.
///
/// ```
/// assert_eq!(kinfolk::stages::number_by_size(&[9u32, 4, 7, 7, 4, 7]), [2, 1, 0, 0, 1, 0]);
/// ```
pub fn number_by_size<T: Copy + Into<i64>>(components: &[T]) -> Vec<i64> {
    let dense = densify(components);
    // A counting sort: clusters are already in the order of their smallest members, and it keeps ties in
    // order.
    let largest = dense.sizes.iter().copied().max().unwrap_or(0) as usize;
    let mut next = vec![0; largest + 1];
    dense.sizes.iter().for_each(|&size| next[size as usize] += 1);
    let mut before = 0;
    for slot in next.iter_mut().rev() {
        before += std::mem::replace(slot, before);
    }
    let rank = |&size: &u32| {
        let rank = next[size as usize];
        next[size as usize] += 1;
        rank
    };
    let ranks: Vec<i64> = dense.sizes.iter().map(rank).collect();
    dense.labels.iter().map(|&label| ranks[label as usize]).collect()
}
