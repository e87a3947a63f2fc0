//! `.parquet`: a column whose every value is a list of floats, all of one length.
//!
//! Lists of variable, large or fixed size, of float16, float32 or float64. The column is read in batches of
//! rows, each normalised into the result before the next is decoded. Source:
//! <https://parquet.apache.org/docs/file-format/>.

use super::array::UnitRows;
use crate::embeddings::normalise_rows;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows decoded at a time.
const BATCH_ROWS: usize = 8192;

/// The rows of the named column, or of the first that holds lists of floats.
pub(crate) fn unit_rows(bytes: &Bytes, column: Option<&str>, place: &str) -> Result<UnitRows<'static>> {
    let builder = guard(place, || ParquetRecordBatchReaderBuilder::try_new(bytes.clone()))?;
    let (index, name) = find_column(builder.schema(), column, place)?;
    guard(place, || check_dictionaries(bytes, builder.metadata(), index))?;
    let declared_rows = usize::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
    let mask = ProjectionMask::roots(builder.parquet_schema(), [index]);
    let mut batches = guard(place, || builder.with_projection(mask).with_batch_size(BATCH_ROWS).build())?;
    let place = format!("{place} (column {name})");

    let mut out = Vec::new();
    let (mut first, mut dim) = (0, 0);
    while let Some(batch) = guard(&place, || batches.next().transpose())? {
        let lists = Lists::of(batch.column(0), first, &place)?;
        if lists.rows == 0 {
            continue;
        }
        if first == 0 {
            dim = lists.length(0);
            if dim == 0 {
                return Err(Error::format(place, "at least one column", "empty lists"));
            }
            // One float per byte is more than a file without much repetition can hold. The others grow as
            // they go, and so does a file that declares rows it does not have.
            out.reserve_exact(declared_rows.saturating_mul(dim).min(bytes.len()));
        }
        if let Some(i) = (0..lists.rows).find(|&i| lists.length(i) != dim) {
            let (expected, found) = (format!("a list of {dim} values, as in row 0"), lists.length(i));
            return Err(Error::Row { place, row: first + i, expected, found: found.to_string() });
        }
        out.resize(out.len() + lists.rows * dim, 0.0);
        lists.normalise(&mut out[first * dim..], dim, first, &place)?;
        first += lists.rows;
    }
    if first == 0 {
        return Err(Error::format(place, "at least one row", "0 rows"));
    }
    Ok((Cow::Owned(out), dim))
}

/// Runs part of the decoder. It panics on some damaged files instead of saying so, and a damaged file is no
/// reason to stop whatever program asked for it.
fn guard<T, E: std::fmt::Display>(
    place: &str,
    decode: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    let unreadable = |found: String| Error::format(place, "a parquet file", found);
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(result) => result.map_err(|e| unreadable(format!("\"{e}\""))),
        Err(_) => Err(unreadable("a damaged one".to_owned())),
    }
}

/// Refuses a dictionary that declares more values than it has bytes: the decoder sets memory aside for all of
/// them first, gigabytes for a file of a few hundred bytes.
fn check_dictionaries(
    bytes: &Bytes,
    metadata: &ParquetMetaData,
    root: usize,
) -> std::result::Result<(), ParquetError> {
    let schema = metadata.file_metadata().schema_descr();
    let source = Arc::new(bytes.clone());
    for group in metadata.row_groups() {
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let chunks = group.columns().iter().enumerate();
        for (_, chunk) in chunks.filter(|&(leaf, _)| schema.get_column_root_idx(leaf) == root) {
            let mut pages = SerializedPageReader::new(source.clone(), chunk, rows, None)?;
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
    }
    Ok(())
}

/// The column's number and name.
fn find_column(schema: &Schema, wanted: Option<&str>, place: &str) -> Result<(usize, String)> {
    let columns = || {
        let columns = schema.fields().iter().map(|field| format!("{} ({})", field.name(), field.data_type()));
        format!("columns: {}", columns.collect::<Vec<_>>().join(", "))
    };
    let mut fields = schema.fields().iter().enumerate();
    let supported = "lists of float16, float32 or float64";
    match wanted {
        Some(wanted) => match fields.find(|(_, field)| field.name() == wanted) {
            Some((index, field)) if holds_float_lists(field.data_type()) => Ok((index, wanted.to_owned())),
            Some((_, field)) => {
                let expected = format!("column {wanted} to hold {supported}");
                Err(Error::format(place, expected, field.data_type().to_string()))
            }
            None => Err(Error::format(place, format!("a column named {wanted}"), columns())),
        },
        None => match fields.find(|(_, field)| holds_float_lists(field.data_type())) {
            Some((index, field)) => Ok((index, field.name().clone())),
            None => Err(Error::format(place, format!("a column of {supported}"), columns())),
        },
    }
}

fn holds_float_lists(data_type: &DataType) -> bool {
    use DataType::{FixedSizeList, LargeList, List};
    match data_type {
        List(item) | LargeList(item) | FixedSizeList(item, _) => item.data_type().is_floating(),
        _ => false,
    }
}

/// One batch of the column.
struct Lists {
    values: ArrayRef,
    /// Where each list starts in `values`, and where the last one ends.
    offsets: Vec<usize>,
    rows: usize,
}

impl Lists {
    fn of(column: &ArrayRef, first: usize, place: &str) -> Result<Self> {
        let rows = column.len();
        if column.null_count() > 0
            && let Some(i) = (0..rows).find(|&i| column.is_null(i))
        {
            let (place, expected) = (place.to_owned(), "a list of floats".to_owned());
            return Err(Error::Row { place, row: first + i, expected, found: "null".to_owned() });
        }
        let (values, offsets): (_, Vec<usize>) = if let Some(lists) = column.as_list_opt::<i32>() {
            (lists.values(), lists.value_offsets().iter().map(|&o| o as usize).collect())
        } else if let Some(lists) = column.as_list_opt::<i64>() {
            (lists.values(), lists.value_offsets().iter().map(|&o| o as usize).collect())
        } else {
            let lists = column.as_fixed_size_list();
            let length = lists.value_length() as usize;
            (lists.values(), (0..=rows).map(|i| i * length).collect())
        };
        let lists = Self { values: values.clone(), offsets, rows };
        // Asking about each value takes longer than reading it, and few files have nulls.
        if lists.values.null_count() > 0 {
            lists.check_values(first, place)?;
        }
        Ok(lists)
    }

    fn check_values(&self, first: usize, place: &str) -> Result<()> {
        for i in 0..self.rows {
            let mut values = self.offsets[i]..self.offsets[i + 1];
            if let Some(column) = values.position(|j| self.values.is_null(j)) {
                let (place, expected, found) = (place.to_owned(), "a number".to_owned(), "null".to_owned());
                return Err(Error::Value { place, row: first + i, column, expected, found });
            }
        }
        Ok(())
    }

    fn length(&self, i: usize) -> usize {
        self.offsets[i + 1] - self.offsets[i]
    }

    /// Fills `out` with unit rows; every list has `dim` values.
    fn normalise(&self, out: &mut [f32], dim: usize, first: usize, place: &str) -> Result<()> {
        match self.values.data_type() {
            DataType::Float16 => self.normalise_as::<Float16Type>(out, dim, first, place),
            DataType::Float32 => self.normalise_as::<Float32Type>(out, dim, first, place),
            _ => self.normalise_as::<Float64Type>(out, dim, first, place),
        }
    }

    fn normalise_as<T>(&self, out: &mut [f32], dim: usize, first: usize, place: &str) -> Result<()>
    where
        T: ArrowPrimitiveType<Native: Into<f64>>,
    {
        let source = self.values.as_primitive::<T>().values();
        normalise_rows(out, dim, first, place, |i, _, values| {
            let source = &source[self.offsets[i]..][..dim];
            values.iter_mut().zip(source).for_each(|(value, &v)| *value = v.into());
        })
    }
}
