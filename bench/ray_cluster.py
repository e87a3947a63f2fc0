#!/usr/bin/env python3
"""kinfolk.ray on a Ray cluster of three nodes on this machine, beside the command.

    python bench/ray_cluster.py features.npy [--kinfolk target/release/kinfolk] [--memory-per-worker 1500M] [--lose-nodes]

Needs an installed wheel with Ray: pip install 'kinfolk[ray]'. The rows are written as seven shards of unequal length. Prints
wall and processor time of the whole machine (so it should be idle), the largest memory of a worker, whether all files
are equal, and with --lose-nodes also what a job takes in which a node is killed by SIGKILL in every stage.
"""

import argparse
import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import ray
from ray.cluster_utils import Cluster

import kinfolk.ray
from kinfolk.ray import _cluster


def processor_seconds():
    """Of all processes of this machine since it was started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _wait, interrupts, soft, *_ = map(int, fields)
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


class Memory:
    """The largest memory of a worker, without pages of files."""

    def __init__(self):
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._stop.wait(0.05):
            for directory in Path("/proc").glob("[0-9]*"):
                try:
                    if (directory / "cmdline").read_bytes().startswith(b"ray::"):
                        status = (directory / "status").read_text()
                        self.peak = max(self.peak, int(status.split("RssAnon:")[1].split()[0]) * 1024)
                except (OSError, IndexError):
                    pass

    def stop(self):
        self._stop.set()
        self._thread.join()
        return self.peak


class Nodes:
    def __init__(self):
        self.cluster = Cluster()
        self.cluster.add_node(num_cpus=0, object_store_memory=80_000_000)
        self.nodes = [self.add() for _ in range(3)]
        ray.init(address=self.cluster.address, log_to_driver=False, logging_level="error")

    def add(self):
        return self.cluster.add_node(num_cpus=1, memory=8_000_000_000, object_store_memory=80_000_000)

    def replace_one(self):
        self.cluster.remove_node(self.nodes.pop(0), allow_graceful=False)
        self.nodes.append(self.add())


def files(directory):
    found = {path.name: path.read_bytes() for path in directory.iterdir()}
    run = json.loads(found.pop("run.json"))
    return found, run["clusters"], run["graph"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--kinfolk", default="target/release/kinfolk")
    parser.add_argument("--memory-per-worker")
    parser.add_argument("--lose-nodes", action="store_true")
    parser.add_argument("--directory", type=Path, help="for all files [default: a temporary one]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        run(options, Path(directory))


def run(options, directory):
    def timed(name, work):
        start, processor = time.monotonic(), processor_seconds()
        found = work()
        wall, processor = time.monotonic() - start, processor_seconds() - processor
        print(f"{name}: {wall:.1f} s, {processor:.1f} processor seconds", flush=True)
        return found, processor

    command = [options.kinfolk, "cluster", str(options.features), "-o", str(directory / "command")]
    _, of_command = timed("command", lambda: subprocess.run(command, check=True, capture_output=True))
    expected = files(directory / "command")

    rows = np.load(options.features, mmap_mode="r")
    bounds = [int(len(rows) * share) for share in (0, 0.01, 0.05, 0.3, 0.31, 0.6, 0.95, 1)]
    shards = []
    for begin, end in zip(bounds, bounds[1:]):
        shards.append(directory / f"shard{len(shards)}.npy")
        np.save(shards[-1], rows[begin:end])

    nodes = Nodes()
    stages = {}

    class Watched(_cluster.Progress):
        """Notes when stages begin and, if asked to, kills a node in each."""

        losses = False

        def begin(self, stage, count, done, share):
            super().begin(stage, count, done, share)
            stages[stage] = (time.monotonic(), processor_seconds())
            self._lost = not Watched.losses or stage == "partition"

        def advance(self, blocks):
            super().advance(blocks)
            if not self._lost:
                self._lost = True
                nodes.replace_one()

    _cluster.Progress = Watched

    def job(name):
        memory = Memory()
        _, processor = timed(
            name,
            lambda: kinfolk.ray.cluster(shards, directory / "out", memory_per_worker=options.memory_per_worker),
        )
        end = (time.monotonic(), processor_seconds())
        print(f"  {processor / of_command:.2f} times the processor time of the command", flush=True)
        print(f"  a worker held at most {memory.stop() / 1e9:.2f} GB besides pages of files")
        print(f"  files {'equal' if files(directory / 'out') == expected else 'DIFFER'}")
        moments = [*stages.values(), end]
        for stage, before, after in zip(stages, moments, moments[1:]):
            print(f"    {stage:32} {after[0] - before[0]:8.1f} s {after[1] - before[1]:8.1f} processor seconds")
        stages.clear()

    job("three nodes")
    if options.lose_nodes:
        Watched.losses = True
        job("three nodes, one of which is lost in every stage")
    ray.shutdown()
    nodes.cluster.shutdown()


if __name__ == "__main__":
    main()
