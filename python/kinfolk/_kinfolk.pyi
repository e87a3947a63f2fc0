from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ._work import Job

__version__: str

class ZeroRow(ValueError): ...

# Rows, the two nodes of each merge one after the other, and the heights of the merges.
_Tree = tuple[int, npt.NDArray[np.uint32], npt.NDArray[np.float64]]
_Graph = tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]] | None

def cluster(
    x: np.ndarray | None,
    neighbours: _Graph,
    method: str | None,
    parameters: list[tuple[str, str]],
    k: int | None,
    model: bytes | None,
    seed: int,
    job: Job,
    levels: bool = False,
) -> dict[str, Any]: ...
def train(
    x: np.ndarray,
    y: npt.NDArray[np.int64],
    neighbours: _Graph,
    method: str,
    k: int | None,
    seed: int,
    job: Job,
) -> bytes: ...
def method_of(model: bytes, place: str) -> str: ...
def knn_graph(
    x: np.ndarray, k: int, recall: float | None, seed: int, job: Job
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]: ...
def cut(tree: _Tree, height: float) -> npt.NDArray[np.int64]: ...
def levels(tree: _Tree) -> dict[str, Any]: ...
def curve(tree: _Tree) -> list[npt.NDArray[np.float64]]: ...
def branches(tree: _Tree) -> dict[str, np.ndarray]: ...
def pseudo_labels(
    of_rows: npt.NDArray[np.int64],
    probabilities: npt.NDArray[np.float32] | None,
    least_size: int,
    least_probability: float | None,
) -> tuple[npt.NDArray[np.int64], int, float, float | None]: ...
def methods() -> list[dict[str, Any]]: ...
def scores(
    truth: npt.NDArray[np.int64], predicted: npt.NDArray[np.int64]
) -> tuple[tuple[float, float, float], tuple[float, float, float], float]: ...
def synth(
    parameters: dict[str, Any], split: float | None, job: Job
) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]: ...
def explain(fitted: dict[str, Any], x: np.ndarray | None, row: int, other: int | None) -> str: ...
def write(path: str | PathLike[str], data: bytes) -> None: ...
def run(arguments: list[str]) -> int: ...

class Job:
    @staticmethod
    def create(
        directory: str,
        paths: list[str],
        *,
        k: int | None = None,
        seed: int = 0,
        recall: float | None = None,
        prefer: str | None = None,
        identity_size: float | None = None,
        dim: int | None = None,
        array: str | None = None,
        memory: int | None = None,
    ) -> Job: ...
    @staticmethod
    def open(directory: str) -> Job: ...
    def next_stage(self) -> tuple[str, int, list[int], tuple[float, float]] | None: ...
    def run(self, stage: str, block: int) -> None: ...
    def finish(self, stage: str) -> None: ...
    def write(self, output: str, *, parquet: bool = False) -> dict[str, int]: ...
    def remove(self) -> None: ...
