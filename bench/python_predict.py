"""Prints what `fit`, `predict` and `partial_fit` cost in time and memory, and how many new rows they judge rightly.

    pip install .
    python bench/python_predict.py --identities 300

A synthetic set: of every fifth identity no row is fitted, of the others four fifths of the rows. Seconds, processor seconds, and
the memory of the process afterwards, in which X is twice: as a whole, and the fitted rows.
"""

import argparse
import resource
import time

import numpy as np

import kinfolk
from kinfolk import Kinfolk


def measured(what, work):
    def cpu():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    start, before = time.perf_counter(), cpu()
    result = work()
    seconds, processor = time.perf_counter() - start, cpu() - before
    memory = next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]
    print(f"{what:<40} {seconds:7.2f} s {processor:7.2f} CPU-s {int(memory) / 1024:7.0f} MB")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--identities", type=int, default=300)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    X, y = kinfolk.synth(identities=given.identities, dim=given.dim, seed=given.seed)
    stranger, held_out = y % 5 == 0, np.arange(len(y)) % 5 == 0
    fitted = ~stranger & ~held_out
    known = ~stranger & held_out & np.isin(y, y[fitted])
    print(f"{len(X)} rows x {given.dim}: {fitted.sum()} fitted, {known.sum()} of their identities, {stranger.sum()} of others")
    found = measured("fit", lambda: Kinfolk().fit(X[fitted]))
    measured(f"first predict, {known.sum()} rows", lambda: found.predict(X[known]))
    labels = measured(f"second predict, {known.sum()} rows", lambda: found.predict(X[known]))
    none = measured(f"predict, {stranger.sum()} rows", lambda: found.predict(X[stranger]))
    measured("predict, one row", lambda: found.predict(X[:1]))
    of_cluster = {label: np.bincount(y[fitted][found.labels_ == label]).argmax() for label in set(found.labels_)}
    right = np.mean([of_cluster.get(label, -1) == identity for label, identity in zip(labels, y[known])])
    print(f"rows of fitted identities: {right:.1%} right, {np.mean(labels == -1):.1%} none; others: {np.mean(none == -1):.1%} none")
    growing = Kinfolk()
    for part in np.array_split(np.random.default_rng(0).permutation(len(X)), 4):
        measured(f"partial_fit, {len(part)} rows", lambda: growing.partial_fit(X[part]))


if __name__ == "__main__":
    main()
