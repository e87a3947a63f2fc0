//! Labels and noise, as every method finds them.

use kinfolk::{Clustering, Context, GraphReport, Method, Reason, Report, number_by_size};

/// What a method found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clusters {
    /// The cluster of every row: 0.. by descending size, ties by smallest member; -1 for noise with
    /// [`Noise::Unlabelled`].
    pub labels: Vec<i64>,
    /// Which rows the method itself left without a cluster, whatever then became of them; `None` from methods without
    /// noise.
    pub noise: Option<Vec<bool>>,
}

/// What becomes of rows that a method leaves without a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Noise {
    /// Each is a cluster of its own, so that every row has a label.
    #[default]
    Singletons,
    /// Label -1, as scikit-learn has it.
    Unlabelled,
    /// Each joins the cluster of its most similar row that has one; where there is none, it is a cluster of its own.
    Assigned,
}

kinfolk::word_values!(Noise: "singletons, kept or assigned",
    "singletons" => Noise::Singletons, "kept" => Noise::Unlabelled, "assigned" => Noise::Assigned);

impl Clusters {
    /// Clusters without noise, from any names for them.
    pub(crate) fn from_names<T: Copy + Into<i64>>(names: &[T]) -> Self {
        Clusters { labels: number_by_size(names), noise: None }
    }

    /// Clusters from names, -1 for noise. `nearest(i)` is the row, of those with a cluster, that is most similar to
    /// the noise `i`; it is called only when noise is to be assigned.
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
            Noise::Unlabelled => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_unlabelled_assigned_or_alone() {
        let names = [-1, 5, 5, -1, 7, -1];
        let nearest = |noise: &[bool]| {
            assert_eq!(noise, [true, false, false, true, false, true]);
            vec![Some(4), None, None, Some(1), None, None]
        };
        let labels = |then| Clusters::with_noise(&names, then, nearest).labels;
        assert_eq!(labels(Noise::Unlabelled), [-1, 0, 0, -1, 1, -1]);
        assert_eq!(labels(Noise::Singletons), [1, 0, 0, 2, 3, 4]);
        assert_eq!(labels(Noise::Assigned), [1, 0, 0, 0, 1, 2]);
    }

    #[test]
    fn nothing_but_noise() {
        let none = |_: &[bool]| vec![None; 3];
        let found = |then| Clusters::with_noise(&[-1; 3], then, none);
        assert_eq!(found(Noise::Unlabelled).labels, [-1; 3]);
        assert_eq!(found(Noise::Assigned).labels, [0, 1, 2]);
        assert_eq!(found(Noise::Singletons).labels, [0, 1, 2]);
        assert_eq!(found(Noise::Unlabelled).noise, Some(vec![true; 3]));
    }
}
