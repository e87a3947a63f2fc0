"""Writes the fixture of `tests/against_infomap.rs`: what the Infomap program makes of small graphs.

    python make_infomap.py          # numpy, infomap; writes next to itself

map_equation.txt   per graph five lines: number of vertices, then for undirected and for directed flow the codelength
                   of the labels below and the least codelength of 20 trials; where edges begin; where they end;
                   their weights; labels.
"""

import warnings
from pathlib import Path

import numpy as np
from infomap import Infomap

warnings.filterwarnings("ignore")


def knn(rng, centres, spread, n, k):
    """The k nearest of points around centres, by descending similarity 1 / (1 + distance)."""
    x = rng.standard_normal((centres, 3))[np.arange(n) % centres] + spread * rng.standard_normal((n, 3))
    distance = np.linalg.norm(x[:, None] - x[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    ids = np.argsort(distance, axis=1)[:, :k]
    weights = 1 / (1 + np.take_along_axis(distance, ids, axis=1))
    return [(i, int(j), w) for i in range(n) for j, w in zip(ids[i], weights[i])]


def sparse(rng, n, k):
    """Random edges; some vertices have none that leave, some none that arrive, the last none at all."""
    leaves = [i for i in range(n - 1) if i % 5 != 2]
    arrives = [i for i in range(n - 1) if i % 7 != 3]
    return [(i, int(j), rng.random()) for i in leaves for j in rng.choice([a for a in arrives if a != i], k, False)]


def ring_of_cliques(cliques, size):
    edges = []
    for i in range(cliques * size):
        first = i // size * size
        edges += [(i, j, 1.0) for j in range(first, first + size) if j != i]
        if i == first:
            edges.append((i, (i + size) % (cliques * size), 1.0))
    return edges


def codelength(n, edges, options, labels=None):
    infomap = Infomap(f"--two-level --silent --seed 1 --num-trials 20 {options}")
    infomap.add_nodes(range(n))
    for edge in edges:
        infomap.add_link(*edge)
    if labels is not None:
        infomap.initial_partition = dict(enumerate(labels))
        infomap.run("--no-infomap")
    else:
        infomap.run()
    return infomap.codelength


def main():
    rng = np.random.default_rng(2)
    graphs = [
        (14, sparse(rng, 14, 3)),
        (40, sparse(rng, 40, 5)),
        (30, ring_of_cliques(6, 5)),
        (120, knn(rng, 8, 0.3, 120, 6)),
        (300, knn(rng, 25, 0.4, 300, 10)),
    ]
    lines = []
    for n, edges in graphs:
        edges = [(i, j, float(np.float32(w))) for i, j, w in edges]
        labels = rng.integers(0, 4, n).tolist()
        header = [str(n)]
        for options in ["", "--directed"]:
            header += [repr(codelength(n, edges, options, labels)), repr(codelength(n, edges, options))]
        sources, targets, weights = zip(*edges)
        weights = [str(np.float32(w)) for w in weights]
        lines += [" ".join(map(str, values)) for values in (header, sources, targets, weights, labels)]
    (Path(__file__).parent / "map_equation.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
