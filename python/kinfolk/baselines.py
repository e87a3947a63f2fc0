"""Well-known methods for comparison, one function each, generated from the registry of methods.

All take embeddings ``X``. Methods that work on nearest neighbours search for ``k`` neighbours of each row, or take a
``graph``: the result of :func:`kinfolk.knn_graph`, or a sparse matrix of similarities. With a graph they need no ``X``.
All return labels: 0, 1, 2 ... by descending cluster size. Distances are 1 - cosine, similarities are cosines.

For methods that detect noise, the parameter ``noise`` says how noise rows are labelled: ``"singletons"`` (each row is a
cluster of its own), ``"keep"`` (they keep the label -1) or ``"assigned"`` (to the nearest cluster).

>>> from kinfolk import baselines, synth
>>> X, y = synth(identities=40, dim=64)
>>> len(set(baselines.kmeans(X, 40).tolist()))
40
>>> baselines.dbscan([[1, 0], [0.9, 0.1], [0, 1]], eps=0.1, min=2).tolist()
[0, 0, 1]
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from . import _kinfolk
from ._functions import cluster

_TYPES: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "bool": lambda text: text == "true",
    "str": str,
}


def _default(parameter: dict[str, Any]) -> Any:
    if parameter["automatic"] and parameter["default"] == "auto":
        return None
    return _TYPES[parameter["kind"]](parameter["default"])


def _function(method: dict[str, Any]) -> Callable[..., np.ndarray]:
    """A function that runs the method, with signature and docstring from the registry."""
    own = {parameter["name"]: _default(parameter) for parameter in method["parameters"]}
    arguments = [Parameter("X", Parameter.POSITIONAL_OR_KEYWORD)]
    if method["takes_graph"]:
        arguments[0] = arguments[0].replace(default=None)
    if method["needs_clusters"]:
        kind = Parameter.POSITIONAL_OR_KEYWORD
        default = Parameter.empty if arguments[0].default is Parameter.empty else None
        arguments.append(Parameter("clusters", kind, default=default))
        own.pop("clusters")
    if method["takes_graph"]:
        own |= {"k": "auto", "graph": None}
    own |= {"random_state": None, "n_jobs": None, "verbose": False}
    arguments += [Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in own.items()]
    signature = Signature(arguments, return_annotation=np.ndarray)
    names = {parameter["name"] for parameter in method["parameters"]}

    def function(*args: Any, **kwargs: Any) -> np.ndarray:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        if method["needs_clusters"] and given["clusters"] is None:
            raise ValueError(f"clusters: expected the number of clusters for {method['name']}, found None")
        parameters = {name: given.pop(name) for name in list(given) if name in names}
        return cluster(given.pop("X"), method=method["name"], **given, **parameters)

    function.__name__ = function.__qualname__ = method["name"].replace("-", "_")
    function.__module__ = __name__
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__doc__ = _docstring(method)
    return function


def _docstring(method: dict[str, Any]) -> str:
    lines = [f"{method['summary']}.", "", f"Use it {method['when']}. Cost: {method['cost']}.", ""]
    lines += ["Parameters", "----------"]
    for parameter in method["parameters"]:
        kind = " or ".join(map(repr, parameter["choices"])) if parameter["choices"] else parameter["kind"]
        optional = ", optional" if parameter["automatic"] else ""
        lines += [f"{parameter['name']} : {kind}{optional}", f"    {parameter['help']} Range: {parameter['range']}."]
    return "\n".join(lines)


__all__ = []
for _method in _kinfolk.methods():
    if not _method["learns"] and _method["name"] != "density":
        _made = _function(_method)
        globals()[_made.__name__] = _made
        __all__.append(_made.__name__)
__all__.sort()
