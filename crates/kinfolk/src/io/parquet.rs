//! `.parquet`: a column whose every value is a list of floats, all of one length.
//!
//! Lists of variable, large or fixed size, of float16, float32 or float64. The column is read in batches of
//! rows, each normalised into the result before the next is decoded. Source:
//! <https://parquet.apache.org/docs/file-format/>.
//!
//! A column holds the values of all its lists one after the other. Beside each, or in the place of one that is not there,
//! are two levels: its repetition level is 0 where a row begins, its definition level says how much of it there is: the
//! list, a place in the list, a value in that place.

use super::array::UnitRows;
use crate::embeddings::normalise_rows;
use crate::{Error, Result};
use bytes::Bytes;
use half::f16;
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::page::{Page, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::{DataType, DoubleType, FixedLenByteArrayType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::Type;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Values decoded at a time: enough rows to keep every core busy, little beside the result.
const BATCH_VALUES: usize = 1 << 20;

/// The rows of the named column, or of the first that holds lists of floats.
pub(crate) fn unit_rows(bytes: &Bytes, column: Option<&str>, place: &str) -> Result<UnitRows<'static>> {
    let metadata = metadata(bytes, place)?;
    let column = find_column(&metadata, column, place)?;
    guard(place, || check_dictionaries(bytes, &metadata, column.leaf))?;
    let place = format!("{place} (column {})", column.name);
    match column.float {
        Float::Half => read::<FixedLenByteArrayType>(bytes, &metadata, &column, &place),
        Float::Single => read::<FloatType>(bytes, &metadata, &column, &place),
        Float::Double => read::<DoubleType>(bytes, &metadata, &column, &place),
    }
}

/// What the end of the file says about its columns.
pub(crate) fn metadata(bytes: &Bytes, place: &str) -> Result<ParquetMetaData> {
    guard(place, || ParquetMetaDataReader::new().parse_and_finish(bytes))
}

/// Runs a part of the decoder and converts its panics to errors: it panics on some damaged files.
pub(crate) fn guard<T, E: std::fmt::Display>(
    place: &str,
    decode: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    let unreadable = |found: String| Error::format(place, "a parquet file", found);
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(result) => result.map_err(|e| unreadable(format!("\"{e}\""))),
        Err(_) => Err(unreadable("a damaged one".to_owned())),
    }
}

/// The pages of a column in one group of rows.
fn pages(
    bytes: &Bytes,
    group: &RowGroupMetaData,
    leaf: usize,
) -> std::result::Result<SerializedPageReader<Bytes>, ParquetError> {
    let rows = usize::try_from(group.num_rows()).unwrap_or(0);
    SerializedPageReader::new(Arc::new(bytes.clone()), group.column(leaf), rows, None)
}

/// A reader of a column in one group of rows.
pub(crate) fn column_reader(
    bytes: &Bytes,
    metadata: &ParquetMetaData,
    group: &RowGroupMetaData,
    leaf: usize,
) -> std::result::Result<ColumnReader, ParquetError> {
    let description = metadata.file_metadata().schema_descr().column(leaf);
    Ok(get_column_reader(description, Box::new(pages(bytes, group, leaf)?)))
}

/// Refuses a dictionary that declares more values than it has bytes: the decoder allocates memory for all of
/// them first, gigabytes for a file of a few hundred bytes.
pub(crate) fn check_dictionaries(
    bytes: &Bytes,
    metadata: &ParquetMetaData,
    leaf: usize,
) -> std::result::Result<(), ParquetError> {
    for group in metadata.row_groups() {
        let mut pages = pages(bytes, group, leaf)?;
        while let Some(page) = pages.peek_next_page()? {
            if !page.is_dict {
                pages.skip_next_page()?;
            } else if let Some(Page::DictionaryPage { buf, num_values, .. }) = pages.get_next_page()?
                && num_values as usize > buf.len()
            {
                let (values, held) = (num_values, buf.len());
                return Err(ParquetError::General(format!("{values} dictionary values in {held} bytes")));
            }
        }
    }
    Ok(())
}

/// A column of lists of floats.
struct Column {
    name: String,
    float: Float,
    /// Its index in the list of leaf columns.
    leaf: usize,
    /// The definition level of a list without values; below it the list itself is not there.
    empty: i16,
    /// The definition level of a value.
    value: i16,
}

#[derive(Clone, Copy)]
enum Float {
    Half,
    Single,
    Double,
}

fn find_column(metadata: &ParquetMetaData, wanted: Option<&str>, place: &str) -> Result<Column> {
    let schema = metadata.file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let supported = "lists of float16, float32 or float64";
    let found = match wanted {
        Some(wanted) => fields.iter().position(|field| field.name() == wanted),
        None => fields.iter().position(|field| floats_of_lists(field).is_some()),
    };
    let Some(root) = found else {
        let columns = fields.iter().map(|field| format!("{} ({})", field.name(), describe(field)));
        let columns = format!("columns: {}", columns.collect::<Vec<_>>().join(", "));
        let expected = wanted.map_or(format!("a column of {supported}"), |w| format!("a column named {w}"));
        return Err(Error::format(place, expected, columns));
    };
    let name = fields[root].name();
    let leaf = (0..schema.num_columns()).find(|&leaf| schema.get_column_root_idx(leaf) == root);
    match (floats_of_lists(&fields[root]), leaf) {
        (Some(float), Some(leaf)) => {
            let empty = i16::from(repetition(&fields[root]) == Some(Repetition::OPTIONAL));
            let value = schema.column(leaf).max_def_level();
            Ok(Column { name: name.to_owned(), float, leaf, empty, value })
        }
        _ => {
            let expected = format!("column {name} to hold {supported}");
            Err(Error::format(place, expected, describe(&fields[root])))
        }
    }
}

/// What the lists of a column hold, if it holds lists of floats.
fn floats_of_lists(field: &Type) -> Option<Float> {
    let item = item(field)?;
    match item.is_primitive().then(|| item.get_physical_type())? {
        Physical::FLOAT => Some(Float::Single),
        Physical::DOUBLE => Some(Float::Double),
        Physical::FIXED_LEN_BYTE_ARRAY if is_half(item) => Some(Float::Half),
        _ => None,
    }
}

/// What the lists of a column hold: the field in the repeated group of a list, or, as old programs wrote it, the repeated
/// field itself.
fn item(field: &Type) -> Option<&Type> {
    let repeats = |field: &Type| repetition(field) == Some(Repetition::REPEATED);
    if repeats(field) {
        return field.is_primitive().then_some(field);
    }
    let info = field.get_basic_info();
    if info.converted_type() != ConvertedType::LIST && info.logical_type_ref() != Some(&LogicalType::List) {
        return None;
    }
    let [list] = field.is_group().then(|| field.get_fields())? else { return None };
    if !repeats(list) {
        return None;
    }
    if list.is_primitive() {
        return Some(list);
    }
    let [item] = list.get_fields() else { return None };
    (!repeats(item)).then_some(&**item)
}

fn repetition(field: &Type) -> Option<Repetition> {
    let info = field.get_basic_info();
    info.has_repetition().then(|| info.repetition())
}

fn is_half(item: &Type) -> bool {
    let size = match item {
        Type::PrimitiveType { type_length, .. } => *type_length,
        Type::GroupType { .. } => 0,
    };
    size == 2 && item.get_basic_info().logical_type_ref() == Some(&LogicalType::Float16)
}

/// The type of a column, by the names that Arrow has for it.
pub(crate) fn describe(field: &Type) -> String {
    if let Some(item) = item(field) {
        let described = if std::ptr::eq(item, field) { primitive(item) } else { describe(item) };
        return format!("List({described}, field: '{}')", item.name());
    }
    if field.is_group() { "Struct".to_owned() } else { primitive(field) }
}

fn primitive(field: &Type) -> String {
    let info = field.get_basic_info();
    let name = match field.get_physical_type() {
        _ if info.converted_type() == ConvertedType::UTF8 => "Utf8",
        _ if info.logical_type_ref() == Some(&LogicalType::String) => "Utf8",
        _ if is_half(field) => "Float16",
        _ if info.converted_type() == ConvertedType::UINT_32 => "UInt32",
        _ if info.converted_type() == ConvertedType::UINT_64 => "UInt64",
        Physical::BOOLEAN => "Boolean",
        Physical::INT32 => "Int32",
        Physical::INT64 => "Int64",
        Physical::INT96 => "Timestamp",
        Physical::FLOAT => "Float32",
        Physical::DOUBLE => "Float64",
        Physical::BYTE_ARRAY => "Binary",
        Physical::FIXED_LEN_BYTE_ARRAY => "FixedSizeBinary",
    };
    name.to_owned()
}

/// A type of the file whose values are floats.
trait Floats: DataType<T: Sync> {
    fn float(value: &Self::T) -> f64;
}

impl Floats for FixedLenByteArrayType {
    fn float(value: &Self::T) -> f64 {
        // The schema says that there are two bytes.
        value.data().try_into().map_or(f64::NAN, |bytes| f16::from_le_bytes(bytes).into())
    }
}

impl Floats for FloatType {
    fn float(value: &Self::T) -> f64 {
        (*value).into()
    }
}

impl Floats for DoubleType {
    fn float(value: &Self::T) -> f64 {
        *value
    }
}

fn read<T: Floats>(
    bytes: &Bytes,
    metadata: &ParquetMetaData,
    column: &Column,
    place: &str,
) -> Result<UnitRows<'static>> {
    let declared_rows = usize::try_from(metadata.file_metadata().num_rows()).unwrap_or(0);
    let mut batch = Batch::<T>::default();
    let mut out = Vec::new();
    let (mut first, mut dim) = (0, 0);
    for group in metadata.row_groups() {
        let mut reader = guard(place, || {
            column_reader(bytes, metadata, group, column.leaf).map(get_typed_column_reader::<T>)
        })?;
        loop {
            // The first row alone says how long all are.
            let at_most = BATCH_VALUES.checked_div(dim).unwrap_or(1).max(1);
            let rows = guard(place, || batch.read(&mut reader, at_most))?;
            if rows == 0 {
                break;
            }
            if dim == 0 {
                dim = batch.definitions.len();
                if batch.definitions[0] == column.empty {
                    return Err(Error::format(place, "at least one column", "empty lists"));
                }
                // One float per byte is more than a file without much repetition can hold. The others grow as
                // they go, and so does a file that declares rows it does not have.
                out.reserve_exact(declared_rows.saturating_mul(dim).min(bytes.len()));
            }
            batch.check(column, dim, first, place)?;
            out.resize(out.len() + rows * dim, 0.0);
            normalise_rows(&mut out[first * dim..], dim, first, place, |i, _, values| {
                let source = &batch.values[i * dim..][..dim];
                values.iter_mut().zip(source).for_each(|(value, v)| *value = T::float(v));
            })?;
            first += rows;
        }
    }
    if first == 0 {
        return Err(Error::format(place, "at least one row", "0 rows"));
    }
    Ok((Cow::Owned(out), dim))
}

/// Consecutive rows of the column.
struct Batch<T: DataType> {
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    values: Vec<T::T>,
}

impl<T: DataType> Default for Batch<T> {
    fn default() -> Self {
        Self { definitions: Vec::new(), repetitions: Vec::new(), values: Vec::new() }
    }
}

impl<T: DataType> Batch<T> {
    /// Reads the next rows, and says how many there were.
    fn read(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        at_most: usize,
    ) -> std::result::Result<usize, ParquetError> {
        self.definitions.clear();
        self.repetitions.clear();
        self.values.clear();
        let levels = (Some(&mut self.definitions), Some(&mut self.repetitions));
        let (rows, _, _) = reader.read_records(at_most, levels.0, levels.1, &mut self.values)?;
        let begun = self.rows().count();
        if begun != rows {
            return Err(ParquetError::General(format!("{begun} lists in {rows} rows")));
        }
        Ok(rows)
    }

    /// The definition levels of each row.
    fn rows(&self) -> impl Iterator<Item = &[i16]> {
        let mut end = 0;
        self.repetitions.chunk_by(|_, &next| next != 0).map(move |row| {
            end += row.len();
            &self.definitions[end - row.len()..end]
        })
    }

    /// Makes sure that each row has `dim` values.
    fn check(&self, column: &Column, dim: usize, first: usize, place: &str) -> Result<()> {
        let whole = |row: &[i16]| row.len() == dim && row.iter().all(|&level| level == column.value);
        let Some((i, row)) = self.rows().enumerate().find(|(_, row)| !whole(row)) else { return Ok(()) };
        let (place, row_number) = (place.to_owned(), first + i);
        if row[0] < column.empty {
            let (expected, found) = ("a list of floats".to_owned(), "null".to_owned());
            return Err(Error::Row { place, row: row_number, expected, found });
        }
        let length = if row[0] == column.empty { 0 } else { row.len() };
        if let Some(column) = row[..length].iter().position(|&level| level != column.value) {
            let (expected, found) = ("a number".to_owned(), "null".to_owned());
            return Err(Error::Value { place, row: row_number, column, expected, found });
        }
        let (expected, found) = (format!("a list of {dim} values, as in row 0"), length.to_string());
        Err(Error::Row { place, row: row_number, expected, found })
    }
}
