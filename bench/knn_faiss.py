"""Compares kinfolk's neighbour search with faiss-cpu: same file, same threads, one after the other.

    pip install numpy faiss-cpu
    kinfolk synth set --identities 1500
    python bench/knn_faiss.py set/features.npy --kinfolk target/release/kinfolk

Prints wall and processor time of every search and its recall against faiss's own exact search (a neighbour
counts if it is at least as similar as the last true one). For faiss, IVF-Flat and HNSW are tried with growing
effort until the requested recall is reached; building the index counts. --skip-hnsw skips the slowest index.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import faiss
import numpy as np


def timed(run):
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def recall(x, ids, last):
    """Share of `ids` at least as similar as the last true neighbour; self does not count."""
    found = 0
    for start in range(0, len(x), 4096):
        block = slice(start, start + 4096)
        similarity = np.einsum("ij,ikj->ik", x[block], x[ids[block]])
        own = ids[block] == np.arange(start, start + len(ids[block]))[:, None]
        found += np.sum((similarity >= last[block, None] - 1e-6) & ~own)
    return found / ids.size


def without_self(ids, k):
    """The first k of each row that are not the row itself."""
    rows = np.arange(len(ids))[:, None]
    order = np.argsort(ids == rows, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(ids, order, axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features")
    parser.add_argument("--kinfolk", default="target/release/kinfolk")
    parser.add_argument("-k", type=int, default=80)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--recall", type=float, default=0.98)
    parser.add_argument("--skip-hnsw", action="store_true")
    arguments = parser.parse_args()
    k = arguments.k
    x = np.ascontiguousarray(np.load(arguments.features), dtype=np.float32)
    n, dim = x.shape
    faiss.omp_set_num_threads(arguments.threads)
    print(f"{n} x {dim}, K = {k}, {arguments.threads} threads, faiss {faiss.__version__}", flush=True)
    rows = []

    def note(name, wall, cpu, share):
        rows.append((name, wall, cpu, share))
        print(f"{name:38} {wall:8.2f} s {cpu:8.2f} CPU-s   recall {share:.4f}", flush=True)

    def kinfolk(name, *options):
        with tempfile.TemporaryDirectory() as directory:
            output = Path(directory) / "graph.npz"
            command = [arguments.kinfolk, "knn", arguments.features, "-k", str(k), "-o", str(output), "--json"]
            command += ["--threads", str(arguments.threads), *options]
            report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            ids = np.load(output)["ids"].astype(np.int64)
        note(name, report["seconds"], report["cpu_seconds"], recall(x, ids, last))
        return report["seconds"]

    flat = faiss.IndexFlatIP(dim)
    flat.add(x)
    (similarity, ids), wall, cpu = timed(lambda: flat.search(x, k + 1))
    truth = without_self(ids, k)
    last = np.einsum("ij,ij->i", x, x[truth[:, -1]])
    note("faiss IndexFlatIP", wall, cpu, recall(x, truth, last))
    exact = kinfolk("kinfolk exact", "--exact")
    print(f"  exact: {wall / exact:.1f} times faster than IndexFlatIP", flush=True)

    fastest = None
    lists = int(4 * n**0.5)
    (ivf, build, build_cpu) = timed(lambda: build_ivf(x, lists))
    for probes in (16, 32, 64, 96, 128, 192, 256, 384, 512):
        ivf.nprobe = probes
        (_, ids), wall, cpu = timed(lambda: ivf.search(x, k + 1))
        share = recall(x, without_self(ids, k), last)
        note(f"faiss IVF{lists},Flat nprobe {probes}", build + wall, build_cpu + cpu, share)
        if share >= arguments.recall:
            fastest = build + wall
            break
    if not arguments.skip_hnsw:
        (hnsw, build, build_cpu) = timed(lambda: build_hnsw(x))
        for effort in (128, 256, 512):
            hnsw.hnsw.efSearch = effort
            (_, ids), wall, cpu = timed(lambda: hnsw.search(x, k + 1))
            share = recall(x, without_self(ids, k), last)
            note(f"faiss HNSW32,Flat efSearch {effort}", build + wall, build_cpu + cpu, share)
            if share >= arguments.recall:
                fastest = min(fastest or np.inf, build + wall)
                break
    approximate = kinfolk(f"kinfolk --recall {arguments.recall}", "--recall", str(arguments.recall))
    if fastest:
        print(f"  approximate: {fastest / approximate:.1f} times faster than the fastest faiss index at that recall")


def build_ivf(x, lists):
    index = faiss.index_factory(x.shape[1], f"IVF{lists},Flat", faiss.METRIC_INNER_PRODUCT)
    index.train(x)
    index.add(x)
    return index


def build_hnsw(x):
    index = faiss.IndexHNSWFlat(x.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 100
    index.add(x)
    return index


if __name__ == "__main__":
    main()
