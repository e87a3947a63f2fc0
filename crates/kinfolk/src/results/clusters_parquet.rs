//! `clusters.parquet`: the columns of `clusters.csv` as numbers, compressed. What a method does not know is null.
//!
//! Rows are written in groups and read in batches, so that beside the result only one of these is in memory.

use super::table::{Column, EDGE_COLUMNS, REQUIRED, Record, TREE_COLUMNS, columns, heading};
use crate::io::AtomicFile;
use crate::io::parquet::{check_dictionaries, column_reader, describe, guard, metadata};
use crate::{Clustering, Error, Result, RowReason};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{DataType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, Type};
use std::io::Write;
use std::sync::Arc;

/// Rows of a group: about 6 MB of columns.
pub(super) const GROUP_ROWS: usize = 1 << 17;
/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 1 << 14;

type Columns = [(&'static str, Column)];
type Parquet<T> = std::result::Result<T, ParquetError>;

pub(super) fn write(file: &mut AtomicFile, found: &Clustering) -> std::io::Result<()> {
    write_table(file, columns(found), Record::all(found)).map_err(|error| match error {
        // What the system said: that the disk is full, for example.
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(error) => *error,
            Err(source) => std::io::Error::other(source),
        },
        error => std::io::Error::other(error),
    })
}

pub(super) fn write_table(
    file: impl Write + Send,
    columns: &Columns,
    mut records: impl Iterator<Item = Record>,
) -> Parquet<()> {
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema(columns)?), Arc::new(properties()))?;
    let mut group = Vec::new();
    loop {
        group.clear();
        group.extend(records.by_ref().take(GROUP_ROWS));
        if group.is_empty() {
            break;
        }
        let mut group_writer = writer.next_row_group()?;
        for (_, column) in columns {
            let Some(mut writer) = group_writer.next_column()? else { break };
            let group = group.iter_mut();
            match column {
                // Parquet keeps the bits of an unsigned number in a signed one.
                Column::Number(of) => {
                    let values = group.map(|record| of(record).map(|number| number as i32));
                    write_column::<Int32Type>(&mut writer, values)?;
                }
                Column::Label(of) => {
                    write_column::<Int64Type>(&mut writer, group.map(|record| *of(record)))?;
                }
                Column::Float(of) => {
                    write_column::<FloatType>(&mut writer, group.map(|record| *of(record)))?;
                }
            }
            writer.close()?;
        }
        group_writer.close()?;
    }
    writer.close()?;
    Ok(())
}

/// Definition levels say which rows have a value; a column without nulls has none.
fn write_column<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    column: impl Iterator<Item = Option<T::T>>,
) -> Parquet<()> {
    let mut values = Vec::new();
    let levels: Vec<i16> = column
        .map(|value| {
            let level = i16::from(value.is_some());
            values.extend(value);
            level
        })
        .collect();
    let writer = writer.typed::<T>();
    let has_nulls = writer.get_descriptor().max_def_level() > 0;
    writer.write_batch(&values, has_nulls.then_some(&levels), None)?;
    Ok(())
}

fn schema(columns: &Columns) -> Parquet<Type> {
    let field = |(name, column): &(&str, Column)| {
        let repetition = if REQUIRED.contains(name) { "required" } else { "optional" };
        match column {
            Column::Number(_) => format!("{repetition} int32 {name} (INTEGER(32, false));"),
            Column::Label(_) => format!("{repetition} int64 {name};"),
            Column::Float(_) => format!("{repetition} float {name};"),
        }
    };
    parse_message_type(&format!("message clusters {{ {} }}", columns.iter().map(field).collect::<String>()))
}

fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        // Row numbers ascend by one: their differences take no space.
        .set_column_encoding(ColumnPath::from("row"), Encoding::DELTA_BINARY_PACKED)
        // Without many equal values a dictionary makes a column larger.
        .set_dictionary_enabled(false);
    for name in ["cluster", "rank", "rank_back", "shared"] {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), true);
    }
    properties.build()
}

/// Reads the bytes of `clusters.parquet`; `place` names it in errors.
pub fn parse_clusters_parquet(bytes: impl Into<Bytes>, place: &str) -> Result<Vec<RowReason>> {
    let bytes = bytes.into();
    let metadata = metadata(&bytes, place)?;
    let columns = find_columns(&metadata, place)?;
    for leaf in 0..columns.len() {
        guard(place, || check_dictionaries(&bytes, &metadata, leaf))?;
    }
    let mut rows = Vec::new();
    let mut batch = Batch::default();
    for group in metadata.row_groups() {
        let reader = |leaf| column_reader(&bytes, &metadata, group, leaf);
        let mut readers = guard(place, || (0..columns.len()).map(reader).collect::<Parquet<Vec<_>>>())?;
        loop {
            guard(place, || batch.read(columns, &mut readers))?;
            if batch.records.is_empty() {
                break;
            }
            for record in &batch.records {
                let row = rows.len();
                rows.push(record.reason(row).map_err(|wrong| Error::Row {
                    place: place.to_owned(),
                    row,
                    expected: wrong.expected,
                    found: wrong.found,
                })?);
            }
        }
    }
    Ok(rows)
}

/// The columns of the file, if they have the names and types of one of the two tables.
fn find_columns(metadata: &ParquetMetaData, place: &str) -> Result<&'static Columns> {
    let schema = metadata.file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let names = fields.iter().map(|field| field.name()).collect::<Vec<_>>().join(",");
    let known = [EDGE_COLUMNS, TREE_COLUMNS];
    let columns = known.into_iter().find(|columns| heading(columns) == names).ok_or_else(|| {
        Error::format(place, format!("the columns {}", heading(TREE_COLUMNS)), names.clone())
    })?;
    for ((name, column), field) in columns.iter().zip(fields) {
        let expected = match column {
            Column::Number(_) => "UInt32",
            Column::Label(_) => "Int64",
            Column::Float(_) => "Float32",
        };
        let found = describe(field);
        if found != expected {
            return Err(Error::format(format!("{place} (column {name})"), expected, found));
        }
    }
    Ok(columns)
}

/// Consecutive rows of the table.
#[derive(Default)]
struct Batch {
    records: Vec<Record>,
    levels: Vec<i16>,
}

impl Batch {
    /// Reads the next rows, none at the end of a group.
    fn read(&mut self, columns: &Columns, readers: &mut [ColumnReader]) -> Parquet<()> {
        self.records.clear();
        self.records.resize_with(BATCH_ROWS, Record::default);
        let mut rows = None;
        for ((name, column), reader) in columns.iter().zip(readers) {
            let read = match (column, reader) {
                (Column::Number(of), ColumnReader::Int32ColumnReader(reader)) => {
                    self.column(reader, |record, number| *of(record) = Some(number as u32))?
                }
                (Column::Label(of), ColumnReader::Int64ColumnReader(reader)) => {
                    self.column(reader, |record, label| *of(record) = Some(label))?
                }
                (Column::Float(of), ColumnReader::FloatColumnReader(reader)) => {
                    self.column(reader, |record, float| *of(record) = Some(float))?
                }
                _ => return Err(ParquetError::General(format!("column {name} of another type"))),
            };
            if *rows.get_or_insert(read) != read {
                return Err(ParquetError::General(format!("column {name} of another length")));
            }
        }
        self.records.truncate(rows.unwrap_or(0));
        Ok(())
    }

    /// Sets the values of a column that are not null, and returns the number of rows.
    fn column<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        set: impl Fn(&mut Record, T::T),
    ) -> Parquet<usize> {
        self.levels.clear();
        let mut values = Vec::new();
        let (rows, found, _) =
            reader.read_records(self.records.len(), Some(&mut self.levels), None, &mut values)?;
        if found == rows {
            self.records.iter_mut().zip(values).for_each(|(record, value)| set(record, value));
        } else {
            let has_value = self.levels.iter().zip(&mut self.records).filter(|(level, _)| **level > 0);
            has_value.zip(values).for_each(|((_, record), value)| set(record, value));
        }
        Ok(rows)
    }
}
