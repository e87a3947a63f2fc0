//! `clusters.csv`: one line for each row. A row of highest confidence has no parent; a parent in another cluster was cut
//! off. What a method does not know is left empty.

use crate::io::AtomicFile;
use crate::{Clustering, Edge, Error, Reason, Result, RowReason};
use std::fmt::Write as _;
use std::io::Write;

/// The columns of every file, and those of methods that estimate edge probabilities.
const COLUMNS: &str = "row,cluster,confidence,parent,similarity";
const EDGE_COLUMNS: &str =
    ",probability,rank,rank_back,shared,outside,outside_similarity,outside_probability";

pub(super) fn write(file: &mut AtomicFile, found: &Clustering) -> std::io::Result<()> {
    let has_edges = matches!(found.reason, Reason::Edges(_));
    writeln!(file, "{COLUMNS}{}", if has_edges { EDGE_COLUMNS } else { "" })?;
    let mut line = String::new();
    for (row, reason) in found.rows().enumerate() {
        line.clear();
        let _ = write!(line, "{row},{},", reason.cluster);
        if let Some(confidence) = reason.confidence {
            let _ = write!(line, "{confidence}");
        }
        let _ = match reason.parent {
            Some((parent, similarity)) => write!(line, ",{parent},{similarity}"),
            None => write!(line, ",,"),
        };
        if has_edges {
            let _ = match reason.edge {
                Some(Edge { probability, ranks: [rank, back], shared, .. }) => {
                    write!(line, ",{probability},{rank},{back},{shared}")
                }
                None => write!(line, ",,,,"),
            };
            let _ = match reason.outside {
                Some((other, similarity, probability)) => write!(line, ",{other},{similarity},{probability}"),
                None => write!(line, ",,,"),
            };
        }
        writeln!(file, "{line}")?;
    }
    Ok(())
}

/// Reads the text of a file; `place` names it in errors.
pub fn parse_clusters(text: &str, place: &str) -> Result<Vec<RowReason>> {
    let mut lines = text.lines();
    let heading = lines.next().unwrap_or_default();
    let wrong = |line: usize, expected: String, found: &str| Error::Format {
        place: format!("{place} (line {line})"),
        expected,
        found: found.to_owned(),
    };
    if heading.strip_prefix(COLUMNS).is_none_or(|more| !["", EDGE_COLUMNS].contains(&more)) {
        return Err(wrong(1, format!("the heading {COLUMNS}"), heading));
    }
    let read = |(row, line): (usize, &str)| {
        parse_line(line, row)
            .ok_or_else(|| wrong(row + 2, format!("what `cluster` writes for row {row}"), line))
    };
    lines.enumerate().map(read).collect()
}

fn parse_line(line: &str, row: usize) -> Option<RowReason> {
    let fields: Vec<&str> = line.split(',').collect();
    let &[number, cluster, confidence, parent, similarity, ref more @ ..] = &fields[..] else { return None };
    let [probability, rank, back, shared, outside, outside_similarity, outside_probability] = match *more {
        [] => [""; 7],
        _ => more.try_into().ok()?,
    };
    if number.parse() != Ok(row) {
        return None;
    }
    let parent = match parent {
        "" => None,
        parent => Some((parent.parse().ok()?, similarity.parse().ok()?)),
    };
    let edge = match (parent, probability) {
        (Some((row, similarity)), probability) if !probability.is_empty() => Some(Edge {
            row,
            similarity,
            probability: probability.parse().ok()?,
            ranks: [rank.parse().ok()?, back.parse().ok()?],
            shared: shared.parse().ok()?,
        }),
        _ => None,
    };
    let outside = match outside {
        "" => None,
        outside => {
            Some((outside.parse().ok()?, outside_similarity.parse().ok()?, outside_probability.parse().ok()?))
        }
    };
    let confidence = match confidence {
        "" => None,
        confidence => Some(confidence.parse().ok()?),
    };
    Some(RowReason { cluster: cluster.parse().ok()?, confidence, parent, edge, outside })
}
