"""New rows: the clusters of fit that they belong to, and partial_fit."""

import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import kinfolk
from kinfolk import Kinfolk, baselines, metrics


@pytest.fixture(scope="module")
def parts():
    """Fitted rows, rows of the same identities, and rows of others; with labels."""
    X, y = kinfolk.synth(identities=150, dim=128, seed=8)
    stranger = y % 5 == 0
    held_out = np.arange(len(y)) % 5 == 0
    return [(X[part], y[part]) for part in (~stranger & ~held_out, ~stranger & held_out, stranger)]


@pytest.fixture(scope="module")
def fitted(parts):
    (X, _), _, _ = parts
    return Kinfolk().fit(X)


def right(found, y, labels, y_new):
    """Whether the identity of most rows of the cluster of each new row is its own."""
    largest = {label: np.bincount(y[found.labels_ == label]).argmax() for label in set(found.labels_)}
    return np.array([largest.get(label, -1) == identity for label, identity in zip(labels, y_new)])


def test_rows_join_the_cluster_of_their_identity(parts, fitted):
    (X, y), (X_new, y_new), _ = parts
    labels = fitted.predict(X_new)
    assert labels.dtype == np.int64 and labels.shape == (len(X_new),)
    known = np.isin(y_new, y)
    assert right(fitted, y, labels[known], y_new[known]).mean() > 0.9


def test_the_estimator_does_not_change(parts, fitted):
    _, (X_new, _), _ = parts
    before = dict(fitted.__dict__)
    labels = fitted.predict(X_new)
    assert fitted.__dict__ == before and (fitted.predict(X_new) == labels).all()
    count = sys.getrefcount(X_new)
    fitted.predict(X_new)
    assert sys.getrefcount(X_new) == count


def test_a_row_is_judged_by_itself(parts, fitted):
    _, (X_new, _), _ = parts
    labels, top = fitted.predict(X_new), fitted.predict_top(X_new, top=4)
    some = np.random.default_rng(0).permutation(len(X_new))[:40]
    assert (fitted.predict(X_new[some]) == labels[some]).all()
    for whole, part in zip(top, fitted.predict_top(X_new[some], top=4)):
        assert (whole[some] == part).all()
    for jobs in (1, 3):
        limited = pickle.loads(pickle.dumps(fitted)).set_params(n_jobs=jobs)
        assert (limited.predict(X_new) == labels).all()


def test_candidates_are_probabilities(parts, fitted):
    _, (X_new, _), _ = parts
    labels, probabilities, none = fitted.predict_top(X_new, top=5)
    assert labels.dtype == np.int64 and probabilities.dtype == none.dtype == np.float32
    assert labels.shape == probabilities.shape == (len(X_new), 5) and none.shape == (len(X_new),)
    assert (np.diff(probabilities, axis=1) <= 0).all() and (probabilities >= 0).all()
    assert (probabilities.sum(axis=1) + none < 1 + 1e-5).all()
    assert ((labels == -1) == (probabilities == 0)).all() or (probabilities[labels == -1] == 0).all()
    # The one that predict chooses.
    chosen = np.where(probabilities[:, 0] > none, labels[:, 0], -1)
    assert (chosen == fitted.predict(X_new)).all()
    first = fitted.predict_top(X_new, top=1)
    assert (first.labels[:, 0] == labels[:, 0]).all()
    every = fitted.predict_top(X_new, top=100)
    assert np.allclose(every.probabilities.sum(axis=1) + every.none, 1, atol=1e-4)


def test_preferences_are_kept(parts):
    (X, _), (X_new, _), (X_other, _) = parts
    rows = np.concatenate([X_new, X_other])
    joined = [(Kinfolk(prefer=prefer).fit(X).predict(rows) >= 0).sum() for prefer in ("precision", "balanced", "recall")]
    assert joined == sorted(joined) and joined[0] < joined[-1]


@pytest.mark.parametrize(
    "estimator",
    [Kinfolk(), Kinfolk(k=7), Kinfolk(prefer=0.99), Kinfolk(prefer="recall"), Kinfolk("density"), Kinfolk("infomap"), Kinfolk("dbscan")],
    ids=repr,
)
def test_fitted_rows_keep_their_labels(estimator, small):
    X, _ = small
    found = clone(estimator).fit(X)
    for again in (X, X.astype(np.float64), 3 * X, pd.DataFrame(X).to_numpy(), X[::-1][::-1]):
        assert (found.predict(again) == found.labels_).all()
    assert (found.predict(X[5:9]) == found.labels_[5:9]).all()


@pytest.mark.parametrize("method", ["kin", "gcn-v", "lgcn", "ltc"])
def test_trained_methods_predict(method):
    (X, y), (X_new, _) = kinfolk.synth(identities=60, dim=32, seed=5, split=0.5)
    found = Kinfolk(method).fit(X, y)
    assert (found.predict(X) == found.labels_).all()
    labels = found.predict(X_new)
    assert labels.shape == (len(X_new),) and -1 <= labels.min() and labels.max() <= found.labels_.max()
    # Their identities were not fitted.
    assert (labels == -1).mean() > 0.2
    if method != "kin":
        with pytest.raises(ValueError, match=f"predict_top: expected a method that estimates edge probabilities.*found {method}"):
            found.predict_top(X_new)


def test_tau_decides_for_trees(small):
    X, _ = small
    found = Kinfolk("density").fit(X[::2])
    labels = found.predict(X[1::2])
    cosines = X[1::2] @ X[::2].T
    nearest = cosines.argmax(axis=1)
    near = cosines[np.arange(len(nearest)), nearest]
    expected = np.where(near > found.tau_, found.labels_[nearest], -1)
    assert ((labels == expected) | (np.abs(near - found.tau_) < 1e-5)).all()


def test_noise_is_no_cluster():
    X = np.eye(8)[[0, 0, 1, 1, 2]] + 0.01 * np.random.default_rng(0).standard_normal((5, 8))
    found = Kinfolk("dbscan").fit(X)
    assert (found.predict(X) == found.labels_).all()


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 80, 81, 82])
def test_small_sets(rows, small):
    X, _ = small
    for method in ("kin", "density"):
        found = Kinfolk(method).fit(X[:rows])
        assert (found.predict(X[:rows]) == found.labels_).all()
        labels = found.predict(X[rows : rows + 30])
        assert len(labels) == 30 and labels.min() >= -1 and labels.max() <= found.labels_.max()
    found = Kinfolk().fit(X[:rows])
    assert found.predict_top(X[:1], top=2).labels[0, 0] == found.labels_[0]


def test_rows_of_zeros_belong_to_none(small):
    X, _ = small
    with pytest.warns(UserWarning):
        found = Kinfolk().fit(np.insert(X, [0, 4], 0, axis=0))
    new = np.insert(X[:6], [2, 3], 0, axis=0)
    with pytest.warns(UserWarning, match="row 2: expected a row of non-zero length, .* 2 such rows belong to no cluster") as caught:
        labels = found.predict(new)
    assert caught[0].filename == __file__
    rest = [0, 1, 3, 5, 6, 7]
    assert (labels[[2, 4]] == -1).all()
    assert (labels[rest] == found.labels_[[1, 2, 3, 4, 6, 7]]).all()
    with pytest.warns(UserWarning, match="2 such rows"):
        top = found.predict_top(new, top=2)
    assert (top.labels[[2, 4]] == -1).all() and (top.none[[2, 4]] == 1).all() and (top.labels[rest, 0] == labels[rest]).all()
    with pytest.warns(UserWarning, match="2 such rows"):
        assert (found.predict(np.zeros((2, X.shape[1]))) == -1).all()


def test_what_cannot_be_predicted_is_refused(small, fitted):
    X, _ = small
    with pytest.raises(NotFittedError, match="predict: expected a call of fit or load before"):
        Kinfolk().predict(X)
    with pytest.raises(NotFittedError, match="predict_top: expected a call of fit"):
        Kinfolk().predict_top(X)
    with pytest.raises(ValueError, match="X has 64 features, but Kinfolk is expecting 128"):
        fitted.predict(X)
    with pytest.raises(ValueError, match="top: expected at least 1, found 0"):
        fitted.predict_top(X, top=0)
    with pytest.raises(TypeError):
        fitted.predict_top(X, top=1.5)
    broken = np.full((2, 128), np.nan)
    with pytest.raises(ValueError, match="X: row 0, column 0: expected a finite number"):
        fitted.predict(broken)


def test_input_of_any_kind(parts, fitted, tmp_path):
    _, (X_new, _), _ = parts
    expected = fitted.predict(X_new)
    np.save(tmp_path / "x.npy", X_new)
    for new in (np.load(tmp_path / "x.npy", mmap_mode="r"), X_new.astype(np.float64), np.asfortranarray(X_new), X_new.tolist(), pd.DataFrame(X_new)):
        with warnings.catch_warnings():
            # A data frame has names of columns.
            warnings.simplefilter("ignore")
            assert (fitted.predict(new) == expected).all()
    half = fitted.predict(X_new.astype(np.float16))
    assert (half == expected).mean() > 0.99


def test_pickles_predict_the_same(parts, fitted, tmp_path):
    (X, _), (X_new, _), _ = parts
    np.save(tmp_path / "x.npy", X)
    mapped = Kinfolk().fit(np.load(tmp_path / "x.npy", mmap_mode="r"))
    for found in (fitted, mapped):
        expected = found.predict(X_new)
        size = len(pickle.dumps(found))
        # The rows, and not what was made of them.
        assert size < 2 * X.nbytes
        assert (pickle.loads(pickle.dumps(found)).predict(X_new) == expected).all()
    assert not hasattr(clone(fitted), "_fitted")


def test_a_loaded_estimator_clusters_on_its_own(tmp_path):
    (X, y), (X_new, y_new) = kinfolk.synth(identities=60, dim=32, seed=5, split=0.5)
    trained = Kinfolk().fit(X, y)
    trained.save(tmp_path / "model.safetensors")
    loaded = Kinfolk.load(tmp_path / "model.safetensors")
    assert (loaded.predict(X_new) == trained.cluster(X_new)).all()
    assert (loaded.cluster(X_new) == trained.cluster(X_new)).all()
    with pytest.raises(NotFittedError):
        loaded.predict_top(X_new)
    again = loaded.fit(X)
    assert (again.predict(X) == again.labels_).all() and (again.cluster(X_new) == trained.cluster(X_new)).all()
    assert not hasattr(Kinfolk().fit(X), "cluster")
    with pytest.raises(AttributeError, match="cluster: expected a model"):
        Kinfolk().fit(X).cluster


def test_batches_are_clustered_nearly_as_at_once():
    X, y = kinfolk.synth(identities=100, dim=64, seed=2)
    growing, start = Kinfolk(), 0
    for end in (len(X) // 2, len(X) * 3 // 4, len(X) * 7 // 8, len(X)):
        assert growing.partial_fit(X[start:end]) is growing and len(growing.labels_) == end
        start = end
    at_once = Kinfolk().fit(X)
    assert metrics.bcubed(y, growing.labels_).f > metrics.bcubed(y, at_once.labels_).f - 0.03
    assert (np.diff(np.bincount(growing.labels_)) <= 0).all()
    inside = growing.parent_ >= 0
    assert (growing.labels_[inside] == growing.labels_[growing.parent_[inside]]).all()
    assert len(growing.probabilities_) == len(growing.confidence_) == len(X) and growing.k_ == 80
    assert (growing.predict(X) == growing.labels_).all()
    assert "Row 0" in kinfolk.explain(growing, 0)
    assert growing.pseudo_labels().classes > 0


def test_the_first_call_is_fit(small):
    X, _ = small
    first = Kinfolk().partial_fit(X)
    assert (first.labels_ == Kinfolk().fit(X).labels_).all()
    one = Kinfolk(n_jobs=1).fit(X[:900]).partial_fit(X[900:])
    three = Kinfolk(n_jobs=3).partial_fit(X[:900]).partial_fit(X[900:])
    assert (one.labels_ == three.labels_).all()
    # fit forgets what was added.
    assert (one.fit(X).labels_ == first.labels_).all()
    assert len(one.partial_fit(X[:3]).labels_) == len(X) + 3


def test_small_and_empty_rows_are_added(small):
    X, _ = small
    growing = Kinfolk()
    for row in range(4):
        growing.partial_fit(X[row : row + 1])
    growing.partial_fit(X[4:100])
    assert len(growing.labels_) == 100 and (growing.predict(X[:100]) == growing.labels_).all()
    holed = np.insert(X[100:200], [3], 0, axis=0)
    with pytest.warns(UserWarning, match="row 3") as caught:
        growing.partial_fit(holed)
    assert caught[0].filename == __file__
    growing.partial_fit(X[200:210])
    assert len(growing.labels_) == 211
    assert (np.bincount(growing.labels_)[growing.labels_[103]] == 1) and growing.parent_[103] == -1
    rest = np.delete(np.arange(211), 103)
    assert (growing.predict(X[:210]) == growing.labels_[rest]).all()


def test_pickles_and_clones_of_what_grew(small):
    X, _ = small
    growing = Kinfolk().partial_fit(X[:800]).partial_fit(X[800:1000])
    again = pickle.loads(pickle.dumps(growing))
    assert (again.labels_ == growing.labels_).all()
    assert (again.predict(X[1000:1100]) == growing.predict(X[1000:1100])).all()
    assert len(again.partial_fit(X[1000:1100]).labels_) == 1100
    assert not hasattr(clone(growing), "labels_")


def test_a_refused_batch_changes_nothing(small):
    X, _ = small
    growing = Kinfolk().partial_fit(X[:800]).partial_fit(X[800:1000])
    before = growing.labels_.copy()
    broken = X[1000:1100].copy()
    broken[7, 3] = np.inf
    for wrong in (broken, X[1000:1100, :20], np.zeros((3, 64))):
        with pytest.raises(ValueError):
            growing.partial_fit(wrong)
        assert (growing.labels_ == before).all() and (growing.predict(X[:1000]) == before).all()
    assert len(growing.partial_fit(X[1000:1100]).labels_) == 1100


@pytest.mark.parametrize(
    "estimator, words",
    [
        (Kinfolk("density"), "found method='density'"),
        (Kinfolk(k=20, prefer="recall"), "found k=20, prefer='recall'"),
        (Kinfolk(levels=True), "found levels=True"),
        (Kinfolk(model="model.safetensors"), "found model='model.safetensors'"),
    ],
    ids=repr,
)
def test_partial_fit_is_for_the_default_only(estimator, words):
    assert not hasattr(estimator, "partial_fit")
    with pytest.raises(AttributeError, match=f"partial_fit: expected kin without a model.*{words}"):
        estimator.partial_fit


def test_partial_fit_does_not_follow_training():
    X, y = kinfolk.synth(identities=20, dim=32)
    with pytest.raises(AttributeError, match="found a model that was trained"):
        Kinfolk().fit(X, y).partial_fit


def test_baselines_are_predicted(small):
    X, _ = small
    labels = baselines.hac(X[::2])
    found = Kinfolk("hac").fit(X[::2])
    assert (found.labels_ == labels).all() and (found.predict(X[::2]) == labels).all()
