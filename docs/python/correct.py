"""Look at a result and correct it: ask about the most doubtful decisions, apply the answers. Makes correct.svg."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from kinfolk import Kinfolk, explain, metrics, synth

X, truth = synth(identities=40, dim=64)
found = Kinfolk().fit(X)

# The decision most worth checking, and the reason for it.
first = found.doubts_[0]
print(explain(found, first["row"], first["other"], X=X))


def clusters(parent, joined):
    """Rows that are connected by their edges and by what a person joined."""
    linked = np.flatnonzero(parent >= 0)
    ends = np.vstack([np.column_stack([linked, parent[linked]]), np.array(joined, dtype=int).reshape(-1, 2)])
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(parent), len(parent)))
    return connected_components(graph, directed=False)[1]


def who(rows):
    """A person would look at some of their pictures; here the truth answers."""
    return np.bincount(truth[rows]).argmax()


parent, joined = found.parent_.copy(), []
scores = [metrics.evaluate(truth, clusters(parent, joined))]
for decision in found.doubts_[:200]:
    row, other = decision["row"], decision["other"]
    # What the decision is about: a cluster without this edge, or two clusters.
    before = parent[row]
    if decision["together"]:
        parent[row] = -1
    sides = clusters(parent, joined)
    if who(sides == sides[row]) == who(sides == sides[other]):
        parent[row] = before
        if not decision["together"]:
            joined.append((row, other))
    scores.append(metrics.evaluate(truth, clusters(parent, joined)))

pairs, rows = [score.pairwise.f for score in scores], [score.bcubed.f for score in scores]
print(
    f"pairwise F {pairs[0]:.3f} -> {pairs[-1]:.3f}, BCubed F {rows[0]:.3f} -> {rows[-1]:.3f} by {len(scores) - 1} answers"
)
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
axis.plot(pairs, label="pairwise F")
axis.plot(rows, label="BCubed F")
axis.set(xlabel="answers", title=f"{len(X)} rows, the most doubtful decisions first")
axis.legend()
figure.savefig("correct.svg")
