"""Rows of zeros have no cosine with any other row. The estimator puts each of them into a cluster of its own."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


class RowsWithDirection:
    """The rows of ``X`` that are not all zeros. ``error`` is the error that the first row of zeros caused."""

    nonzero: np.ndarray
    _n: int
    X: np.ndarray

    def __init__(self, X: np.ndarray, error: Exception):
        self.nonzero = np.flatnonzero(X.any(axis=1))
        self._n = len(X)
        if len(self.nonzero) == 0:
            raise error
        self.X = X[self.nonzero]
        alone = self._n - len(self.nonzero)
        message = f"{error}; {alone} such {'row is a cluster of its own' if alone == 1 else 'rows are clusters of their own'}"
        warnings.warn(message, UserWarning, stacklevel=4)

    @classmethod
    def joined(cls, parts: list[tuple[RowsWithDirection | None, int]]) -> RowsWithDirection:
        """Of several matrices one after the other, each with the number of its rows; ``None`` if it has no zeros."""
        whole, before = cls.__new__(cls), 0
        nonzero = []
        for part, rows in parts:
            nonzero.append(before + (np.arange(rows) if part is None else part.nonzero))
            before += rows
        whole.nonzero, whole._n = np.concatenate(nonzero), before
        return whole

    def of(self, y: np.ndarray | None) -> np.ndarray | None:
        """The same rows of another array."""
        return None if y is None else y[self.nonzero]

    def restore(self, found: dict[str, Any]) -> dict[str, Any]:
        """The result for all rows of ``X``, from the result for those that are not zeros."""
        whole = dict(found)
        labels = np.arange(self._n) + len(self.nonzero)
        labels[self.nonzero] = found["labels"]
        whole["labels"] = _by_size(labels)
        whole["confidence"] = self._spread(found["confidence"], 0)
        whole["parent"] = self._spread(self._back(found["parent"]), -1)
        whole["probability"] = self._spread(found["probability"], 1)
        if found["cluster_probability"] is not None:
            whole["cluster_probability"] = self._spread(found["cluster_probability"], 1)
        absent = {"outside": -1, "rank": 0, "rank_back": 0, "shared": 0}
        edges = {**found["edges"]}
        if "outside" in edges:
            edges["outside"] = self._back(edges["outside"])
        whole["edges"] = {name: self._spread(column, absent.get(name, np.nan)) for name, column in edges.items()}
        doubts = {**found["doubts"]}
        whole["doubts"] = {**doubts, "row": self._back(doubts["row"]), "other": self._back(doubts["other"])}
        if found["levels"] is not None:
            whole["levels"] = self._tree(*found["levels"])
        return whole

    def _tree(self, rows: int, nodes: np.ndarray, heights: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
        """The tree over all rows, in which those of zeros never merge. Nodes from ``rows`` on are merges."""
        of_rows = nodes < rows
        moved = nodes + np.uint32(self._n - rows)
        moved[of_rows] = self.nonzero[nodes[of_rows]]
        return self._n, moved, heights

    def _spread(self, values: np.ndarray, absent: float) -> np.ndarray:
        whole = np.full(self._n, absent, dtype=values.dtype)
        whole[self.nonzero] = values
        return whole

    def _back(self, rows: np.ndarray) -> np.ndarray:
        """Row numbers in ``X``; -1 means none."""
        return np.where(rows < 0, -1, self.nonzero[rows])


def _by_size(labels: np.ndarray) -> np.ndarray:
    """Labels 0, 1, 2 ... by descending size, ties by smallest member."""
    _, first, labels, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    numbers = np.empty(len(sizes), dtype=np.int64)
    numbers[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return numbers[labels]
