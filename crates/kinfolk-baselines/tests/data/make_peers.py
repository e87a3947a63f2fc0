"""Makes peers.txt: small sets, and how programs from PyPI cluster them.

    pip install numpy scipy scikit-learn faiss-cpu fastcluster hdbscan infomap
    python make_peers.py

The first line has the number of rows, of columns and of neighbours; then follow the rows. Then two lines for each case: the method
and its parameters, and the labels. A line of one dash ends a set. Two sets: groups that overlap, for methods whose answer is
unique, and groups that are far apart, for those that draw random numbers. The peers of `aro` and `cdp` are the loops of
bench/peers.py.
"""

import sys
from pathlib import Path

import numpy as np

here = Path(__file__).parent
sys.path.insert(0, str(here.parents[3] / "bench"))
import peers  # noqa: E402

K = 12


def groups(rng, count, size, dim, spread):
    centres = rng.normal(size=(count, dim))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    rows = np.repeat(centres, size, axis=0) + spread * rng.normal(size=(count * size, dim))
    rows = rows[rng.permutation(len(rows))]
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def neighbours(x):
    similarities = x @ x.T
    np.fill_diagonal(similarities, -np.inf)
    ids = np.argsort(-similarities, axis=1, kind="stable")[:, :K]
    return ids, np.take_along_axis(similarities, ids, axis=1)


def hdbscan(x, p, _):
    from hdbscan import HDBSCAN

    sizes = {"min_cluster_size": p["min_cluster_size"], "min_samples": p["min_samples"]}
    select = {"worth": "eom", "leaves": "leaf"}[p["selection"]]
    found = HDBSCAN(**sizes, cluster_selection_method=select, algorithm="prims_kdtree")
    return found.fit(x.astype(np.float64)).labels_


def kmeans(x, p, _):
    from sklearn.cluster import KMeans

    # faiss begins with random rows and ends elsewhere.
    return KMeans(p["clusters"], n_init=10, random_state=0).fit(x).labels_


def write(out, x, cases):
    graph = neighbours(x)
    out.append(f"{len(x)} {x.shape[1]} {K}")
    out.extend(" ".join(repr(float(v)) for v in row) for row in x)
    for method, parameters in cases:
        function = {"hdbscan": hdbscan, "kmeans": kmeans}.get(method, peers.PEERS[method][0])
        labels = function(graph if method in peers.ON_GRAPH else x, parameters, 0)
        out.append(" ".join([method.split("-")[0] if method.startswith("hac") else method,
                             *(f"{name}={value}" for name, value in parameters.items())]))
        out.append(" ".join(str(label) for label in labels))
    out.append("-")


rng = np.random.default_rng(5)
out = []
write(out, groups(rng, 9, 16, 6, 0.22), [
    *(("hac", {"linkage": linkage, "distance": distance})
      for linkage, distance in [("single", 0.4), ("complete", 1.0), ("average", 0.7), ("ward", 1.5)]),
    *(("hac", {"linkage": linkage, "clusters": 9}) for linkage in ["single", "complete", "average", "ward"]),
    *(("dbscan", {"eps": eps, "min": least}) for eps in [0.03, 0.06, 0.12] for least in [2, 4, 7]),
    *(("dbscan-knn", {"th": 0.9, "eps": eps, "min": least}) for eps in [0.03, 0.06, 0.2] for least in [2, 4, 7]),
    *(("hdbscan", {"min_cluster_size": size, "min_samples": samples, "selection": selection})
      for size in [3, 5] for samples in [2, 4] for selection in ["worth", "leaves"]),
    *(("optics", {"min": least, "xi": xi}) for least in [3, 5] for xi in [0.05, 0.2]),
    *(("optics", {"min": least, "extraction": "threshold", "eps": 0.05}) for least in [3, 5]),
    *(("meanshift", {"bandwidth": bandwidth, "seeds": seeds}) for bandwidth in [0.5, 0.8] for seeds in ["rows", "bins"]),
    *(("aro", {"threshold": threshold}) for threshold in [0.3, 0.6, 1.0]),
    *(("cdp", {"th": th, "max_size": size, "step": 0.05}) for th in [0.7, 0.9] for size in [10, 25]),
])
write(out, groups(np.random.default_rng(11), 7, 20, 16, 0.07), [
    ("kmeans", {"clusters": 7, "iterations": 25}),
    ("minibatch-kmeans", {"clusters": 7, "batch": 100}),
    ("spectral", {"clusters": 7, "assign": "kmeans"}),
    ("spectral", {"clusters": 7, "assign": "discretise"}),
    ("infomap", {"th": 0.8}),
    ("chinese-whispers", {"th": 0.8, "iterations": 20}),
])
(here / "peers.txt").write_text("\n".join(out) + "\n")
