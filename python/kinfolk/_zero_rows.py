"""Rows of zeros have no direction, so no cosine with anything. An estimator leaves each of them alone in a cluster."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


class RowsWithDirection:
    """The rows of ``X`` that are not zeros; ``error`` is what the first that is was refused with."""

    def __init__(self, X: np.ndarray, error: Exception):
        self._kept = np.flatnonzero(X.any(axis=1))
        self._rows = len(X)
        if len(self._kept) == 0:
            raise error
        self.X = X[self._kept]
        alone = self._rows - len(self._kept)
        message = f"{error}; {alone} such {'row stays' if alone == 1 else 'rows stay'} alone"
        warnings.warn(message, UserWarning, stacklevel=4)

    def of(self, y: np.ndarray | None) -> np.ndarray | None:
        """The same rows of something else."""
        return None if y is None else y[self._kept]

    def restore(self, found: dict[str, Any]) -> dict[str, Any]:
        """What was found of those rows, told of all rows."""
        whole = dict(found)
        labels = np.arange(self._rows) + len(self._kept)
        labels[self._kept] = found["labels"]
        whole["labels"] = _by_size(labels)
        whole["confidence"] = self._spread(found["confidence"], 0)
        whole["parent"] = self._spread(self._back(found["parent"]), -1)
        whole["probability"] = self._spread(found["probability"], 1)
        absent = {"outside": -1, "rank": 0, "rank_back": 0, "shared": 0}
        ties = {**found["ties"]}
        if "outside" in ties:
            ties["outside"] = self._back(ties["outside"])
        whole["ties"] = {name: self._spread(tie, absent.get(name, np.nan)) for name, tie in ties.items()}
        doubts = {**found["doubts"]}
        whole["doubts"] = {**doubts, "row": self._back(doubts["row"]), "other": self._back(doubts["other"])}
        return whole

    def _spread(self, values: np.ndarray, absent: float) -> np.ndarray:
        whole = np.full(self._rows, absent, dtype=values.dtype)
        whole[self._kept] = values
        return whole

    def _back(self, rows: np.ndarray) -> np.ndarray:
        """Rows by their numbers in ``X``; -1 is none."""
        return np.where(rows < 0, -1, self._kept[rows])


def _by_size(labels: np.ndarray) -> np.ndarray:
    """Labels 0, 1, 2 ... by descending size, ties by smallest member."""
    _, first, labels, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    numbers = np.empty(len(sizes), dtype=np.int64)
    numbers[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return numbers[labels]
