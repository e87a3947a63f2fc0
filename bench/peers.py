"""Compares the methods of kinfolk-baselines with other programs: same input, same parameters.

    pip install numpy scipy scikit-learn faiss-cpu fastcluster hdbscan infomap dlib-bin
    kinfolk synth set --identities 200
    cargo build --release -p kinfolk-baselines --example run
    python bench/peers.py set/features.npy set/labels.npy --kinfolk target/release/kinfolk

For each method: pairwise and BCubed F, clusters, wall and processor seconds of both sides, without reading and writing
(processor seconds of kinfolk with them). Methods that draw random numbers run with --seeds seeds on both sides, and means
are printed. Rows that are noise count as clusters of one. For `aro`, `cdp` and
`chinese-whispers` on the kNN graph there is no package; they are compared with plain Python loops written after the papers.
dlib's Chinese whispers uses all pairs of rows, ours the nearest K. A program that takes longer than --limit seconds is stopped.
NAME.PARAMETER=VALUE sets a parameter on both sides, such as `dbscan.eps=0.3`; METHOD names restrict the run. Fails if
an F is more than 0.5 points below its peer's, and by more than seeds differ.
"""

import argparse
import json
import math
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

warnings.filterwarnings("ignore")

# The parameters of both sides; "clusters" is the true number unless it is given.
DEFAULTS = {
    "kmeans": {"clusters": None, "iterations": 25},
    "minibatch-kmeans": {"clusters": None, "batch": 1024},
    "hac": {"linkage": "average", "distance": 1.0},
    "hac-ward": {"linkage": "ward", "clusters": None},
    "hac-single": {"linkage": "single", "distance": 0.75},
    "hac-complete": {"linkage": "complete", "clusters": None},
    "dbscan": {"eps": 0.3, "min": 3},
    "dbscan-knn": {"th": 0.5, "eps": 0.3, "min": 3},
    "chinese-whispers": {"th": 0.6, "iterations": 20},
    "chinese-whispers-dlib": {"th": 0.6, "iterations": 100, "weighted": "false"},
    "infomap": {"th": 0.5},
    "aro": {"threshold": 0.5},
    "cdp": {"th": 0.6, "max_size": 300, "step": 0.05},
    "hdbscan": {"min_cluster_size": 3, "min_samples": 2},
    "optics": {"min": 5, "xi": 0.05},
    "spectral": {"clusters": None, "assign": "kmeans"},
    "meanshift": {"bandwidth": 0.9, "seeds": "rows"},
}
ON_GRAPH = {"dbscan-knn", "chinese-whispers", "chinese-whispers-dlib", "infomap", "aro", "cdp", "optics", "spectral"}
# Peers that make their own graph.
PEER_ON_ROWS = {"chinese-whispers-dlib"}
WITH_NOISE = {"dbscan", "dbscan-knn", "hdbscan", "optics"}
RANDOM = {"kmeans", "minibatch-kmeans", "chinese-whispers", "chinese-whispers-dlib", "spectral", "infomap"}


def kmeans(x, p, seed):
    import faiss

    found = faiss.Kmeans(
        x.shape[1], p["clusters"], niter=p["iterations"], seed=seed + 1, min_points_per_centroid=1,
        max_points_per_centroid=10**9,
    )
    found.train(x)
    return found.index.search(x, 1)[1].ravel()


def minibatch_kmeans(x, p, seed):
    from sklearn.cluster import MiniBatchKMeans

    return MiniBatchKMeans(p["clusters"], batch_size=p["batch"], random_state=seed).fit(x).labels_


def hac(x, p, _):
    import fastcluster
    from scipy.cluster.hierarchy import fcluster

    merges = fastcluster.linkage(x, method=p["linkage"], metric="euclidean")
    if "distance" in p:
        return fcluster(merges, p["distance"], "distance")
    return fcluster(merges, p["clusters"], "maxclust")


def dbscan(x, p, _):
    from sklearn.cluster import DBSCAN

    return DBSCAN(eps=math.sqrt(2 * p["eps"]), min_samples=p["min"], n_jobs=-1).fit(x).labels_


def dbscan_knn(graph, p, _):
    from sklearn.cluster import DBSCAN

    ids, similarities = graph
    n, k = ids.shape
    keep = similarities.ravel() >= p["th"]
    rows = np.repeat(np.arange(n), k)[keep]
    distances = csr_matrix((1 - similarities.ravel()[keep], (rows, ids.ravel()[keep])), shape=(n, n))
    distances.data = np.maximum(distances.data, 0)
    return DBSCAN(eps=p["eps"], min_samples=p["min"], metric="precomputed", n_jobs=-1).fit(distances).labels_


def chinese_whispers_dlib(x, p, _):
    import dlib

    # The distance of unit rows whose cosine is th.
    rows = [dlib.vector(row) for row in x.astype(np.float64)]
    return np.array(dlib.chinese_whispers_clustering(rows, math.sqrt(2 - 2 * p["th"])))


def chinese_whispers(graph, p, seed):
    ids, similarities = graph
    neighbours = [{} for _ in ids]
    for i, (row, weights) in enumerate(zip(ids.tolist(), similarities.tolist())):
        for j, weight in zip(row, weights):
            if weight >= p["th"]:
                neighbours[i][j] = weight
                neighbours[j][i] = weight
    labels = list(range(len(ids)))
    order = list(range(len(ids)))
    draw = random.Random(seed)
    for _ in range(p["iterations"]):
        draw.shuffle(order)
        for i in order:
            heard = {}
            for j, weight in neighbours[i].items():
                heard[labels[j]] = heard.get(labels[j], 0.0) + weight
            if heard:
                labels[i] = max(heard, key=heard.get)
    return np.array(labels)


def infomap(graph, p, seed):
    from infomap import Infomap

    ids, similarities = graph
    n, k = ids.shape
    keep = similarities.ravel() > p["th"]
    rows = np.repeat(np.arange(n, dtype=np.float64), k)[keep]
    links = np.column_stack([rows, ids.ravel()[keep], similarities.ravel()[keep].astype(np.float64)])
    found = Infomap(f"--two-level --silent --num-trials 1 --seed {seed + 1}")
    found.add_nodes(range(n))
    found.add_links(links)
    found.run()
    labels = np.zeros(n, dtype=np.int64)
    for node, module in found.get_modules().items():
        labels[node] = module
    return labels


def connected(n, pairs):
    neighbours = [[] for _ in range(n)]
    for a, b in pairs:
        neighbours[a].append(b)
        neighbours[b].append(a)
    labels = [-1] * n
    for first in range(n):
        if labels[first] < 0:
            labels[first] = first
            queue = [first]
            while queue:
                for j in neighbours[queue.pop()]:
                    if labels[j] < 0:
                        labels[j] = first
                        queue.append(j)
    return labels


def aro(graph, p, _):
    lists = [[i, *row] for i, row in enumerate(graph[0].tolist())]
    pairs = []
    for a, row in enumerate(lists):
        # As in the programs around: sets are made for each pair.
        for rank_b, b in enumerate(row[1:], 1):
            other = lists[b]
            rank_a = other.index(a) if a in other else None
            only_a = len(set(row[:rank_b]).difference(set(other)))
            only_b = len(set(other[:rank_a]).difference(set(row)))
            if rank_a is not None and (only_a + only_b) / min(rank_a, rank_b) <= p["threshold"]:
                pairs.append((a, b))
    return np.array(connected(len(lists), pairs))


def cdp(graph, p, _):
    ids, similarities = graph
    pairs = {}
    for i, (row, scores) in enumerate(zip(ids.tolist(), similarities.tolist())):
        for j, score in zip(row, scores):
            if score >= p["th"]:
                pairs[min(i, j), max(i, j)] = score
    neighbours = [set() for _ in ids]
    for a, b in pairs:
        neighbours[a].add(b)
        neighbours[b].add(a)
    labels = np.arange(len(ids))
    th = min(pairs.values(), default=1.0)
    left = set(range(len(ids)))
    for _ in range(101):
        nodes, remain = set(left), set()
        while nodes:
            first = nodes.pop()
            group, queue = {first}, [first]
            while queue:
                i = queue.pop(0)
                near = {j for j in neighbours[i] if pairs[min(i, j), max(i, j)] >= th}
                near -= group
                nodes -= near
                group |= near
                queue.extend(near)
            labels[list(group)] = first
            if len(group) > p["max_size"]:
                remain |= group
        left = remain
        if not left:
            break
        th += (1 - th) * p["step"]
    return labels


def hdbscan(x, p, _):
    import hdbscan

    return hdbscan.HDBSCAN(min_cluster_size=p["min_cluster_size"], min_samples=p["min_samples"]).fit(x).labels_


def optics(graph, p, _):
    from sklearn.cluster import OPTICS

    ids, similarities = graph
    n, k = ids.shape
    distances = np.maximum(1 - similarities.ravel().astype(np.float64), 0)
    # A stored zero is an edge between copies, so an edge in one direction is added to the other before they are merged.
    rows, columns = np.repeat(np.arange(n), k), ids.ravel().astype(np.int64)
    rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    pairs, first = np.unique(rows * n + columns, return_index=True)
    symmetric = csr_matrix((np.tile(distances, 2)[first], (pairs // n, pairs % n)), shape=(n, n))
    method = {"cluster_method": "dbscan", "eps": p["eps"]} if p.get("extraction") == "threshold" else {"xi": p["xi"]}
    return OPTICS(min_samples=p["min"], metric="precomputed", n_jobs=-1, **method).fit(symmetric).labels_


def spectral(graph, p, seed):
    from sklearn.cluster import SpectralClustering

    ids, similarities = graph
    n, k = ids.shape
    keep = similarities.ravel() > 0
    rows = np.repeat(np.arange(n), k)[keep]
    weights = csr_matrix((similarities.ravel()[keep].astype(np.float64), (rows, ids.ravel()[keep])), shape=(n, n))
    assign = {"kmeans": "kmeans", "discretise": "discretize"}[p["assign"]]
    found = SpectralClustering(p["clusters"], affinity="precomputed", assign_labels=assign, random_state=seed)
    return found.fit(weights.maximum(weights.T)).labels_


def meanshift(x, p, _):
    from sklearn.cluster import MeanShift

    return MeanShift(bandwidth=p["bandwidth"], bin_seeding=p["seeds"] == "bins", n_jobs=-1).fit(x).labels_


PEERS = {
    "kmeans": (kmeans, "faiss"),
    "minibatch-kmeans": (minibatch_kmeans, "scikit-learn"),
    "hac": (hac, "fastcluster"),
    "hac-ward": (hac, "fastcluster"),
    "hac-single": (hac, "fastcluster"),
    "hac-complete": (hac, "fastcluster"),
    "dbscan": (dbscan, "scikit-learn"),
    "dbscan-knn": (dbscan_knn, "scikit-learn"),
    "chinese-whispers": (chinese_whispers, "Python loop"),
    "chinese-whispers-dlib": (chinese_whispers_dlib, "dlib"),
    "infomap": (infomap, "infomap"),
    "aro": (aro, "Python loop"),
    "cdp": (cdp, "Python loop"),
    "hdbscan": (hdbscan, "hdbscan"),
    "optics": (optics, "scikit-learn"),
    "spectral": (spectral, "scikit-learn"),
    "meanshift": (meanshift, "scikit-learn"),
}


def processor():
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def in_child(queue, function, data, parameters, seed):
    # A group of its own, so that helpers it starts end with it.
    os.setsid()
    # Imports are not what is measured: a ring of 50, or 50 rows, first.
    ring = (np.arange(50)[:, None] + np.arange(1, 11)).astype(np.uint32) % 50
    little = (ring, np.full(ring.shape, 0.9, np.float32)) if isinstance(data, tuple) else data[:50]
    function(little, {**parameters, **({"clusters": 3} if "clusters" in parameters else {})}, seed)
    wall, cpu = time.perf_counter(), processor()
    labels = function(data, parameters, seed)
    queue.put((labels, time.perf_counter() - wall, processor() - cpu))


def run_peer(function, data, parameters, seed, limit):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue, function, data, parameters, seed))
    child.start()
    deadline = time.monotonic() + limit
    while queue.empty() and child.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    found = None if queue.empty() and time.monotonic() >= deadline else queue.get(timeout=60)
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        child.kill()
    child.join()
    return found


def run_kinfolk(example, method, source, parameters, seed):
    with tempfile.TemporaryDirectory() as directory:
        labels = str(Path(directory) / "labels.npy")
        given = [f"{name}={value}" for name, value in parameters.items()]
        if method in RANDOM:
            given.append(f"seed={seed}")
        if method in WITH_NOISE:
            given.append("noise=keep")
        name = {"chinese-whispers-dlib": "chinese-whispers"}.get(method, method)
        name = "hac" if method.startswith("hac-") else name
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        output = subprocess.run([example, name, source, labels, *given], check=True, capture_output=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return np.load(labels), json.loads(output)["seconds"], cpu


def scores(truth, labels):
    """Pairwise and BCubed F in percent, and the number of clusters."""
    labels = np.array(labels, dtype=np.int64)
    alone = labels < 0
    labels[alone] = labels.max() + 1 + np.arange(alone.sum())
    rows, columns = np.unique(truth, return_inverse=True)[1], np.unique(labels, return_inverse=True)[1]
    both = coo_matrix((np.ones(len(rows)), (rows, columns))).tocsr()
    both.sum_duplicates()
    both = both.tocoo()
    a, b = np.bincount(rows).astype(float), np.bincount(columns).astype(float)
    f = lambda precision, recall: 200 * precision * recall / (precision + recall) if precision + recall else 0.0
    share = lambda part, whole: part / whole if whole else 1.0
    pairs = (both.data * (both.data - 1)).sum()
    pairwise = f(share(pairs, (b * (b - 1)).sum()), share(pairs, (a * (a - 1)).sum()))
    squares = both.data**2
    bcubed = f((squares / b[both.col]).sum() / len(rows), (squares / a[both.row]).sum() / len(rows))
    return pairwise, bcubed, len(b)


def value(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features")
    parser.add_argument("labels")
    parser.add_argument("what", nargs="*", metavar="METHOD_OR_NAME.PARAMETER=VALUE")
    parser.add_argument("--graph", help="GRAPH.npz of `kinfolk knn`")
    parser.add_argument("--kinfolk", default="target/release/kinfolk")
    parser.add_argument("--example", default="target/release/examples/run")
    parser.add_argument("-k", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600)
    arguments = parser.parse_intermixed_args()
    truth = np.load(arguments.labels)
    x = np.load(arguments.features).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    methods, changes = [], {}
    for what in arguments.what:
        if "=" in what:
            name, text = what.split("=", 1)
            method, parameter = name.split(".", 1)
            changes.setdefault(method, {})[parameter] = value(text)
        else:
            methods.append(what)
    behind = []
    with tempfile.TemporaryDirectory() as directory:
        graph_file = arguments.graph or str(Path(directory) / "graph.npz")
        if not arguments.graph:
            command = [arguments.kinfolk, "knn", arguments.features, "-k", str(arguments.k), "-o", graph_file]
            subprocess.run(command, check=True, capture_output=True)
        with np.load(graph_file) as arrays:
            graph = arrays["ids"], arrays["similarities"]
        identities = len(np.unique(truth))
        print(f"{x.shape[0]} x {x.shape[1]}, {identities} identities, K = {graph[0].shape[1]}")
        print("| method | parameters | peer | kinfolk: pairwise / BCubed F, clusters | seconds (CPU) "
              "| peer: F, clusters | seconds (CPU) | times faster |\n|---|---|---|---|---|---|---|---|", flush=True)
        for method in methods or DEFAULTS:
            parameters = {**DEFAULTS[method], **changes.get(method, {})}
            parameters = {name: identities if v is None else v for name, v in parameters.items()}
            function, peer = PEERS[method]
            on_graph = method in ON_GRAPH
            sides = [[], []]
            for seed in range(arguments.seeds if method in RANDOM else 1):
                source = graph_file if on_graph else arguments.features
                labels, wall, cpu = run_kinfolk(arguments.example, method, source, parameters, seed)
                sides[0].append((*scores(truth, labels), wall, cpu))
                data = graph if on_graph and method not in PEER_ON_ROWS else x
                found = run_peer(function, data, parameters, seed, arguments.limit)
                if found is None:
                    break
                sides[1].append((*scores(truth, found[0]), found[1], found[2]))
            # Only seeds that both sides were done with.
            ours = np.mean(sides[0][: len(sides[1]) or None], axis=0)
            said = ", ".join(f"{name} {v}" for name, v in parameters.items())
            line = f"| {method} | {said} | {peer} | {ours[0]:.2f} / {ours[1]:.2f}, {ours[2]:.0f} | {ours[3]:.2f} ({ours[4]:.2f}) |"
            if sides[1]:
                theirs = np.mean(sides[1], axis=0)
                line += f" {theirs[0]:.2f} / {theirs[1]:.2f}, {theirs[2]:.0f} | {theirs[3]:.2f} ({theirs[4]:.2f}) |"
                line += f" {theirs[3] / max(ours[3], 1e-3):.1f} |"
                # Seeds differ by points: what two standard errors of the means can explain is no difference.
                spread = [np.var(side, axis=0)[:2] / len(side) for side in (sides[0][: len(sides[1])], sides[1])]
                if ((ours - theirs)[:2] + 2 * np.sqrt(sum(spread)) < -0.5).any():
                    behind.append(method)
            else:
                line += f" not done | > {arguments.limit:.0f} | > {arguments.limit / max(ours[3], 1e-3):.0f} |"
            print(line, flush=True)
    if behind:
        sys.exit(f"more than 0.5 points behind: {', '.join(behind)}")


if __name__ == "__main__":
    main()
