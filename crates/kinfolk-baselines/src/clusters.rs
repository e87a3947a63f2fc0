//! What every method returns.

use kinfolk::number_by_size;

/// What a method found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clusters {
    /// The cluster of every row: 0.. by descending size, ties by smallest member; -1 for noise that was asked to
    /// be kept ([`Noise::Kept`]).
    pub labels: Vec<i64>,
    /// Which rows the method itself left without a cluster, whatever then became of them; `None` from methods that
    /// know no noise.
    pub noise: Option<Vec<bool>>,
}

/// What becomes of rows that a method leaves without a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Noise {
    /// Each is a cluster of its own, so that every row has a label.
    #[default]
    Singletons,
    /// Label -1, as scikit-learn has it.
    Kept,
    /// Each joins the cluster of its most similar row that has one; where there is none, it is a cluster of its own.
    Assigned,
}

impl Clusters {
    /// How many clusters there are; noise that was kept is none.
    pub fn len(&self) -> usize {
        self.labels.iter().max().map_or(0, |&last| (last + 1) as usize)
    }

    /// True when there is no cluster.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Clusters without noise, from any names for them.
    pub(crate) fn from_names<T: Copy + Into<i64>>(names: &[T]) -> Self {
        Clusters { labels: number_by_size(names), noise: None }
    }
}
