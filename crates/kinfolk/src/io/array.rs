//! The values of a numpy array, row by row, wherever its bytes are: in a map of the file, or coming out of a
//! decompressor.

use super::element::{Accept, Element};
use super::npy::Header;
use crate::embeddings::{are_unit_rows, normalise_rows};
use crate::{Error, Result};
use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

/// Bytes decompressed at a time: enough rows to keep every core busy, little beside the result.
const BLOCK_BYTES: usize = 4 << 20;

/// An array whose header is read and whose values are still to come.
pub(crate) struct Array<'a> {
    pub header: Header,
    data: Data<'a>,
    place: String,
}

enum Data<'a> {
    Slice(&'a [u8]),
    Stream(Box<dyn Read + 'a>),
}

/// Consecutive rows of an array.
pub(crate) struct Block<'a> {
    pub bytes: &'a [u8],
    pub element: Element,
    /// True when `bytes` hold the values column by column.
    pub fortran: bool,
    pub rows: usize,
    pub width: usize,
}

/// Unit rows, and their number of columns; borrowed where the file already holds them as they should be.
pub(crate) type UnitRows<'a> = (Cow<'a, [f32]>, usize);

impl<'a> Array<'a> {
    /// The array in a whole `.npy` file.
    pub fn from_slice(mut bytes: &'a [u8], accept: Accept, place: String) -> Result<Self> {
        let header = Header::read(&mut bytes, accept, &place)?;
        match bytes.get(..header.data_size()) {
            Some(data) => Ok(Self { header, data: Data::Slice(data), place }),
            None => Err(header.truncated(bytes.len(), &place)),
        }
    }

    /// The array in a `.npy` file that can be read only once. No more than `at_most` bytes can come, so an
    /// array that says it is larger is refused before memory is set aside for it.
    pub fn from_stream(
        mut reader: Box<dyn Read + 'a>,
        at_most: usize,
        accept: Accept,
        place: String,
    ) -> Result<Self> {
        let header = Header::read(&mut reader, accept, &place)?;
        if header.data_size() > at_most {
            return Err(header.truncated(format!("at most {at_most}"), &place));
        }
        Ok(Self { header, data: Data::Stream(reader), place })
    }

    /// The file and array, for errors.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Hands the rows to `each` in order, in blocks, with the number of each block's first row.
    pub fn for_each_block(self, mut each: impl FnMut(usize, &Block) -> Result<()>) -> Result<()> {
        let Self { header, data, place } = self;
        let (element, fortran) = (header.element, header.fortran);
        let (rows, width) = header.rows_and_width();
        let mut reader = match data {
            Data::Slice(bytes) => return each(0, &Block { bytes, element, fortran, rows, width }),
            Data::Stream(reader) => reader,
        };
        let row_bytes = (width * element.size()).max(1);
        // No row is whole before the last column has come.
        let block_rows = if fortran { rows } else { (BLOCK_BYTES / row_bytes).max(1) };
        let mut bytes = Vec::new();
        for first in (0..rows).step_by(block_rows.max(1)) {
            let rows = block_rows.min(rows - first);
            let size = rows * width * element.size();
            bytes.clear();
            reader.by_ref().take(size as u64).read_to_end(&mut bytes).map_err(|e| Error::io(&place, e))?;
            if bytes.len() < size {
                return Err(header.truncated(first * row_bytes + bytes.len(), &place));
            }
            each(first, &Block { bytes: &bytes, element, fortran, rows, width })?;
        }
        // Only at its end can the reader tell whether what it gave was right.
        std::io::copy(&mut reader, &mut std::io::sink()).map_err(|e| Error::io(&place, e))?;
        Ok(())
    }

    /// The rows of a matrix, each of unit length.
    pub fn into_unit_rows(self) -> Result<UnitRows<'a>> {
        let (rows, dim) = self.matrix_shape()?;
        let place = self.place.clone();
        if let Data::Slice(_) = self.data {
            return self.into_block()?.into_unit_rows(&place);
        }
        let mut out = vec![0.0; rows * dim];
        self.for_each_block(|first, block| {
            let out = &mut out[first * dim..][..block.rows * dim];
            normalise_rows(out, dim, first, &place, |i, _, values| block.read_row(i, values))
        })?;
        Ok((Cow::Owned(out), dim))
    }

    /// All rows of a matrix in memory or in a mapped file.
    pub fn into_block(self) -> Result<Block<'a>> {
        let (rows, width) = self.matrix_shape()?;
        let Header { element, fortran, .. } = self.header;
        match self.data {
            Data::Slice(bytes) => Ok(Block { bytes, element, fortran, rows, width }),
            Data::Stream(_) => Err(Error::format(self.place, "a file that can be read anywhere", "a stream")),
        }
    }

    fn matrix_shape(&self) -> Result<(usize, usize)> {
        let &[rows, dim] = self.header.shape.as_slice() else {
            return Err(self.header.wrong_shape("a matrix of shape (rows, columns)", &self.place));
        };
        if rows == 0 || dim == 0 {
            let expected = "at least one row and one column";
            return Err(self.header.wrong_shape(expected, &self.place));
        }
        Ok((rows, dim))
    }
}

impl<'a> Block<'a> {
    /// Reads row `i`.
    pub fn read_row(&self, i: usize, values: &mut [f64]) {
        let size = self.element.size();
        let (start, stride) =
            if self.fortran { (i * size, self.rows * size) } else { (i * self.width * size, size) };
        self.element.read_f64(self.bytes, start, stride, values);
    }

    /// All rows, each of unit length; where they are already, the bytes themselves.
    pub fn into_unit_rows(self, place: &str) -> Result<UnitRows<'a>> {
        let dim = self.width;
        if let Some(rows) = self.as_f32()
            && are_unit_rows(rows, dim)
        {
            return Ok((Cow::Borrowed(rows), dim));
        }
        let mut out = vec![0.0; self.rows * dim];
        normalise_rows(&mut out, dim, 0, place, |i, _, values| self.read_row(i, values))?;
        Ok((Cow::Owned(out), dim))
    }

    /// Whether the bytes can be used as they are, as far as the first `rows` say.
    pub fn starts_with_unit_rows(&self, rows: usize) -> bool {
        let first = rows.min(self.rows) * self.width;
        self.as_f32().is_some_and(|values| are_unit_rows(&values[..first], self.width))
    }

    /// Some rows, each of unit length.
    pub fn unit_rows(&self, rows: Range<usize>, place: &str) -> Result<Vec<f32>> {
        let mut out = vec![0.0; rows.len() * self.width];
        normalise_rows(&mut out, self.width, rows.start, place, |i, _, values| {
            self.read_row(rows.start + i, values);
        })?;
        Ok(out)
    }

    /// The bytes as this machine's floats, if that is what they are.
    fn as_f32(&self) -> Option<&'a [f32]> {
        let native = self.element == Element::F32_LITTLE && cfg!(target_endian = "little");
        // Of one row or one column, both orders are the same.
        let in_order = !self.fortran || self.rows == 1 || self.width == 1;
        (native && in_order).then(|| bytemuck::try_cast_slice(self.bytes).ok())?
    }
}
