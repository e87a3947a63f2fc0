//! Values as PostgreSQL sends and receives them in binary, numbers with the highest byte first.
//!
//! | type | bytes |
//! |---|---|
//! | `vector`, `halfvec` of pgvector | number of values (2), unused (2), values (4 or 2 each) |
//! | `real[]`, `double precision[]` | dimensions (4), whether there are NULLs (4), type (4), per dimension length and first index (4 each), per value its bytes (4) and it |
//! | `uuid` | 16 bytes |

use half::f16;
use postgres::types::{FromSql, Type};
use std::error::Error;

/// The bytes of a value of any type.
pub(super) struct Bytes<'a>(pub &'a [u8]);

impl<'a> FromSql<'a> for Bytes<'a> {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(bytes))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A type of keys and groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Key {
    Text,
    Whole,
    Uuid,
}

impl Key {
    /// What a column of keys may be.
    pub const EXPECTED: &str = "text, varchar, bigint, integer, smallint or uuid";

    pub fn of(found: &Type) -> Option<Self> {
        match *found {
            Type::TEXT | Type::VARCHAR => Some(Self::Text),
            Type::INT8 | Type::INT4 | Type::INT2 => Some(Self::Whole),
            Type::UUID => Some(Self::Uuid),
            _ => None,
        }
    }

    /// The type as SQL writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Whole => "bigint",
            Self::Uuid => "uuid",
        }
    }

    /// The value as text; none if the bytes are no such value.
    pub fn decode(self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Text => String::from_utf8(bytes.to_vec()).ok(),
            Self::Whole => {
                let number = match bytes.len() {
                    2 => i16::from_be_bytes(bytes.try_into().ok()?).into(),
                    4 => i32::from_be_bytes(bytes.try_into().ok()?).into(),
                    _ => i64::from_be_bytes(bytes.try_into().ok()?),
                };
                Some(number.to_string())
            }
            Self::Uuid => {
                let number = format!("{:032x}", u128::from_be_bytes(bytes.try_into().ok()?));
                let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &number[range]);
                Some(parts.join("-"))
            }
        }
    }

    /// The bytes of a text that is written as the type writes it, so that no two texts are one value; none for other texts.
    pub fn encode(self, text: &str) -> Option<Vec<u8>> {
        let bytes = match self {
            Self::Text => return Some(text.as_bytes().to_vec()),
            Self::Whole => text.parse::<i64>().ok()?.to_be_bytes().to_vec(),
            Self::Uuid => u128::from_str_radix(&text.replace('-', ""), 16).ok()?.to_be_bytes().to_vec(),
        };
        (self.decode(&bytes)? == text).then_some(bytes)
    }
}

/// A type of embeddings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Row {
    Vector,
    HalfVector,
    Reals,
    Doubles,
}

impl Row {
    /// What a column of embeddings may be.
    pub const EXPECTED: &str = "vector, halfvec, real[] or double precision[]";

    pub fn of(found: &Type) -> Option<Self> {
        match (found, found.name()) {
            (_, "vector") => Some(Self::Vector),
            (_, "halfvec") => Some(Self::HalfVector),
            (&Type::FLOAT4_ARRAY, _) => Some(Self::Reals),
            (&Type::FLOAT8_ARRAY, _) => Some(Self::Doubles),
            _ => None,
        }
    }

    /// Puts the values into `row`; otherwise what is wrong with them.
    pub fn decode(self, bytes: &[u8], row: &mut Vec<f64>) -> Result<(), &'static str> {
        const CUT: &str = "bytes that are no such value";
        row.clear();
        match self {
            Self::Vector | Self::HalfVector => {
                let (&[high, low, _, _], values) = bytes.split_first_chunk().ok_or(CUT)?;
                match self {
                    Self::Vector => row.extend(floats::<4>(values).map(|v| f64::from(f32::from_be_bytes(v)))),
                    _ => row.extend(floats::<2>(values).map(|v| f64::from(f16::from_be_bytes(v)))),
                }
                let count = usize::from(u16::from_be_bytes([high, low]));
                // Nothing may be left of the bytes either.
                let width = if self == Self::Vector { 4 } else { 2 };
                if values.len() == width * count { Ok(()) } else { Err(CUT) }
            }
            Self::Reals | Self::Doubles => {
                let (&dimensions, rest) = bytes.split_first_chunk().ok_or(CUT)?;
                match i32::from_be_bytes(dimensions) {
                    0 => return Ok(()),
                    1 => {}
                    _ => return Err("an array of several dimensions"),
                }
                let (header, mut rest) = rest.split_first_chunk::<16>().ok_or(CUT)?;
                let count = i32::from_be_bytes([header[8], header[9], header[10], header[11]]);
                for _ in 0..count {
                    let (&length, values) = rest.split_first_chunk().ok_or(CUT)?;
                    let length = i32::from_be_bytes(length);
                    if length < 0 {
                        return Err("an array with a NULL in it");
                    }
                    let (value, others) = values.split_at_checked(length as usize).ok_or(CUT)?;
                    row.push(match self {
                        Self::Reals => f32::from_be_bytes(value.try_into().map_err(|_| CUT)?).into(),
                        _ => f64::from_be_bytes(value.try_into().map_err(|_| CUT)?),
                    });
                    rest = others;
                }
                if rest.is_empty() { Ok(()) } else { Err(CUT) }
            }
        }
    }
}

fn floats<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.as_chunks().0.iter().copied()
}

/// A type as SQL writes it.
pub(super) fn type_name(found: &Type) -> String {
    let element = found.name().strip_prefix('_');
    let name = match element.unwrap_or(found.name()) {
        "int2" => "smallint",
        "int4" => "integer",
        "int8" => "bigint",
        "float4" => "real",
        "float8" => "double precision",
        "bool" => "boolean",
        name => name,
    };
    if element.is_some() { format!("{name}[]") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_they_are_read() {
        let uuid = "00112233-4455-6677-8899-aabbccddeeff";
        for (key, text) in
            [(Key::Text, "Ada's"), (Key::Whole, "-9223372036854775808"), (Key::Whole, "0"), (Key::Uuid, uuid)]
        {
            let bytes = key.encode(text).unwrap();
            assert_eq!(key.decode(&bytes).unwrap(), text);
        }
        assert_eq!(Key::Whole.decode(&[255, 254]).unwrap(), "-2");
        assert_eq!(Key::Whole.decode(&[0, 0, 1, 0]).unwrap(), "256");
        assert_eq!(Key::Whole.decode(&[1, 2, 3]), None);
        assert_eq!(Key::Uuid.decode(&[1, 2, 3]), None);
        assert_eq!(Key::Text.decode(&[255]), None);
        for other in ["007", "+7", "-0", " 7", "9223372036854775808", "", "7.0"] {
            assert_eq!(Key::Whole.encode(other), None, "{other}");
        }
        for other in [&uuid.to_uppercase(), &uuid.replace('-', ""), "", "0-0"] {
            assert_eq!(Key::Uuid.encode(other), None, "{other}");
        }
    }

    #[test]
    fn rows_of_every_type() {
        let decode = |kind: Row, bytes: &[u8]| {
            let mut row = vec![7.0];
            kind.decode(bytes, &mut row).map(|()| row)
        };
        let vector = [&[0, 2, 0, 0][..], &1.5f32.to_be_bytes(), &(-2.0f32).to_be_bytes()].concat();
        assert_eq!(decode(Row::Vector, &vector), Ok(vec![1.5, -2.0]));
        let half = [&[0, 2, 0, 0][..], &f16::from_f32(1.5).to_be_bytes(), &[0, 0]].concat();
        assert_eq!(decode(Row::HalfVector, &half), Ok(vec![1.5, 0.0]));
        let array = |dimensions: i32, values: &[Option<f64>]| {
            let mut bytes: Vec<u8> =
                [dimensions, 0, 701, values.len() as i32, 1].iter().flat_map(|v| v.to_be_bytes()).collect();
            for value in values {
                match value {
                    Some(value) => {
                        bytes.extend(8i32.to_be_bytes());
                        bytes.extend(value.to_be_bytes());
                    }
                    None => bytes.extend((-1i32).to_be_bytes()),
                }
            }
            bytes
        };
        assert_eq!(decode(Row::Doubles, &array(1, &[Some(0.1), Some(1e300)])), Ok(vec![0.1, 1e300]));
        assert_eq!(decode(Row::Doubles, &[0; 12]), Ok(vec![]));
        assert_eq!(decode(Row::Doubles, &array(1, &[None])), Err("an array with a NULL in it"));
        assert_eq!(decode(Row::Doubles, &array(2, &[Some(0.1)])), Err("an array of several dimensions"));
        // Cut anywhere, or of another length than it says, nothing is a row.
        for (kind, bytes) in
            [(Row::Vector, &vector), (Row::HalfVector, &half), (Row::Doubles, &array(1, &[Some(0.1)]))]
        {
            for length in 0..bytes.len() {
                assert!(decode(kind, &bytes[..length]).is_err(), "{kind:?} {length}");
            }
            assert!(decode(kind, &[bytes, &[1][..]].concat()).is_err(), "{kind:?}");
        }
    }
}
