"""Cluster without labels: a matrix of embeddings in, clusters out. Makes cluster.png."""

import matplotlib.pyplot as plt
import numpy as np

from kinfolk import Kinfolk, metrics, synth

# A synthetic set, as hard to separate as faces, in no order. Yours: X = np.load("faces.npy").
X, truth = synth(identities=40, seed=2)
shuffled = np.random.default_rng(0).permutation(len(X))
X, truth = X[shuffled], truth[shuffled]

found = Kinfolk().fit(X)

sizes = np.bincount(found.labels_)
print(f"{len(X)} rows -> {len(sizes)} clusters, the largest {sizes[0]}, {np.sum(sizes == 1)} of one row")
# Only because this set comes with the truth.
pairs, rows, _ = metrics.evaluate(truth, found.labels_)
print(f"pairwise F {pairs.f:.3f}, BCubed F {rows.f:.3f}")

# Similarities of all pairs, first as the rows came, then cluster by cluster.
similarities = X @ X.T
order = np.argsort(found.labels_, kind="stable")
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for axis, rows, title in zip(axes, (np.arange(len(X)), order), ("as they came", "by cluster")):
    axis.imshow(similarities[np.ix_(rows, rows)], vmin=0, vmax=1, cmap="magma", interpolation="antialiased")
    axis.set(title=f"similarities of {len(X)} rows, {title}", xticks=[], yticks=[])
figure.savefig("cluster.png", dpi=60)
