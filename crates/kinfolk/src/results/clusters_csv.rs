//! `clusters.csv`: one line for each row. A row of highest confidence has no parent; a parent in another cluster was cut
//! off. What a method does not know is left empty.

use super::table::{Column, EDGE_COLUMNS, Record, TREE_COLUMNS, Wrong, columns, heading};
use crate::io::AtomicFile;
use crate::{Clustering, Error, Result, RowReason};
use std::fmt::{Display, Write as _};
use std::io::Write;
use std::str::FromStr;

pub(super) fn write(file: &mut AtomicFile, found: &Clustering) -> std::io::Result<()> {
    let columns = columns(found);
    writeln!(file, "{}", heading(columns))?;
    let mut line = String::new();
    for mut record in Record::all(found) {
        line.clear();
        for (_, column) in columns {
            match column {
                Column::Number(of) => push(&mut line, *of(&mut record)),
                Column::Label(of) => push(&mut line, *of(&mut record)),
                Column::Float(of) => push(&mut line, *of(&mut record)),
            }
        }
        // Every field ends with a comma, the last with the line.
        line.pop();
        line.push('\n');
        file.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn push(line: &mut String, value: Option<impl Display>) {
    let _ = match value {
        Some(value) => write!(line, "{value},"),
        None => write!(line, ","),
    };
}

/// Reads the text of `clusters.csv`; `place` names it in errors.
pub fn parse_clusters(text: &str, place: &str) -> Result<Vec<RowReason>> {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let error = |line: usize, expected: String, found: String| Error::Format {
        place: format!("{place} (line {line})"),
        expected,
        found,
    };
    let known = [EDGE_COLUMNS, TREE_COLUMNS];
    let columns = known
        .into_iter()
        .find(|columns| heading(columns) == first)
        .ok_or_else(|| error(1, format!("the heading {}", heading(TREE_COLUMNS)), first.to_owned()))?;
    let read = |(row, line): (usize, &str)| {
        let unreadable =
            || Wrong { expected: format!("what `cluster` writes for row {row}"), found: line.to_owned() };
        let record = parse_line(line, columns).ok_or_else(unreadable);
        let reason = record.and_then(|record| record.reason(row));
        reason.map_err(|wrong| error(row + 2, wrong.expected, wrong.found))
    };
    lines.enumerate().map(read).collect()
}

fn parse_line(line: &str, columns: &[(&str, Column)]) -> Option<Record> {
    let mut record = Record::default();
    let mut fields = line.split(',');
    for (_, column) in columns {
        let field = fields.next()?;
        match column {
            Column::Number(of) => *of(&mut record) = parse(field)?,
            Column::Label(of) => *of(&mut record) = parse(field)?,
            Column::Float(of) => *of(&mut record) = parse(field)?,
        }
    }
    fields.next().is_none().then_some(record)
}

/// A field, which may be empty.
fn parse<T: FromStr>(field: &str) -> Option<Option<T>> {
    match field {
        "" => Some(None),
        field => field.parse().ok().map(Some),
    }
}
