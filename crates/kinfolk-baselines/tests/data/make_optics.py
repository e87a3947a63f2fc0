"""Makes optics.txt: kNN graphs, and what scikit-learn's OPTICS finds on them.

    pip install numpy scipy scikit-learn
    python make_optics.py

The first line of a graph has the number of vertices and of neighbours; then follow the neighbours of each vertex, then their
similarities. Then seven lines for each case: the parameters min, max_eps, xi, min_cluster_size and eps; ordering, core
distances, reachabilities and predecessors; the labels by xi and those at eps. A line of one dash ends a graph. Three sets of rows: groups of different
density among noise; the same with similarities rounded to sixteenths, so that ties are common; and copies of a few rows.
Each with all neighbours and with a few.
"""

import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.cluster import cluster_optics_dbscan, cluster_optics_xi, compute_optics_graph

warnings.filterwarnings("ignore")


def rows(rng):
    centres = rng.normal(size=(6, 5))
    parts = [centre + spread * rng.normal(size=(7, 5)) for centre, spread in zip(centres, [0.1, 0.15, 0.2, 0.3, 0.4, 0.6])]
    x = np.concatenate([*parts, rng.normal(size=(8, 5))])
    x = x[rng.permutation(len(x))]
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def write(out, similarities, k):
    n = len(similarities)
    others = np.where(np.eye(n, dtype=bool), -np.inf, similarities)
    ids = np.argsort(-others, axis=1, kind="stable")[:, :k]
    listed = np.take_along_axis(others, ids, axis=1)
    out.append(f"{n} {k}")
    out.extend(" ".join(map(str, row)) for row in ids.tolist())
    out.extend(" ".join(map(repr, row)) for row in listed.tolist())
    edges = {(i, j) for i, row in enumerate(ids.tolist()) for j in row} | {(i, i) for i in range(n)}
    edges = sorted(edges | {(j, i) for i, j in edges})
    distances = [0.0 if i == j else 1 - float(similarities[i, j]) for i, j in edges]
    graph = csr_matrix((distances, np.array(edges).T), shape=(n, n))
    for least, max_eps, xi, size, eps in [
        (2, 2.0, 0.05, 2, 0.05), (3, 2.0, 0.1, 5, 0.1), (5, 2.0, 0.05, 5, 0.2), (5, 0.15, 0.02, 8, 0.1),
    ]:
        order, core, reachability, predecessor = compute_optics_graph(
            graph, min_samples=least, max_eps=max_eps, metric="precomputed", p=2, metric_params=None,
            algorithm="brute", leaf_size=30, n_jobs=None,
        )
        labels, _ = cluster_optics_xi(
            reachability=reachability, predecessor=predecessor, ordering=order, min_samples=least,
            min_cluster_size=size, xi=xi,
        )
        flat = cluster_optics_dbscan(reachability=reachability, core_distances=core, ordering=order, eps=eps)
        out.append(f"{least} {max_eps} {xi} {size} {eps}")
        out.extend(" ".join(map(repr, values.tolist())) for values in (order, core, reachability, predecessor, labels, flat))
    out.append("-")


rng = np.random.default_rng(3)
x = rows(rng)
few = x[rng.integers(0, 15, len(x))]
out = []
for y, digits in ((x, 2.0**16), (x, 16.0), (few, 2.0**16)):
    # Sums of binary fractions are the same in single and in double precision.
    similarities = np.minimum(np.round(y @ y.T * digits) / digits, 1.0)
    for k in (len(y) - 1, 9):
        write(out, similarities, k)
Path(__file__).with_name("optics.txt").write_text("\n".join(out) + "\n")
