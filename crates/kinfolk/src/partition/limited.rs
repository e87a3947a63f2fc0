//! Connected components of limited size, which split a graph without a known threshold.
//!
//! If a component has too many vertices, the minimum weight is raised for its vertices by a share of its difference to 1. This
//! is repeated until all components are small enough. Consensus-driven propagation (Zhan et al., 2018), the super-vertices of
//! LTC (Yang et al., 2019) and the pseudo-label propagation of L-GCN (Wang et al., 2019) do the same, on edges with different
//! weights.
//!
//! Components that are still too large after the last round, such as many copies of one row, are not split. The published
//! programs then merge all of them, or never end.
//!
//! Cost: O(N) for each round and O(1) for each edge within components that are too large.

use super::DisjointSets;
use crate::{Error, Progress, Result};

/// The maximum size of a component, and how larger ones are split.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeLimit {
    /// The maximum number of vertices of a component.
    pub max_size: usize,
    /// Each round raises the minimum weight by this share of its difference to 1.
    pub step: f32,
    /// The maximum number of rounds.
    pub rounds: usize,
}

impl Default for SizeLimit {
    fn default() -> Self {
        SizeLimit { max_size: 300, step: 0.05, rounds: 100 }
    }
}

impl SizeLimit {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<()> {
        for (name, value) in [("max_size", self.max_size), ("rounds", self.rounds)] {
            if value == 0 {
                return Err(Error::Parameter { field: name, expected: "at least 1", found: "0".to_owned() });
            }
        }
        if !(self.step > 0.0 && self.step <= 1.0) {
            let expected = "a share above 0, at most 1";
            return Err(Error::Parameter { field: "step", expected, found: self.step.to_string() });
        }
        Ok(())
    }
}

/// The components of `n` vertices along `edges`, each named by its smallest vertex.
///
/// The direction of an edge does not matter, nor whether both directions are listed. Weights are at most 1.
///
/// ```
/// use kinfolk::stages::{SizeLimit, limited_components};
/// // A chain of four is too large: it is split at its weakest edge.
/// let edges = vec![(0, 1, 0.9), (1, 2, 0.5), (2, 3, 0.8)];
/// let limit = SizeLimit { max_size: 3, ..SizeLimit::default() };
/// assert_eq!(limited_components(4, edges, &limit, &())?, [0, 0, 2, 2]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn limited_components(
    n: usize,
    mut edges: Vec<(u32, u32, f32)>,
    limit: &SizeLimit,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    limit.check()?;
    let mut least = edges.iter().map(|edge| f64::from(edge.2)).fold(1.0, f64::min);
    progress.begin("rounds", limit.rounds as u64);
    let mut names: Vec<u32> = (0..n as u32).collect();
    let mut open: Vec<u32> = names.clone();
    let mut is_open = vec![true; n];
    let mut sizes = vec![0usize; n];
    for _ in 0..=limit.rounds {
        progress.check()?;
        edges.retain(|&(i, _, weight)| is_open[i as usize] && f64::from(weight) >= least);
        let mut forest = DisjointSets::new(n);
        edges.iter().for_each(|&(i, j, _)| {
            forest.join(i, j);
        });
        for &i in &open {
            names[i as usize] = forest.find(i);
            sizes[i as usize] = 0;
        }
        open.iter().for_each(|&i| sizes[names[i as usize] as usize] += 1);
        open.retain(|&i| {
            is_open[i as usize] = sizes[names[i as usize] as usize] > limit.max_size;
            is_open[i as usize]
        });
        progress.advance(1);
        progress.note(&format!("{} rows in too large clusters above {least:.3}", open.len()));
        if open.is_empty() {
            break;
        }
        least += (1.0 - least) * f64::from(limit.step);
    }
    Ok(names)
}
