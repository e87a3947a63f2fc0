//! The table of rows: the columns of `clusters.csv` and `clusters.parquet`, and the reason of a row as a record of them.
//!
//! Both formats write and read their columns from [`COLUMNS`], so they cannot differ in more than the encoding.

use crate::{Clustering, Edge, Reason, RowReason};

/// A row of the table. Every value may be missing: a file is checked after it was read, by [`Record::reason`].
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Record {
    row: Option<u32>,
    cluster: Option<i64>,
    confidence: Option<f32>,
    parent: Option<u32>,
    similarity: Option<f32>,
    probability: Option<f32>,
    rank: Option<u32>,
    rank_back: Option<u32>,
    shared: Option<u32>,
    outside: Option<u32>,
    outside_similarity: Option<f32>,
    outside_probability: Option<f32>,
}

/// A column: its type, and the value that a record has for it.
pub(super) enum Column {
    /// A row, or a count.
    Number(fn(&mut Record) -> &mut Option<u32>),
    /// A cluster.
    Label(fn(&mut Record) -> &mut Option<i64>),
    /// A similarity, a probability or a confidence.
    Float(fn(&mut Record) -> &mut Option<f32>),
}

/// All columns, with their names and in their order.
const COLUMNS: [(&str, Column); 12] = [
    ("row", Column::Number(|record| &mut record.row)),
    ("cluster", Column::Label(|record| &mut record.cluster)),
    ("confidence", Column::Float(|record| &mut record.confidence)),
    ("parent", Column::Number(|record| &mut record.parent)),
    ("similarity", Column::Float(|record| &mut record.similarity)),
    ("probability", Column::Float(|record| &mut record.probability)),
    ("rank", Column::Number(|record| &mut record.rank)),
    ("rank_back", Column::Number(|record| &mut record.rank_back)),
    ("shared", Column::Number(|record| &mut record.shared)),
    ("outside", Column::Number(|record| &mut record.outside)),
    ("outside_similarity", Column::Float(|record| &mut record.outside_similarity)),
    ("outside_probability", Column::Float(|record| &mut record.outside_probability)),
];

/// The first columns: every row has a value.
#[cfg(feature = "parquet")]
pub(super) const REQUIRED: [&str; 2] = ["row", "cluster"];

/// The columns of methods that estimate edge probabilities.
pub(super) const EDGE_COLUMNS: &[(&str, Column)] = &COLUMNS;

/// Those of all other methods.
pub(super) const TREE_COLUMNS: &[(&str, Column)] = COLUMNS.split_at(5).0;

/// The columns of a result.
pub(super) fn columns(found: &Clustering) -> &'static [(&'static str, Column)] {
    if matches!(found.reason, Reason::Edges(_)) { EDGE_COLUMNS } else { TREE_COLUMNS }
}

/// The names of columns, separated by commas.
pub(super) fn heading(columns: &[(&str, Column)]) -> String {
    columns.iter().map(|&(name, _)| name).collect::<Vec<_>>().join(",")
}

/// Why a record is not what is written for a row.
pub(super) struct Wrong {
    pub expected: String,
    pub found: String,
}

impl Record {
    pub fn new(row: usize, reason: &RowReason) -> Self {
        // A set has fewer than 2^32 rows.
        let (edge, outside) = (reason.edge, reason.outside);
        Record {
            row: Some(row as u32),
            cluster: Some(reason.cluster),
            confidence: reason.confidence,
            parent: reason.parent.map(|parent| parent.0),
            similarity: reason.parent.map(|parent| parent.1),
            probability: edge.map(|edge| edge.probability),
            rank: edge.map(|edge| edge.ranks[0]),
            rank_back: edge.map(|edge| edge.ranks[1]),
            shared: edge.map(|edge| edge.shared),
            outside: outside.map(|outside| outside.0),
            outside_similarity: outside.map(|outside| outside.1),
            outside_probability: outside.map(|outside| outside.2),
        }
    }

    /// The records of a result, in order.
    pub fn all(found: &Clustering) -> impl Iterator<Item = Record> + '_ {
        found.rows().enumerate().map(|(row, reason)| Record::new(row, &reason))
    }

    /// The reason that is in the record of row `row`.
    pub fn reason(&self, row: usize) -> Result<RowReason, Wrong> {
        let missing =
            |name: &str| Wrong { expected: format!("a number in column {name}"), found: "none".into() };
        let number = self.row.ok_or_else(|| missing("row"))?;
        if number as usize != row {
            return Err(Wrong { expected: format!("{row} in column row"), found: number.to_string() });
        }
        let cluster = self.cluster.ok_or_else(|| missing("cluster"))?;
        let parent = match (self.parent, self.similarity) {
            (Some(parent), Some(similarity)) => Some((parent, similarity)),
            (None, None) => None,
            _ => return Err(partly("parent and similarity")),
        };
        let edge = match (parent, self.probability, self.rank, self.rank_back, self.shared) {
            (Some((row, similarity)), Some(probability), Some(rank), Some(back), Some(shared)) => {
                Some(Edge { row, similarity, probability, ranks: [rank, back], shared })
            }
            (_, None, None, None, None) => None,
            _ => return Err(partly("probability, rank, rank_back and shared of a parent")),
        };
        let outside = match (self.outside, self.outside_similarity, self.outside_probability) {
            (Some(outside), Some(similarity), Some(probability)) => Some((outside, similarity, probability)),
            (None, None, None) => None,
            _ => return Err(partly("outside, outside_similarity and outside_probability")),
        };
        Ok(RowReason { cluster, confidence: self.confidence, parent, edge, outside })
    }
}

fn partly(names: &str) -> Wrong {
    Wrong { expected: format!("{names}, or none of them"), found: "only some".to_owned() }
}
