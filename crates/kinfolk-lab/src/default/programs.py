"""Runs PyPI's `infomap` and `evoc`, for `kinfolk bench default --python PYTHON`.

    pip install numpy infomap evoc
    python programs.py DIR

DIR holds features.npy (unit rows) and graph.npz (`kinfolk knn`, the nearest 40). Labels of every run go to DIR, and a line for
each is printed: program, setting, file, seconds of the run, with tabs. Infomap: two levels, directed flow, edges weighted by
their cosine, at thresholds from 0 to 0.8. evoc: on the rows, with its defaults and a seed; its labels are those of the layer that
it chooses itself. Its seconds are those of a second run, because its functions are compiled during the first. Its noise becomes
clusters of one row, as kinfolk counts it.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np

# Calls that work in versions 1 and 2 of infomap alike are deprecated in 2.
warnings.filterwarnings("ignore")


def infomap_labels(ids, similarities, threshold):
    from infomap import Infomap

    n, k = ids.shape
    keep = similarities.ravel() > threshold
    sources = np.repeat(np.arange(n, dtype=np.float64), k)[keep]
    links = np.column_stack([sources, ids.ravel()[keep], similarities.ravel()[keep].astype(np.float64)])
    infomap = Infomap("--two-level --directed --silent --num-trials 1 --seed 1")
    infomap.add_nodes(range(n))
    infomap.add_links(links)
    infomap.run()
    labels = np.empty(n, np.int64)
    for node, module in infomap.get_modules().items():
        labels[node] = module
    return labels


def evoc_labels(features):
    from evoc import EVoC

    return without_noise(EVoC(random_state=1).fit(features).labels_)


def without_noise(labels):
    """Every row of noise as a cluster of its own."""
    labels = labels.astype(np.int64)
    noise = labels < 0
    labels[noise] = labels.max() + 1 + np.arange(noise.sum())
    return labels


def main(directory):
    features = np.load(directory / "features.npy")
    with np.load(directory / "graph.npz") as arrays:
        ids, similarities = arrays["ids"], arrays["similarities"]
    runs = [
        ("infomap", f"threshold {step / 10:.1f}", infomap_labels, (ids, similarities, step / 10))
        for step in range(9)
    ]
    evoc_labels(features)
    runs.append(("evoc", "nothing", evoc_labels, (features,)))
    for number, (program, setting, labels, arguments) in enumerate(runs):
        start = time.perf_counter()
        found = labels(*arguments)
        seconds = time.perf_counter() - start
        file = directory / f"{number}.npy"
        np.save(file, found)
        print(program, setting, file, f"{seconds:.3f}", sep="\t", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
