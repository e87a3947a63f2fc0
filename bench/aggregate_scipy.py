"""Compares `kinfolk bench aggregate` with SciPy's CSR product on the same graph.

    pip install numpy scipy
    kinfolk synth set --identities 1500
    python bench/aggregate_scipy.py set/features.npy --kinfolk target/release/kinfolk

scipy multiplies on one thread; kinfolk's figure is for as many as --threads.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features")
    parser.add_argument("--kinfolk", default="target/release/kinfolk")
    parser.add_argument("-k", type=int, default=80)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    x = np.load(arguments.features).astype(np.float32)
    n = len(x)
    with tempfile.TemporaryDirectory() as directory:
        graph = Path(directory) / "graph.npz"
        command = [arguments.kinfolk, "bench", "aggregate", "--features", arguments.features, "-k", str(arguments.k)]
        command += ["--save-graph", str(graph), "--threads", str(arguments.threads)]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, flush=True)
        with np.load(graph) as arrays:
            ids, similarities = arrays["ids"], arrays["similarities"]

    start = time.perf_counter()
    keep = similarities >= 0
    rows = np.repeat(np.arange(n), ids.shape[1]).reshape(ids.shape)[keep]
    directed = scipy.sparse.csr_matrix((similarities[keep], (rows, ids[keep])), shape=(n, n), dtype=np.float32)
    adjacency = directed.maximum(directed.T) + scipy.sparse.eye(n, dtype=np.float32, format="csr")
    adjacency = scipy.sparse.diags(1 / np.asarray(adjacency.sum(axis=1)).ravel()).astype(np.float32) @ adjacency
    print(f"scipy: adjacency {time.perf_counter() - start:.3f} s, {adjacency.nnz} entries", flush=True)
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        adjacency @ x
        best = min(best, time.perf_counter() - start)
    print(f"scipy: product, best of 3 {best:.3f} s")


if __name__ == "__main__":
    main()
