"""Compares kinfolk's map equation with the Infomap program (PyPI `infomap`): same graph, one after the other.

    pip install numpy infomap
    kinfolk synth set --identities 1500
    cargo build --release -p kinfolk --example map_equation
    python bench/map_infomap.py set/features.npy --kinfolk target/release/kinfolk

For both kinds of flow and each threshold below which edges are left out: codelength in bits, modules, wall and
processor seconds of each. Infomap's seconds are those of its `run`, without handing it the links; kinfolk's wall seconds
begin with the kNN graph in memory, its processor seconds are those of the whole process with reading the graph.
Infomap also prices kinfolk's modules: the two must agree on what is minimised. --graph takes a graph of
`kinfolk knn` instead of searching neighbours. Fails if kinfolk's codelength is more than 0.1 % above Infomap's.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from infomap import Infomap

# Calls that work in versions 1 and 2 alike are deprecated in 2.
warnings.filterwarnings("ignore")


def network(options, ids, similarities, threshold):
    n, k = ids.shape
    keep = similarities.ravel() > threshold
    sources = np.repeat(np.arange(n, dtype=np.float64), k)[keep]
    links = np.column_stack([sources, ids.ravel()[keep], similarities.ravel()[keep].astype(np.float64)])
    infomap = Infomap(f"--two-level --silent --num-trials 1 {options}")
    infomap.add_nodes(range(n))
    infomap.add_links(links)
    return infomap


def run_kinfolk(command):
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{command[0]}: exit code {process.returncode}")
        output.seek(0)
        report = json.loads(output.read())
    return report | {"cpu": usage.ru_utime + usage.ru_stime}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="?")
    parser.add_argument("--graph", help="GRAPH.npz of `kinfolk knn`")
    parser.add_argument("--kinfolk", default="target/release/kinfolk")
    parser.add_argument("--example", default="target/release/examples/map_equation")
    parser.add_argument("-k", type=int, default=80)
    parser.add_argument("--thresholds", type=float, nargs="+", default=[0.0, 0.6])
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not (arguments.features or arguments.graph):
        parser.error("expected FEATURES or --graph GRAPH.npz")
    worst = 0
    with tempfile.TemporaryDirectory() as directory:
        graph = arguments.graph or str(Path(directory) / "graph.npz")
        if not arguments.graph:
            command = [arguments.kinfolk, "knn", arguments.features, "-k", str(arguments.k), "-o", graph]
            subprocess.run(command, check=True, capture_output=True)
        with np.load(graph) as arrays:
            ids, similarities = arrays["ids"], arrays["similarities"]
        print(f"{ids.shape[0]} x {ids.shape[1]}", flush=True)
        labels = str(Path(directory) / "labels.npy")
        for threshold in arguments.thresholds:
            for options in ["", "--directed"]:
                command = [arguments.example, graph, labels, str(threshold), "--seed", str(arguments.seed)]
                ours = run_kinfolk(command + options.split())
                print(
                    f"threshold {threshold} {options or '--undirected'}, {ours['edges']} edges\n"
                    f"  kinfolk  {ours['codelength']:.6f} bits {ours['modules']:7} modules"
                    f" {ours['seconds']:8.2f} s {ours['cpu']:8.2f} CPU-s",
                    flush=True,
                )
                priced = network(options, ids, similarities, threshold)
                priced.initial_partition = dict(enumerate(np.load(labels).tolist()))
                priced.run("--no-infomap")
                difference = abs(priced.codelength / ours["codelength"] - 1)
                del priced

                theirs = network(f"{options} --seed {max(1, arguments.seed)}", ids, similarities, threshold)
                wall, cpu = time.perf_counter(), time.process_time()
                theirs.run()
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                excess = ours["codelength"] / theirs.codelength - 1
                worst = max(worst, excess)
                print(
                    f"  Infomap  {theirs.codelength:.6f} bits {theirs.num_top_modules:7} modules"
                    f" {wall:8.2f} s {cpu:8.2f} CPU-s\n"
                    f"  kinfolk's codelength {100 * excess:+.4f} %, {wall / ours['seconds']:.1f} times faster;"
                    f" Infomap's price of its modules differs by {difference:.1e}",
                    flush=True,
                )
    if worst > 1e-3:
        sys.exit("a codelength is more than 0.1 % above Infomap's")


if __name__ == "__main__":
    main()
