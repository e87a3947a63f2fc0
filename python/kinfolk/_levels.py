"""Levels: nested partitions from fine to coarse."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _kinfolk

# From short lives to long ones, and the colour of the default; those of the command's picture.
_TONES = ["#dfe9f5", "#c6dbef", "#a6cbe6", "#7fb5da", "#559dcc", "#3282be", "#17649f", "#0b3f77"]
_DEFAULT = "#d62728"
# Narrower clusters, as a share of all rows, are not drawn.
_NARROW = 1 / 2000


class Levels:
    """Nested partitions from fine to coarse: ``found.levels_`` after ``found = Kinfolk(levels=True).fit(X)``.

    Heights are in octaves. 0 is the default partition, ``found.labels_``; one octave up, clusters are merged that are
    connected half as strongly. The persistence of a partition is the mean of the lives of the rows' clusters, from the
    height at which a cluster forms to the height at which it merges with another that is not tiny. A level much more
    persistent than the default is worth a look.

    Attributes
    ----------
    heights : float64 array
        The height of each level, ascending: from fine to coarse. Each level is a refinement of the next.
    clusters : int64 array
        The number of clusters of each level.
    persistence : float64 array
        The persistence of each level, in octaves.
    default : int
        The level of ``labels_``.

    Examples
    --------
    >>> from kinfolk import Kinfolk, synth
    >>> X, y = synth(identities=40, dim=64)
    >>> found = Kinfolk(levels=True).fit(X)
    >>> levels = found.levels_
    >>> bool((levels.labels(levels.default) == found.labels_).all())
    True
    >>> bool(levels.cut(-1.0).max() >= levels.cut(1.0).max())
    True
    """

    heights: np.ndarray
    clusters: np.ndarray
    persistence: np.ndarray
    default: int

    def __init__(self, tree: tuple[int, np.ndarray, np.ndarray]):
        self._tree = tree
        for name, value in _kinfolk.levels(tree).items():
            setattr(self, name, value)

    def __len__(self) -> int:
        """The number of levels."""
        return len(self.heights)

    def labels(self, level: int) -> np.ndarray:
        """The labels of a level: 0, 1, 2 ... by descending size. Negative numbers count from the coarsest."""
        if not -len(self) <= level < len(self):
            raise IndexError(f"level: expected {-len(self)} to {len(self) - 1}, found {level}")
        return self.cut(self.heights[level])

    def cut(self, height: float) -> np.ndarray:
        """The labels of the cut at any height: 0, 1, 2 ... by descending size."""
        return _kinfolk.cut(self._tree, float(height))

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """The heights at which the cut changes, and its persistence from there on."""
        heights, persistence = _kinfolk.curve(self._tree)
        return heights, persistence

    def plot(self, ax: Any = None) -> Any:
        """Draws the tree with Matplotlib and returns the axes. From bottom to top clusters merge. A cluster is as wide as it
        has rows, as tall as it lives, and darker the longer it lives. Lines are the levels; that of the default is red.
        """
        try:
            from matplotlib import pyplot
            from matplotlib.collections import PolyCollection
            from matplotlib.colors import ListedColormap
        except ImportError as error:
            raise ImportError("plot: expected Matplotlib (pip install matplotlib), found none") from error
        if ax is None:
            ax = pyplot.figure(figsize=(10, 6), layout="constrained").gca()
        rows = self._tree[0]
        branches = _kinfolk.branches(self._tree)
        wide = branches["last_rows"] >= _NARROW * rows
        birth, death, first, last, left = (
            branches[name][wide] for name in ("birth", "death", "first_rows", "last_rows", "left")
        )
        corners = [(left, birth), (left, death), (left + last, death), (left + first, birth)]
        shapes = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)
        # A gap to the neighbour, where there is room for it.
        gap = np.where(last > rows / 250, rows / 1000, 0)
        shapes[:, 2:, 0] -= gap[:, None]
        lives = death - birth
        longest = np.quantile(lives, 0.95) if len(lives) else 1.0
        collection = PolyCollection(list(shapes), array=lives, cmap=ListedColormap(_TONES), linewidths=0)
        collection.set_clim(0, max(float(longest), 1e-9))
        ax.add_collection(collection)
        for level, height in enumerate(self.heights):
            default = level == self.default
            colour = _DEFAULT if default else "#222222"
            ax.axhline(height, color=colour, linewidth=1.8 if default else 0.8, linestyle="-" if default else "--")
            clusters = int(self.clusters[level])
            text = f"{level}: {clusters:,} cluster{'' if clusters == 1 else 's'}, {self.persistence[level]:.2f}"
            ax.annotate(
                text,
                (1, height),
                (6, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
                color=colour,
                fontsize="small",
            )
        ends = [*birth, *self.heights]
        low, high = min(ends), max([*birth[last > rows / 100], *self.heights])
        margin = max(0.06 * (high - low), 0.25)
        ax.set(
            xlim=(0, rows),
            ylim=(low - margin, high + margin),
            xlabel="rows, those of one cluster together",
            ylabel="height in octaves, fine to coarse",
            title=f"{rows:,} rows, from fine to coarse",
        )
        # Right of it are the names of the levels.
        bar = ax.figure.colorbar(collection, ax=ax, location="bottom", shrink=0.4, aspect=40, extend="max")
        bar.set_label("life of a cluster, in octaves")
        return ax

    def __repr__(self) -> str:
        lines = ["level  clusters  persistence  height"]
        for level, (clusters, persistence, height) in enumerate(zip(self.clusters, self.persistence, self.heights)):
            mark = "  default" if level == self.default else ""
            lines.append(f"{level:<5}  {clusters:>8}  {persistence:>11.2f}  {height:>+6.2f}{mark}")
        return "\n".join(lines)
