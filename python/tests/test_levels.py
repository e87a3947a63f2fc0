"""Levels: nested partitions from fine to coarse."""

import pickle
import sys

import numpy as np
import pytest

import kinfolk
from kinfolk import Kinfolk


@pytest.fixture(scope="module")
def set_and_levels():
    X, _ = kinfolk.synth(identities=60, dim=32, seed=5)
    return X, Kinfolk(levels=True).fit(X)


def test_every_level_refines_the_next_and_one_is_the_default(set_and_levels):
    X, found = set_and_levels
    levels = found.levels_
    assert len(levels) == len(levels.heights) == len(levels.clusters) == len(levels.persistence) > 1
    assert (levels.labels(levels.default) == found.labels_).all()
    assert (found.labels_ == Kinfolk().fit(X).labels_).all()
    for level in range(len(levels)):
        labels = levels.labels(level)
        assert labels.dtype == np.int64 and labels.max() + 1 == levels.clusters[level]
        assert (np.diff(np.bincount(labels)) <= 0).all()
        if level:
            pairs = np.unique(np.stack([levels.labels(level - 1), labels]), axis=1)
            assert pairs.shape[1] == levels.clusters[level - 1]
    assert (levels.labels(-1) == levels.labels(len(levels) - 1)).all()
    assert len(np.unique(levels.cut(-1e9))) == len(X)
    with pytest.raises(IndexError, match="level: expected"):
        levels.labels(len(levels))
    assert repr(levels).count("\n") == len(levels) and "default" in repr(levels)


def test_levels_are_pickled_with_the_estimator(set_and_levels):
    _, found = set_and_levels
    copy = pickle.loads(pickle.dumps(found))
    assert (copy.levels_.cut(1.0) == found.levels_.cut(1.0)).all()
    assert (copy.levels_.persistence == found.levels_.persistence).all()


def test_without_a_request_there_are_no_levels(set_and_levels):
    X, _ = set_and_levels
    assert Kinfolk().fit(X).levels_ is None
    with pytest.raises(ValueError, match="levels: expected a method that estimates edge probabilities, such as kin, found density"):
        Kinfolk("density", levels=True).fit(X)


def test_rows_of_zeros_never_merge(set_and_levels):
    X, _ = set_and_levels
    holed, zeros = X.copy(), [0, 7]
    holed[zeros] = 0
    with pytest.warns(UserWarning, match="2 such rows"):
        found = Kinfolk(levels=True).fit(holed)
    levels = found.levels_
    assert (levels.labels(levels.default) == found.labels_).all()
    coarsest = levels.cut(1e9)
    assert (np.bincount(coarsest)[coarsest[zeros]] == 1).all()


def test_the_plot_has_a_line_for_each_level(set_and_levels):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, found = set_and_levels
    ax = found.levels_.plot()
    assert len(ax.lines) == len(found.levels_.heights)
    figure, given = pyplot.subplots()
    assert found.levels_.plot(given) is given
    figure.canvas.draw()
    one = Kinfolk(levels=True).fit([[1.0, 0.0]]).levels_
    one.plot().figure.canvas.draw()
    pyplot.close("all")


def test_a_plot_without_matplotlib_says_what_is_missing(set_and_levels, monkeypatch):
    _, found = set_and_levels
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="plot: expected Matplotlib"):
        found.levels_.plot()
