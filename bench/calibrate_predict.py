"""How probable it is that a new row belongs to the likeliest cluster: the regression behind `kinfolk::assign`.

    python bench/calibrate_predict.py [FEATURES.npy LABELS.npy]...

Of each set a fifth of the identities and 15 % of the rows of the others are kept back; the rest is fitted. With the odds o of the
likeliest cluster against none, as `predict_top` says them, it fits log odds(right) = a log o + b, where rows of identities that
were not fitted count as a third, and prints how well the fitted and the present odds hold. If the present odds are calibrated, a
is 1 and b is 0. Needs kinfolk and scikit-learn.
"""

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

import kinfolk

STRANGERS = 1 / 3
SYNTHETIC = [(60, 64), (200, 128), (300, 256)]


def sets():
    for seed, (identities, dim) in enumerate(SYNTHETIC):
        X, y = kinfolk.synth(identities=identities, dim=dim, seed=seed)
        yield f"synth, {identities} identities, {dim} columns", X, y
    for features, labels in zip(sys.argv[1::2], sys.argv[2::2]):
        yield features, np.load(features).astype(np.float32), np.load(labels)


def outcomes(X, y):
    """The log odds of the likeliest cluster of each new row, whether it is right, and whether the row's identity is new."""
    random = np.random.default_rng(1)
    identities = np.unique(y)
    back = np.isin(y, identities[random.random(len(identities)) < 0.2]) | (random.random(len(y)) < 0.15)
    fitted = kinfolk.Kinfolk().fit(X[~back])
    most = np.full(fitted.labels_.max() + 2, -1)
    for cluster in range(len(most) - 1):
        found, count = np.unique(y[~back][fitted.labels_ == cluster], return_counts=True)
        most[cluster] = found[count.argmax()]
    labels, probabilities, none = fitted.predict_top(X[back], top=1)
    odds = np.clip(np.log(np.maximum(probabilities[:, 0], 1e-9) / np.maximum(none, 1e-9)), -14, 14)
    is_new = ~np.isin(y[back], y[~back])
    return odds, (labels[:, 0] >= 0) & (most[labels[:, 0]] == y[back]), is_new


def report(name, odds, right, is_new):
    weights = np.where(is_new, STRANGERS / is_new.sum(), (1 - STRANGERS) / (~is_new).sum())
    joins = odds > 0
    correct = np.where(joins, right, is_new)
    confidence = 1 / (1 + np.exp(-np.abs(odds)))
    bins = np.minimum((confidence * 10).astype(int), 9)
    error = sum(abs((weights * (confidence - correct))[bins == bin].sum()) for bin in range(10))
    print(
        f"{name}: right {100 * (weights * correct).sum():.1f} %, expected {100 * (weights * confidence).sum():.1f} %, "
        f"calibration error {100 * error:.1f} %, new identities to none {100 * (~joins)[is_new].mean():.1f} %, "
        f"others to none {100 * (~joins)[~is_new].mean():.1f} %"
    )


def main():
    all_sets = [(name, *outcomes(X, y)) for name, X, y in sets()]
    weights = [
        np.where(is_new, STRANGERS / is_new.sum(), (1 - STRANGERS) / (~is_new).sum())
        for _, _, _, is_new in all_sets
    ]
    odds, right = (np.concatenate([one[at] for one in all_sets]) for at in (1, 2))
    weights = np.concatenate(weights) * len(odds)
    fitted = LogisticRegression(C=100).fit(odds[:, None], right, sample_weight=weights)
    a, b = fitted.coef_[0, 0], fitted.intercept_[0]
    print(f"a {a:.2f}, b {b:.2f}")
    for name, odds, right, is_new in all_sets:
        report(f"{name}, as they are", odds, right, is_new)
        report(f"{name}, fitted", a * odds + b, right, is_new)


if __name__ == "__main__":
    main()
