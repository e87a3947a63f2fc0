"""Compares the cost of the Python package with that of the command: same file, same labels, alternating runs.

    pip install .
    cargo build --release
    kinfolk synth set --identities 1500
    python bench/python_overhead.py set/features.npy --kinfolk target/release/kinfolk

Wall and processor seconds and peak memory of `kinfolk cluster` (whole process: it also writes its results) and of
`Kinfolk().fit(X)` in a fresh interpreter, with X mapped from the file and with X in memory; the medians of --repeat turns.
Then, in fresh interpreters, the seconds of `import kinfolk`. Fails if labels differ.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FIT = """
import json, resource, sys, time
import numpy as np
from kinfolk import Kinfolk
X = np.load(sys.argv[1], mmap_mode="r" if sys.argv[2] == "mapped" else None)
def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
start, before = time.perf_counter(), cpu()
found = Kinfolk().fit(X)
seconds, processor = time.perf_counter() - start, cpu() - before
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
np.save(sys.argv[3], found.labels_)
print(json.dumps({"seconds": seconds, "cpu": processor, "peak": int(peak) / 1024}))
"""

IMPORT = "import time; s = time.perf_counter(); import kinfolk; print(time.perf_counter() - s)"


def command(program, features, work):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    words = [program, "cluster", features, "-o", work / "out", "--json"]
    output = subprocess.run(words, check=True, capture_output=True).stdout
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    labels = np.load(work / "out/labels.npy")
    return {"seconds": seconds, "cpu": processor, "peak": json.loads(output)["peak_memory_bytes"] / 2**20}, labels


def fit(how, features, work):
    words = [sys.executable, "-c", FIT, features, how, work / "labels.npy"]
    output = subprocess.run(words, check=True, capture_output=True, cwd=work).stdout
    return json.loads(output), np.load(work / "labels.npy")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=os.path.abspath)
    parser.add_argument("--kinfolk", required=True, type=os.path.abspath)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    variants = {
        "kinfolk cluster": lambda work: command(arguments.kinfolk, arguments.features, work),
        "fit, X mapped": lambda work: fit("mapped", arguments.features, work),
        "fit, X in memory": lambda work: fit("memory", arguments.features, work),
    }
    runs, expected = {name: [] for name in variants}, None
    with tempfile.TemporaryDirectory() as work:
        for _ in range(arguments.repeat):
            for name, variant in variants.items():
                cost, labels = variant(Path(work))
                expected = labels if expected is None else expected
                if not np.array_equal(labels, expected):
                    sys.exit(f"{name}: labels differ from those of the command")
                runs[name].append(cost)
        imports = [
            float(subprocess.run([sys.executable, "-c", IMPORT], cwd=work, check=True, capture_output=True).stdout)
            for _ in range(10)
        ]
    print("| | wall s | CPU s | peak MB |\n|---|---:|---:|---:|")
    for name, costs in runs.items():
        seconds, processor, peak = (
            statistics.median(cost[key] for cost in costs) for key in ("seconds", "cpu", "peak")
        )
        print(f"| {name} | {seconds:.2f} | {processor:.2f} | {peak:.0f} |")
    print(f"\nimport kinfolk: median {1000 * statistics.median(imports):.0f} ms, best {1000 * min(imports):.0f} ms")


if __name__ == "__main__":
    main()
