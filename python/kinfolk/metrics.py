"""Scores that compare predicted clusters with true identities.

>>> from kinfolk import metrics
>>> truth, predicted = [0, 0, 0, 1, 1], [5, 5, 9, 9, 9]
>>> metrics.pairwise(truth, predicted)
FScore(precision=0.5, recall=0.5, f=0.5)
>>> round(metrics.bcubed(truth, predicted).f, 3)
0.733
>>> round(metrics.nmi(truth, predicted), 3)
0.433

Labels are integers or names. Scores depend only on which rows have equal labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _kinfolk
from ._arrays import labels

__all__ = ["FScore", "Scores", "bcubed", "evaluate", "nmi", "pairwise"]


class FScore(NamedTuple):
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f: float


class Scores(NamedTuple):
    """All scores."""

    pairwise: FScore
    bcubed: FScore
    nmi: float


def evaluate(truth: Any, predicted: Any) -> Scores:
    """All scores; this costs no more than computing one.

    >>> evaluate(["Ann", "Ann", "Bob"], [0, 0, 1]).nmi
    1.0
    """
    pairs, rows, information = _kinfolk.scores(labels(truth, "truth"), labels(predicted, "predicted"))
    return Scores(FScore(*pairs), FScore(*rows), information)


def pairwise(truth: Any, predicted: Any) -> FScore:
    """Pairwise precision and recall: the share of the pairs in one cluster that are of one identity, and the share of the
    pairs of one identity that are in one cluster. Large clusters dominate.

    >>> pairwise([0, 0, 1], [0, 0, 0]).precision == 1 / 3
    True
    """
    return evaluate(truth, predicted).pairwise


def bcubed(truth: Any, predicted: Any) -> FScore:
    """BCubed precision and recall, means over rows: the share of a row's cluster that has its identity, and the share of
    its identity that is in its cluster.

    >>> bcubed([0, 0, 1, 1], [0, 1, 2, 3]).recall
    0.5
    """
    return evaluate(truth, predicted).bcubed


def nmi(truth: Any, predicted: Any) -> float:
    """Mutual information, normalised by the arithmetic mean of both entropies.

    >>> nmi([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    return evaluate(truth, predicted).nmi
