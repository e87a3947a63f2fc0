"""Pseudo-labels: the clusters that are worth training on."""

import numpy as np
import pytest

import kinfolk
from kinfolk import Kinfolk


@pytest.fixture(scope="module")
def found():
    X, y = kinfolk.synth(identities=60, dim=32, seed=5)
    return Kinfolk().fit(X), y


def test_small_and_doubtful_clusters_are_left_out(found):
    found, y = found
    assert len(found.cluster_probabilities_) == found.labels_.max() + 1
    labels, classes, share, expected = found.pseudo_labels(least_size=5, least_probability=0.8)
    sizes = np.bincount(found.labels_)
    kept = (sizes[found.labels_] >= 5) & (found.cluster_probabilities_[found.labels_] >= np.float32(0.8))
    assert ((labels >= 0) == kept).all() and 0 < kept.sum() < len(y)
    assert share == kept.mean() and classes == labels.max() + 1 and labels.dtype == np.int64
    assert (np.diff(np.bincount(labels[kept])) <= 0).all()
    assert abs(kinfolk.metrics.pairwise(y[kept], labels[kept]).precision - expected) < 0.15
    # By default every cluster of two rows and more.
    every = found.pseudo_labels()
    assert every.classes == (sizes >= 2).sum() and every.expected_precision <= expected


def test_nothing_may_be_kept(found):
    labels, classes, share, expected = found[0].pseudo_labels(least_size=10**6)
    assert (labels == -1).all() and (classes, share, expected) == (0, 0.0, 1.0)


def test_values_out_of_range_are_refused(found):
    found, _ = found
    for size in (0, -3):
        with pytest.raises(ValueError, match=f"least_size: expected at least 1, found {size}"):
            found.pseudo_labels(least_size=size)
    with pytest.raises(TypeError):
        found.pseudo_labels(least_size=2.5)
    for probability in (1.5, -0.1, float("nan")):
        with pytest.raises(ValueError, match="least_probability: expected a probability from 0 to 1"):
            found.pseudo_labels(least_probability=probability)
    with pytest.raises(AttributeError, match="expected a result of fit"):
        Kinfolk().pseudo_labels()


def test_methods_without_probabilities_have_sizes_only():
    X, _ = kinfolk.synth(identities=20, dim=16)
    tree = Kinfolk("density").fit(X)
    assert tree.cluster_probabilities_ is None
    assert tree.pseudo_labels(least_size=3).expected_precision is None
    with pytest.raises(ValueError, match="expected a method that estimates edge probabilities.*found density"):
        tree.pseudo_labels(least_probability=0.5)


def test_rows_of_zeros_are_clusters_of_one_row():
    X, _ = kinfolk.synth(identities=20, dim=16)
    X[3] = 0
    with pytest.warns(UserWarning):
        found = Kinfolk().fit(X)
    assert found.cluster_probabilities_[found.labels_[3]] == 1
    assert found.pseudo_labels().labels[3] == -1
    assert found.pseudo_labels(least_size=1).labels[3] >= 0
