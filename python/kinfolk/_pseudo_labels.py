"""Pseudo-labels: the clusters that are worth training a network on."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from . import _kinfolk


class PseudoLabels(NamedTuple):
    """What :meth:`Kinfolk.pseudo_labels` returns."""

    labels: np.ndarray
    """The class of every row (int64): 0, 1, 2 ... by descending size; -1 for rows that are left out."""
    classes: int
    """The number of classes."""
    share: float
    """The share of rows that have a class."""
    expected_precision: float | None
    """The probability that two rows of one class are of one identity; ``None`` for methods other than ``kin``."""


def pseudo_labels(
    labels: np.ndarray, probabilities: np.ndarray | None, method: str, least_size: Any, least_probability: Any
) -> PseudoLabels:
    least_size = operator.index(least_size)
    if least_size < 1:
        raise ValueError(f"least_size: expected at least 1, found {least_size}")
    if least_probability is not None:
        least_probability = float(least_probability)
        if probabilities is None:
            expected = "a method that estimates edge probabilities, such as kin"
            raise ValueError(f"least_probability: expected {expected}, found {method}")
    return PseudoLabels(*_kinfolk.pseudo_labels(labels, probabilities, least_size, least_probability))
