"""The well-known ways of clustering embeddings, a function each.

All take embeddings ``X``; those that work on nearest neighbours search for ``k`` of each row, or take a ``graph``: what
:func:`kinfolk.knn_graph` returns, or a sparse matrix of similarities. With a graph they need no ``X``. All return labels: 0, 1,
2 ... by descending size of the cluster. Distances are 1 - cosine, similarities cosines.

Methods that know noise say by ``noise`` what becomes of it: ``"singletons"`` (each such row a cluster of its own), ``"kept"``
(label -1) or ``"assigned"`` (to the nearest cluster).

>>> from kinfolk import baselines, synth
>>> X, y = synth(identities=40, dim=64)
>>> len(set(baselines.kmeans(X, 40).tolist()))
40
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._functions import baseline

__all__ = [
    "aro",
    "cdp",
    "chinese_whispers",
    "dbscan",
    "dbscan_knn",
    "hac",
    "hdbscan",
    "infomap",
    "kmeans",
    "meanshift",
    "minibatch_kmeans",
    "spectral",
]


def kmeans(
    X: Any,
    clusters: int,
    *,
    iterations: int = 25,
    tolerance: float = 0,
    spherical: bool = False,
    restarts: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """Lloyd's k-means. For when the number of clusters is known and they are of like size.

    >>> kmeans([[1, 0], [0.9, 0.1], [0, 1]], 2).tolist()
    [0, 0, 1]
    """
    parameters = {
        "clusters": clusters,
        "iterations": iterations,
        "tolerance": tolerance,
        "spherical": spherical,
        "restarts": restarts,
    }
    return baseline("kmeans", X, None, parameters, "auto", random_state, n_jobs, verbose)


def minibatch_kmeans(
    X: Any,
    clusters: int,
    *,
    batch: int = 1024,
    passes: int = 100,
    patience: int = 10,
    reassignment: float = 0.01,
    seedings: int = 3,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """k-means on small batches: the same for large sets, somewhat worse.

    >>> minibatch_kmeans([[1, 0], [0.9, 0.1], [0, 1]], 2).tolist()
    [0, 0, 1]
    """
    parameters = {
        "clusters": clusters,
        "batch": batch,
        "passes": passes,
        "patience": patience,
        "reassignment": reassignment,
        "seedings": seedings,
    }
    return baseline("minibatch-kmeans", X, None, parameters, "auto", random_state, n_jobs, verbose)


def hac(
    X: Any = None,
    *,
    clusters: int | None = None,
    distance: float | None = None,
    linkage: str = "average",
    graph: Any = None,
    k: int = 80,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """Hierarchical clustering down to ``clusters`` or up to ``distance`` (1, unless one is given). ``linkage`` is ``"single"``,
    ``"complete"``, ``"average"`` or ``"ward"``. Above 30,000 rows only neighbours are joined.

    >>> hac([[1, 0], [0.9, 0.1], [0, 1]], distance=0.2).tolist()
    [0, 0, 1]
    """
    if clusters is not None and distance is not None:
        raise ValueError("clusters: expected None beside a distance, found both")
    parameters = {"linkage": linkage, "clusters": clusters, "distance": distance}
    return baseline("hac", X, graph, parameters, k, None, n_jobs, verbose)


def dbscan(
    X: Any,
    eps: float = 0.3,
    *,
    min: int = 5,
    noise: str = "singletons",
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """DBSCAN on all pairs: a row with ``min`` rows within ``eps``, itself included, is a core.

    >>> dbscan([[1, 0], [0.9, 0.1], [0, 1]], 0.2, min=2, noise="kept").tolist()
    [0, 0, -1]
    """
    return baseline("dbscan", X, None, {"eps": eps, "min": min, "noise": noise}, "auto", None, n_jobs, verbose)


def dbscan_knn(
    X: Any = None,
    eps: float = 0.3,
    *,
    min: int = 5,
    th: float = 0,
    noise: str = "singletons",
    graph: Any = None,
    k: int = 80,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """DBSCAN on neighbours of at least ``th``, as published for faces: affordable for large sets.

    >>> dbscan_knn([[1, 0], [0.9, 0.1], [0, 1]], 0.2, min=2, noise="kept").tolist()
    [0, 0, -1]
    """
    parameters = {"th": th, "eps": eps, "min": min, "noise": noise}
    return baseline("dbscan-knn", X, graph, parameters, k, None, n_jobs, verbose)


def meanshift(
    X: Any,
    bandwidth: float | None = None,
    *,
    quantile: float = 0.3,
    seeds: str = "rows",
    min_bin: int = 1,
    iterations: int = 300,
    noise: str = "assigned",
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """Mean shift: few broad clusters in few dimensions. Without ``bandwidth`` it is such that it holds the share ``quantile`` of
    the rows. ``seeds`` is ``"rows"`` or ``"bins"``.

    >>> meanshift([[1, 0], [0.9, 0.1], [0, 1]], 0.5).tolist()
    [0, 0, 1]
    """
    parameters = {
        "bandwidth": bandwidth,
        "quantile": quantile,
        "seeds": seeds,
        "min_bin": min_bin,
        "iterations": iterations,
        "noise": noise,
    }
    return baseline("meanshift", X, None, parameters, "auto", None, n_jobs, verbose)


def spectral(
    X: Any = None,
    *,
    clusters: int,
    assign: str = "kmeans",
    graph: Any = None,
    k: int = 80,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """Spectral clustering: few clusters of any shape. ``assign`` is ``"kmeans"`` or ``"discretise"``.

    >>> spectral([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], clusters=2, k=1).tolist()
    [0, 0, 1, 1]
    """
    parameters = {"clusters": clusters, "assign": assign}
    return baseline("spectral", X, graph, parameters, k, random_state, n_jobs, verbose)


def aro(
    X: Any = None,
    threshold: float = 0.3,
    *,
    graph: Any = None,
    k: int = 80,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """Approximate rank-order: joins rows whose neighbours are the same, whatever the similarities.

    >>> aro([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], k=1).tolist()
    [0, 0, 1, 1]
    """
    return baseline("aro", X, graph, {"threshold": threshold}, k, None, n_jobs, verbose)


def cdp(
    X: Any = None,
    th: float = 0.7,
    *,
    max_size: int = 300,
    step: float = 0.05,
    rounds: int = 100,
    graph: Any = None,
    k: int = 80,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """Consensus-driven propagation: components above ``th``, parted at higher thresholds where larger than ``max_size``.

    >>> cdp([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], k=1).tolist()
    [0, 0, 1, 1]
    """
    parameters = {"th": th, "max_size": max_size, "step": step, "rounds": rounds}
    return baseline("cdp", X, graph, parameters, k, None, n_jobs, verbose)


def chinese_whispers(
    X: Any = None,
    th: float = 0.6,
    *,
    iterations: int = 100,
    weighted: bool = True,
    graph: Any = None,
    k: int = 80,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """Chinese whispers: labels spread along edges of at least ``th``.

    >>> chinese_whispers([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], k=1).tolist()
    [0, 0, 1, 1]
    """
    parameters = {"th": th, "iterations": iterations, "weighted": weighted}
    return baseline("chinese-whispers", X, graph, parameters, k, random_state, n_jobs, verbose)


def hdbscan(
    X: Any = None,
    min_cluster_size: int = 5,
    *,
    min_samples: int | None = None,
    selection: str = "worth",
    noise: str = "singletons",
    graph: Any = None,
    k: int = 80,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """HDBSCAN: clusters of different density among noise. ``selection`` is ``"worth"`` (excess of mass) or ``"leaves"``. Above
    100,000 rows, and with only a graph, it looks at neighbours.

    >>> hdbscan([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], 2, min_samples=1).tolist()
    [0, 0, 1, 1]
    """
    parameters = {
        "min_cluster_size": min_cluster_size,
        "min_samples": min_samples,
        "selection": selection,
        "noise": noise,
    }
    return baseline("hdbscan", X, graph, parameters, k, None, n_jobs, verbose)


def infomap(
    X: Any = None,
    th: float = 0.6,
    *,
    flow: str = "undirected",
    graph: Any = None,
    k: int = 80,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> np.ndarray:
    """Infomap on edges above ``th``: strong when the threshold is known. ``flow`` is ``"directed"`` or ``"undirected"``.

    >>> infomap([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], k=1).tolist()
    [0, 0, 1, 1]
    """
    parameters = {"th": th, "flow": flow}
    return baseline("infomap", X, graph, parameters, k, random_state, n_jobs, verbose)
