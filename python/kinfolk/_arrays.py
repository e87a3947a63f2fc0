"""Converts array-like input to the arrays that the extension module reads."""

from __future__ import annotations

from typing import Any

import numpy as np

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16))


def matrix(X: Any) -> np.ndarray:
    """Embeddings as a matrix of float16, float32 or float64, without a copy if they already are one."""
    if hasattr(X, "tocsr"):
        raise TypeError("X: expected a dense matrix, found a sparse one; X.toarray() makes it dense")
    if np.ma.is_masked(X):
        raise ValueError("X: expected an array without masked values, found masked values")
    array = _array(X)
    if array.dtype.kind == "c":
        raise ValueError(f"X: Complex data not supported, found {array.dtype}")
    # A column of lists, as in data frames and Arrow.
    if array.dtype == object and array.ndim == 1 and len(array) and np.ndim(array[0]) == 1:
        array = _stacked(array)
    if array.ndim != 2:
        raise ValueError(
            f"X: expected a matrix of shape (rows, columns), found shape {array.shape}. "
            "Reshape your data: X.reshape(1, -1) is one row."
        )
    rows, columns = array.shape
    if columns == 0:
        raise ValueError(f"X: 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required.")
    if rows == 0:
        raise ValueError(f"X: 0 sample(s) (shape=(0, {columns})) while a minimum of 1 is required.")
    return array if array.dtype in _FLOATS else array.astype(np.float64)


def _array(X: Any) -> np.ndarray:
    if isinstance(X, np.ndarray):
        return X
    # Tensors that are part of an autograd graph.
    if getattr(X, "requires_grad", False):
        X = X.detach()
    if hasattr(X, "__dlpack__") and not hasattr(X, "__array__"):
        return np.from_dlpack(X)
    return np.asarray(X)


def _stacked(rows: np.ndarray) -> np.ndarray:
    width = len(rows[0])
    for i, row in enumerate(rows):
        if row is None or len(row) != width:
            found = "nothing" if row is None else f"{len(row)} values"
            raise ValueError(f"X: row {i}: expected {width} values as in row 0, found {found}")
    return np.stack([np.asarray(row) for row in rows])


def labels(y: Any, name: str, rows: int | None = None) -> np.ndarray:
    """Labels as int64. Other values, such as names, are numbered: only equality of labels matters."""
    array = _array(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name}: expected one label for each row, found shape {array.shape}")
    if rows is not None and len(array) != rows:
        raise ValueError(f"{name}: expected {rows} labels (one per row of X), found {len(array)}")
    if array.dtype.kind in "iub" and array.dtype != np.uint64:
        return np.ascontiguousarray(array, dtype=np.int64)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name}: row {row}: expected a label, found {array[row]} (NaN and inf are not labels)")
    if array.dtype == object:
        array = array.astype(str)
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def graph(given: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Neighbours and similarities as uint32 and float32, N x K each."""
    if given is None:
        return None
    if hasattr(given, "tocsr"):
        return _from_sparse(given.tocsr())
    try:
        ids, similarities = given
    except (TypeError, ValueError):
        raise ValueError("graph: expected (ids, similarities) or a sparse matrix of similarities") from None
    ids, similarities = _array(ids), _array(similarities)
    if ids.ndim != 2 or ids.shape != similarities.shape:
        raise ValueError(
            "graph: expected ids and similarities of one shape (rows, neighbours), "
            f"found {ids.shape} and {similarities.shape}"
        )
    if ids.dtype.kind not in "iu":
        raise ValueError(f"graph: expected ids that are whole numbers, found {ids.dtype}")
    if ids.size and (ids.min() < 0 or ids.max() >= len(ids)):
        row, column = np.argwhere((ids < 0) | (ids >= len(ids)))[0]
        raise ValueError(
            f"graph: row {row}, column {column}: expected a neighbour from 0 to {len(ids) - 1}, "
            f"found {ids[row, column]}"
        )
    return ids.astype(np.uint32, copy=False), similarities.astype(np.float32, copy=False)


def _from_sparse(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    """The stored similarities of a square matrix, without its diagonal. Shorter rows are padded with neighbours of
    similarity -1, which every threshold excludes."""
    n = matrix.shape[0]
    if matrix.shape != (n, n):
        raise ValueError(f"graph: expected a square matrix, found shape {matrix.shape}")
    matrix = matrix.copy()
    matrix.sum_duplicates()
    starts, columns, values = matrix.indptr, matrix.indices, matrix.data
    rows = np.repeat(np.arange(n), np.diff(starts))
    others = rows != columns
    rows, columns, values = rows[others], columns[others], values[others]
    counts = np.bincount(rows, minlength=n)
    k = int(counts.max(initial=0))
    ids = np.zeros((n, k), dtype=np.uint32)
    similarities = np.full((n, k), -1, dtype=np.float32)
    first = np.cumsum(counts) - counts
    place = np.arange(len(rows)) - first[rows]
    ids[rows, place] = columns
    similarities[rows, place] = values
    for row in np.flatnonzero(counts < k):
        known = counts[row]
        # Enough candidates that those already present, and the row itself, can be skipped.
        near = (row + 1 + np.arange(min(n - 1, k + known))) % n
        ids[row, known:] = near[~np.isin(near, ids[row, :known])][: k - known]
    return ids, similarities
