"""Makes fc_es.txt and facemap.txt in crates/kinfolk-baselines/tests/data: small graphs, and what FC-ES and FaceMap make of them.

    pip install numpy infomap
    python bench/map_fixtures.py

Only needed to change them: what it writes is in the repository. The formulas of the published programs
(https://github.com/jumptoliujj/FC-ESER, https://github.com/bd-if/FaceMap) in double precision, on matrices of all pairs or by
loops over all windows; then PyPI's infomap, two levels, directed for FC-ES. Five lines for each case:

    rows, neighbours of each row, the parameters: th and sigma, or the window
    ids of the neighbours, row after row
    their similarities
    the probability of each edge that is kept, 0 for the others
    labels
"""

from pathlib import Path
import warnings

import numpy as np

# Calls that work in versions 1 and 2 of infomap alike are deprecated in 2.
warnings.filterwarnings("ignore")


def groups(seed, count, size, dim, spread):
    random = np.random.default_rng(seed)
    rows = np.repeat(random.normal(size=(count, dim)), size, axis=0)
    rows += spread * random.normal(size=rows.shape)
    rows = rows[random.permutation(len(rows))]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def neighbours(x, k):
    similarities = x @ x.T
    np.fill_diagonal(similarities, -2)
    ids = np.argsort(-similarities, axis=1)[:, :k]
    return ids, np.take_along_axis(similarities, ids, 1).astype(np.float32)


def probabilities(ids, similarities, sigma):
    """p_ij of all pairs of rows."""
    n = len(ids)
    shares = np.zeros((n, n))
    np.put_along_axis(shares, ids, np.exp(-(2 - 2 * np.clip(similarities.astype(float), 0, 1)) / sigma), 1)
    np.fill_diagonal(shares, 1)
    shares /= shares.sum(1, keepdims=True)
    member = (shares > 0).astype(float)
    # The shares that i gives to what j has, too, and the reverse.
    return (shares @ member.T + member @ shares.T) / 2


def fc_es(ids, similarities, th, sigma):
    found = np.take_along_axis(probabilities(ids, similarities, sigma), ids, 1)
    kept = np.where(np.logical_and.accumulate(found >= th, axis=1), found, 0)
    stopped = ((found >= th) & (kept == 0)).sum()
    print(f"FC-ES: {stopped} edges above th not kept, {np.abs(found - th).min():.1e} from th", end=", ")
    # A row that keeps no edge is alone, although another may keep an edge to it.
    return kept, partition(ids, kept, "--directed", kept[:, 0] == 0)


def facemap(ids, similarities, window):
    walk = np.clip(similarities.astype(float), 0, None)
    walk /= walk.sum(1, keepdims=True)
    kept, margin = np.zeros_like(walk), np.inf
    for s, p, own in zip(similarities.astype(float), walk, kept):
        # The published falls are those of p, by a factor that z does not depend on.
        falls = s[:-1] - s[1:]
        z = np.zeros(len(p))
        for j in range(len(falls) - window + 1):
            z[j + (window + 1) // 2] = abs(falls[j : j + window].mean() - falls[j:].mean()) / falls[j:].std()
        count = z.argmax() + 1
        own[:count] = p[:count]
        margin = min(margin, np.diff(np.sort(z)[-2:])[0])
    print(f"FaceMap: {margin:.1e} between the highest scores", end=", ")
    return kept, partition(ids, kept, "", np.zeros(len(ids), bool))


def partition(ids, kept, flow, alone):
    from infomap import Infomap

    infomap = Infomap(f"--two-level {flow} --silent --num-trials 20 --seed 1")
    for i, at in np.argwhere(kept > 0):
        infomap.add_link(int(i), int(ids[i, at]), float(kept[i, at]))
    infomap.run()
    labels = -1 - np.arange(len(ids))
    for node, module in infomap.get_modules().items():
        if not alone[node]:
            labels[node] = module
    print(f"{(kept > 0).sum()} edges kept, {alone.sum()} rows alone, {len(set(labels))} clusters of {len(ids)} rows")
    return labels


def case(method, x, k, *parameters):
    ids, similarities = neighbours(x, k)
    kept, labels = method(ids, similarities, *parameters)
    return [
        " ".join(map(str, [len(x), k, *parameters])),
        " ".join(map(str, ids.ravel())),
        " ".join(map(str, similarities.ravel())),
        " ".join(f"{v:.9g}" for v in kept.ravel()),
        " ".join(map(str, labels)),
    ]


def main():
    directory = Path(__file__).parent.parent / "crates/kinfolk-baselines/tests/data"
    lines = [
        *case(fc_es, groups(1, 6, 10, 8, 0.3), 8, 0.22, 0.5),
        *case(fc_es, groups(2, 9, 8, 8, 0.4), 12, 0.35, 0.5),
        *case(fc_es, groups(3, 12, 5, 5, 0.25), 6, 0.55, 1.5),
    ]
    (directory / "fc_es.txt").write_text("\n".join(lines) + "\n")
    lines = [*case(facemap, groups(4, 4, 12, 8, 0.3), 24, 6), *case(facemap, groups(5, 4, 16, 6, 0.4), 32, 9)]
    (directory / "facemap.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
