//! Renumbers arbitrary integer labels densely, so that arrays can be indexed with them.
//!
//! Cost: O(N), with a table if the range of labels is not much larger than N, else with hashing.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// Labels renamed to 0.. in order of first appearance.
pub(crate) struct Dense {
    /// The new label of each row.
    pub labels: Vec<u32>,
    /// How many rows carry each new label.
    pub sizes: Vec<u32>,
}

/// Renames labels to 0..C in order of first appearance.
///
/// # Panics
/// On 2^32 rows or more: rows are `u32` everywhere in this crate.
pub(crate) fn densify<T: Copy + Into<i64>>(labels: &[T]) -> Dense {
    assert!(u32::try_from(labels.len()).is_ok(), "at most {} rows", u32::MAX);
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for &label in labels {
        low = low.min(label.into());
        high = high.max(label.into());
    }
    let mut sizes = Vec::new();
    let span = high as i128 - low as i128 + 1;
    let labels = if span <= 4 * labels.len() as i128 + 1024 {
        const UNSEEN: u32 = u32::MAX;
        let mut table = vec![UNSEEN; span.max(0) as usize];
        let rename = |&label: &T| {
            let new = &mut table[(label.into() - low) as usize];
            if *new == UNSEEN {
                *new = sizes.len() as u32;
                sizes.push(0);
            }
            sizes[*new as usize] += 1;
            *new
        };
        labels.iter().map(rename).collect()
    } else {
        let mut table = HashMap::<i64, u32, BuildHasherDefault<Mix>>::default();
        let rename = |&label: &T| {
            let new = match table.entry(label.into()) {
                Entry::Occupied(seen) => *seen.get(),
                Entry::Vacant(unseen) => {
                    sizes.push(0);
                    *unseen.insert(sizes.len() as u32 - 1)
                }
            };
            sizes[new as usize] += 1;
            new
        };
        labels.iter().map(rename).collect()
    };
    Dense { labels, sizes }
}

impl Dense {
    /// The rows by label, ascending within each, and where the rows of each label end.
    pub(crate) fn members(&self) -> (Vec<u32>, Vec<usize>) {
        let mut ends: Vec<usize> = Vec::with_capacity(self.sizes.len());
        let mut start = 0;
        for &size in &self.sizes {
            ends.push(start);
            start += size as usize;
        }
        let mut members = vec![0; self.labels.len()];
        for (row, &label) in self.labels.iter().enumerate() {
            // Filling moves each label's start to its end.
            members[ends[label as usize]] = row as u32;
            ends[label as usize] += 1;
        }
        (members, ends)
    }
}

/// Multiplies and folds. The default hasher, which resists chosen keys, would take most of the time of an evaluation.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_i64(byte as i64));
    }

    fn write_i64(&mut self, value: i64) {
        let product = (self.0 ^ value as u64) as u128 * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn table_and_hash_rename_alike(
            labels in prop::collection::vec(-9i64..9, 0..60),
            far in prop::bool::ANY,
        ) {
            // Spread to the ends of the range, the same labels go through the hash instead of the table.
            let stride = if far { i64::MAX / 9 } else { 1 };
            let spread: Vec<i64> = labels.iter().map(|label| label * stride).collect();
            let dense = densify(&spread);
            let mut seen: Vec<i64> = Vec::new();
            for (row, label) in spread.iter().enumerate() {
                if !seen.contains(label) {
                    seen.push(*label);
                }
                prop_assert_eq!(seen[dense.labels[row] as usize], *label);
            }
            prop_assert_eq!(dense.sizes.len(), seen.len());
            let (members, ends) = dense.members();
            let mut expected: Vec<u32> = (0..spread.len() as u32).collect();
            expected.sort_by_key(|&row| dense.labels[row as usize]);
            prop_assert_eq!(members, expected);
            prop_assert_eq!(ends.last().copied().unwrap_or(0), spread.len());
        }
    }
}
