//! Dense products of row-major matrices, each on one thread.
//!
//! Tasks of a fixed size are what runs in parallel, so the bits of a result do not depend on the number of
//! threads. Measured against OpenBLAS: within 10-15%.

use crate::Linear;
use gemm::Parallelism;

/// `out` (rows x columns) = `x` (rows x inner) `w` (inner x columns), added to what is in `out` if `add`.
pub(super) fn multiply(x: &[f32], w: &[f32], inner: usize, out: &mut [f32], columns: usize, add: bool) {
    let rows = out.len().checked_div(columns).unwrap_or(0);
    assert_eq!(out.len(), rows * columns, "out: expected rows of {columns}");
    assert_eq!(x.len(), rows * inner, "x: expected {rows} rows of {inner}");
    assert_eq!(w.len(), inner * columns, "w: expected {inner} rows of {columns}");
    let (inner_stride, column_stride) = (inner as isize, columns as isize);
    // SAFETY: the asserts above make every element that the strides (one from column to column, a row's length
    // from row to row) reach lie inside its slice; `out` is borrowed mutably, so nothing aliases it.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.as_mut_ptr(),
            1,
            column_stride,
            add,
            x.as_ptr(),
            1,
            inner_stride,
            w.as_ptr(),
            1,
            column_stride,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// `out` = `x` W + b.
pub(super) fn affine(layer: &Linear, x: &[f32], out: &mut Vec<f32>) {
    let rows = x.len() / layer.inputs;
    out.clear();
    (0..rows).for_each(|_| out.extend_from_slice(&layer.bias));
    multiply(x, &layer.weight, layer.inputs, out, layer.outputs, true);
}

/// max(x, 0). NaN, which a broken network makes, is left for the end to find.
pub(super) fn relu(values: &mut [f32]) {
    values.iter_mut().for_each(|v| *v = if *v < 0.0 { 0.0 } else { *v });
}
