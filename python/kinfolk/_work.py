"""Threads, seeds, progress bars and parameters of one call of the extension module."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


class Job:
    """``n_jobs`` and ``verbose`` of one call, as the extension module reads them. Closes the progress bar at the end."""

    def __init__(self, n_jobs: int | None, verbose: bool):
        self.jobs = None if n_jobs is None else int(n_jobs)
        self.report = Bars.if_there_is_tqdm() if verbose else None

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        if self.report is not None:
            self.report.close()


class Bars:
    """One tqdm bar per stage, removed when the next stage begins, for a terminal or a notebook."""

    def __init__(self, tqdm: Any):
        self._tqdm = tqdm
        self._bar: Any = None
        self._stage: str | None = None

    @classmethod
    def if_there_is_tqdm(cls) -> Bars | None:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped]
        except ImportError:
            return None
        return cls(tqdm)

    def __call__(self, stage: str, done: int, total: int, note: str) -> None:
        # A stage can run twice: kin may repeat all stages with a larger K.
        if self._bar is None or stage != self._stage or total != self._bar.total or done < self._bar.n:
            self.close()
            self._stage, self._bar = stage, self._tqdm(total=total, desc=stage, leave=False)
        self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def seed(random_state: Any) -> int:
    """The seed for scikit-learn's ``random_state``. ``None`` is 0, so that results are reproducible by default."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        if not 0 <= random_state < 2**64:
            raise ValueError(f"random_state: expected 0 to 2**64 - 1, found {random_state}")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    raise ValueError(f"random_state: expected None, an integer or a NumPy generator, found {random_state!r}")


def parameter_texts(parameters: dict[str, Any]) -> list[tuple[str, str]]:
    """Parameters as text, as the extension module takes them, without those that are ``None``."""

    def text(value: Any) -> str:
        if isinstance(value, (bool, np.bool_)):
            return str(value).lower()
        if isinstance(value, (list, tuple)):
            return ",".join(map(str, value))
        return str(value)

    return [(name, text(value)) for name, value in parameters.items() if value is not None]


def count(value: Any, name: str) -> int:
    """A number of things, of which there must be one."""
    value = operator.index(value)
    if value < 1:
        raise ValueError(f"{name}: expected at least 1, found {value}")
    return value


def neighbours(k: Any) -> int | None:
    """``k``, or ``None`` for ``"auto"``."""
    if k == "auto":
        return None
    if isinstance(k, (int, np.integer)) and not isinstance(k, bool) and k > 0:
        return int(k)
    raise ValueError(f'k: expected "auto" or a number of neighbours from 1, found {k!r}')
