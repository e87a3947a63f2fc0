"""Writes the fixtures of `tests/against_python.rs`: what scipy and scikit-learn make of small random inputs.

    python make_scipy.py            # numpy, scipy, scikit-learn; writes next to itself

adjacency.txt   N K D th_sim, then N rows of ids, of similarities, of features, of the normalised adjacency
                (dense, zeros where there is no edge) and of its product with the features.
metrics.txt     per case three lines: true labels; predicted labels; pairwise precision, recall, F, BCubed
                precision, recall, F, NMI, clusters, singletons, largest cluster, identities.
"""

from pathlib import Path
import sys

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[3] / "bench"))
from check_against_python import label_cases, reference_scores  # noqa: E402


def lines(matrix, form):
    return [" ".join(form % value for value in row) for row in matrix]


def adjacency(n=40, k=6, dim=9, th_sim=0.1):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, dim)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    similarity = (x @ x.T).astype(np.float32)
    np.fill_diagonal(similarity, -2)
    ids = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    sims = np.take_along_axis(similarity, ids, axis=1)
    # An approximate search does not find the same similarity from both ends; let the two differ.
    sims -= np.sort(rng.uniform(0, 0.01, sims.shape).astype(np.float32), axis=1)

    keep = sims >= th_sim
    rows = np.repeat(np.arange(n), k).reshape(n, k)
    a = sp.csr_matrix((sims[keep].astype(np.float64), (rows[keep], ids[keep])), shape=(n, n))
    a = a.maximum(a.T) + sp.eye(n)
    a = sp.diags(1 / np.asarray(a.sum(axis=1)).ravel()) @ a
    text = [f"{n} {k} {dim} {th_sim}"]
    text += lines(ids, "%d") + lines(sims, "%.9g") + lines(x, "%.9g")
    text += lines(a.toarray(), "%.9g") + lines(a @ x.astype(np.float64), "%.9g")
    (HERE / "adjacency.txt").write_text("\n".join(text) + "\n")


def metrics():
    text = []
    for _, truth, predicted in label_cases(max_rows=60):
        s = reference_scores(truth, predicted)
        scores = [s[kind][key] for kind in ("pairwise", "bcubed") for key in ("precision", "recall", "f")]
        counts = [s[key] for key in ("clusters", "singletons", "largest", "identities")]
        values = [repr(float(value)) for value in scores + [s["nmi"]] + counts]
        text += lines([truth, predicted], "%d") + [" ".join(values)]
    (HERE / "metrics.txt").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    adjacency()
    metrics()
