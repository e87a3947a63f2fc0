//! The numbers a numpy array can hold, and how their bytes become values.
//!
//! A type is spelled as numpy spells it, `<f4`: byte order (`<` little, `>` big, `=` this machine's, `|`
//! none), kind (`f` float, `i` signed, `u` unsigned, `b` boolean) and size in bytes.

use half::f16;

/// Kind and size of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

/// A number as it lies in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Element {
    pub scalar: Scalar,
    pub big_endian: bool,
}

/// The types that a reader can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accept {
    Floats,
    Integers,
    Numbers,
}

impl Accept {
    pub fn admits(self, scalar: Scalar) -> bool {
        match self {
            Accept::Floats => scalar.is_float(),
            Accept::Integers => !scalar.is_float(),
            Accept::Numbers => scalar != Scalar::Bool,
        }
    }

    /// For people who see their type refused.
    pub fn describe(self) -> &'static str {
        match self {
            Accept::Floats => "dtype float16, float32 or float64",
            Accept::Integers => "an integer dtype (int8 to int64, uint8 to uint64, bool)",
            Accept::Numbers => "a numeric dtype (float16, float32, float64, int8 to int64, uint8 to uint64)",
        }
    }
}

impl Scalar {
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::F32 | Scalar::F64)
    }

    pub fn size(self) -> usize {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }
}

impl Element {
    /// float32 with its low byte first, the type of raw files.
    pub const F32_LITTLE: Self = Self { scalar: Scalar::F32, big_endian: false };

    /// The type numpy calls `descr`, if it is a plain number.
    pub fn from_descr(descr: &str) -> Option<Self> {
        let (order, kind) = descr.split_at_checked(1)?;
        let big_endian = match order {
            "<" => false,
            ">" => true,
            "=" | "|" => cfg!(target_endian = "big"),
            _ => return None,
        };
        let scalar = match kind {
            "b1" => Scalar::Bool,
            "i1" => Scalar::I8,
            "i2" => Scalar::I16,
            "i4" => Scalar::I32,
            "i8" => Scalar::I64,
            "u1" => Scalar::U8,
            "u2" => Scalar::U16,
            "u4" => Scalar::U32,
            "u8" => Scalar::U64,
            "f2" => Scalar::F16,
            "f4" => Scalar::F32,
            "f8" => Scalar::F64,
            _ => return None,
        };
        Some(Self { scalar, big_endian })
    }

    pub fn size(self) -> usize {
        self.scalar.size()
    }

    /// Reads one value from byte `start`, then one each `stride` bytes, until `out` is full. Integers beyond
    /// 2^53 are rounded.
    pub fn read_f64(self, bytes: &[u8], start: usize, stride: usize, out: &mut [f64]) {
        let bytes = &bytes[start..];
        match self.scalar {
            Scalar::Bool | Scalar::U8 => self.gather(bytes, stride, out, |b| u8::from_le_bytes(b).into()),
            Scalar::I8 => self.gather(bytes, stride, out, |b| i8::from_le_bytes(b).into()),
            Scalar::I16 => self.gather(bytes, stride, out, |b| i16::from_le_bytes(b).into()),
            Scalar::U16 => self.gather(bytes, stride, out, |b| u16::from_le_bytes(b).into()),
            Scalar::I32 => self.gather(bytes, stride, out, |b| i32::from_le_bytes(b).into()),
            Scalar::U32 => self.gather(bytes, stride, out, |b| u32::from_le_bytes(b).into()),
            Scalar::I64 => self.gather(bytes, stride, out, |b| i64::from_le_bytes(b) as f64),
            Scalar::U64 => self.gather(bytes, stride, out, |b| u64::from_le_bytes(b) as f64),
            Scalar::F16 => self.gather(bytes, stride, out, |b| f16::from_le_bytes(b).into()),
            Scalar::F32 => self.gather(bytes, stride, out, |b| f32::from_le_bytes(b).into()),
            Scalar::F64 => self.gather(bytes, stride, out, f64::from_le_bytes),
        }
    }

    fn gather<const N: usize>(
        self,
        bytes: &[u8],
        stride: usize,
        out: &mut [f64],
        value: impl Fn([u8; N]) -> f64,
    ) {
        let value = |mut raw: [u8; N]| {
            if self.big_endian {
                raw.reverse();
            }
            value(raw)
        };
        if stride == N {
            let (values, _) = bytes[..out.len() * N].as_chunks::<N>();
            out.iter_mut().zip(values).for_each(|(out, &raw)| *out = value(raw));
        } else {
            for (j, out) in out.iter_mut().enumerate() {
                let mut raw = [0; N];
                raw.copy_from_slice(&bytes[j * stride..][..N]);
                *out = value(raw);
            }
        }
    }

    /// The whole number in `bytes`, which hold exactly one of an integer type. None is rounded.
    pub fn read_integer(self, bytes: &[u8]) -> i128 {
        debug_assert!(!self.scalar.is_float());
        let mut raw = [0; 8];
        let size = self.size();
        raw[..size].copy_from_slice(bytes);
        if self.big_endian {
            raw[..size].reverse();
        }
        let unsigned = u64::from_le_bytes(raw);
        match self.scalar {
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
                // Shifting up and back repeats the sign bit of a short integer.
                let shift = 64 - 8 * size;
                (((unsigned << shift) as i64) >> shift).into()
            }
            _ => unsigned.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(descr: &str) -> Element {
        Element::from_descr(descr).unwrap()
    }

    #[test]
    fn integers_keep_their_sign_in_both_byte_orders() {
        assert_eq!(element("|i1").read_integer(&[0xfe]), -2);
        assert_eq!(element("|u1").read_integer(&[0xfe]), 254);
        assert_eq!(element("<i2").read_integer(&(-3_i16).to_le_bytes()), -3);
        assert_eq!(element(">i4").read_integer(&(-70_000_i32).to_be_bytes()), -70_000);
        assert_eq!(element(">u8").read_integer(&u64::MAX.to_be_bytes()), u64::MAX.into());
        assert_eq!(element("<i8").read_integer(&i64::MIN.to_le_bytes()), i64::MIN.into());
    }

    #[test]
    fn strided_and_contiguous_reads_agree_with_the_values() {
        let bytes: Vec<u8> = [1.5_f64, -2.0, 3.25, 4.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        let mut out = [0.0; 2];
        element(">f8").read_f64(&bytes, 8, 8, &mut out);
        assert_eq!(out, [-2.0, 3.25]);
        element(">f8").read_f64(&bytes, 8, 16, &mut out);
        assert_eq!(out, [-2.0, 4.0]);
    }

    #[test]
    fn what_is_not_a_plain_number_has_no_element() {
        for descr in ["", "<", "f4", "<c8", "<U3", "|V2", "<f16", "<f", "é4"] {
            assert_eq!(Element::from_descr(descr), None, "{descr}");
        }
    }
}
