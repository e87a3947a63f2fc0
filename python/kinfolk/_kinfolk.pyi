from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ._work import Manner

__version__: str

class ZeroRow(ValueError): ...

_Graph = tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]] | None

def cluster(
    x: np.ndarray,
    neighbours: _Graph,
    method: str,
    prefer: str | float,
    k: int | None,
    model: bytes | None,
    seed: int,
    manner: Manner,
) -> dict[str, Any]: ...
def train(
    x: np.ndarray,
    y: npt.NDArray[np.int64],
    neighbours: _Graph,
    method: str,
    k: int | None,
    seed: int,
    manner: Manner,
) -> bytes: ...
def method_of(model: bytes, place: str) -> str: ...
def knn_graph(
    x: np.ndarray, k: int, recall: float | None, seed: int, manner: Manner
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]: ...
def parameters(method: str) -> list[tuple[str, str]]: ...
def baseline(
    method: str,
    x: np.ndarray | None,
    neighbours: _Graph,
    parameters: list[tuple[str, str]],
    k: int,
    seed: int,
    manner: Manner,
) -> npt.NDArray[np.int64]: ...
def scores(
    truth: npt.NDArray[np.int64], predicted: npt.NDArray[np.int64]
) -> tuple[tuple[float, float, float], tuple[float, float, float], float]: ...
def synth(
    parameters: dict[str, float], split: float | None, manner: Manner
) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]: ...
def explain(kept: dict[str, Any], x: np.ndarray | None, row: int, other: int | None) -> str: ...
def write(path: str | PathLike[str], data: bytes) -> None: ...
def run(arguments: list[str]) -> int: ...
