"""Measures how hard a labelled set is for known methods. `kinfolk synth` is calibrated by this table.

Usage:
    kinfolk synth DIR --identities 1500
    python bench/calibrate_synth.py DIR/features.npy DIR/labels.npy [-k 80] [--nprobe P] [--threads N] [--json]

Needs numpy, scipy, faiss-cpu and infomap >= 2.16 (PyPI). With 100,000 rows of 256 columns it takes eight minutes on
two busy cores, six of them for exact neighbours; `--nprobe 100` searches 100 of 1,000 cells instead (one minute),
which on seed 0 lowers the share of the same identity by 0.005, the pairwise F of the components by 1.2, and moves the
rest by 0.2 at most.

The methods, and what they reach on the test part of MS-Celeb-1M (584,013 rows; pairwise F / BCubed F):
    k-means               the true number of clusters, spherical, 20 rounds                              80 / 82
    connected components  of the neighbour edges with cosine > t, at the best t                           67 / 70
    Infomap               two-level, directed, weight = cosine, edges with cosine > t, at the best t      93 / 92
    same identity         share of the 80 nearest (self excluded) that are of the same identity           0.63

The best t is picked on the labels themselves (it maximises the mean of the two F): fine for calibrating a
generator, never for reporting a method.
"""

import argparse
import json
import sys
import time

import faiss
import numpy as np
from infomap import Infomap
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

TARGET = {"k-means": (80, 82), "connected components": (67, 70), "Infomap": (93, 92)}


def scores(truth, predicted):
    """Pairwise F and BCubed F, in percent, from the sparse table of (identity, cluster) counts."""
    truth = np.unique(truth, return_inverse=True)[1]
    predicted = np.unique(predicted, return_inverse=True)[1]
    table = coo_matrix((np.ones(len(truth)), (truth, predicted))).tocsr().tocoo()  # tocsr adds up duplicates
    both, of_truth, of_predicted = table.data, np.bincount(truth), np.bincount(predicted)

    def pairs(counts):
        return float((counts * (counts - 1.0)).sum())

    def f(precision, recall):
        return 100 * 2 * precision * recall / max(precision + recall, 1e-12)

    hits = pairs(both)
    pairwise = f(hits / max(pairs(of_predicted), 1), hits / max(pairs(of_truth), 1))
    squares = both**2 / len(truth)
    bcubed = f((squares / of_predicted[table.col]).sum(), (squares / of_truth[table.row]).sum())
    return pairwise, bcubed


def neighbours(rows, k, nprobe):
    """Cosines and ids of the k nearest of every row, self excluded; exactly, or in `nprobe` of 1,000 cells."""
    index = faiss.IndexFlatIP(rows.shape[1])
    if nprobe:
        index = faiss.IndexIVFFlat(index, rows.shape[1], 1000, faiss.METRIC_INNER_PRODUCT)
        index.cp.niter = 6
        index.nprobe = nprobe
        index.train(rows)
    index.add(rows)
    cosines, ids = index.search(rows, k + 1)
    drop = ids == np.arange(len(rows))[:, None]
    drop[~drop.any(1), -1] = True  # among duplicates self may be missing
    return cosines[~drop].reshape(-1, k), ids[~drop].reshape(-1, k)


def k_means(rows, truth):
    k = len(np.unique(truth))
    model = faiss.Kmeans(
        rows.shape[1], k, niter=20, spherical=True, seed=1, max_points_per_centroid=10**9, min_points_per_centroid=1
    )
    model.train(rows)
    return scores(truth, model.index.search(rows, 1)[1].ravel())


def edges(cosines, ids, threshold):
    keep = cosines > threshold
    return np.nonzero(keep)[0], ids[keep], cosines[keep]


def components(cosines, ids, threshold):
    source, target, _ = edges(cosines, ids, threshold)
    n = len(ids)
    graph = coo_matrix((np.ones(len(source), np.int8), (source, target)), shape=(n, n))
    return connected_components(graph, directed=False)[1]


def infomap(cosines, ids, threshold):
    source, target, weight = edges(cosines, ids, threshold)
    network = Infomap("--two-level --directed --silent --seed 1")
    network.add_links(zip(source.tolist(), target.tolist(), weight.astype(float).tolist()))
    modules = network.run().modules()
    labels = -np.arange(1, len(ids) + 1)  # a row without an edge is alone
    for node, module in modules.items():
        labels[node] = module
    return labels


def best(method, cosines, ids, truth, thresholds):
    """(threshold, pairwise F, BCubed F) where the mean of the two F is largest."""
    tried = ((t, *scores(truth, method(cosines, ids, t))) for t in thresholds)
    return max(tried, key=lambda r: r[1] + r[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features")
    parser.add_argument("labels")
    parser.add_argument("-k", type=int, default=80)
    parser.add_argument("--nprobe", type=int, default=0, help="cells to search; exact by default")
    parser.add_argument("--threads", type=int, default=0, help="all, by default")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.threads:
        faiss.omp_set_num_threads(options.threads)

    rows = np.ascontiguousarray(np.load(options.features), np.float32)
    truth = np.load(options.labels)
    if len(rows) != len(truth) or len(rows) <= options.k:
        sys.exit(f"{options.features}: {len(rows)} rows, {len(truth)} labels, k = {options.k}")
    faiss.normalize_L2(rows)

    def step(name, begin=[time.time()]):
        print(f"{time.time() - begin[0]:7.1f} s  {name}", file=sys.stderr, flush=True)

    step("neighbours")
    cosines, ids = neighbours(rows, options.k, options.nprobe)
    same = float((truth[ids] == truth[:, None]).mean())
    step("k-means")
    result = {"k-means": (None, *k_means(rows, truth))}
    step("connected components")
    fine = np.linspace(*np.quantile(cosines, [0.3, 0.99]), 40)
    result["connected components"] = best(components, cosines, ids, truth, fine)
    step("Infomap")
    coarse = np.quantile(cosines, [0.2, 0.35, 0.5])
    result["Infomap"] = best(infomap, cosines, ids, truth, coarse)
    step("done")

    if options.json:
        print(json.dumps({"rows": len(rows), "identities": len(np.unique(truth)), "same": same, **result}))
        return
    print(f"{len(rows)} rows of {rows.shape[1]}, {len(np.unique(truth))} identities, K = {options.k}")
    print(f"{'':24}{'pairwise F':>11}{'BCubed F':>10}{'threshold':>11}{'target':>10}")
    for name, (threshold, pairwise, bcubed) in result.items():
        shown = "" if threshold is None else f"{threshold:.3f}"
        print(f"{name:24}{pairwise:11.1f}{bcubed:10.1f}{shown:>11}{'%d / %d' % TARGET[name]:>10}")
    print(f"{'same identity':24}{same:11.3f}{'':21}{'0.63':>10}")


if __name__ == "__main__":
    main()
