"""Makes crates/kinfolk/src/connectivity/structural/weights.bin: the edge model of `kin`, from synthetic sets only.

    python bench/pretrain_kin.py KINFOLK WORK_DIR WEIGHTS.bin

KINFOLK is the command (it finds neighbours), WORK_DIR takes the sets (about 2 GB). Needs numpy, numba and torch. Everything is
drawn from seeds; training runs on one thread. 105 sets of 3,000 to 20,000 rows take about ten minutes on two cores.

The features are those of crates/kinfolk/src/connectivity/structural/features.rs, in the same order.
"""

import os
import subprocess
import sys

import numpy as np
import torch
from numba import njit, prange

# Sets of any kind, and sets in which many identities have one image only.
TRAINING = [*range(0, 70), *range(100, 135)]
SINGLETON_RICH = 100
EDGES, EPOCHS, HIDDEN, BATCH, COHORT, FEATURES = 15_000, 12, 32, 2048, 512, 37


def unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)


def draw(seed, most=20_000):
    """A set whose every parameter is drawn: rows in random order, and labels."""
    r = np.random.default_rng(seed)
    u = r.uniform
    log = lambda a, b: np.exp(u(np.log(a), np.log(b)))
    dim = int(r.choice([64, 128, 192, 256, 384, 512]))
    d0 = log(16, min(150, dim * 0.8))  # intrinsic dimension of identities, below of noise
    n = int(log(3000, most))
    spectrum = lambda d: (lambda v: v / np.sqrt((v**2).sum()))(np.exp(-np.arange(dim) / d))
    dev = spectrum(d0)
    noise_dev = spectrum(d0 * np.exp(u(-0.5, 0.5)))
    kind = r.choice(3, p=[0.45, 0.3, 0.25])
    single = u(0, 0.7) if u() < 0.6 else 0.0
    mean, spread = [
        lambda: (log(5, 80), u(0.3, 1.3)),
        lambda: (log(60, 350), u(0.05, 0.6)),
        lambda: (log(3, 30), u(0.8, 1.6)),
    ][kind]()
    if seed >= SINGLETON_RICH:
        single, mean, spread = u(0.3, 0.8), log(3, 25), u(0.5, 1.5)
    sizes, total = [], 0
    while total < n:
        size = 1
        if not u() < single:
            size = int(np.clip(round(mean * np.exp(spread * r.normal() - spread**2 / 2)), 2, 600))
        sizes.append(size)
        total += size
    sizes = np.array(sizes)
    count = len(sizes)
    directions = lambda m: unit(r.normal(size=(m, dim)) * dev)
    # Look-alikes on two levels, not all equally alike.
    g1, g2 = u(0, 0.45), u(0, 0.5)
    s1, s2 = log(5, 60), log(2, 12)
    large, small = r.choice(max(1, int(count / s1)), count), r.choice(max(1, int(count / s2)), count)
    tail = u(0.5, 3)
    l1 = (g1 * r.beta(tail, tail, count) * 2)[:, None].clip(0, 0.9)
    l2 = (g2 * r.beta(tail * 0.5, tail, count) * 1.5)[:, None].clip(0, 0.9)
    centres = unit(np.sqrt(1 - l1) * directions(count) + np.sqrt(l1) * directions(large.max() + 1)[large])
    centres = unit(np.sqrt(1 - l2) * centres + np.sqrt(l2) * directions(small.max() + 1)[small])
    # What all rows have in common; modes; noise by image and identity; junk directions; shots of one session.
    common, offset = directions(1), u(0, 0.6) if u() < 0.5 else 0.0
    mode_spread, most_modes = u(0, 0.3), int(r.integers(1, 6))
    noise, noise_tail, by_identity = log(0.5, 1.35), u(0.05, 0.4), u(0, 0.3)
    junk_count = int(r.integers(2, 16))
    drift = u(0, 2) if u() < 0.7 else 0.0
    drift_from = noise * np.exp(u(0.0, 0.5))
    junk = directions(junk_count)
    session = u(0, 0.5) if u() < 0.5 else 0.0
    session_noise = u(0.1, 0.6)
    rows, labels, at = np.empty((sizes.sum(), dim), np.float32), np.repeat(np.arange(count), sizes), 0
    for i, size in enumerate(sizes):
        m = int(r.integers(1, most_modes + 1))
        shares = 0.1 + r.random(m)
        shares /= shares.sum()
        modes = unit(np.sqrt(1 - mode_spread) * centres[i] + np.sqrt(mode_spread) * directions(m))
        which = r.choice(m, size, p=shares)
        z = r.normal(size=size)
        length = noise * np.exp(by_identity * r.normal() + noise_tail * (z + np.maximum(z, 0) ** 2 / 4))
        length = np.minimum(length, 20)
        x = modes[which] + length[:, None] * (r.normal(size=(size, dim)) * noise_dev)
        x += (drift * np.maximum(length - drift_from, 0))[:, None] * junk[r.choice(junk_count, size)]
        if session > 0 and size > 1:
            for k in range(1, size):
                if r.random() < session:
                    other, t = r.integers(0, k), session_noise * r.random() + 0.05
                    x[k] = x[other] + t * (r.normal(size=dim) * noise_dev) * np.linalg.norm(x[other])
        rows[at : at + size] = unit(unit(x) + offset * common)
        at += size
    rotation, _ = np.linalg.qr(r.normal(size=(dim, dim)))
    order = r.permutation(len(labels))
    return np.ascontiguousarray((rows @ rotation.astype(np.float32))[order]), labels[order]


def background(rows, seed=0):
    """Median and lower spread of each row's cosines to a cohort, and of the set's."""
    n = len(rows)
    cohort = np.random.default_rng(seed).choice(n, min(COHORT, n), replace=False)
    others = rows[cohort].T.copy()
    medians, spreads, sample = np.empty(n, np.float32), np.empty(n, np.float32), []
    for a in range(0, n, 4096):
        s = rows[a : a + 4096] @ others
        m = np.median(s, 1)
        medians[a : a + 4096] = m
        below = np.where(s < m[:, None], (s - m[:, None]) ** 2, np.nan)
        spreads[a : a + 4096] = np.sqrt(np.nanmean(below, 1))
        sample.append(s[:: max(1, n // 20_000)].ravel()[:200_000])
    sample = np.concatenate(sample)
    median = np.median(sample)
    spread = np.sqrt(((sample[sample < median] - median) ** 2).mean())
    spreads = np.sqrt(spreads**2 * 0.5 + spread**2 * 0.5).astype(np.float32)
    return medians, spreads, np.float32(median), np.float32(spread)


@njit(parallel=True, fastmath=True)
def edge_features(ids, S, mu, sd, gm, gs, indeg, edges_i, edges_r, out):
    n, K = ids.shape
    L = np.sqrt(2 * np.log(n))
    # per-vertex z lists, softmax
    P = np.empty((n, K), np.float32)
    Z = np.empty((n, K), np.float32)
    cnt = np.empty(n, np.float32)
    for i in prange(n):
        t = 0.0
        for k in range(K):
            j = ids[i, k]
            Z[i, k] = 0.5 * ((S[i, k] - mu[i]) / sd[i] + (S[i, k] - mu[j]) / sd[j])
        m = Z[i, 0]
        for k in range(K):
            m = max(m, Z[i, k])
        c = 0
        for k in range(K):
            P[i, k] = np.exp((Z[i, k] - m) / 2.0)
            t += P[i, k]
            if Z[i, k] > L:
                c += 1
        for k in range(K):
            P[i, k] /= t
        cnt[i] = c / K
    mid = K // 4
    E = len(edges_i)
    for e in prange(E):
        i = edges_i[e]
        k = edges_r[e]
        j = ids[i, k]
        s = S[i, k]
        z = Z[i, k]
        r = K
        o5 = 0
        o10 = 0
        o20 = 0
        o40 = 0
        oK = 0
        ni = 0.0
        nj = 0.0
        nm = 0.0
        b1 = -1e9
        b2 = -1e9
        b3 = -1e9
        hub = 0.0
        for b in range(K):
            if ids[j, b] == i:
                r = b
                break
        for a in range(K):
            m = ids[i, a]
            if m == j:
                continue
            for b in range(K):
                if ids[j, b] == m:
                    d = max(a, b)
                    if d < 5:
                        o5 += 1
                    if d < 10:
                        o10 += 1
                    if d < 20:
                        o20 += 1
                    if d < 40:
                        o40 += 1
                    oK += 1
                    ni += P[i, a]
                    nj += P[j, b]
                    nm += min(P[i, a], P[j, b])
                    q = min(Z[i, a], Z[j, b])
                    hub += indeg[m]
                    if q > b1:
                        b3 = b2
                        b2 = b1
                        b1 = q
                    elif q > b2:
                        b3 = b2
                        b2 = q
                    elif q > b3:
                        b3 = q
                    break
        f = out[e]
        f[0] = (s - gm) / gs
        f[1] = z
        f[2] = z / L * 3
        f[3] = abs((s - mu[i]) / sd[i] - (s - mu[j]) / sd[j])
        lo = min(k, r)
        hi = max(k, r)
        f[4] = np.log2(1.0 + lo)
        f[5] = np.log2(1.0 + hi)
        f[6] = 1.0 if r < K else 0.0
        f[7] = o5 / 5
        f[8] = o10 / 10
        f[9] = o20 / 20
        f[10] = o40 / 40
        f[11] = oK / K
        f[12] = min(ni, nj)
        f[13] = max(ni, nj)
        f[14] = nm
        x = z - Z[i, 0]
        w = z - Z[j, 0]
        f[15] = min(x, w)
        f[16] = max(x, w)
        x = z - Z[i, mid]
        w = z - Z[j, mid]
        f[17] = min(x, w)
        f[18] = max(x, w)
        x = z - Z[i, K - 1]
        w = z - Z[j, K - 1]
        f[19] = min(x, w)
        f[20] = max(x, w)
        x = 0.0
        w = 0.0
        for a in range(5):
            x += Z[i, a]
            w += Z[j, a]
        f[21] = min(x, w) / 5
        f[22] = max(x, w) / 5
        for a in range(5, 20):
            x += Z[i, a]
            w += Z[j, a]
        f[23] = min(x, w) / 20
        f[24] = max(x, w) / 20
        x = Z[i, K - 1]
        w = Z[j, K - 1]
        f[25] = min(x, w)
        f[26] = max(x, w)
        lowest = min(Z[i, K - 1], Z[j, K - 1])
        f[27] = max(b1, lowest) - z
        f[28] = max(b3, lowest) - z
        x = np.log2((1.0 + indeg[i]) / (1 + K))
        w = np.log2((1.0 + indeg[j]) / (1 + K))
        f[29] = min(x, w)
        f[30] = max(x, w)
        f[31] = min(cnt[i], cnt[j])
        f[32] = max(cnt[i], cnt[j])
        f[33] = np.log2((1.0 + hub) / (1.0 + oK) / K)
        f[34] = np.log10(n) - 4
        x = (mu[i] - gm) / gs
        w = (mu[j] - gm) / gs
        f[35] = min(x, w)
        f[36] = max(x, w)


def training_edges(kinfolk, work):
    inputs, targets, sets = [], [], []
    for seed in TRAINING:
        rows, labels = draw(seed)
        features, graph = os.path.join(work, "features.npy"), os.path.join(work, "graph.npz")
        np.save(features, rows)
        subprocess.run(
            [kinfolk, "knn", features, "-k", "80", "--exact", "-o", graph], check=True, capture_output=True
        )
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        r = np.random.default_rng(seed)
        k, n = int(r.choice([40, 80])), len(labels)
        with np.load(graph) as g:
            ids, similarities = (np.ascontiguousarray(g[name][:, :k]) for name in ("ids", "similarities"))
        # Near neighbours more often: they decide.
        i, place = r.integers(0, n, EDGES), np.minimum((k * r.random(EDGES) ** 2).astype(int), k - 1)
        out = np.empty((EDGES, FEATURES), np.float32)
        listed = np.bincount(ids.ravel(), minlength=n).astype(np.float32)
        edge_features(ids, similarities, *background(rows), listed, i, place, out)
        inputs.append(out)
        targets.append(labels[i] == labels[ids[i, place]])
        sets.append(np.full(EDGES, seed))
        print(f"set {seed}: {n} rows of {rows.shape[1]}, K {k}", file=sys.stderr)
    return np.concatenate(inputs), np.concatenate(targets).astype(np.float32), np.concatenate(sets)


def train(inputs, targets, sets):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, y = torch.tensor(inputs), torch.tensor(targets)
    mean, deviation = x.mean(0), x.std(0) + 1e-6
    x = ((x - mean) / deviation).clamp(-6, 6)
    # Every tenth set only says how well it goes.
    held = torch.tensor(sets % 10 == 9)
    rows = (~held).nonzero()[:, 0]
    linear = torch.nn.Linear
    net = torch.nn.Sequential(
        linear(FEATURES, HIDDEN), torch.nn.ReLU(), linear(HIDDEN, HIDDEN), torch.nn.ReLU(), linear(HIDDEN, 1)
    )
    loss_of = lambda at: torch.nn.functional.binary_cross_entropy_with_logits(net(x[at])[:, 0], y[at])
    optimiser = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=1e-3)
    batches = len(rows) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 6e-3, total_steps=EPOCHS * batches)
    for epoch in range(EPOCHS):
        order = rows[torch.randperm(len(rows))]
        for b in range(batches):
            loss = loss_of(order[b * BATCH : (b + 1) * BATCH])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        with torch.no_grad():
            print(f"epoch {epoch}: {loss_of(held).item():.4f} on held-out sets", file=sys.stderr)
    return [mean, deviation, *(p.detach() for p in net.parameters())]


if __name__ == "__main__":
    kinfolk, work, out = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    weights = train(*training_edges(kinfolk, work))
    np.concatenate([w.numpy().ravel() for w in weights]).astype("<f4").tofile(out)
