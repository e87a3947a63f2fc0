"""Compares the Python package with `hdbscan.HDBSCAN` and `sklearn.cluster.DBSCAN`: the lines that a user writes, and scores.

    pip install . hdbscan scikit-learn
    python bench/python_peers.py train_feat.npy train_label.npy test_feat.npy test_label.npy

Each row of the table is a program of a few lines, printed below the table, that is run as it stands: `X` has the test
rows, `X_train` and `y_train` other identities with labels, for those programs that have something to choose. Test labels
are for the scores only. Rows that a program calls noise count as clusters of one. Seconds are the best of --repeat, of the
whole program, choosing included; everything is imported before. Lines are those of the program.
"""

import argparse
import time

import hdbscan  # noqa: F401
import numpy as np
import sklearn.cluster  # noqa: F401

from kinfolk import Kinfolk, metrics  # noqa: F401

PROGRAMS = {
    "`Kinfolk()`": """
from kinfolk import Kinfolk
labels = Kinfolk().fit_predict(X)
""",
    "`HDBSCAN()`": """
from hdbscan import HDBSCAN
labels = HDBSCAN().fit_predict(X)
""",
    "`DBSCAN()`": """
from sklearn.cluster import DBSCAN
labels = DBSCAN().fit_predict(X)
""",
    '`DBSCAN(metric="cosine")`': """
from sklearn.cluster import DBSCAN
labels = DBSCAN(metric="cosine").fit_predict(X)
""",
    "`Kinfolk()`, trained": """
from kinfolk import Kinfolk
labels = Kinfolk().fit(X_train, y_train).cluster(X)
""",
    "`HDBSCAN`, size chosen on labels": """
from hdbscan import HDBSCAN
from kinfolk import metrics
def score(size):
    found = HDBSCAN(min_cluster_size=size).fit_predict(X_train)
    found[found < 0] = -1 - np.flatnonzero(found < 0)
    return metrics.pairwise(y_train, found).f + metrics.bcubed(y_train, found).f
best = max([2, 3, 4, 5, 8, 12, 20], key=score)
labels = HDBSCAN(min_cluster_size=best).fit_predict(X)
""",
    "`DBSCAN`, eps chosen on labels": """
from sklearn.cluster import DBSCAN
from kinfolk import metrics
def score(choice):
    found = DBSCAN(eps=choice[0], min_samples=choice[1], metric="cosine").fit_predict(X_train)
    found[found < 0] = -1 - np.flatnonzero(found < 0)
    return metrics.pairwise(y_train, found).f + metrics.bcubed(y_train, found).f
choices = [(eps / 100, size) for eps in range(20, 61, 5) for size in (1, 2, 3, 5)]
best = max(choices, key=score)
labels = DBSCAN(eps=best[0], min_samples=best[1], metric="cosine").fit_predict(X)
""",
}


def run(program, data, repeat):
    """Labels, and the fewest seconds."""
    seconds = []
    for _ in range(repeat):
        names = {"np": np, **data}
        start = time.perf_counter()
        exec(program, names)
        seconds.append(time.perf_counter() - start)
    labels = np.array(names["labels"], dtype=np.int64)
    noise = np.flatnonzero(labels < 0)
    labels[noise] = -1 - noise
    return labels, min(seconds), names.get("best")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("train_features", "train_labels", "test_features", "test_labels"):
        parser.add_argument(name)
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    data = {"X_train": arguments.train_features, "y_train": arguments.train_labels, "X": arguments.test_features}
    data = {name: np.load(path) for name, path in data.items()}
    truth = np.load(arguments.test_labels)

    print("| program | pairwise F | BCubed F | clusters | seconds | lines | chose |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for name, program in PROGRAMS.items():
        labels, seconds, chose = run(program, data, arguments.repeat)
        scores = metrics.evaluate(truth, labels)
        f = f"{100 * scores.pairwise.f:.1f} | {100 * scores.bcubed.f:.1f}"
        lines = len(program.strip().splitlines())
        chose = "" if chose is None else chose
        print(f"| {name} | {f} | {len(set(labels))} | {seconds:.1f} | {lines} | {chose} |", flush=True)
    for name, program in PROGRAMS.items():
        print(f"\n{name}\n{program}")


if __name__ == "__main__":
    main()
