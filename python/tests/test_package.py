"""The package itself: what importing costs, the command, the types."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest

import kinfolk


def python(*words, **how):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, **how)


def test_importing_is_quick_and_imports_nothing_large():
    code = """
import time, sys
start = time.perf_counter()
import kinfolk
seconds = time.perf_counter() - start
print(seconds, *(name for name in ("numpy", "scipy", "sklearn", "tqdm") if name in sys.modules))
"""
    found = [python("-c", code, check=True).stdout.split() for _ in range(5)]
    assert all(len(words) == 1 for words in found)
    assert min(float(words[0]) for words in found) < 0.05


def test_scikit_learn_is_not_needed(tmp_path):
    (tmp_path / "sklearn.py").write_text("raise ImportError('not installed')")
    code = """
import kinfolk
X, y = kinfolk.synth(identities=20, dim=16)
estimator = kinfolk.Kinfolk(verbose=True).fit(X, y)
print(estimator, len(estimator.predict(X)))
"""
    found = python("-c", code, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert found.returncode == 0, found.stderr


def test_what_there_is():
    assert set(kinfolk.__all__) == set(dir(kinfolk))
    assert all(getattr(kinfolk, name) is not None for name in kinfolk.__all__)
    with pytest.raises(AttributeError, match="guess"):
        kinfolk.guess
    assert (Path(kinfolk.__file__).parent / "py.typed").exists()


def test_the_command_is_the_same_in_all_its_forms(command, tmp_path):
    script = Path(sysconfig.get_path("scripts")) / "kinfolk"
    forms = [command, [sys.executable, "-m", "kinfolk"], [str(script)]]
    for words in (
        ["--version"],
        ["cluster", "--help"],
        ["cluster"],
        ["cluster", "missing.npy"],
        ["knn", "x.npy", "-k", "0"],
    ):
        answers = [subprocess.run([*form, *words], cwd=tmp_path, capture_output=True, text=True) for form in forms]
        outputs = {(answer.returncode, answer.stdout, answer.stderr) for answer in answers}
        assert len(outputs) == 1, outputs
    assert answers[0].returncode in (1, 2)


def test_the_command_clusters(small, tmp_path):
    np.save(tmp_path / "x.npy", small[0])
    found = python("-m", "kinfolk", "cluster", "x.npy", "-o", "out", "--json", cwd=tmp_path, check=True)
    assert json.loads(found.stdout)["features"]["mapped"]
    assert (np.load(tmp_path / "out/labels.npy") == kinfolk.Kinfolk().fit_predict(small[0])).all()


@pytest.mark.skipif(sys.platform == "win32", reason="no signal reaches one process alone there")
def test_the_command_is_interrupted(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((100_000, 128), dtype=np.float32))
    words = [sys.executable, "-m", "kinfolk", "knn", "x.npy", "-o", "graph.npz", "--exact"]
    running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL)
    time.sleep(1)
    assert running.poll() is None
    sent = time.perf_counter()
    running.send_signal(signal.SIGINT)
    assert running.wait() == -signal.SIGINT
    assert time.perf_counter() - sent < 1
    assert not (tmp_path / "graph.npz").exists()
