//! From a strided view of a storage to a dense tensor.

use super::pickle::{Kind, Refusal, View, refuse};
use crate::tensors::Tensor;
use half::{bf16, f16};

/// Copies what `view` shows of a storage's bytes. A view may not show more elements than there are, so a small
/// file cannot ask for a large tensor.
pub(super) fn dense(view: &View, bytes: &[u8]) -> Result<Tensor, Refusal> {
    let View { storage, offset, shape, strides } = view;
    let size = storage.kind.size();
    if Some(bytes.len()) != storage.length.checked_mul(size) {
        return refuse(
            format!("{} elements of {size} bytes", storage.length),
            format!("{} bytes", bytes.len()),
        );
    }
    if strides.len() != shape.len() {
        return refuse(format!("{} strides", shape.len()), strides.len().to_string());
    }
    let count = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
    let last = shape.iter().zip(strides).try_fold(*offset, |last, (&size, &stride)| {
        last.checked_add(size.saturating_sub(1).checked_mul(stride)?)
    });
    let inside = last.is_some_and(|last| last < storage.length);
    let count = match count {
        Some(0) => return Ok(Tensor { shape: shape.clone(), data: Vec::new() }),
        Some(count) if count <= storage.length && inside => count,
        _ => {
            let found = format!("shape {shape:?}, strides {strides:?} from {offset}");
            return refuse(format!("a view of {} elements", storage.length), found);
        }
    };
    let read: fn(&[u8]) -> f32 = match storage.kind {
        Kind::F64 => |b| b.try_into().map_or(f32::NAN, |b| f64::from_le_bytes(b) as f32),
        Kind::F32 => |b| b.try_into().map_or(f32::NAN, f32::from_le_bytes),
        Kind::F16 => |b| b.try_into().map_or(f32::NAN, |b| f16::from_le_bytes(b).into()),
        Kind::BF16 => |b| b.try_into().map_or(f32::NAN, |b| bf16::from_le_bytes(b).into()),
        Kind::Integer(_) => return refuse("floating-point numbers", "integers"),
    };
    let mut data = Vec::with_capacity(count);
    let mut index = vec![0; shape.len()];
    let mut at = *offset;
    for _ in 0..count {
        data.push(read(&bytes[at * size..][..size]));
        // Counts up like an odometer, the last dimension fastest.
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            // The stride of a dimension of one element can be anything.
            at = at.wrapping_add(strides[d]);
            if index[d] < shape[d] {
                break;
            }
            at = at.wrapping_sub(strides[d].wrapping_mul(shape[d]));
            index[d] = 0;
        }
    }
    Ok(Tensor { shape: shape.clone(), data })
}
