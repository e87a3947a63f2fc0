"""kinfolk clusters embeddings of the same identity: faces, products, voices, sentences.

>>> import kinfolk
>>> X, y = kinfolk.synth(identities=40, dim=64)
>>> labels = kinfolk.Kinfolk().fit_predict(X)
>>> kinfolk.metrics.bcubed(y, labels).f > 0.8
True

Contents:

- :class:`Kinfolk`, a clusterer with the interface of scikit-learn: ``fit``, ``predict``, ``partial_fit``, ``save``, ``load``;
- :class:`Album`, clusters that are kept on disk, added to and corrected;
- :func:`cluster`, :func:`knn_graph`, :func:`explain`, :func:`methods`, :func:`synth`;
- :mod:`kinfolk.metrics`: ``pairwise``, ``bcubed``, ``nmi``;
- :mod:`kinfolk.baselines`: well-known methods, one function each.

Similarity is the cosine; rows are normalised. The same input, parameters and seed give the same labels on any number of
threads.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._kinfolk import __version__

if TYPE_CHECKING:
    from . import baselines, metrics
    from ._album import Album
    from ._estimator import Kinfolk
    from ._functions import cluster, explain, knn_graph, methods, synth

# Importing NumPy takes longer than importing the rest, so modules that need it are imported on first use.
_HOMES = {
    "Album": "_album",
    "Kinfolk": "_estimator",
    "baselines": "baselines",
    "cluster": "_functions",
    "explain": "_functions",
    "knn_graph": "_functions",
    "methods": "_functions",
    "metrics": "metrics",
    "synth": "_functions",
}

__all__ = [
    "Album",
    "Kinfolk",
    "__version__",
    "baselines",
    "cluster",
    "explain",
    "knn_graph",
    "methods",
    "metrics",
    "synth",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'kinfolk' has no attribute {name!r}")
    home = import_module(f".{_HOMES[name]}", __name__)
    found = home if name == _HOMES[name] else getattr(home, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
