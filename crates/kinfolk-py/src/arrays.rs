//! Converts NumPy arrays. Contiguous float32 rows of unit length are used without a copy, as the library does with files; other
//! rows are copied once and normalised.

use bytes::Bytes;
use half::f16;
use kinfolk::{Embeddings, KnnGraph};
use numpy::{
    PyArray1, PyArrayDescrMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A NumPy matrix with a reference that keeps it alive. It can be read from any thread. The caller must not write to it at the
/// same time, as with every NumPy function that releases the interpreter lock.
pub struct Matrix {
    /// Holds the reference.
    _owner: Py<PyUntypedArray>,
    data: *const u8,
    kind: Kind,
    rows: usize,
    columns: usize,
    /// Bytes from row to row and from column to column.
    strides: [isize; 2],
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Half,
    Single,
    Double,
}

// SAFETY: the memory is that of an array which `_owner` keeps, and is only read.
unsafe impl Send for Matrix {}
// SAFETY: as above.
unsafe impl Sync for Matrix {}

impl<'py> FromPyObject<'_, 'py> for Matrix {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array = object.cast::<PyUntypedArray>()?;
        let py = object.py();
        let dtype = array.dtype();
        let kind = if dtype.is_equiv_to(&numpy::dtype::<f32>(py)) {
            Kind::Single
        } else if dtype.is_equiv_to(&numpy::dtype::<f64>(py)) {
            Kind::Double
        } else if dtype.is_equiv_to(&numpy::dtype::<f16>(py)) {
            Kind::Half
        } else {
            return Err(PyTypeError::new_err(format!("X: expected floats, found {dtype}")));
        };
        let (&[rows, columns], &[down, across]) = (array.shape(), array.strides()) else {
            return Err(PyTypeError::new_err(format!(
                "X: expected a matrix, found {} dimensions",
                array.ndim()
            )));
        };
        // SAFETY: the array is alive, and its fields are read while the interpreter is held.
        let data = unsafe { (*array.as_array_ptr()).fields.data } as *const u8;
        Ok(Matrix { _owner: array.to_owned().unbind(), data, kind, rows, columns, strides: [down, across] })
    }
}

impl AsRef<[u8]> for Matrix {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: only of matrices whose rows follow each other without gaps, see `embeddings`; `_owner` keeps them.
        unsafe { std::slice::from_raw_parts(self.data, self.rows * self.columns * size_of::<f32>()) }
    }
}

impl Matrix {
    /// The rows, each of unit length.
    pub fn embeddings(self) -> kinfolk::Result<Embeddings> {
        let size = size_of::<f32>() as isize;
        let (rows, columns) = (self.rows, self.columns);
        let in_order = (columns == 1 || self.strides[1] == size)
            && (rows == 1 || self.strides[0] == size * columns as isize);
        let aligned = (self.data as usize).is_multiple_of(align_of::<f32>());
        if self.kind == Kind::Single && in_order && aligned && rows > 0 && columns > 0 {
            return Embeddings::from_bytes(Bytes::from_owner(self), columns, "X");
        }
        match self.kind {
            Kind::Half => self.normalised(f16::to_f64),
            Kind::Single => self.normalised(|value: f32| value.into()),
            Kind::Double => self.normalised(|value: f64| value),
        }
    }

    fn normalised<T: Copy>(&self, widen: impl Fn(T) -> f64 + Sync) -> kinfolk::Result<Embeddings> {
        let [down, across] = self.strides;
        Embeddings::from_fn(self.rows, self.columns, "X", |row, values| {
            for (column, value) in values.iter_mut().enumerate() {
                let at = row as isize * down + column as isize * across;
                // SAFETY: within the array, by its own shape and strides, and of type T; not always aligned.
                *value = widen(unsafe { self.data.offset(at).cast::<T>().read_unaligned() });
            }
        })
    }
}

/// A precomputed graph, N x K neighbours and similarities. It is copied, because it is checked and sorted.
pub struct Neighbours {
    n: usize,
    k: usize,
    ids: Vec<u32>,
    similarities: Vec<f32>,
}

impl<'py> FromPyObject<'_, 'py> for Neighbours {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (ids, similarities): (PyReadonlyArray2<'_, u32>, PyReadonlyArray2<'_, f32>) = object.extract()?;
        let (ids, similarities) = (ids.as_array(), similarities.as_array());
        let (n, k) = ids.dim();
        Ok(Neighbours {
            n,
            k,
            ids: ids.iter().copied().collect(),
            similarities: similarities.iter().copied().collect(),
        })
    }
}

impl Neighbours {
    /// The graph, if it is one.
    pub fn graph(self) -> kinfolk::Result<KnnGraph> {
        KnnGraph::from_parts(self.n, self.k, self.ids, self.similarities, "graph")
    }
}

/// Labels, copied: they are few.
pub fn labels(labels: &PyReadonlyArray1<'_, i64>) -> Vec<i64> {
    labels.as_array().iter().copied().collect()
}

/// An array of what `value` says of each row.
pub fn column<'py, T: numpy::Element>(
    py: Python<'py>,
    rows: usize,
    value: impl Fn(usize) -> T,
) -> Bound<'py, PyArray1<T>> {
    PyArray1::from_vec(py, (0..rows).map(value).collect())
}
