"""Clustering on Ray: three nodes on this machine, each with a raylet of its own."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import kinfolk

ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402

import kinfolk.ray  # noqa: E402
from kinfolk.ray import _cluster  # noqa: E402


class Nodes:
    """A Ray cluster of three nodes with a processor each."""

    def __init__(self):
        self.cluster = Cluster()
        # The first node is where jobs are led; it does not run blocks, so any of the others may be lost.
        self.head = self.cluster.add_node(num_cpus=0, object_store_memory=80_000_000)
        self.workers = []
        self.refill()
        ray.init(address=self.cluster.address, log_to_driver=False, logging_level="error")

    def refill(self):
        while len(self.workers) < 3:
            self.workers.append(self.cluster.add_node(num_cpus=1, memory=2_000_000_000, object_store_memory=80_000_000))

    def kill_one(self):
        """Sends SIGKILL to all processes of a node."""
        node = self.workers.pop(0)
        self.cluster.remove_node(node, allow_graceful=False)

    def close(self):
        ray.shutdown()
        self.cluster.shutdown()


@pytest.fixture(scope="module")
def nodes():
    nodes = Nodes()
    yield nodes
    nodes.close()


@pytest.fixture(scope="module")
def rows():
    """About 10,000 rows."""
    return kinfolk.synth(identities=150, dim=64, seed=4)[0]


def shards(directory, parts):
    paths = [str(directory / f"shard{i}.npy") for i in range(len(parts))]
    for path, part in zip(paths, parts):
        np.save(path, part)
    return paths


def files(directory):
    """What a command wrote, without what differs from run to run."""
    found = {path.name: path.read_bytes() for path in Path(directory).iterdir()}
    run = json.loads(found.pop("run.json"))
    return found, run["clusters"], run["graph"]


def by_command(command, directory, rows, *options):
    """What the command writes for one file of all rows."""
    directory.mkdir()
    np.save(directory / "whole.npy", rows)
    words = [*command, "cluster", str(directory / "whole.npy"), "-o", str(directory / "out"), *options]
    subprocess.run(words, check=True, capture_output=True)
    return files(directory / "out")


@contextmanager
def on_stage(monkeypatch, wanted, action):
    """Does something once the first block of each wanted stage is done; yields the stages in which it was done."""
    done = []

    class Watched(_cluster.Progress):
        def advance(self, blocks):
            super().advance(blocks)
            if any(self._stage.startswith(name) for name in wanted) and self._stage not in done:
                done.append(self._stage)
                action()

    with monkeypatch.context() as patch:
        patch.setattr(_cluster, "Progress", Watched)
        yield done


@pytest.mark.parametrize("memory", [None, "240M", "500M"])
def test_all_files_are_those_of_the_command(nodes, command, rows, tmp_path, memory):
    paths = shards(tmp_path, np.split(rows, [17, 18, 6000]))
    expected = by_command(command, tmp_path / "command", rows, "--recall", "0.97", "--seed", "5")
    found = kinfolk.ray.cluster(paths, tmp_path / "out", memory_per_worker=memory, recall=0.97, random_state=5)
    assert files(tmp_path / "out") == expected
    labels = np.load(tmp_path / "out" / "labels.npy")
    assert found["rows"] == len(rows) and found["clusters"] == len(set(labels.tolist()))
    assert not (tmp_path / "out-work").exists()


def test_shards_of_other_types_and_formats(nodes, command, rows, tmp_path):
    rows = rows[:3000]
    halves = rows.astype(np.float16)
    expected = by_command(command, tmp_path / "halves", halves)
    kinfolk.ray.cluster(shards(tmp_path, np.split(halves, [2999])), tmp_path / "of-halves")
    assert files(tmp_path / "of-halves") == expected

    expected = by_command(command, tmp_path / "mixed", rows)
    first, second, third = np.split(rows, [1100, 1800])
    np.save(tmp_path / "first.npy", first.astype(np.float64))
    second.tofile(tmp_path / "second.bin")
    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(third.ravel()), third.shape[1])
    pyarrow.parquet.write_table(pyarrow.table({"embedding": column}), tmp_path / "third.parquet", row_group_size=500)
    paths = [tmp_path / name for name in ("first.npy", "second.bin", "third.parquet")]
    kinfolk.ray.cluster(paths, tmp_path / "of-mixed", dim=64, parquet=True)
    assert (np.load(tmp_path / "of-mixed" / "labels.npy") == np.load(tmp_path / "mixed" / "out" / "labels.npy")).all()
    written = pyarrow.parquet.read_table(tmp_path / "of-mixed" / "clusters.parquet")
    assert written.num_rows == len(rows)
    assert files(tmp_path / "of-mixed")[1] == expected[1]


def test_a_node_may_be_lost_in_every_kind_of_stage(nodes, command, rows, tmp_path, monkeypatch):
    expected = by_command(command, tmp_path / "command", rows, "--recall", "0.97")
    wanted = ("rows", "k-means-2", "neighbours-0", "additions-0-0", "background", "edges", "cross-check")

    def lose():
        nodes.kill_one()
        nodes.refill()

    with on_stage(monkeypatch, wanted, lose) as lost:
        kinfolk.ray.cluster(shards(tmp_path, np.split(rows, [4000])), tmp_path / "out", memory_per_worker="240M", recall=0.97)
    assert len(lost) == len(wanted), lost
    assert files(tmp_path / "out") == expected


def test_a_job_goes_on_after_its_driver_was_killed(nodes, command, rows, tmp_path):
    expected = by_command(command, tmp_path / "command", rows, "--recall", "0.97")
    paths = shards(tmp_path, np.split(rows, [4000]))
    words = [sys.executable, "-m", "kinfolk.ray", "cluster", *paths, "-o", str(tmp_path / "out"), "--recall", "0.97"]
    words += ["--address", nodes.cluster.address, "--work", str(tmp_path / "work"), "--json"]
    for stage in ("lists", "neighbours-0", "edges"):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # The directory of a stage is made when it begins.
        while not (tmp_path / "work" / stage).exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "out").exists()
    other = [word if word != "0.97" else "0.9" for word in words]
    refused = subprocess.run(other, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "expected a job with recall 0.9 (remove the directory to begin anew), found recall 0.97" in refused.stderr
    found = subprocess.run(words, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["rows"] == len(rows)
    assert files(tmp_path / "out") == expected


def test_bad_shards_are_named_as_by_the_command(nodes, rows, tmp_path):
    parts = np.split(rows[:1000], 10)
    parts[7] = parts[7].copy()
    parts[7][12, 3] = np.nan
    paths = shards(tmp_path, parts)
    with pytest.raises(ValueError, match=r"shard7\.npy: row 12, column 3: expected a finite number, found NaN"):
        kinfolk.ray.cluster(paths, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    np.save(paths[7], parts[6][:, :32])
    with pytest.raises(ValueError, match=r"shard7\.npy: expected 64 columns, as in .*shard0\.npy, found 32"):
        kinfolk.ray.cluster(paths, tmp_path / "others")
    os.remove(paths[7])
    with pytest.raises(FileNotFoundError, match=r"shard7\.npy"):
        kinfolk.ray.cluster(paths, tmp_path / "missing")
    Path(paths[7]).write_bytes(Path(paths[6]).read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"shard7\.npy: expected \d+ bytes of data"):
        kinfolk.ray.cluster(paths, tmp_path / "cut")


def test_what_cannot_be_kept_is_refused(nodes, rows, tmp_path):
    paths = shards(tmp_path, [rows[:100]])
    with pytest.raises(MemoryError, match="a block of a job needs 235 MB of memory, 100 MB may be used"):
        kinfolk.ray.cluster(paths, tmp_path / "out", memory_per_worker="100M")
    with pytest.raises(ValueError, match="memory_per_worker: expected a number of bytes above 0, such as 2G"):
        kinfolk.ray.cluster(paths, tmp_path / "out", memory_per_worker="much")
    with pytest.raises(MemoryError, match="expected at most what a node offers, 2.0 GB, found 50.0 GB"):
        kinfolk.ray.cluster(paths, tmp_path / "large", memory_per_worker="50G")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="file: expected a directory to write to, found a file"):
        kinfolk.ray.cluster(paths, tmp_path / "file")


def test_a_full_disk_is_an_error_and_the_job_goes_on(rows, tmp_path):
    """Without Ray, whose files must not be limited: the same blocks in one process."""
    paths = shards(tmp_path, [rows[:2000]])
    np.save(tmp_path / "expected.npy", kinfolk.cluster(rows[:2000]))
    code = f"""
import resource, sys
from kinfolk import _kinfolk
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
job = _kinfolk.Job.create({str(tmp_path / "job")!r}, {paths!r})
while (stage := job.next_stage()) is not None:
    for block in stage[2]:
        job.run(stage[0], block)
    job.finish(stage[0])
job.write({str(tmp_path / "out")!r})
"""
    failed = 0
    for limit in (100, 1_000, 20_000, 300_000, 550_000, 1_200_000, resource.RLIM_INFINITY):
        found = subprocess.run([sys.executable, "-c", code, str(limit)], capture_output=True, text=True)
        if found.returncode != 0:
            failed += 1
            assert "OSError" in found.stderr and "File too large" in found.stderr, found.stderr
            assert not (tmp_path / "out" / "labels.npy").exists()
    assert failed >= 4
    assert (np.load(tmp_path / "out" / "labels.npy") == np.load(tmp_path / "expected.npy")).all()


def test_ctrl_c_ends_a_job_that_goes_on(nodes, rows, tmp_path, monkeypatch):
    paths = shards(tmp_path, [rows])
    # Shells let programs in the background ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with on_stage(monkeypatch, ["edges"], lambda: os.kill(os.getpid(), signal.SIGINT)) as done:
        with pytest.raises(KeyboardInterrupt):
            kinfolk.ray.cluster(paths, tmp_path / "out")
    signal.signal(signal.SIGINT, before)
    assert done and (tmp_path / "out-work").exists()
    kinfolk.ray.cluster(paths, tmp_path / "out")
    assert (np.load(tmp_path / "out" / "labels.npy") == kinfolk.cluster(rows)).all()


def test_progress_goes_from_0_to_100(nodes, rows, tmp_path, capsys):
    kinfolk.ray.cluster(shards(tmp_path, [rows[:500]]), tmp_path / "out", verbose=True)
    shown = capsys.readouterr().err
    assert "job:   0%" in shown and "shapes: 0 of 1 blocks" in shown and "job: 100%" in shown


def test_ray_is_not_needed_by_the_package(tmp_path):
    (tmp_path / "ray.py").write_text("raise ImportError('not installed')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = [sys.executable, "-m", "kinfolk.ray", "cluster", "faces.npy", "-o", "out"]
    found = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert (found.returncode, found.stderr) == (1, "error: kinfolk.ray needs Ray: pip install 'kinfolk[ray]'\n")
