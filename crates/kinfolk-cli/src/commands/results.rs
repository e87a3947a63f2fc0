//! The directory that `cluster` writes and `explain` reads.
//!
//! `labels.npy`, `clusters.csv` with a line for each row and why it is there, `review.csv` with what is most worth a
//! look, and `run.json`, which is written last: a directory with it is whole.

use super::{make_directory, write_text};
use crate::failure::Failure;
use kinfolk::io::{AtomicFile, write_npy_i64};
use kinfolk::{Clustering, Error, Tie, review};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

/// Lines of `review.csv`: more than a person looks at in one go.
const REVIEWED: usize = 1000;

/// What every method says of a row, and what only kin knows.
const COLUMNS: &str = "row,cluster,confidence,parent,similarity";
const EVIDENCE: &str = ",probability,rank,rank_back,shared,outside,outside_similarity,outside_probability";

/// Writes the files of a run.
pub fn write(directory: &Path, found: &Clustering, run: &Value) -> Result<(), Failure> {
    make_directory(directory)?;
    let summary = directory.join("run.json");
    if summary.exists() {
        std::fs::remove_file(&summary).map_err(|e| Error::io(&summary, e))?;
    }
    write_npy_i64(&directory.join("labels.npy"), &found.labels)?;
    write_clusters(&directory.join("clusters.csv"), found)?;
    write_review(&directory.join("review.csv"), found)?;
    write_text(&summary, &format!("{run:#}\n"))
}

/// One line for each row. A row of highest confidence has no parent; a parent of at most tau was cut off.
fn write_clusters(path: &Path, found: &Clustering) -> Result<(), Failure> {
    let mut file = AtomicFile::create(path)?;
    let mut write = || {
        writeln!(file, "{COLUMNS}{}", if found.evidence.is_some() { EVIDENCE } else { "" })?;
        let mut line = String::new();
        for (row, label) in found.labels.iter().enumerate() {
            line.clear();
            let _ = write!(line, "{row},{label},{}", found.links.confidence()[row]);
            let _ = match found.links.parent(row) {
                Some((parent, similarity)) => write!(line, ",{parent},{similarity}"),
                None => write!(line, ",,"),
            };
            if let Some(evidence) = &found.evidence {
                let _ = match evidence.inside[row] {
                    Some(Tie { probability, ranks: [rank, back], shared, .. }) => {
                        write!(line, ",{probability},{rank},{back},{shared}")
                    }
                    None => write!(line, ",,,,"),
                };
                let _ = match evidence.outside[row] {
                    Some(tie) => write!(line, ",{},{},{}", tie.row, tie.similarity, tie.probability),
                    None => write!(line, ",,,"),
                };
            }
            writeln!(file, "{line}")?;
        }
        Ok(())
    };
    write().map_err(|e| Error::io(path, e))?;
    Ok(file.commit()?)
}

/// The decisions most worth a look, the most doubtful first.
fn write_review(path: &Path, found: &Clustering) -> Result<(), Failure> {
    let mut text =
        "decision,doubt,row_a,row_b,cluster_a,cluster_b,rows_a,rows_b,similarity,probability\n".to_owned();
    for doubt in review(found, REVIEWED) {
        let [a, b] = doubt.rows;
        let [cluster_a, cluster_b] = doubt.rows.map(|row| found.labels[row as usize]);
        let decision = if doubt.together { "together" } else { "apart" };
        let (wrong, [rows_a, rows_b]) = (doubt.doubt(), doubt.sizes);
        let (similarity, probability) = (doubt.similarity, doubt.probability);
        let _ = writeln!(
            text,
            "{decision},{wrong:.3},{a},{b},{cluster_a},{cluster_b},{rows_a},{rows_b},{similarity:.4},{probability:.3}"
        );
    }
    write_text(path, &text)
}

/// What `clusters.csv` says of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its cluster, from 0.
    pub cluster: i64,
    /// Its confidence.
    pub confidence: f32,
    /// The parent and the similarity.
    pub parent: Option<(u32, f32)>,
    /// What is known of the tie to the parent, in runs of kin.
    pub tie: Option<Tie>,
    /// The most probable tie to another cluster, its similarity and its probability.
    pub outside: Option<(u32, f32, f32)>,
}

/// Reads `clusters.csv`.
pub fn read_clusters(path: &Path) -> Result<Vec<Line>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let mut lines = text.lines();
    let heading = lines.next().unwrap_or_default();
    let wrong = |line: usize, expected: String, found: &str| {
        Failure::from(Error::format(format!("{} (line {line})", path.display()), expected, found.to_owned()))
    };
    if heading.strip_prefix(COLUMNS).is_none_or(|more| !["", EVIDENCE].contains(&more)) {
        return Err(wrong(1, format!("the heading {COLUMNS}"), heading));
    }
    let mut all = Vec::new();
    for (row, line) in lines.enumerate() {
        let read = parse(line, row)
            .ok_or_else(|| wrong(row + 2, format!("what `cluster` writes for row {row}"), line))?;
        all.push(read);
    }
    Ok(all)
}

fn parse(line: &str, row: usize) -> Option<Line> {
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
    let tie = match (parent, probability) {
        (Some((row, similarity)), probability) if !probability.is_empty() => Some(Tie {
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
    let cluster = cluster.parse().ok()?;
    Some(Line { cluster, confidence: confidence.parse().ok()?, parent, tie, outside })
}
