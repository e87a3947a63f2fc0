//! Pseudo-labels: the clusters that are worth training a network on.
//!
//! Small and doubtful clusters are left out. The others are classes 0, 1, 2 ... by descending size.
//!
//! The probability p_c that two rows of cluster c are of one identity comes from its edges
//! ([`Cohesion`](crate::stages::Cohesion)). The expected precision is that of the pairs, of which a cluster of n_c rows has
//! n_c (n_c - 1) / 2: the mean of p_c with these weights. So large clusters decide it, as they decide pairwise precision.
//!
//! Cost: O(N).

use crate::metrics::evaluate;
use crate::{Clustering, Error, Result};

/// Which clusters become classes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PseudoLabelParams {
    /// Rows of the smallest cluster that is kept: 2, because a class of one row has no pair to learn from.
    pub least_size: usize,
    /// Clusters whose pairs are less likely of one identity are left out. `None` keeps all, because what a wrong row costs
    /// and what a missing row costs depends on the training.
    pub least_probability: Option<f32>,
}

impl Default for PseudoLabelParams {
    fn default() -> Self {
        PseudoLabelParams { least_size: 2, least_probability: None }
    }
}

impl PseudoLabelParams {
    /// Refuses what is out of range.
    pub fn check(&self) -> Result<()> {
        if self.least_size == 0 {
            let (expected, found) = ("at least 1", "0".to_owned());
            return Err(Error::Parameter { field: "least_size", expected, found });
        }
        match self.least_probability {
            Some(least) if !(0.0..=1.0).contains(&least) => Err(Error::Parameter {
                field: "least_probability",
                expected: "a probability from 0 to 1",
                found: least.to_string(),
            }),
            _ => Ok(()),
        }
    }
}

/// The classes of the rows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PseudoLabels {
    /// The class of every row: 0, 1, 2 ... by descending size; -1 for rows that are left out.
    pub labels: Vec<i64>,
    /// The number of classes.
    pub classes: usize,
    /// The number of rows that have a class.
    pub kept: usize,
    /// The probability that two rows of one class are of one identity; `None` from methods that estimate no edge
    /// probabilities, and 1 without any pair.
    pub expected_precision: Option<f32>,
}

impl PseudoLabels {
    /// Of labels, which are numbered by descending size, and the probability of each cluster, if it is known.
    pub fn of(labels: &[i64], probabilities: Option<&[f32]>, params: &PseudoLabelParams) -> Result<Self> {
        params.check()?;
        let clusters = labels.iter().max().map_or(0, |&last| (last + 1).max(0) as usize);
        if let Some(known) = probabilities
            && known.len() != clusters
        {
            let (place, what) = ("probabilities".to_owned(), "probabilities (one per cluster)".to_owned());
            return Err(Error::Length { place, what, expected: clusters, found: known.len() });
        }
        let least = match (params.least_probability, probabilities) {
            (Some(_), None) => {
                let expected = "a method that estimates edge probabilities, such as kin";
                let found = "one that does not".to_owned();
                return Err(Error::Parameter { field: "least_probability", expected, found });
            }
            (least, _) => least.unwrap_or(0.0),
        };
        let mut sizes = vec![0usize; clusters];
        labels.iter().filter(|&&label| label >= 0).for_each(|&label| sizes[label as usize] += 1);
        let probable = |cluster: usize| probabilities.is_none_or(|known| known[cluster] >= least);
        let (mut classes, mut kept) = (0, 0);
        let (mut pairs, mut right) = (0.0, 0.0);
        let mut class_of = vec![-1; clusters];
        for (cluster, &size) in sizes.iter().enumerate() {
            if size >= params.least_size && probable(cluster) {
                class_of[cluster] = classes as i64;
                classes += 1;
                kept += size;
                let of_cluster = size as f64 * (size as f64 - 1.0) / 2.0;
                pairs += of_cluster;
                right += of_cluster * probabilities.map_or(1.0, |known| f64::from(known[cluster]));
            }
        }
        let labels = labels.iter().map(|&label| if label < 0 { -1 } else { class_of[label as usize] });
        let precision = if pairs > 0.0 { (right / pairs) as f32 } else { 1.0 };
        let expected_precision = probabilities.map(|_| precision);
        Ok(PseudoLabels { labels: labels.collect(), classes, kept, expected_precision })
    }

    /// The share of pairs in one class that are of one identity, by true labels.
    pub fn precision(&self, truth: &[i64]) -> Result<f64> {
        let kept = |of: &[i64]| -> Vec<i64> {
            of.iter().zip(&self.labels).filter(|(_, class)| **class >= 0).map(|(&label, _)| label).collect()
        };
        match self.kept {
            0 => Ok(1.0),
            _ => Ok(evaluate(&kept(truth), &kept(&self.labels))?.pairwise.precision),
        }
    }

    /// The share of rows that have a class.
    pub fn share(&self) -> f64 {
        self.kept as f64 / self.labels.len().max(1) as f64
    }
}

impl Clustering {
    /// For each cluster the probability that two of its rows are of one identity; `None` from methods that estimate no edge
    /// probabilities.
    pub fn cluster_probabilities(&self) -> Option<Vec<f32>> {
        self.edges().map(|evidence| evidence.clusters.iter().map(|cluster| cluster.probability()).collect())
    }
}

/// The clusters that are worth training on, and how precise they can be expected to be.
///
/// Refuses a least probability for the result of a method that estimates none.
///
/// ```
/// use kinfolk::synth::{Synth, SynthParams};
/// use kinfolk::{Clusterer, PseudoLabelParams, pseudo_labels};
/// # fn main() -> kinfolk::Result<()> {
/// let params = SynthParams { identities: 40, dim: 64, ..SynthParams::default() };
/// let (embeddings, _) = Synth::new(params)?.whole().to_embeddings()?;
/// let found = Clusterer::new().fit(&embeddings)?;
/// let all = pseudo_labels(&found, &PseudoLabelParams::default())?;
/// let params = PseudoLabelParams { least_size: 5, least_probability: Some(0.9) };
/// let sure = pseudo_labels(&found, &params)?;
/// assert!(sure.kept <= all.kept && sure.expected_precision >= all.expected_precision);
/// # Ok(())
/// # }
/// ```
pub fn pseudo_labels(found: &Clustering, params: &PseudoLabelParams) -> Result<PseudoLabels> {
    let labels = PseudoLabels::of(&found.labels, found.cluster_probabilities().as_deref(), params);
    labels.map_err(|error| match error {
        Error::Parameter { field: "least_probability", expected, found: _ } if found.edges().is_none() => {
            Error::Parameter { field: "least_probability", expected, found: found.report.method.to_owned() }
        }
        error => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::{Synth, SynthParams};
    use crate::{Clusterer, Density};
    use proptest::prelude::*;

    fn params(least_size: usize, least_probability: impl Into<Option<f32>>) -> PseudoLabelParams {
        PseudoLabelParams { least_size, least_probability: least_probability.into() }
    }

    /// Labels numbered by descending size.
    fn labelled() -> impl Strategy<Value = (Vec<i64>, Vec<f32>)> {
        prop::collection::vec(0u32..9, 1..40).prop_flat_map(|names| {
            let labels = crate::number_by_size(&names);
            let clusters = labels.iter().max().unwrap() + 1;
            let probabilities = prop::collection::vec(0u8..11, clusters as usize);
            (Just(labels), probabilities.prop_map(|all| all.iter().map(|&p| f32::from(p) / 10.0).collect()))
        })
    }

    proptest! {
        #[test]
        fn classes_are_the_kept_clusters_and_precision_is_that_of_their_pairs(
            (labels, probabilities) in labelled(),
            least_size in 1usize..5,
            least in 0u8..11,
        ) {
            let least = f32::from(least) / 10.0;
            let found = PseudoLabels::of(&labels, Some(&probabilities), &params(least_size, least)).unwrap();
            let size = |label: i64| labels.iter().filter(|&&other| other == label).count();
            let kept = |row: usize| size(labels[row]) >= least_size && probabilities[labels[row] as usize] >= least;
            let (mut pairs, mut right) = (0, 0.0);
            for a in 0..labels.len() {
                prop_assert_eq!(found.labels[a] >= 0, kept(a));
                for b in 0..a {
                    let together = found.labels[a] >= 0 && found.labels[a] == found.labels[b];
                    prop_assert_eq!(together, kept(a) && labels[a] == labels[b]);
                    if together {
                        pairs += 1;
                        right += probabilities[labels[a] as usize];
                    }
                }
            }
            let expected = if pairs == 0 { 1.0 } else { right / pairs as f32 };
            prop_assert!((found.expected_precision.unwrap() - expected).abs() < 1e-5);
            prop_assert_eq!(found.kept, (0..labels.len()).filter(|&row| kept(row)).count());
            // Dense, and by descending size.
            let sizes: Vec<usize> = (0..found.classes as i64)
                .map(|class| found.labels.iter().filter(|&&label| label == class).count())
                .collect();
            prop_assert!(sizes.iter().all(|&size| size > 0) && sizes.is_sorted_by(|a, b| a >= b));
        }
    }

    #[test]
    fn rows_of_noise_are_left_out_and_nothing_may_be_kept() {
        let found = PseudoLabels::of(&[0, -1, 0, 1], None, &params(1, None)).unwrap();
        assert_eq!((found.labels, found.classes, found.expected_precision), (vec![0, -1, 0, 1], 2, None));
        let found = PseudoLabels::of(&[0, 1, 0, 2], Some(&[0.2, 1.0, 1.0]), &params(2, 0.9)).unwrap();
        assert_eq!((&found.labels[..], found.classes, found.kept), (&[-1; 4][..], 0, 0));
        assert_eq!((found.expected_precision, found.precision(&[0, 1, 2, 3]).unwrap()), (Some(1.0), 1.0));
        let found = PseudoLabels::of(&[-1, -1], None, &PseudoLabelParams::default()).unwrap();
        assert_eq!((found.classes, found.share()), (0, 0.0));
        assert_eq!(PseudoLabels::of(&[], None, &PseudoLabelParams::default()).unwrap().share(), 0.0);
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        let message = |params| PseudoLabels::of(&[0], Some(&[1.0]), &params).unwrap_err().to_string();
        assert_eq!(message(params(0, None)), "least_size: expected at least 1, found 0");
        for wrong in [1.5, -0.1, f32::NAN, f32::INFINITY] {
            let expected = format!("least_probability: expected a probability from 0 to 1, found {wrong}");
            assert_eq!(message(params(2, wrong)), expected);
        }
        let error = PseudoLabels::of(&[0, 1], Some(&[1.0]), &params(2, None)).unwrap_err().to_string();
        assert_eq!(error, "probabilities: expected 2 probabilities (one per cluster), found 1");
    }

    #[test]
    fn methods_without_probabilities_have_sizes_only() {
        let set = SynthParams { identities: 40, dim: 64, ..SynthParams::default() };
        let (embeddings, truth) = Synth::new(set).unwrap().whole().to_embeddings().unwrap();
        let found = Clusterer::with(Density::default()).fit(&embeddings).unwrap();
        let kept = pseudo_labels(&found, &params(5, None)).unwrap();
        assert!(kept.classes > 10 && kept.expected_precision.is_none());
        let error = pseudo_labels(&found, &params(2, 0.5)).unwrap_err().to_string();
        let expected = "a method that estimates edge probabilities, such as kin, found density";
        assert_eq!(error, format!("least_probability: expected {expected}"));
        // kin has both, and precision is about as expected.
        let found = Clusterer::new().fit(&embeddings).unwrap();
        let sure = pseudo_labels(&found, &params(5, 0.9)).unwrap();
        let (expected, precision) =
            (f64::from(sure.expected_precision.unwrap()), sure.precision(&truth).unwrap());
        assert!(sure.kept > 0 && (precision - expected).abs() < 0.1, "{precision}, {expected}");
    }
}
