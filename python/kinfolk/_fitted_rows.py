"""The rows of ``fit``, with which new rows are compared, and to which ``partial_fit`` adds."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import _kinfolk
from ._work import Job
from ._zero_rows import RowsWithDirection


class Candidates(NamedTuple):
    """What :meth:`Kinfolk.predict_top` returns."""

    labels: np.ndarray
    """The most probable clusters of each row, the best first (int64, rows x top); -1 where there are fewer."""
    probabilities: np.ndarray
    """Their probabilities (float32, rows x top); 0 where there are fewer."""
    none: np.ndarray
    """The probability that a row belongs to no cluster (float32, one for each row)."""


class How(NamedTuple):
    """How the rows were clustered."""

    method: str
    parameters: list[tuple[str, str]]
    k: int | None
    tau: float | None
    model: bytes | None
    seed: int


class FittedRows:
    """Rows and their labels. What is made of them, when it is first needed, is not pickled."""

    def __init__(self, X: np.ndarray, labels: np.ndarray, zeros: RowsWithDirection | None, how: How):
        # Those of several calls become one matrix when it is needed.
        self._parts = [X]
        self._labels = labels
        self._zeros = zeros
        self._how = how
        self._predictor: Any = None
        self._album: TemporaryAlbum | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_predictor": None, "_album": None}

    def predict(self, X: np.ndarray, job: Job) -> np.ndarray:
        """The cluster of each new row, -1 for none."""
        predictor = self._compared(job)
        none = (np.full(len(X), -1, dtype=np.int64),)
        return _of_rows_with_direction(lambda rows: (predictor.predict(rows, job),), X, none)[0]

    def candidates(self, X: np.ndarray, top: int, job: Job) -> Candidates:
        """The ``top`` most probable clusters of each new row."""
        if self._how.method != "kin":
            expected = "a method that estimates edge probabilities, such as kin"
            raise ValueError(f"predict_top: expected {expected}, found {self._how.method}")
        predictor = self._compared(job)
        none = (
            np.full((len(X), top), -1, dtype=np.int64),
            np.zeros((len(X), top), dtype=np.float32),
            np.ones(len(X), dtype=np.float32),
        )
        return Candidates(*_of_rows_with_direction(lambda rows: predictor.candidates(rows, top, job), X, none))

    def add(self, X: np.ndarray, job: Job) -> dict[str, Any]:
        """Adds rows, and returns the clusters of all."""
        if self._album is None:
            self._album = TemporaryAlbum(self._with_direction(), self._how.seed, job)
        before = sum(map(len, self._parts))
        zeros = None
        try:
            self._album.add(X, job)
        except _kinfolk.ZeroRow as zero:
            zeros = RowsWithDirection(X, zero)
            self._album.add(zeros.X, job)
        try:
            found = self._album.clustering(job)
        except BaseException:
            # It has the rows, and this has not.
            self._album = None
            raise
        if self._zeros is not None or zeros is not None:
            self._zeros = RowsWithDirection.joined([(self._zeros, before), (zeros, len(X))])
            found = self._zeros.restore(found)
        self._parts.append(X)
        self._labels = found["labels"]
        self._how = self._how._replace(k=found["k"])
        self._predictor = None
        return found

    def _with_direction(self) -> np.ndarray:
        """The rows that are not all zeros."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        X = self._parts[0]
        return X if self._zeros is None else X[self._zeros.nonzero]

    def _compared(self, job: Job) -> Any:
        if self._predictor is None:
            X, how = self._with_direction(), self._how
            labels = self._labels if self._zeros is None else self._labels[self._zeros.nonzero]
            if how.method == "kin":
                k = max(how.k or 1, 1)
                self._predictor = _kinfolk.Predictor.by_edges(X, labels, how.parameters, k, how.model, how.seed, job)
            else:
                self._predictor = _kinfolk.Predictor.by_nearest(X, labels, how.tau, how.seed, job)
        return self._predictor


class TemporaryAlbum:
    """An album in a directory that is removed with it."""

    def __init__(self, X: np.ndarray, seed: int, job: Job):
        self._directory = tempfile.TemporaryDirectory(prefix="kinfolk-")
        self._album = _kinfolk.Album.create(f"{self._directory.name}/album", X, _NOTHING_SAID, seed, job)

    def add(self, X: np.ndarray, job: Job) -> None:
        self._album.add(X, _NOTHING_SAID, job)

    def clustering(self, job: Job) -> dict[str, Any]:
        return self._album.clustering(job)


_NOTHING_SAID: dict[str, Any] = {"keys": None, "groups": None, "model": None}


def _of_rows_with_direction(
    ask: Callable[[np.ndarray], tuple[np.ndarray, ...]], X: np.ndarray, none: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """``ask(X)``; rows of zeros get what ``none`` says."""
    try:
        return ask(X)
    except _kinfolk.ZeroRow as zero:
        some = np.flatnonzero(X.any(axis=1))
        alone = len(X) - len(some)
        message = f"{zero}; {alone} such {'row belongs' if alone == 1 else 'rows belong'} to no cluster"
        warnings.warn(message, UserWarning, stacklevel=4)
        if len(some):
            for whole, found in zip(none, ask(X[some])):
                whole[some] = found
        return none
