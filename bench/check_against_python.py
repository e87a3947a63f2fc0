"""Compares the `kinfolk` command with established Python libraries.

    python bench/check_against_python.py [metrics] [neighbours] [files] [results] [--kinfolk PATH] [--rows N]

metrics     `kinfolk eval TRUTH.npy PREDICTED.npy --json` against scikit-learn's pair counts and NMI and an
            obvious BCubed, on label pairs of many shapes.
neighbours  `kinfolk knn` against faiss's exact search, and the layouts it writes against numpy.
files       one set as numpy and pyarrow write it, in every form: the clusters must be the same.
results     `clusters.parquet` against `clusters.csv` of the same run, as pyarrow reads them.

All of them if none is named. Needs numpy, scikit-learn, faiss-cpu and pyarrow. Prints one line per case and exits
with 1 if any differs: scores by more than 1e-9, similarities by more than 1e-5.
"""

import argparse
import json
from pathlib import Path
import subprocess
import sys
import tempfile

import numpy as np

TOLERANCE = 1e-9


def harmonic(precision, recall):
    f = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return {"precision": precision, "recall": recall, "f": f}


def bcubed_precision(truth, predicted):
    """For every row the share of its cluster that is of its identity, averaged."""
    shares = np.empty(len(truth))
    for cluster in np.unique(predicted):
        members = np.flatnonzero(predicted == cluster)
        _, inverse, counts = np.unique(truth[members], return_inverse=True, return_counts=True)
        shares[members] = counts[inverse] / len(members)
    return float(shares.mean())


def reference_scores(truth, predicted):
    """The expected output of `kinfolk eval --json`. A ratio of 0/0 counts as 1."""
    from sklearn.metrics import normalized_mutual_info_score
    from sklearn.metrics.cluster import pair_confusion_matrix

    # Rows: true pair or not; columns: predicted pair or not.
    (_, only_predicted), (only_true, both) = pair_confusion_matrix(truth, predicted).tolist()
    sizes = np.unique(predicted, return_counts=True)[1]
    return {
        "pairwise": harmonic(
            both / (both + only_predicted) if both + only_predicted else 1.0,
            both / (both + only_true) if both + only_true else 1.0,
        ),
        "bcubed": harmonic(bcubed_precision(truth, predicted), bcubed_precision(predicted, truth)),
        "nmi": float(normalized_mutual_info_score(truth, predicted)),
        "rows": len(truth),
        "identities": len(np.unique(truth)),
        "clusters": len(sizes),
        "singletons": int((sizes == 1).sum()),
        "largest": int(sizes.max()),
    }


def label_cases(max_rows=20_000):
    """Yields (name, truth, predicted)."""
    rng = np.random.default_rng(0)

    def case(name, truth, predicted):
        return name, np.asarray(truth, dtype=np.int64), np.asarray(predicted, dtype=np.int64)

    yield case("one row", [5], [-5])
    yield case("two rows, together", [0, 0], [1, 1])
    yield case("two rows, wrongly together", [0, 1], [1, 1])
    yield case("two rows, wrongly apart", [0, 0], [1, 2])
    n = max_rows // 4
    yield case("perfect, renamed", np.arange(n) % 7, -3 * (np.arange(n) % 7))
    yield case("everything in one cluster", np.arange(n) % 7, np.zeros(n))
    yield case("one identity, scattered", np.zeros(n), np.arange(n) % 7)
    yield case("one group on both sides", np.zeros(n), np.ones(n))
    yield case("all alone", np.arange(n) % 7, np.arange(n))
    yield case("all alone on both sides", np.arange(n), np.arange(n)[::-1])
    yield case("independent", np.arange(n) % 5, rng.integers(0, 5, n))
    wide = rng.integers(np.iinfo(np.int64).min, np.iinfo(np.int64).max, 9)
    yield case("labels from end to end of int64", wide[rng.integers(0, 9, n)], wide[rng.integers(0, 9, n)])
    for rows in (max_rows // 10, max_rows):
        for identities in (2, max(2, rows // 50), max(2, rows // 3)):
            for noise in (0.02, 0.3):
                truth = rng.zipf(1.5, rows) % identities
                moved = rng.random(rows) < noise
                predicted = np.where(moved, rng.integers(0, 2 * identities, rows), truth)
                yield case(f"{rows} rows, {identities} identities, {noise:.0%} moved", truth, predicted)


def difference(expected, found):
    """The largest difference, and where."""
    worst = (0.0, "")
    for key, value in expected.items():
        if isinstance(value, dict):
            inner, where = difference(value, found[key])
            worst = max(worst, (inner, f"{key}.{where}"))
        else:
            worst = max(worst, (abs(value - found[key]), key))
    return worst


def check_metrics(kinfolk, rows):
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        truth_file, predicted_file = Path(directory, "truth.npy"), Path(directory, "predicted.npy")
        for name, truth, predicted in label_cases(rows):
            np.save(truth_file, truth)
            np.save(predicted_file, predicted)
            command = [kinfolk, "eval", truth_file, predicted_file, "--json"]
            found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            worst, where = difference(reference_scores(truth, predicted), found)
            good = worst <= TOLERANCE
            failures += not good
            print("ok  " if good else f"FAIL in {where}:", f"{name}: largest difference {worst:.1e}")
    return failures


def run_kinfolk(kinfolk, *arguments):
    command = [kinfolk, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def report(good, name):
    print("ok  " if good else "FAIL", name)
    return 0 if good else 1


def noisy_groups(rows, dim, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(rows // 20 + 1, dim))
    x = centres[np.arange(rows) % len(centres)] + 0.8 * rng.normal(size=(rows, dim))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def check_neighbours(kinfolk, rows):
    import faiss

    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        features, graph = Path(directory, "x.npy"), Path(directory, "graph.npz")
        for n, dim, k in ((rows, 256, 80), (rows // 4, 33, 10), (300, 512, 299), (2, 3, 1)):
            x = noisy_groups(n, dim)
            np.save(features, x)
            run_kinfolk(kinfolk, "knn", features, "-k", k, "-o", graph, "--exact")
            with np.load(graph) as arrays:
                assert list(arrays) == ["ids", "similarities"]
                ids, similarities = arrays["ids"], arrays["similarities"]
            index = faiss.IndexFlatIP(dim)
            index.add(x)
            expected, expected_ids = index.search(x, k + 1)
            others = np.argsort(expected_ids == np.arange(n)[:, None], axis=1, kind="stable")[:, :k]
            expected = np.take_along_axis(expected, others, axis=1)
            expected_ids = np.take_along_axis(expected_ids, others, axis=1)
            worst = np.abs(similarities - expected).max()
            same = np.mean(np.sort(ids, axis=1) == np.sort(expected_ids, axis=1))
            name = f"{n} x {dim}, {k} neighbours: largest difference {worst:.1e}, {same:.4%} the same ids"
            # Two neighbours whose similarities round differently may change places at the end of a list.
            failures += report(worst < 1e-5 and same > 0.999, name)

            run_kinfolk(kinfolk, "knn", features, "-k", k, "-o", graph, "--exact", "--published")
            with np.load(graph) as arrays:
                data = arrays["data"]
            good = data.shape == (n, 2, k + 1) and (data[:, 0, 0] == np.arange(n)).all()
            good &= (data[:, 0, 1:] == ids).all() and np.allclose(1 - data[:, 1, 1:], similarities, atol=1e-6)
            failures += report(good, f"{n} x {dim}: the published layout")
    return failures


def check_files(kinfolk, rows):
    import pyarrow
    import pyarrow.parquet

    x = noisy_groups(rows // 10, 64)
    half = x.astype(np.float16)
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(x.ravel()), 64)
    ragged = pyarrow.array(list(x.astype(np.float64)))
    forms = {
        "f4.npy": lambda p: np.save(p, x),
        "f8.npy": lambda p: np.save(p, x.astype(np.float64)),
        "fortran.npy": lambda p: np.save(p, np.asfortranarray(x)),
        "big_endian.npy": lambda p: np.save(p, x.astype(">f4")),
        "scaled.npy": lambda p: np.save(p, 4 * x),
        "stored.npz": lambda p: np.savez(p, features=x),
        "deflated.npz": lambda p: np.savez_compressed(p, features=x),
        "raw.bin": lambda p: x.tofile(p),
        "fixed.parquet": lambda p: pyarrow.parquet.write_table(pyarrow.table({"name": lists}), p),
        "lists.parquet": lambda p: pyarrow.parquet.write_table(pyarrow.table({"name": ragged}), p),
    }
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        np.save(Path(directory, "f2.npy"), half)
        np.save(Path(directory, "f2_as_f4.npy"), half.astype(np.float32))

        def labels(name):
            options = ("--dim", 64) if name.endswith(".bin") else ()
            run_kinfolk(kinfolk, "cluster", Path(directory, name), "-o", Path(directory, "out"), *options)
            return np.load(Path(directory, "out", "labels.npy"))

        for name, write in forms.items():
            write(Path(directory, name))
            failures += report((labels(name) == labels("f4.npy")).all(), name)
        failures += report((labels("f2.npy") == labels("f2_as_f4.npy")).all(), "f2.npy")
    return failures


def check_results(kinfolk, rows):
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    numbers = ("row", "parent", "rank", "rank_back", "shared", "outside")
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        features, out = Path(directory, "x.npy"), Path(directory, "out")
        np.save(features, noisy_groups(rows // 4, 64))
        for options in (("kin",), ("density",), ("kmeans", "--clusters", 40)):
            run = ("cluster", features, "-o", out, "--method", *options)
            run_kinfolk(kinfolk, *run)
            with open(out / "clusters.csv") as file:
                names = file.readline().rstrip().split(",")
            types = {name: pyarrow.uint32() if name in numbers else pyarrow.float32() for name in names}
            types["cluster"] = pyarrow.int64()
            convert = pyarrow.csv.ConvertOptions(column_types=types)
            expected = pyarrow.csv.read_csv(out / "clusters.csv", convert_options=convert)
            run_kinfolk(kinfolk, *run, "--parquet")
            found = pyarrow.parquet.read_table(out / "clusters.parquet")
            required = [field.name for field in found.schema if not field.nullable]
            good = required == ["row", "cluster"] and not (out / "clusters.csv").exists()
            # Names and types are compared as well; only what is required differs.
            good = good and dict(zip(found.schema.names, found.schema.types)) == types
            good = good and found.cast(expected.schema).equals(expected)
            failures += report(good, f"clusters.parquet of {options[0]}")
    return failures


SECTIONS = {"metrics": check_metrics, "neighbours": check_neighbours, "files": check_files, "results": check_results}


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("sections", nargs="*", help=", ".join(SECTIONS))
    parser.add_argument("--kinfolk", default="kinfolk", help="the command to check")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the largest case")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"sections: expected {', '.join(SECTIONS)}, found {', '.join(sorted(unknown))}")
    failures = [SECTIONS[name](options.kinfolk, options.rows) for name in options.sections or SECTIONS]
    sys.exit(1 if sum(failures) else 0)


if __name__ == "__main__":
    main()
