//! Vertex confidence: how certain it is that a vertex lies in the dense centre of one identity.
//!
//! Section 4.3.1 of the paper compares five designs. Two need no labels and serve as confidence directly:
//!
//! | name | definition |
//! |---|---|
//! | u_num(r) | number of neighbours within the radius r |
//! | u_weight(r) | sum of their similarities |
//!
//! Three need labels and are the training targets of a confidence estimator:
//!
//! | name | definition |
//! |---|---|
//! | s_nbr | mean over the neighbours of +a if the label is the same, -a if not (Equation 1) |
//! | s_avg | mean similarity to all other vertices of the same label |
//! | s_center | similarity to the mean feature of the vertices of the same label |
//!
//! Several of them, or the estimates of a network, can be combined by averaging ranks ([`average_ranks`]).
//!
//! Cost: O(N K) for those on the kNN graph, O(N D) for s_avg and s_center, which go through the sum of the
//! features of each label instead of through pairs.

mod density;
mod ensemble;
mod supervised;

pub use density::{DEFAULT_RADIUS, u_num, u_weight};
pub use ensemble::average_ranks;
pub use supervised::{s_avg, s_center, s_nbr};

#[cfg(test)]
mod tests;
