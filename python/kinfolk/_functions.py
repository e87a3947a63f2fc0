"""The top-level functions of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _kinfolk
from ._arrays import graph as as_graph
from ._arrays import matrix
from ._work import Job, neighbours, parameter_texts, seed

if TYPE_CHECKING:
    from ._estimator import Kinfolk


def knn_graph(
    X: Any,
    k: int = 80,
    recall: float | None = None,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` nearest neighbours of every row by cosine similarity, nearest first, without the row itself.

    ``recall`` is the share of the true neighbours to find, measured on a sample; 1 is an exact search. ``None`` is exact
    up to 50,000 rows and 0.98 above. Returns ids (uint32) and similarities (float32), each of shape (rows, k).

    >>> ids, similarities = knn_graph([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], k=1)
    >>> ids.ravel().tolist()
    [1, 0, 1]
    >>> similarities.ravel().round(2)
    array([0.8, 0.8, 0.6], dtype=float32)
    """
    recall = None if recall is None else float(recall)
    with Job(n_jobs, verbose) as job:
        return _kinfolk.knn_graph(matrix(X), neighbours(k) or 80, recall, seed(random_state), job)


def cluster(
    X: Any = None,
    *,
    graph: Any = None,
    method: str | None = None,
    prefer: str | float = "balanced",
    k: str | int = "auto",
    model: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    **parameters: Any,
) -> np.ndarray:
    """The cluster of every row, by any method: :class:`Kinfolk` and :mod:`kinfolk.baselines` as one function.

    ``graph`` is a precomputed kNN graph: (ids, similarities) as :func:`knn_graph` returns them, or a sparse matrix of
    similarities. With ``X`` it replaces the search. Without ``X``, only methods that need no rows can run:
    ``"infomap"``, which is then the default, and others of :mod:`kinfolk.baselines`. Parameters of the method are passed
    as keyword arguments; ``kinfolk.methods()`` lists them.

    >>> from kinfolk import knn_graph, synth
    >>> X, y = synth(identities=40, dim=64)
    >>> graph = knn_graph(X, k=30)
    >>> bool((cluster(X, method="density", graph=graph) == cluster(X, method="density", k=30)).all())
    True
    >>> len(set(cluster(graph=graph, th=0.4).tolist()))
    53
    """
    from ._estimator import Kinfolk, without_rows_of_zeros

    if method is None and model is None:
        method = "kin" if X is not None else "infomap"
    if prefer != "balanced":
        parameters["prefer"] = prefer
    if X is not None and graph is None and not parameters and method in (None, "kin"):
        return Kinfolk(method or "kin", prefer, k, model, random_state, n_jobs, verbose).fit(X).labels_
    number = seed(random_state)
    content = None if model is None else _read_model(model)
    with Job(n_jobs, verbose) as job:
        found = without_rows_of_zeros(
            lambda rows, neighbours_: _kinfolk.cluster(
                rows, neighbours_, method, parameter_texts(parameters), neighbours(k), content, number, job
            ),
            None if X is None else matrix(X),
            as_graph(graph),
        )
    labels: np.ndarray = found["labels"]
    return labels


def methods() -> list[dict[str, Any]]:
    """All methods, as dictionaries with ``name``, ``summary``, ``when`` to use it, ``cost``, requirements, ``parameters``
    and the parameters of training.

    >>> [method["name"] for method in methods()][:3]
    ['kin', 'density', 'gcn-v']
    """
    return _kinfolk.methods()


def _read_model(path: Any) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def synth(
    identities: int | None = None,
    dim: int = 256,
    *,
    profile: str = "faces",
    seed: int = 0,
    split: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    **parameters: float,
) -> Any:
    """A synthetic labelled set: unit rows (float32) and labels (int64).

    ``profile`` "faces" is calibrated to be as hard as MS-Celeb-1M with K = 80, by default with 1,500 identities, and "fashion"
    to be as hard as DeepFashion with K = 5, by default with 3,991.

    With ``split``, returns two sets with disjoint identities; the first has this share of them. The other parameters are
    passed as keyword arguments: ``mean_size``, ``size_spread``, ``min_size``, ``max_size``, ``singletons``, ``group_size``,
    ``likeness``, ``max_modes``, ``mode_size``, ``mode_spread``, ``noise``, ``noise_tail``, ``noise_dim``, ``noise_between``,
    ``intrinsic_dim``, ``drift_directions``, ``drift_from`` and ``drift``; the documentation of the Rust library describes
    them.

    >>> (X, y), (X_new, y_new) = synth(identities=40, dim=64, split=0.5)
    >>> len(set(y.tolist())), len(set(y_new.tolist()))
    (20, 20)
    """
    parameters = {"profile": profile, "dim": dim, "seed": seed, **parameters}
    if identities is not None:
        parameters["identities"] = identities
    with Job(n_jobs, verbose) as job:
        parts = _kinfolk.synth(parameters, split, job)
    return tuple(parts) if split is not None else parts[0]


def explain(fitted: Kinfolk, row: int, other: int | None = None, *, X: Any = None) -> str:
    """Why a row is in its cluster or, with another row, why the two are together or not.

    ``fitted`` is a :class:`Kinfolk` after ``fit``. If ``X`` is given, the similarity of the two rows is shown too.

    >>> from kinfolk import Kinfolk, synth
    >>> X, y = synth(identities=40, dim=64)
    >>> print(explain(Kinfolk().fit(X), 0, 20, X=X))  # doctest: +ELLIPSIS
    Row 0, in cluster ... with ... others.
    Row 20, in cluster ... with ... others.
    Their similarity is 0.654.
    They are together by ...
      0 - ...: similarity ..., ... likely one identity; ...; they share ... of 80 neighbours...
    """
    result = fitted._result()
    rows = len(result["labels"])
    for given in (row, other):
        if given is not None and not 0 <= given < rows:
            raise ValueError(f"row: expected 0 to {rows - 1}, found {given}")
    return _kinfolk.explain(result, None if X is None else matrix(X), row, other).rstrip()
