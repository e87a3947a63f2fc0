"""The estimator. It follows scikit-learn's conventions without using its base classes, so scikit-learn is not a
dependency."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from typing import Any

import numpy as np

from . import _kinfolk
from ._arrays import graph as as_graph
from ._arrays import labels as as_labels
from ._arrays import matrix
from ._fitted_rows import Candidates, FittedRows, How
from ._levels import Levels
from ._pseudo_labels import PseudoLabels, pseudo_labels
from ._work import Job, count, neighbours, parameter_texts, seed
from ._zero_rows import RowsWithDirection

# Training holds out 30 % of the identities to choose parameters. With fewer than ten, too few would be held out.
_FEWEST_IDENTITIES = 10


class Kinfolk:
    """Clusters rows of the same identity, without labels, a number of clusters or a threshold.

    Parameters
    ----------
    method : "kin", "density", "gcn-v", "gcn-ve", "lgcn" or "ltc"
        ``kin`` estimates for every edge of the kNN graph the probability that it joins rows of one identity.
        ``density`` links each row to its nearest denser neighbour and cuts weak links at a threshold derived from the
        data. ``gcn-v`` and ``gcn-ve`` are the networks of the paper, ``lgcn`` and ``ltc`` two that it is compared with;
        they need a model or labels. The other methods are in :mod:`kinfolk.baselines`.
    prefer : "precision", "balanced", "recall" or a probability
        Which error to avoid: ``"precision"`` avoids mixing identities, ``"recall"`` avoids splitting them. A number is
        how probable the edge of two rows must be for them to join, if they have no other edges; balanced is 0.5. Only
        for ``kin``. With a trained model, the words scale the learned probability.
    k : "auto" or int
        Number of neighbours of each row. ``"auto"`` is 80, or the value that the model was trained with.
    model : path, optional
        A model file (``.safetensors``) that ``save`` or the command ``kinfolk train`` wrote.
    random_state : int or NumPy generator, optional
        Seed of the random numbers. ``None`` is 0, so results are reproducible by default.
    n_jobs : int, optional
        Number of threads; ``None`` and -1 mean all cores. Labels do not depend on it.
    verbose : bool
        Show progress, if ``tqdm`` is installed.
    levels : bool
        Whether ``fit`` also finds nested partitions from fine to coarse, ``levels_``. Only for ``kin``.

    Attributes
    ----------
    labels_ : int64 array
        The cluster of every row: 0, 1, 2 ... by descending size.
    parent_ : int64 array
        The row that each row is linked to; -1 for the root of a cluster. For methods other than ``kin``, the link was
        cut if the two rows are in different clusters.
    probabilities_ : float32 array
        The probability that a row and its parent are of one identity; 1 if there is no parent. For methods other than
        ``kin`` these values are not calibrated: only their order is meaningful.
    confidence_ : float32 array
        For ``kin`` the probability of the row's most probable edge within its cluster, for other methods the confidence
        by which they order rows.
    edges_ : dict of arrays
        More about the edges of each row: ``similarity`` to the parent and, for ``kin``, the ``rank`` of the parent among
        the neighbours of the row and ``rank_back`` the other way round (from 1; 0 if not a neighbour), the number of
        ``shared`` neighbours, and the most probable edge to another cluster: ``outside`` (the row, -1 for none),
        ``outside_similarity``, ``outside_probability``.
    doubts_ : structured array
        Up to 1,000 uncertain decisions, the most doubtful first: whether ``row`` and ``other`` were put ``together``, the
        ``doubt`` (probability that this is wrong), and the numbers of ``rows`` and ``others`` that would change cluster.
    cluster_probabilities_ : float32 array or None
        For each cluster the probability that two of its rows are of one identity; 1 for a cluster of one row. ``None`` for
        methods other than ``kin``.
    levels_ : Levels or None
        With ``levels=True``, nested partitions from fine to coarse, one of which is ``labels_``: ``levels_.labels(level)``,
        ``levels_.cut(height)``, ``levels_.persistence``, ``levels_.default``, ``levels_.plot()``. Printing it shows a table.
    k_ : int or None
        Number of neighbours in the graph that was used.
    method_ : str
        The method that was applied. With a model it is the model's method.
    tau_, least_probability_ : float or None
        The threshold that the similarity of an edge had to exceed, or the probability that the edge of two rows without
        other edges had to exceed; at least one of them is ``None``.
    model_ : bytes
        The content of the model file, if there is a model.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    float32 arrays in C order whose rows have unit length are used without a copy, memory maps too. Other input is copied
    to float32 and normalised. Each row of zeros becomes a cluster of its own, with a warning. NaN and infinity are refused.
    The estimator keeps X by reference, for ``predict`` and ``partial_fit``; do not write to it.

    Examples
    --------
    >>> from kinfolk import Kinfolk, metrics, synth
    >>> X, y = synth(identities=40, dim=64)
    >>> found = Kinfolk().fit(X)
    >>> metrics.bcubed(y, found.labels_).f > 0.8
    True

    New rows are assigned to these clusters, or to none:

    >>> found = Kinfolk().fit(X[5:])
    >>> found.predict(X[:5]).shape
    (5,)

    With labels it trains a model, which clusters other identities of the same domain better:

    >>> (X, y), (X_new, y_new) = synth(identities=60, dim=64, split=0.5)
    >>> found = Kinfolk().fit(X, y).cluster(X_new)
    >>> metrics.bcubed(y_new, found).f > 0.8
    True
    """

    labels_: np.ndarray
    parent_: np.ndarray
    probabilities_: np.ndarray
    confidence_: np.ndarray
    edges_: dict[str, np.ndarray]
    doubts_: np.ndarray
    cluster_probabilities_: np.ndarray | None
    levels_: Levels | None
    k_: int | None
    method_: str
    tau_: float | None
    least_probability_: float | None
    model_: bytes
    n_features_in_: int
    feature_names_in_: np.ndarray

    # For versions of scikit-learn before 1.6.
    _estimator_type = "clusterer"

    def __init__(
        self,
        method: str = "kin",
        prefer: str | float = "balanced",
        k: str | int = "auto",
        model: str | os.PathLike[str] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        levels: bool = False,
    ):
        self.method = method
        self.prefer = prefer
        self.k = k
        self.model = model
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.levels = levels

    def fit(self, X: Any, y: Any = None) -> Kinfolk:
        """Clusters the rows of ``X``. If ``y``, the identity of each row, is given, ``method`` is trained on it first, and
        ``labels_`` are the clusters that the trained model finds in ``X``.

        Training needs at least ten identities. With fewer, ``y`` is ignored, with a warning.
        """
        return self._fit(X, y, None)

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Calls ``fit`` and returns ``labels_``."""
        return self.fit(X, y).labels_

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of ``fit`` that each new row belongs to, or -1 if it belongs to none.

        For ``kin``, with or without a model, the probabilities of the edges between a new row and its nearest fitted rows are
        estimated as in ``fit``. They give a probability for each cluster and one for none (:meth:`predict_top`), and the row joins
        the most probable cluster if its odds against none are above those of ``least_probability_``, which are even by default.
        For other methods a row gets the label of its nearest fitted row if their similarity is above ``tau_``. Where there is no
        ``tau_`` it must be as similar to it as, of all rows of that cluster, the loneliest is to its nearest in the cluster.

        Every row is judged by itself, as if it alone had been added, and the estimator does not change. A copy of a fitted row gets
        the label of that row, a row of zeros -1 and a warning.

        The first call after ``fit`` costs about as much as ``fit`` itself: it makes what new rows are compared with and keeps it
        (8 K + 4 D + 28 bytes for each fitted row of ``kin``, with K neighbours and D columns), except in pickles. After that, each
        call compares all new rows with all fitted ones.

        An estimator that was loaded and never fitted has no clusters that a row could belong to: there ``predict`` is
        :meth:`cluster`.

        >>> from kinfolk import Kinfolk, synth
        >>> X, y = synth(identities=40, dim=64)
        >>> found = Kinfolk().fit(X[1:])
        >>> bool((found.predict(X[1:]) == found.labels_).all())
        True
        >>> found.predict(X[:1]).shape
        (1,)
        """
        if not hasattr(self, "labels_"):
            if hasattr(self, "model_"):
                return self._cluster_alone(X)
            raise _not_fitted("predict: expected a call of fit or load before, found neither")
        X = self._checked(X)
        with Job(self.n_jobs, self.verbose) as job:
            return self._fitted.predict(X, job)

    def predict_top(self, X: Any, top: int = 3) -> Candidates:
        """The ``top`` most probable clusters of ``fit`` for each new row, with their probabilities. Only for ``kin``.

        For each cluster, m is the mean probability of the row's three best edges into it, or of as many as the cluster has rows.
        A row belongs to one cluster or to none, so the odds of each cluster against none are 0.06 (m / (1 - m))^2. The cost is that of
        :meth:`predict`.

        Returns
        -------
        Candidates
            ``labels`` (int64, rows x top, -1 where there are fewer), their ``probabilities`` (float32, rows x top), and the
            probability of ``none`` (float32). The probabilities of all clusters and of none add up to 1.

        >>> from kinfolk import Kinfolk, synth
        >>> X, y = synth(identities=40, dim=64)
        >>> found = Kinfolk().fit(X[10:])
        >>> labels, probabilities, none = found.predict_top(X[:10], top=2)
        >>> labels.shape, probabilities.shape, none.shape
        ((10, 2), (10, 2), (10,))
        """
        if not hasattr(self, "labels_"):
            raise _not_fitted("predict_top: expected a call of fit before, found none")
        top = count(top, "top")
        X = self._checked(X)
        with Job(self.n_jobs, self.verbose) as job:
            return self._fitted.candidates(X, top, job)

    @property
    def cluster(self) -> Any:
        """``cluster(X)`` clusters rows of other identities on their own with a trained model: that of ``fit(X, y)`` or ``load``, or,
        after ``fit(X)``, that of the parameter ``model``. Without a model there is no ``cluster``.

        The labels are unrelated to ``labels_``, and the labels of a subset of ``X`` are in general not a subset of the labels of
        ``X``. :meth:`predict` assigns rows to the clusters of ``fit``.
        """
        if not hasattr(self, "model_") and self.model is None:
            raise AttributeError("cluster: expected a model (from fit(X, y), load or the parameter model), found none")
        return self._cluster_alone

    def _cluster_alone(self, X: Any) -> np.ndarray:
        if not hasattr(self, "model_"):
            raise _not_fitted("cluster: expected a call of fit or load before, found neither")
        X = self._checked(X)
        number = seed(self.random_state)
        with Job(self.n_jobs, self.verbose) as job:
            found = without_rows_of_zeros(
                lambda rows, _: self._cluster(rows, None, self.model_, number, job), X, None
            )
        labels: np.ndarray = found["labels"]
        return labels

    @property
    def partial_fit(self) -> Any:
        """``partial_fit(X)`` adds rows to those of ``fit`` and of earlier calls; the first call is ``fit(X)``. ``labels_`` and the
        other attributes are then those of all rows so far, in the order in which they were added. Only for ``kin`` without a model,
        with the default ``k`` and ``prefer``, and without ``levels``; there is no ``partial_fit`` otherwise.

        New rows join clusters or become new ones, and only clusters to which an edge of a new row leads may change, until the
        number of rows has doubled since they were last clustered as a whole: then they are clustered anew. Clusters are numbered by
        size after every call, so a label is not an identifier. :class:`Album`, which does the same in a directory of its own,
        has identifiers that last.

        The second call, and the first after ``fit`` or unpickling, clusters the rows so far once more. They are kept in a temporary
        directory, which is removed with the estimator: 12 K + 8 D + 36 bytes for each row, with K neighbours and D columns.
        """
        given = {
            name: getattr(self, name)
            for name, default in (
                ("method", "kin"), ("model", None), ("k", "auto"), ("prefer", "balanced"), ("levels", False),
            )
            if getattr(self, name) != default
        }
        if given or hasattr(self, "model_"):
            expected = "kin without a model, with the default k, prefer and levels"
            found = ", ".join(f"{name}={value!r}" for name, value in given.items()) or "a model that was trained"
            raise AttributeError(f"partial_fit: expected {expected}, found {found}")
        return self._partial_fit

    def _partial_fit(self, X: Any, y: Any = None) -> Kinfolk:
        if not hasattr(self, "labels_"):
            return self._fit(X, None, None)
        X = self._checked(X)
        with Job(self.n_jobs, self.verbose) as job:
            found = self._fitted.add(X, job)
        self._keep_result(found)
        return self

    def _checked(self, X: Any) -> np.ndarray:
        """New rows, if they have the columns of the fitted ones."""
        self._check_names(_names(X))
        X = matrix(X)
        expected = getattr(self, "n_features_in_", X.shape[1])
        if X.shape[1] != expected:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {expected} features as input"
            )
        return X

    def pseudo_labels(self, least_size: int = 2, least_probability: float | None = None) -> PseudoLabels:
        """Classes to train a network on: the clusters of ``fit`` without the small and doubtful ones.

        Parameters
        ----------
        least_size : int
            Rows of the smallest cluster that is kept. A class of one row has no pair to learn from.
        least_probability : float, optional
            Clusters in which two rows are less likely of one identity are left out. By default none is. Only for ``kin``.

        Returns
        -------
        PseudoLabels
            ``labels`` (int64, 0, 1, 2 ... by descending size; -1 for rows that are left out), the number of ``classes``, the
            ``share`` of rows that have one, and ``expected_precision``, the probability that two rows of one class are of
            one identity.

        >>> from kinfolk import Kinfolk, synth
        >>> X, y = synth(identities=40, dim=64)
        >>> found = Kinfolk().fit(X).pseudo_labels(least_size=5, least_probability=0.9)
        >>> bool((np.bincount(found.labels[found.labels >= 0]) >= 5).all())
        True
        >>> found.expected_precision >= 0.9
        True
        """
        if not hasattr(self, "labels_"):
            raise _not_fitted("pseudo_labels: expected a result of fit, found none")
        return pseudo_labels(
            self.labels_, self.cluster_probabilities_, self.method_, least_size, least_probability
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model that ``fit(X, y)`` trained, as the command ``kinfolk train`` does (``.safetensors``)."""
        if not hasattr(self, "model_"):
            raise _not_fitted("save: expected a model (from fit(X, y), load or the parameter model), found none")
        _kinfolk.write(os.fspath(path), self.model_)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> Kinfolk:
        """An estimator with a model that ``save`` or the command ``kinfolk train`` wrote, ready to :meth:`cluster` rows. As long as it
        is not fitted, ``predict`` does the same.

        >>> import tempfile
        >>> from kinfolk import Kinfolk, synth
        >>> X, y = synth(identities=40, dim=64)
        >>> trained = Kinfolk().fit(X, y)
        >>> with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        ...     trained.save(file.name)
        ...     loaded = Kinfolk.load(file.name)
        >>> bool((loaded.cluster(X) == trained.labels_).all())
        True
        """
        model = _read(path)
        # The model file names its method. A caller may override it, because a model of gcn-ve also runs gcn-v.
        parameters.setdefault("method", _kinfolk.method_of(model, os.fspath(path)))
        loaded = cls(model=path, **parameters)
        loaded.model_ = model
        return loaded

    def _fit(self, X: Any, y: Any, graph: Any) -> Kinfolk:
        names = _names(X)
        X = matrix(X)
        graph = as_graph(graph)
        number = seed(self.random_state)
        y = None if y is None else as_labels(y, "y", len(X))
        model = None if self.model is None else _read(self.model)
        zeros = None
        with Job(self.n_jobs, self.verbose) as job:
            try:
                found, model = self._learn(X, y, graph, model, number, job)
            except _kinfolk.ZeroRow as zero:
                # Rows of a graph cannot be left out.
                if graph is not None:
                    raise
                zeros = RowsWithDirection(X, zero)
                found, model = self._learn(zeros.X, zeros.of(y), None, model, number, job)
                found = zeros.restore(found)
        how = How(found["method"], self._own_parameters(), found["k"], found["tau"], model, number)
        self._fitted = FittedRows(X, found["labels"], zeros, how)
        self._keep_result(found)
        self.n_features_in_ = X.shape[1]
        for name, value in (("feature_names_in_", names), ("model_", model)):
            if value is not None:
                setattr(self, name, value)
            elif hasattr(self, name):
                delattr(self, name)
        return self

    def _learn(self, X: np.ndarray, y: Any, graph: Any, model: Any, number: int, job: Job) -> tuple[Any, Any]:
        if y is not None:
            model = self._train(X, y, graph, model, number, job)
        return self._cluster(X, graph, model, number, job, bool(self.levels)), model

    def _train(
        self, X: np.ndarray, y: np.ndarray, graph: Any, model: bytes | None, number: int, job: Job
    ) -> bytes | None:
        identities = len(np.unique(y))
        if identities < _FEWEST_IDENTITIES:
            message = (
                f"y: expected at least {_FEWEST_IDENTITIES} identities to learn from, found {identities}; y is ignored"
            )
            warnings.warn(message, UserWarning, stacklevel=5)
            return model
        if model is not None:
            raise ValueError("model: expected None to train one, found one")
        return _kinfolk.train(X, y, graph, str(self.method), neighbours(self.k), number, job)

    def _cluster(
        self, X: np.ndarray, graph: Any, model: bytes | None, number: int, job: Job, levels: bool = False
    ) -> dict[str, Any]:
        # "kin" is the default value; with a model it means the model's method.
        method = None if model is not None and self.method == "kin" else str(self.method)
        return _kinfolk.cluster(
            X, graph, method, self._own_parameters(), neighbours(self.k), model, number, job, levels
        )

    def _own_parameters(self) -> list[tuple[str, str]]:
        """Those of the method."""
        # "balanced" is a default value too, and methods other than kin have no parameter "prefer".
        return parameter_texts({} if self.prefer == "balanced" else {"prefer": self.prefer})

    def _keep_result(self, found: dict[str, Any]) -> None:
        self.labels_ = found["labels"]
        self.confidence_ = found["confidence"]
        self.parent_ = found["parent"]
        self.probabilities_ = found["probability"]
        self.edges_ = found["edges"]
        self.doubts_ = _table(found["doubts"])
        self.cluster_probabilities_ = _of_clusters(found["labels"], found["cluster_probability"])
        self.levels_ = None if found["levels"] is None else Levels(found["levels"])
        self.k_ = found["k"]
        self.method_ = found["method"]
        self.tau_ = found["tau"]
        self.least_probability_ = found["least"]

    def _result(self) -> dict[str, Any]:
        """The parts of the result that ``_kinfolk.explain`` reads."""
        if not hasattr(self, "labels_"):
            raise _not_fitted("explain: expected a result of fit, found none")
        return {
            "labels": self.labels_,
            "confidence": self.confidence_,
            "parent": self.parent_,
            "probability": self.probabilities_,
            "edges": self.edges_,
            "k": self.k_,
            "tau": self.tau_,
            "least": self.least_probability_,
        }

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters and their values."""
        return {name: getattr(self, name) for name in _parameters(type(self))}

    def set_params(self, **parameters: Any) -> Kinfolk:
        """Sets parameters by name."""
        known = _parameters(type(self))
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r} for {type(self).__name__}: expected one of {list(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = _parameters(type(self))
        values = ((name, getattr(self, name)) for name in defaults)
        given = (f"{name}={value!r}" for name, value in values if value is not defaults[name] and value != defaults[name])
        return f"{type(self).__name__}({', '.join(given)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_") or hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags  # type: ignore[import-untyped]

        return Tags(estimator_type="clusterer", target_tags=TargetTags(required=False), input_tags=InputTags())

    def _check_names(self, names: Any) -> None:
        """Checks feature names as scikit-learn does, with the same messages."""
        fitted, name = getattr(self, "feature_names_in_", None), type(self).__name__
        if not hasattr(self, "n_features_in_") or (fitted is None and names is None):
            return
        if fitted is None:
            warnings.warn(
                f"X has feature names, but {name} was fitted without feature names", UserWarning, stacklevel=3
            )
        elif names is None:
            message = f"X does not have valid feature names, but {name} was fitted with feature names"
            warnings.warn(message, UserWarning, stacklevel=3)
        elif list(names) != list(fitted):
            message = "The feature names should match those that were passed during fit.\n"
            unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
            if unseen:
                message += "Feature names unseen at fit time:\n" + "".join(f"- {name}\n" for name in unseen[:5])
            if missing:
                message += "Feature names seen at fit time, yet now missing:\n"
                message += "".join(f"- {name}\n" for name in missing[:5])
            if not unseen and not missing:
                message += "Feature names must be in the same order as they were in fit.\n"
            raise ValueError(message)


def without_rows_of_zeros(run: Any, X: np.ndarray | None, graph: Any) -> dict[str, Any]:
    """``run(X, graph)``. Each row of zeros becomes a cluster of its own, unless there is a graph, which may refer to it."""
    try:
        found: dict[str, Any] = run(X, graph)
    except _kinfolk.ZeroRow as zero:
        if X is None or graph is not None:
            raise
        others = RowsWithDirection(X, zero)
        found = others.restore(run(others.X, None))
    return found


def _of_clusters(labels: np.ndarray, of_rows: np.ndarray | None) -> np.ndarray | None:
    """The probability of each cluster, from that of the cluster of each row."""
    if of_rows is None:
        return None
    of_clusters = np.ones(labels.max() + 1, dtype=np.float32)
    of_clusters[labels] = of_rows
    return of_clusters


def _parameters(cls: type) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}


def _names(X: Any) -> np.ndarray | None:
    """The columns of a data frame, if they have names."""
    columns = getattr(X, "columns", None)
    if columns is None or callable(columns):
        return None
    names = list(columns)
    if all(isinstance(name, str) for name in names):
        return np.asarray(names, dtype=object)
    if any(isinstance(name, str) for name in names):
        raise TypeError("Feature names are only supported if all input features have string names")
    return None


def _table(columns: dict[str, np.ndarray]) -> np.ndarray:
    table = np.empty(len(columns["row"]), dtype=[(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        table[name] = column
    return table


def _read(path: Any) -> bytes:
    with open(path, "rb") as file:
        model = file.read()
    # Raises an error that names the file if it is not a model.
    _kinfolk.method_of(model, os.fspath(path))
    return model


def _not_fitted(message: str) -> Exception:
    exceptions = sys.modules.get("sklearn.exceptions")
    return exceptions.NotFittedError(message) if exceptions else AttributeError(message)
