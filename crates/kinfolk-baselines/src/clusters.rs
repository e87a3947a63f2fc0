//! Labels and noise, which all methods share.

use kinfolk::stages::number_by_size;
use kinfolk::{Clustering, Context, GraphReport, KnnGraph, Method, Reason, Report};
use rayon::prelude::*;

/// The result of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clusters {
    /// The cluster of every row: 0.. by descending size, ties by smallest member; -1 for noise with
    /// [`Noise::Keep`].
    pub labels: Vec<i64>,
    /// Which rows the method found to be noise, however they are labelled; `None` from methods without noise.
    pub noise: Option<Vec<bool>>,
}

/// How noise, rows that a method assigns to no cluster, is labelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Noise {
    /// Each is a cluster of its own, so that every row has a label.
    #[default]
    Singletons,
    /// Each keeps the label -1, as in scikit-learn.
    Keep,
    /// Each is assigned to the cluster of its most similar clustered row; without one, it is a cluster of its own.
    Assigned,
}

kinfolk::word_values!(Noise: "singletons, keep or assigned",
    "singletons" => Noise::Singletons, "keep" => Noise::Keep, "assigned" => Noise::Assigned);

impl Clusters {
    /// Clusters without noise, from arbitrary names of clusters.
    pub(crate) fn from_names<T: Copy + Into<i64>>(names: &[T]) -> Self {
        Clusters { labels: number_by_size(names), noise: None }
    }

    /// Clusters from names, -1 for noise. `nearest` returns, for each noise row, the most similar clustered row; it is
    /// called only for [`Noise::Assigned`].
    pub(crate) fn with_noise(
        names: &[i64],
        then: Noise,
        nearest: impl FnOnce(&[bool]) -> Vec<Option<u32>>,
    ) -> Self {
        let noise: Vec<bool> = names.iter().map(|&name| name < 0).collect();
        let first_free = names.iter().max().map_or(0, |&last| last.max(-1) + 1);
        let own = |i: usize| first_free + i as i64;
        let mut full: Vec<i64> =
            names.iter().enumerate().map(|(i, &name)| if name < 0 { own(i) } else { name }).collect();
        let labels = match then {
            Noise::Singletons => number_by_size(&full),
            Noise::Assigned => {
                for (i, nearest) in nearest(&noise).into_iter().enumerate() {
                    if let Some(j) = nearest.filter(|_| noise[i]) {
                        full[i] = names[j as usize];
                    }
                }
                number_by_size(&full)
            }
            Noise::Keep => {
                let clustered: Vec<i64> = names.iter().copied().filter(|&name| name >= 0).collect();
                let mut numbered = number_by_size(&clustered).into_iter();
                noise.iter().map(|&noise| if noise { -1 } else { numbered.next().unwrap_or(-1) }).collect()
            }
        };
        Clusters { labels, noise: Some(noise) }
    }

    /// The result of a run that ends now.
    pub(crate) fn into_clustering(
        self,
        method: &dyn Method,
        graph: Option<GraphReport>,
        context: &Context,
    ) -> Clustering {
        let mut report = Report::new(method, graph, context);
        report.noise_rows = self.noise.map(|noise| noise.into_iter().filter(|&noise| noise).count());
        Clustering::new(self.labels, Reason::None, report)
    }
}

/// For each noise row, the first row of its list that is not noise.
pub(crate) fn nearest_in_lists(graph: &KnnGraph, noise: &[bool]) -> Vec<Option<u32>> {
    let first = |i: usize| graph.neighbours(i).0.iter().copied().find(|&j| !noise[j as usize]);
    (0..graph.len()).into_par_iter().map(|i| if noise[i] { first(i) } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_labelled_in_three_modes() {
        let names = [-1, 5, 5, -1, 7, -1];
        let nearest = |noise: &[bool]| {
            assert_eq!(noise, [true, false, false, true, false, true]);
            vec![Some(4), None, None, Some(1), None, None]
        };
        let labels = |then| Clusters::with_noise(&names, then, nearest).labels;
        assert_eq!(labels(Noise::Keep), [-1, 0, 0, -1, 1, -1]);
        assert_eq!(labels(Noise::Singletons), [1, 0, 0, 2, 3, 4]);
        assert_eq!(labels(Noise::Assigned), [1, 0, 0, 0, 1, 2]);
    }

    #[test]
    fn all_rows_are_noise() {
        let none = |_: &[bool]| vec![None; 3];
        let found = |then| Clusters::with_noise(&[-1; 3], then, none);
        assert_eq!(found(Noise::Keep).labels, [-1; 3]);
        assert_eq!(found(Noise::Assigned).labels, [0, 1, 2]);
        assert_eq!(found(Noise::Singletons).labels, [0, 1, 2]);
        assert_eq!(found(Noise::Keep).noise, Some(vec![true; 3]));
    }
}
