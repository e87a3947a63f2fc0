"""Input types of X, and which of them are copied."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import kinfolk
from kinfolk import Kinfolk, _kinfolk
from kinfolk._work import Job


def is_read_in_place(X):
    return _kinfolk.cluster(X, None, "kin", [], None, None, 0, Job(None, False))["mapped"]


@pytest.fixture(scope="module")
def expected(small):
    return Kinfolk().fit_predict(small[0])


def test_unit_rows_of_float32_are_not_copied(small, tmp_path):
    X, _ = small
    assert is_read_in_place(X)
    np.save(tmp_path / "x.npy", X)
    assert is_read_in_place(np.load(tmp_path / "x.npy", mmap_mode="r"))
    frozen = X.copy()
    frozen.flags.writeable = False
    assert is_read_in_place(frozen)
    assert is_read_in_place(X[10:])
    for other in (2 * X, X.astype(np.float64), np.asfortranarray(X), X[::2], X[:, ::2], X[::-1]):
        assert not is_read_in_place(other)


def test_x_is_let_go_of_and_left_as_it_was(small):
    import sys

    X = small[0] * 3
    before, count = X.copy(), sys.getrefcount(X)
    Kinfolk().fit(X)
    assert (X == before).all() and sys.getrefcount(X) == count


@pytest.mark.parametrize(
    "layout",
    {
        "double": lambda X: X.astype(np.float64),
        "fortran": np.asfortranarray,
        "longer rows": lambda X: 3 * X,
        "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
        "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
        "big-endian": lambda X: X.astype(">f4"),
        "unaligned": lambda X: np.frombuffer(b"!" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(X.shape),
        "lists": lambda X: X.tolist(),
        "pandas": pd.DataFrame,
        "pandas, a column of lists": lambda X: pd.Series(list(X)),
        "pyarrow, a column of lists": lambda X: pa.array(list(X)),
        "pyarrow, fixed lists": lambda X: pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1]),
        "pyarrow, a table": lambda X: pa.table({str(c): X[:, c] for c in range(X.shape[1])}),
    }.items(),
    ids=lambda item: item[0],
)
def test_layouts_are_the_same(layout, small, expected):
    assert (Kinfolk().fit_predict(layout[1](small[0])) == expected).all()


def test_tensors_by_dlpack(small, expected):
    class Tensor:
        """The DLPack protocol only."""

        def __dlpack__(self, **how):
            return small[0].__dlpack__(**how)

        def __dlpack_device__(self):
            return small[0].__dlpack_device__()

    assert (Kinfolk().fit_predict(Tensor()) == expected).all()


def test_tensors_of_torch(small, expected):
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(small[0].copy())
    assert (Kinfolk().fit_predict(tensor) == expected).all()
    assert (Kinfolk().fit_predict(tensor.requires_grad_()) == expected).all()


def test_half_precision_and_whole_numbers(small):
    X = small[0].astype(np.float16)
    assert (Kinfolk().fit_predict(X) == Kinfolk().fit_predict(X.astype(np.float64))).all()
    whole = (100 * small[0]).astype(np.int8)
    assert (Kinfolk().fit_predict(whole) == Kinfolk().fit_predict(whole.astype(np.float32))).all()


@pytest.mark.parametrize(
    "X, words",
    [
        ([[1.0, 0.0], [float("nan"), 1.0]], "X: row 1, column 0: expected a finite number, found NaN"),
        ([[1.0, 0.0], [1.0, float("-inf")]], "X: row 1, column 1: expected a finite number, found -inf"),
        ([1.0, 2.0], "found shape \\(2,\\)"),
        (np.ones((2, 2, 2)), "found shape"),
        (np.ones((0, 2)), "0 sample"),
        (np.ones((2, 0)), "0 feature"),
        (np.ones((2, 2), complex), "Complex"),
        (pd.Series([[1.0, 2.0], [1.0]]), "row 1: expected 2 values"),
        (pa.array([[1.0, 2.0], None]), "row 1: expected 2 values"),
        ([["a", "b"]], "could not convert"),
        (np.ma.masked_less([[1.0, 2.0]], 1.5), "masked"),
    ],
)
def test_what_is_no_matrix_is_refused(X, words):
    with pytest.raises(ValueError, match=words):
        Kinfolk().fit(X)


def test_graphs_that_are_wrong_are_refused(small):
    X, _ = small
    ids, similarities = kinfolk.knn_graph(X, k=5)
    wrong = [
        ((ids,), "expected \\(ids, similarities\\)"),
        ((ids[:, :3], similarities), "of one shape"),
        ((ids.astype(float), similarities), "whole numbers"),
        ((ids.astype(np.int64) - 1, similarities), "expected a neighbour from 0"),
        ((np.zeros_like(ids), similarities), "row 0, column 0: expected a neighbour other than"),
        ((ids, similarities * np.nan), "row 0, column 0: expected a finite similarity"),
        ((ids[:7] % 7, similarities[:7]), "."),
    ]
    for graph, words in wrong:
        with pytest.raises(ValueError, match=words):
            kinfolk.cluster(X, graph=graph)


@settings(max_examples=80, deadline=None)
@given(
    arrays.arrays(
        dtype=st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.int32, np.uint16, bool]),
        shape=arrays.array_shapes(min_dims=2, max_dims=2, max_side=30),
    ),
    st.sampled_from(["kin", "density"]),
)
def test_any_matrix_has_labels_or_an_error(X, method):
    try:
        with warnings.catch_warnings():
            # Rows of zeros.
            warnings.simplefilter("ignore")
            labels = Kinfolk(method).fit_predict(X)
    except ValueError as error:
        assert "row " in str(error), error
        assert not np.isfinite(X.astype(np.float64)).all() or not X.any()
        return
    assert len(labels) == len(X) and set(labels) == set(range(labels.max() + 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_neighbours_are_those_of_numpy(rows, columns, k, number):
    X = np.random.default_rng(number).standard_normal((rows, columns))
    ids, similarities = kinfolk.knn_graph(X, k)
    assert ids.shape == similarities.shape == (rows, min(k, rows - 1))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2)
    best = -np.sort(-cosines, axis=1)[:, : ids.shape[1]]
    assert np.allclose(similarities, best, atol=1e-5)
    assert np.allclose(np.take_along_axis(cosines, ids.astype(int), axis=1), best, atol=1e-5)
