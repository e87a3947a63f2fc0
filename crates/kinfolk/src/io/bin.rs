//! `.bin`: float32 values, little-endian, row after row, and nothing else, as in the published face data
//! sets. The number of columns must be given, or follows from the labels (see `layout`).

use super::array::{Block, UnitRows};
use super::element::Element;
use crate::{Error, Result};

/// The rows of `dim` columns in a whole file.
pub(crate) fn unit_rows<'a>(bytes: &'a [u8], dim: Option<usize>, place: &str) -> Result<UnitRows<'a>> {
    block(bytes, dim, place)?.into_unit_rows(place)
}

/// The same, as they are.
pub(crate) fn block<'a>(bytes: &'a [u8], dim: Option<usize>, place: &str) -> Result<Block<'a>> {
    let Some(dim) = dim else {
        let expected = "the number of columns to be given (--dim), or features/NAME.bin with labels/NAME.meta \
                        beside it: a raw file does not say";
        return Err(Error::format(place, expected, "none"));
    };
    let element = Element::F32_LITTLE;
    let size = bytes.len();
    match dim.checked_mul(element.size()) {
        Some(0) => Err(Error::format(place, "a number of columns (--dim) of at least 1", "0")),
        Some(row) if size != 0 && size.is_multiple_of(row) => {
            Ok(Block { bytes, element, fortran: false, rows: size / row, width: dim })
        }
        _ => {
            let expected = format!("whole rows of {dim} float32 ({dim} x 4 bytes)");
            Err(Error::format(place, expected, format!("{size} bytes")))
        }
    }
}
