"""The driver of a job: hands the blocks of each stage to Ray, and joins what they found between two stages.

All work is done by the extension module (``kinfolk::Job``). A block is a function from finished files to a part of
another and always writes the same, so one whose worker or node was lost is simply run again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _kinfolk
from .._work import seed
from ._progress import Progress

#: Blocks of which so many workers were lost in turn end the job: something is wrong with them, or with the cluster.
_MOST_LOSSES = 5
#: Blocks that are handed out for every processor, so that none waits for the driver.
_BLOCKS_PER_PROCESSOR = 2
#: Seconds after which the number of processors is asked for again.
_PATIENCE = 5.0


def cluster(
    paths: Any,
    output: str | os.PathLike[str],
    address: str | None = None,
    memory_per_worker: int | str | None = None,
    *,
    work: str | os.PathLike[str] | None = None,
    k: int | None = None,
    recall: float | None = None,
    prefer: str | float | None = None,
    identity_size: float | None = None,
    dim: int | None = None,
    array: str | None = None,
    parquet: bool = False,
    random_state: Any = None,
    verbose: bool = False,
) -> dict[str, int]:
    """Clusters the rows of all shards by ``kin`` on a Ray cluster, and writes what ``kinfolk cluster`` writes.

    paths: one file or several, ``.npy``, ``.npz``, ``.parquet`` or ``.bin`` (with ``dim``), on storage that all nodes see.
    Rows are numbered through all of them, in this order.

    output: the directory for ``labels.npy``, ``clusters.csv`` (with ``parquet``, ``clusters.parquet``), ``review.csv`` and
    ``run.json``.

    address: that of the Ray cluster, as for ``ray.init``. ``None`` uses the one this process is connected to, or else
    starts Ray on this machine alone.

    memory_per_worker: bytes, or text such as ``"2G"``, that each worker may use besides pages of mapped files; Ray
    reserves them. The smaller, the smaller are the blocks. ``None`` is blocks of 8,192 rows, for which nothing is reserved.

    work: the directory of the job, on storage that all nodes see, by default ``output`` with the suffix ``-work``. It is
    removed at the end. After an interruption, the same call goes on from there.

    array: the array of ``.npz`` files or the column of ``.parquet`` files. The other parameters are those of
    :class:`kinfolk.Kinfolk` and :func:`kinfolk.knn_graph`. Returns the numbers of ``rows``, ``clusters`` and
    ``singletons``, and the size of the ``largest`` cluster.
    """
    ray = _ray()
    output = os.fspath(output)
    if os.path.exists(output) and not os.path.isdir(output):
        raise ValueError(f"{output}: expected a directory to write to, found a file")
    directory = os.path.abspath(output.rstrip("/\\") + "-work" if work is None else os.fspath(work))
    memory = _bytes(memory_per_worker)
    job = _kinfolk.Job.create(
        directory,
        [os.path.abspath(path) for path in _list(paths)],
        k=k,
        seed=seed(random_state),
        recall=recall,
        prefer=None if prefer is None else str(prefer),
        identity_size=identity_size,
        dim=dim,
        array=array,
        memory=memory,
    )
    with _connected(ray, address), Progress(verbose) as progress:
        _check_nodes(ray, memory)
        blocks = _Blocks(ray, directory, memory)
        end = 0.0
        while (stage := job.next_stage()) is not None:
            name, count, left, (begin, end) = stage
            progress.begin(name, count, count - len(left), (begin, end))
            for done in blocks.run(name, left):
                progress.advance(done)
            progress.join()
            job.finish(name)
        progress.begin("partition", 1, 0, (end, 1.0))
        counts: dict[str, int] = job.write(output, parquet=parquet)
        progress.advance(1)
    job.remove()
    return counts


class _Blocks:
    """Runs blocks as tasks, and again those whose worker was lost."""

    def __init__(self, ray: Any, directory: str, memory: int | None):
        options: dict[str, Any] = {"num_cpus": 1, "max_retries": 0}
        if memory is not None:
            options["memory"] = memory
        self._ray = ray
        self._task = ray.remote(**options)(_run)
        self._directory = directory
        self._lost = (
            ray.exceptions.WorkerCrashedError,
            ray.exceptions.NodeDiedError,
            ray.exceptions.OutOfMemoryError,
            ray.exceptions.LocalRayletDiedError,
            ray.exceptions.RaySystemError,
        )

    def run(self, stage: str, blocks: Iterable[int]) -> Iterator[int]:
        """Runs all of these; yields how many were done, as they are."""
        left = list(reversed(list(blocks)))
        losses: dict[int, int] = {}
        running: dict[Any, int] = {}
        try:
            while left or running:
                places = self._places()
                while left and len(running) < places:
                    block = left.pop()
                    running[self._task.remote(self._directory, stage, block)] = block
                # The number of processors may change while blocks run.
                ready, _ = self._ray.wait(list(running), num_returns=1, timeout=_PATIENCE)
                for task in ready:
                    block = running.pop(task)
                    try:
                        self._ray.get(task)
                    except self._lost as error:
                        losses[block] = losses.get(block, 0) + 1
                        if losses[block] > _MOST_LOSSES:
                            raise RuntimeError(
                                f"block {block} of {stage}: its worker was lost {losses[block]} times, "
                                f"at last by {type(error).__name__}; the same call goes on from here"
                            ) from error
                        left.append(block)
                    except self._ray.exceptions.RayTaskError as error:
                        raise _cause(error) from None
                    else:
                        yield 1
        finally:
            for task in running:
                self._ray.cancel(task, force=True)

    def _places(self) -> int:
        processors = int(self._ray.cluster_resources().get("CPU", 1))
        return max(1, processors) * _BLOCKS_PER_PROCESSOR


def _run(directory: str, stage: str, block: int) -> None:
    """The task: a block, on one thread."""
    _kinfolk.Job.open(directory).run(stage, block)


def _cause(error: Any) -> BaseException:
    """The exception of a task as it would be without Ray: same type, same message."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else error


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise ImportError("kinfolk.ray needs Ray: pip install 'kinfolk[ray]'") from error
    return ray


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """Connects to Ray unless this process is, and then disconnects again."""
    if ray.is_initialized():
        yield
        return
    here: dict[str, Any] = {} if address is not None else {"include_dashboard": False}
    # Workers find the kinfolk that this process has imported.
    ray.init(address=address, log_to_driver=False, logging_level="error", **here)
    try:
        yield
    finally:
        ray.shutdown()


def _check_nodes(ray: Any, memory: int | None) -> None:
    """A task that no node can take would wait for ever."""
    if memory is None:
        return
    offers = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    # A node without processors, such as one that only leads, takes no task.
    most = max((offer.get("memory", 0) for offer in offers if offer.get("CPU", 0) >= 1), default=0)
    if most < memory:
        raise MemoryError(
            f"memory_per_worker: expected at most what a node offers, {most / 1e9:.1f} GB, found {memory / 1e9:.1f} GB"
        )


def _list(paths: Any) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    return [os.fspath(path) for path in paths]


def _bytes(memory: int | str | None) -> int | None:
    """A number of bytes, with K, M, G or T for thousands, millions and so on."""
    if memory is None:
        return None
    text = str(memory).strip()
    unit = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1:].upper())
    try:
        found = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        found = 0.0
    if not 1 <= found < 1e18:
        raise ValueError(
            f"memory_per_worker: expected a number of bytes above 0, such as 2G, 500M or 3000000000, found {memory!r}"
        )
    return int(found)
