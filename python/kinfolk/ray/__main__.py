"""``python -m kinfolk.ray cluster``: :func:`kinfolk.ray.cluster` as a command."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

from . import cluster

_EXAMPLE = """\
Example:  python -m kinfolk.ray cluster /shared/faces-*.npy -o /shared/people --address auto --memory-per-worker 2G
          writes what kinfolk cluster writes: labels.npy, clusters.csv, review.csv and run.json

All nodes must see the shards and the directory of the job. Type the command again after an interruption."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kinfolk.ray", description="kinfolk on a Ray cluster")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "cluster",
        help="cluster the rows of one file or several",
        description="Cluster the rows of one file or several by kin, with the labels of `kinfolk cluster` on all of them",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add("paths", nargs="+", metavar="SHARD", help=".npy, .npz, .parquet or .bin; rows are numbered through all of them")
    add("-o", dest="output", required=True, metavar="DIR", help="directory to write to")
    add("--address", metavar="ADDR", help="the Ray cluster, such as auto or HOST:PORT [default: this machine alone]")
    add("--memory-per-worker", metavar="BYTES", help="memory of a worker besides pages of mapped files, such as 2G")
    add("--work", metavar="DIR", help="directory of the job, removed at the end [default: that of -o with -work]")
    add("-k", type=int, metavar="K", help="neighbours of each row [default: 80]")
    add("--recall", type=float, metavar="R", help="share of true neighbours to find [default: 1 for small sets, else 0.98]")
    add("--prefer", metavar="WHAT", help="precision, recall, balanced, or a probability [default: balanced]")
    add("--identity-size", type=float, metavar="ROWS", help="rows of a typical identity, if known")
    add("--dim", type=int, metavar="D", help="columns of .bin files")
    add("--array", metavar="NAME", help="array of .npz files or column of .parquet files")
    add("--seed", dest="random_state", type=int, default=0, metavar="S", help="random seed [default: 0]")
    add("--parquet", action="store_true", help="write clusters.parquet instead of clusters.csv")
    add("--json", action="store_true", help="print the counts as JSON")
    given = vars(parser.parse_args(arguments))
    as_json = given.pop("json")
    start = time.monotonic()
    try:
        found = cluster(verbose=sys.stderr.isatty(), **given)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    except (ImportError, MemoryError, OSError, RuntimeError, ValueError) as error:
        print(f"error: {_text(error)}", file=sys.stderr)
        return 1
    if as_json:
        print(json.dumps(found))
    else:
        print(
            f"{found['rows']} rows -> {found['clusters']} clusters ({found['singletons']} of one row, largest "
            f"{found['largest']}), {time.monotonic() - start:.2f} s -> {given['output']}"
        )
    return 0


def _text(error: BaseException) -> str:
    """As the command ``kinfolk`` says it: the file, then what is wrong with it."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or str(error)).lower()}"
    return str(error)


if __name__ == "__main__":
    sys.exit(main())
