"""Neighbours, graphs, baselines, scores, synthetic sets, explanations."""

import inspect
import multiprocessing
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import pair_confusion_matrix

import kinfolk
from kinfolk import Kinfolk, _kinfolk, baselines, metrics


def test_recall_is_reached(small):
    X, _ = small
    exact, _ = kinfolk.knn_graph(X, k=20, recall=1)
    found, _ = kinfolk.knn_graph(X, k=20, recall=0.9)
    shared = np.mean([len(np.intersect1d(a, b)) / 20 for a, b in zip(exact, found)])
    assert shared > 0.88
    assert (kinfolk.knn_graph(X, k=20)[0] == exact).all()
    with pytest.raises(ValueError, match="recall: expected"):
        kinfolk.knn_graph(X, recall=1.5)


def test_a_graph_saves_the_search(small):
    X, _ = small
    ids, similarities = kinfolk.knn_graph(X, k=40)
    searched = kinfolk.cluster(X, method="density", k=40)
    assert (kinfolk.cluster(X, graph=(ids, similarities), method="density") == searched).all()
    # Lists of any order are put in order; of a larger graph the nearest are taken.
    backwards = (ids[:, ::-1].astype(np.int64), similarities[:, ::-1].astype(np.float64))
    given = kinfolk.cluster(X, graph=(ids, similarities))
    # kin centres the rows, but not with a graph of the rows as they are.
    assert kinfolk.metrics.bcubed(kinfolk.cluster(X, k=40), given).f > 0.95
    assert (kinfolk.cluster(X, graph=backwards) == given).all()
    fewer = kinfolk.cluster(X, graph=(ids[:, :20], similarities[:, :20]))
    assert (kinfolk.cluster(X, graph=(ids, similarities), k=20) == fewer).all()


def sparse(ids, similarities):
    rows = np.repeat(np.arange(len(ids)), ids.shape[1])
    return scipy.sparse.coo_array((similarities.ravel(), (rows, ids.ravel())), (len(ids), len(ids)))


def test_sparse_graphs(small):
    X, _ = small
    graph = kinfolk.knn_graph(X, k=30)
    matrix = sparse(*graph)
    expected = kinfolk.cluster(graph=graph, th=0.4)
    assert len(set(expected)) > 10
    for form in (matrix, matrix.tocsr(), scipy.sparse.csc_matrix(matrix), matrix + scipy.sparse.eye_array(len(X))):
        assert (kinfolk.cluster(graph=form, th=0.4) == expected).all()
    # Rows of different lengths, and some without a neighbour.
    csr = matrix.tocsr()
    csr.data[csr.data <= 0.55] = 0
    csr.eliminate_zeros()
    assert (kinfolk.cluster(graph=csr, th=0.55) == kinfolk.cluster(graph=graph, th=0.55)).all()
    with pytest.raises(ValueError, match="square"):
        kinfolk.cluster(graph=csr[:5])


def test_cluster_says_what_it_lacks(small):
    X, _ = small
    with pytest.raises(ValueError, match="X: expected embeddings"):
        kinfolk.cluster(method="kin")
    with pytest.raises(ValueError, match="X: expected embeddings or a graph"):
        kinfolk.cluster()
    with pytest.raises(ValueError, match="clusters: expected how many clusters"):
        kinfolk.cluster(X, method="kmeans")
    with pytest.raises(ValueError, match="X: expected the rows, which this method needs"):
        kinfolk.cluster(graph=kinfolk.knn_graph(X, k=5), method="kmeans", clusters=3)
    with pytest.raises(ValueError, match="graph: expected a method that uses neighbours, found kmeans"):
        kinfolk.cluster(X, graph=kinfolk.knn_graph(X, k=5), method="kmeans", clusters=3)
    with pytest.raises(ValueError, match=r"colour \(there are th, flow\)"):
        kinfolk.cluster(X, method="infomap", colour="blue")
    with pytest.raises(ValueError, match=r"colour \(there are prefer, identity_size, super_vertices\)"):
        kinfolk.cluster(X, colour="blue")
    with pytest.raises(ValueError, match=r"method: expected the name of a method, found guess \(there are kin, "):
        kinfolk.cluster(X, method="guess")
    with pytest.raises(ValueError, match="prefer"):
        kinfolk.cluster(X, method="infomap", prefer="recall")
    with pytest.raises(ValueError, match="expected a model, which this method needs, found gcn-v without one"):
        kinfolk.cluster(X, method="gcn-v")


def test_a_graph_that_lists_a_neighbour_twice_is_refused():
    ids = np.array([[1, 2], [0, 0], [0, 1]], dtype=np.uint32)
    similarities = np.full((3, 2), 0.5, dtype=np.float32)
    with pytest.raises(ValueError, match="graph: row 1.*0 again"):
        kinfolk.cluster(graph=(ids, similarities))


@pytest.mark.parametrize("method", kinfolk.methods(), ids=lambda method: method["name"])
def test_every_method_of_the_registry_runs_or_says_what_it_needs(method, small):
    X, _ = small
    name = method["name"]
    if method["needs_model"]:
        with pytest.raises(ValueError, match="a model"):
            kinfolk.cluster(X, method=name)
        return
    given = {"clusters": 40} if method["needs_clusters"] else {}
    labels = kinfolk.cluster(X, method=name, **given)
    assert labels.shape == (len(X),) and labels.dtype == np.int64
    for parameter in method["parameters"]:
        # The default of every parameter can be given by name.
        again = kinfolk.cluster(X, method=name, **{**given, parameter["name"]: given.get(parameter["name"], parameter["default"])})
        assert (again == labels).all(), parameter["name"]


@pytest.mark.parametrize("name", baselines.__all__)
def test_baselines_have_the_signature_and_docstring_of_the_registry(name):
    function = getattr(baselines, name)
    method = next(method for method in kinfolk.methods() if method["name"] == name.replace("_", "-"))
    signature = inspect.signature(function).parameters
    assert "random_state" in signature and ("graph" in signature) == method["takes_graph"]
    for parameter in method["parameters"]:
        assert parameter["name"] in function.__doc__
        default = signature[parameter["name"]].default
        if parameter["name"] == "clusters" and method["needs_clusters"]:
            assert default in (inspect.Parameter.empty, None)
        elif default is None:
            assert parameter["default"] == "auto"
        elif isinstance(default, (bool, str)):
            assert str(default).lower() == parameter["default"]
        else:
            assert default == float(parameter["default"])


@pytest.mark.parametrize("name", baselines.__all__)
def test_baselines_are_those_of_the_command(name, small, command, tmp_path):
    X, y = small
    needs = {"clusters": 40} if name in ("kmeans", "minibatch_kmeans", "spectral", "hac") else {}
    labels = getattr(baselines, name)(X, **needs)
    np.save(tmp_path / "x.npy", X)
    words = [*command, "cluster", "x.npy", "-o", "out", "--method", name.replace("_", "-")]
    words += [part for option in needs.items() for part in (f"--{option[0]}", str(option[1]))]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    assert (labels == np.load(tmp_path / "out/labels.npy")).all()
    if "graph" in inspect.signature(getattr(baselines, name)).parameters and name not in ("hac", "hdbscan"):
        graph = kinfolk.knn_graph(X, 256 if name == "facemap" else 80)
        assert (getattr(baselines, name)(graph=graph, **needs) == labels).all()


def test_scores_are_those_of_scikit_learn():
    random = np.random.default_rng(1)
    for _ in range(20):
        truth, found = random.integers(0, 6, (2, 50))
        ((_, false), (missed, both)) = pair_confusion_matrix(truth, found)
        scores = metrics.evaluate(truth, found)
        assert np.isclose(scores.pairwise.precision, both / (both + false))
        assert np.isclose(scores.pairwise.recall, both / (both + missed))
        assert np.isclose(scores.nmi, normalized_mutual_info_score(truth, found))
        share = [np.mean(truth[found == found[i]] == truth[i]) for i in range(50)]
        assert np.isclose(scores.bcubed.precision, np.mean(share))
    assert metrics.pairwise(np.array(["a", "b", "a"], object), [1.5, 2.5, 1.5]).f == 1
    with pytest.raises(ValueError, match="found 3"):
        metrics.nmi([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="truth: row 1"):
        metrics.nmi([0, np.nan], [0, 1])


def test_made_up_sets_are_those_of_the_command(command, tmp_path):
    words = ["synth", "set", "--identities", "30", "--dim", "16", "--seed", "4", "--split", "0.5"]
    subprocess.run([*command, *words], cwd=tmp_path, check=True, capture_output=True)
    parts = kinfolk.synth(30, 16, seed=4, split=0.5)
    for part, (X, y) in zip(("train", "test"), parts):
        assert (X == np.load(tmp_path / f"set/{part}_features.npy")).all()
        assert (y == np.load(tmp_path / f"set/{part}_labels.npy")).all()
    words = ["synth", "clothes", "--profile", "fashion", "--identities", "30", "--dim", "16"]
    subprocess.run([*command, *words], cwd=tmp_path, check=True, capture_output=True)
    X, y = kinfolk.synth(30, 16, profile="fashion")
    assert (X == np.load(tmp_path / "clothes/features.npy")).all()
    assert len(kinfolk.synth(dim=8, profile="fashion")[0]) == 26960
    with pytest.raises(ValueError, match="profile: expected faces or fashion, found cars"):
        kinfolk.synth(profile="cars")
    X, y = kinfolk.synth(100, 8, singletons=1, mean_size=1)
    assert len(X) == 100 and len(set(y)) == 100
    with pytest.raises(TypeError, match="colour"):
        kinfolk.synth(colour=1)
    with pytest.raises(ValueError, match="noise: expected 0 to"):
        kinfolk.synth(noise=-1)


@pytest.mark.parametrize("method", ["kin", "density"])
def test_results_and_reasons_are_those_of_the_command(method, small, command, tmp_path):
    X, _ = small
    np.save(tmp_path / "x.npy", X)
    subprocess.run(
        [*command, "cluster", "x.npy", "-o", "out", "--method", method], cwd=tmp_path, check=True, capture_output=True
    )
    found = Kinfolk(method).fit(X)
    assert (found.labels_ == np.load(tmp_path / "out/labels.npy")).all()
    table = np.genfromtxt(tmp_path / "out/clusters.csv", delimiter=",", names=True)
    assert (table["confidence"].astype(np.float32) == found.confidence_).all()
    assert (np.nan_to_num(table["parent"], nan=-1) == found.parent_).all()
    review = np.genfromtxt(tmp_path / "out/review.csv", delimiter=",", names=True, usecols=(2, 3))
    assert (review["row_a"] == found.doubts_["row"]).all() and (review["row_b"] == found.doubts_["other"]).all()
    for rows in ([0], [0, 1], [0, len(X) - 1], [7, 7]):
        words = [*command, "explain", "out", *map(str, rows)]
        printed = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert kinfolk.explain(found, *rows, X=X) == printed.rstrip()
    with pytest.raises(ValueError, match="row: expected 0 to"):
        kinfolk.explain(found, len(X))
    with pytest.raises(AttributeError):
        kinfolk.explain(Kinfolk(), 0)


def test_threads_call_in_parallel(small):
    X, _ = small
    expected = [Kinfolk(random_state=number).fit_predict(X) for number in range(3)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda number: Kinfolk(random_state=number % 3).fit_predict(X), range(12)))
    for number, labels in enumerate(found):
        assert (labels == expected[number % 3]).all()


def child(X):
    return Kinfolk().fit_predict(X)


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_children_work_after_their_parent_did(start, small):
    X, _ = small
    expected = child(X)
    with multiprocessing.get_context(start).Pool(2) as pool:
        assert all((labels == expected).all() for labels in pool.map(child, [X, X], chunksize=1))


def test_progress_is_shown_by_tqdm(small, monkeypatch):
    import tqdm.auto

    stages = []

    class Bar(tqdm.auto.tqdm):
        def __init__(self, **how):
            stages.append(how["desc"])
            super().__init__(**how)

    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    X = np.random.default_rng(0).standard_normal((20_000, 64))
    kinfolk.knn_graph(X, recall=1, verbose=True)
    assert stages
