"""Ctrl-C ends work within a second and leaves no thread behind."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import kinfolk
from kinfolk import Album, Kinfolk, baselines

# A second on an idle machine, and work that cannot be interrupted takes longer than this; others may be using this one.
ALLOWED = 3.0

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")


@pytest.fixture(autouse=True)
def listens():
    """Python's own handler, also where SIGINT is ignored, as in what a shell runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_after(delay, work):
    """Seconds from Ctrl-C to its exception."""
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(delay, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        return time.perf_counter() - sent[0]
    finally:
        timer.cancel()


def threads():
    """How many there are, where the system says so."""
    return len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 0


@pytest.fixture(scope="module")
def large():
    """Enough for some seconds of any work."""
    return kinfolk.synth(identities=1000, dim=128)


@pytest.mark.parametrize("delay", [0.2, 0.6, 1.2, 2.0])
def test_fit_is_interrupted_in_every_stage(delay, large):
    before = threads()
    assert interrupted_after(delay, lambda: [Kinfolk().fit(large[0]) for _ in range(10)]) < ALLOWED
    # They end on their own, soon.
    deadline = time.perf_counter() + ALLOWED
    while threads() > before and time.perf_counter() < deadline:
        time.sleep(0.01)
    assert threads() <= before


@pytest.mark.parametrize("method, delays", [("kin", [1.5, 5.0]), ("gcn-ve", [1.5, 5.0])])
def test_training_is_interrupted(method, delays, large):
    X, y = large
    for delay in delays:
        assert interrupted_after(delay, lambda: [Kinfolk(method).fit(X, y) for _ in range(10)]) < ALLOWED


@pytest.mark.parametrize("name", ["kmeans", "infomap", "aro", "dbscan", "meanshift", "hdbscan", "chinese_whispers"])
def test_baselines_are_interrupted(name, large):
    X, _ = large
    how = (
        {"clusters": 1000} if name == "kmeans" else {"k": 80} if name in ("infomap", "aro", "chinese_whispers") else {}
    )
    method = getattr(baselines, name)
    assert interrupted_after(0.5, lambda: [method(X, **how) for _ in range(50)]) < ALLOWED


@pytest.mark.parametrize("delay, part", [(0.3, 0.5), (2.0, 0.5), (0.5, 0.95), (1.5, 0.95)])
def test_an_interrupted_addition_changes_nothing(delay, part, large, tmp_path):
    X, _ = large
    X = X[::4]
    start = int(part * len(X))
    # With half of the rows it doubles, and everything is clustered anew.
    album = Album.create(tmp_path / "album", X[:start])
    labels = album.labels

    def add():
        while True:
            album.add(X[start:])
            album.undo()

    assert interrupted_after(delay, add) < ALLOWED
    last = album.history()[0]
    assert len(album) == (len(X) if last.operation == "add" else start)
    if last.operation == "add":
        album.undo()
    assert (album.labels == labels).all() and album.verify().damages == []


def test_predicting_is_interrupted(large):
    X, _ = large
    found = Kinfolk().fit(X[::4])
    for delay in (0.2, 2.0):
        assert interrupted_after(delay, lambda: [found.predict(X) for _ in range(50)]) < ALLOWED
    assert (found.predict(X[::4]) == found.labels_).all()


def test_a_failing_progress_bar_ends_the_work(large, monkeypatch):
    from kinfolk import _work

    def fail(*_):
        raise RuntimeError("no terminal")

    monkeypatch.setattr(_work.Bars, "__call__", fail)
    start = time.perf_counter()
    with pytest.raises(RuntimeError, match="no terminal"):
        Kinfolk(verbose=True).fit(large[0])
    assert time.perf_counter() - start < 2 * ALLOWED


def test_other_threads_run_meanwhile(large):
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.01)

    ticking = threading.Thread(target=tick)
    ticking.start()
    kinfolk.knn_graph(large[0], recall=1)
    done.set()
    ticking.join()
    # Work that holds the interpreter would stop them for all of it.
    assert len(ticks) > 10 and np.diff(ticks).max() < ALLOWED
