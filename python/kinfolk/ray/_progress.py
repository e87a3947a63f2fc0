"""The progress of a job: one bar from the first stage to the last."""

from __future__ import annotations

import sys
from typing import Any


class Progress:
    """A tqdm bar in percent of the whole job, with the stage and its blocks; without tqdm, a line for every stage."""

    def __init__(self, wanted: bool):
        self._wanted = wanted
        self._bar: Any = None
        self._stage = ""
        self._count = self._done = 0
        self._share = (0.0, 0.0)

    def __enter__(self) -> Progress:
        if self._wanted:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-untyped]
            except ImportError:
                return self
            layout = "{l_bar}{bar}| {elapsed}{postfix}"
            self._bar = tqdm(total=100.0, desc="job", bar_format=layout)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def begin(self, stage: str, count: int, done: int, share: tuple[float, float]) -> None:
        """A stage of so many blocks, of which some are done; its share of the job is usually from here to there."""
        self._stage, self._count, self._done, self._share = stage, count, done, share
        if self._wanted and self._bar is None:
            print(f"{100 * share[0]:3.0f}% {stage}: {count - done} of {count} blocks", file=sys.stderr)
        self._show(f"{done} of {count} blocks")

    def advance(self, blocks: int) -> None:
        self._done += blocks
        self._show(f"{self._done} of {self._count} blocks")

    def join(self) -> None:
        self._show("joining")

    def _show(self, what: str) -> None:
        if self._bar is None:
            return
        begin, end = self._share
        done = 100 * (begin + (end - begin) * (self._done / max(1, self._count)))
        self._bar.set_postfix_str(f"{self._stage}: {what}", refresh=False)
        # A round that is repeated begins a little before where the one before ended.
        self._bar.update(max(0.0, done - self._bar.n))
        self._bar.refresh()
